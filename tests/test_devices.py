"""Every method on a device that is only pretended, so that what a GPU refuses or waits for shows without one.

Its tensors say that they lie on ``lazy:0``, hold their values on the CPU, and refuse to be mixed with the CPU's. What
makes the processor wait for a GPU is known by its kind: a value is read, a shape depends on values, a copy blocks.
"""

import traceback
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from methods import CASES, PIXELS, TINY, federation, label, pixel_federation, same, train, trained
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import fednb
from fednb.federation import Federation
from fednb.loop import evaluate
from fednb.loop.client import Client
from fednb.loop.loop import FederatedRun
from fednb.methods.algorithms.fedavg import FedAvg
from fednb.recipe import Recipe

PACKAGE = Path(fednb.__file__).parent
aten = torch.ops.aten
HERE, THERE = torch.device("cpu"), torch.device("lazy", 0)  # torch runs a lazy device's backward passes in this thread
COPIES = (aten._to_copy.default, aten.copy_.default, aten._foreach_copy_.default)
READING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Elsewhere(torch.Tensor):
    """A tensor on the pretended device; ``held`` has its values, on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: torch.Tensor):
        form = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, held.size(), **form, device=THERE)

    def __init__(self, held: torch.Tensor):
        self.held = held

    def tolist(self):
        return self.cpu().tolist()

    def __matmul__(self, other):  # torch's own squeezes the product of a vector and a matrix in place
        return (self[None] @ other)[0] if self.dim() < other.dim() else super().__matmul__(other)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"{func} outside of Pretended()")


class Mixed(RuntimeError):
    pass


class Pretended(TorchDispatchMode):
    """Inside, the device can be used. waits: how often the processor waited for it, by the line of the package."""

    def __init__(self):
        super().__init__()
        self.waits = {"in epochs": Counter(), "between": Counter()}
        self.time = "between"

    def __enter__(self):
        self.before = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # what is made from numbers is made here and copied
        return super().__enter__()

    def __exit__(self, *error):
        torch._C._set_only_lift_cpu_tensors(self.before)
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
        if THERE not in devices and not any(isinstance(tensor, Elsewhere) for tensor in tensors):
            return func(*args, **kwargs)
        target = devices[0] if devices else tensors[0].device if func in COPIES else THERE
        if func not in COPIES:
            refuse_mixed(func, tensors)
        if target == THERE and any(isinstance(leaf, torch.Generator) for leaf in leaves):
            raise Mixed(f"{func}: a generator of the CPU draws on {THERE}")
        if waits(func, tensors, target, leaves):
            self.waits[self.time][f"{caller()} {func}"] += 1
        found = func(*tree_map(held, args), **tree_map(held, kwargs))
        if torch.Tag.inplace_view in func.tags:
            raise NotImplementedError(f"{func} on {THERE}: a tensor there shows one shape for life")
        given = {id(held(tensor)): tensor for tensor in tensors}

        def placed(value):
            if not isinstance(value, torch.Tensor) or target == HERE:
                return value
            return given.get(id(value)) if id(value) in given else Elsewhere(value)

        return tree_map(placed, found)


def held(value):
    """What the CPU computes with in the place of a pretended tensor or device."""
    if isinstance(value, Elsewhere):
        return value.held
    return HERE if isinstance(value, torch.device) else value


def refuse_mixed(func, tensors: list[torch.Tensor]) -> None:
    """As a GPU does: beside its tensors the CPU may only have single numbers, and write to none."""
    here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere)]
    wrong = [tensor for tensor in here if tensor.dim() or (func._schema.is_mutable and tensor is tensors[0])]
    if wrong and len(here) < len(tensors):
        raise Mixed(f"{func}: {list(wrong[0].shape)} on the CPU beside what is on {THERE}")


def waits(func, tensors: list[torch.Tensor], target: torch.device, leaves: list) -> bool:
    """Whether the processor must wait for the device, as CUDA's documentation and torch's tags have it."""
    if func in COPIES and tensors[-1].device != target:
        return target == HERE or not any(leaf is True for leaf in leaves)  # the one flag of a copy is non_blocking
    if "index" in str(func):  # numbers as indices are no reading, a mask is: how many it chooses
        return any(tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors[1:])
    return bool(READING & set(func.tags))


def caller() -> str:
    """The line of the package that torch was called from."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_stack()]
    own = [f"{path.relative_to(PACKAGE)}:{line}" for path, line in frames if path.is_relative_to(PACKAGE)]
    return own[-1] if own else "outside of it:"


def one_hot(targets: torch.Tensor, classes: int) -> torch.Tensor:
    """torch's own reads the largest class, but not on CUDA."""
    return torch.zeros(*targets.shape, classes, dtype=torch.int64, device=targets.device).scatter_(
        -1, targets[..., None], 1
    )


@pytest.fixture
def pretended(monkeypatch):
    """The device, which knows a local epoch when it sees one."""
    device, batches = Pretended(), Client._batches

    def noted(self, epochs):
        device.time = "in epochs"
        yield from batches(self, epochs)
        device.time = "between"

    monkeypatch.setattr(Client, "_batches", noted)
    monkeypatch.setattr(F, "one_hot", one_hot)
    monkeypatch.setattr(evaluate, "scores", torch.no_grad()(evaluate.scores.__wrapped__))  # wrapped tensors need it
    optimisers = import_module("torch.optim.optimizer")
    monkeypatch.setattr(optimisers, "_get_fused_kernels_supported_devices", lambda: [HERE.type, THERE.type])
    monkeypatch.setattr(Client, "autocast", lambda client: nullcontext())
    return device


def run_on(device: Pretended, settings: dict, data: Federation | None = None) -> tuple[list[dict], dict]:
    """Two rounds there, and the state in which they end, here."""
    with device:
        run = FederatedRun(Recipe(**TINY | settings), data or federation(), THERE)
        rounds = [run.advance() for _ in range(2)]
        return rounds, tree_map(held, run.state())


@pytest.mark.parametrize("case", CASES, ids=label)
def test_on_another_device_it_is_the_same_run_and_no_local_epoch_waits_for_it(case, pretended):
    """device: make tensors on client.device, copy draws there without blocking, read no value in a local epoch"""
    rounds, _ = run_on(pretended, case)
    assert rounds == trained(case).rounds[:2]
    assert not pretended.waits["in epochs"]


def test_masks_on_another_device_are_the_same_run(pretended):
    settings = PIXELS | {"algorithm": "fedbn", "augmentations": ["fedrdn", "fedfa"]}
    here = train(settings, pixel_federation(), rounds=2)
    rounds, state = run_on(pretended, settings, pixel_federation())
    assert rounds == here.rounds and same(state, here.run.state())
    assert not pretended.waits["in epochs"]


def test_what_a_gpu_refuses_is_refused(pretended, monkeypatch):
    monkeypatch.setattr(FedAvg, "loss", lambda *given: (given[2].logits * torch.zeros(3)).mean())
    with pytest.raises(Mixed):
        run_on(pretended, {})


@pytest.mark.parametrize("read", [lambda logits: logits.sum().item(), lambda logits: logits[logits > 0]])
def test_what_a_gpu_is_waited_for_is_found(read, pretended, monkeypatch):
    monkeypatch.setattr(FedAvg, "after_step", lambda self, client, batch: read(batch.logits.detach()))
    rounds, _ = run_on(pretended, {})
    assert rounds == trained({"algorithm": {"name": "fedavg"}}).rounds[:2]
    assert list(pretended.waits["in epochs"].values()) == [12]  # the steps of two rounds
