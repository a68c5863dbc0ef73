"""The network and the methods of a recipe: server and clients make them alike, wherever they are."""

import ctypes
from collections.abc import Iterable, Mapping
from contextlib import suppress
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from fednb import models
from fednb.errors import RecipeError, RunError
from fednb.federation import Outline
from fednb.methods import DTYPES, TASKS, Message, Method, overrides, owners
from fednb.randomness import seeded
from fednb.recipe import Recipe
from fednb.registry import make, task

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # <malloc.h>

_STATES: WeakKeyDictionary[nn.Module, Message] = WeakKeyDictionary()


def build(recipe: Recipe, outline: Outline, device: str | torch.device = "cpu") -> tuple[nn.Module, list[Method]]:
    """The network as it is before round 1, on the device, and the methods, the algorithm first. RecipeError where
    network, method or evaluation is not for the task, or a method has no value for unseen sites."""
    _keep_freed_memory()
    torch.backends.cudnn.allow_tf32 = False  # fp32 means fp32
    model = models.build(recipe.model, outline.image_shape, len(outline.classes), recipe.seed)
    model, methods = _with_methods(model, recipe, outline)
    form: dict = {"dtype": DTYPES[recipe.precision], "memory_format": torch.channels_last}
    return model.to(device, **form), methods


def _keep_freed_memory() -> None:
    """Where the C library is glibc, large blocks are not handed back to the kernel, which would clear them every time.
    AlexNet's step (width 4096, 256 x 256, bf16, batch 32) took 0.51 s instead of 0.65 s on one core with it."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def rehearse(recipe: Recipe) -> None:
    """Raises what ``build`` would, before any image is loaded: of a network for small images of two classes, if any."""
    federation = recipe.full["federation"]
    outline = Outline(federation["name"], ("one", "other"), (3, 64, 64), task(federation))
    try:
        model = models.build(recipe.model, outline.image_shape, len(outline.classes))
    except Exception:  # whatever a network from outside raises
        return
    _with_methods(model, recipe, outline)


def state_of(model: nn.Module) -> Message:
    """The network's own entries, by the names of ``state_dict``: made once, as they are changed in place alone."""
    if model not in _STATES:
        _STATES[model] = model.state_dict()
    return _STATES[model]


def require_same(found: Message, expected: Mapping, sender: str, what: str = "the network here") -> None:
    """RunError, naming the entry, where a message has not all that are expected, in their shapes, and no others.

    expected: what has a ``shape``, by name. sender, what: who sent them and what says so, in words.
    """
    for name in dict.fromkeys([*expected, *found]):
        came, here = found.get(name), expected.get(name)
        if came is None or here is None or came.shape != here.shape:
            shapes = ["none" if side is None else list(side.shape) for side in (came, here)]
            advice = "All that take part need the same recipe, the same classes and the same version of fednb"
            raise RunError(f"{name} is {shapes[0]} in what {sender} sent and {shapes[1]} in {what}. {advice}.")


def all_finite(values: Iterable[Tensor]) -> Tensor:
    """Whether no number is NaN or infinite, one bool where they lie: a GPU is not waited for. By the largest magnitude
    of each: a sum of squares can overflow where every number is finite."""
    alike: dict[tuple, list[Tensor]] = {}
    for value in values:
        if value.is_floating_point() and value.numel():
            alike.setdefault((value.dtype, value.device), []).append(value)
    found = torch.tensor(True)
    for each in alike.values():
        found = torch.stack(torch._foreach_norm(each, torch.inf)).isfinite().all() & found
    return found


def _with_methods(model: nn.Module, recipe: Recipe, outline: Outline) -> tuple[nn.Module, list[Method]]:
    """The network as the methods change it, and they."""
    methods = [make("algorithms", recipe.algorithm)]
    methods += [make("augmentations", augmentation) for augmentation in recipe.augmentations]
    for method in methods:
        method.tasks.require(method.name, outline.task, outline.name)
    owners(methods)
    task, head = TASKS[outline.task], getattr(model, "head", None)
    if not isinstance(head, task.head):
        raise RecipeError(
            f"{recipe.full['model']['name']} has no last layer named head of the type {task.head.__name__} (found "
            f"{type(head).__name__}), and {outline.name} has {task.asks}. Take a network for {task.name}."
        )
    for name, suited in (("features", "classification"), ("masks", "segmentation")):
        if name in recipe.evaluation and task.name != suited:
            raise RecipeError(f'the evaluation "{name}" is of {suited}; {outline.name} has {task.asks}. Leave it out.')
    for method in methods:
        with seeded(recipe.seed, method.name, "build"):
            model = method.build(model)
    for method in methods if recipe.unseen else ():
        if method.keeps(model) and not overrides(method, "unseen"):
            raise RecipeError(
                f"{method.name} keeps entries of the network at its clients and has no value for them at an unseen one "
                f"({', '.join(recipe.unseen)}). Leave unseen empty, or take another method."
            )
    return model, methods
