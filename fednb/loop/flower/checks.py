"""What a client elsewhere may reply to each call: names, shapes, types, finite, ranges, before anything is made of it.

What has the right form and lies in range is believed. A client that sends such numbers on purpose can still ruin a run:
aggregation that is robust against it is a method of its own, which is not here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fednb.errors import RunError
from fednb.federation import IGNORED, SPLITS
from fednb.loop.evaluate import whole
from fednb.loop.flower.handshake import Introduction, is_printable
from fednb.loop.network import require_same, require_shapes, state_of
from fednb.methods import Message, Method, entries

if TYPE_CHECKING:
    from fednb.recipe import Recipe

LARGEST = 1e9  # of a number in a reply: a network of larger ones computes what is no number at every other client
GROWTH = 1e2  # of a parameter in a round, against the largest that was sent, or 1: a larger one ruins the others' runs
OF_METHODS = ("offer", "work")  # the calls that methods add to

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Entry:
    """An entry that is expected: its numbers from ``least`` to ``most``, no others where ``ends``, and NaN where
    ``gaps``."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    least: float = -LARGEST
    most: float = LARGEST
    ends: bool = False
    gaps: bool = False


def require(
    reply, kind: str, round: int, client: Introduction, model: nn.Module, sent: Message, methods: list[Method], recipe
) -> Message:
    """The reply, of which nothing is believed; RunError, naming the entry, where it is none to this call.

    client: what it said of itself. model: a network as its own. sent: the entries of it that are sent, as the server
    has them. Methods' entries: see ``Method.own_lengths`` and ``Method.counts``.
    """
    if not isinstance(reply, dict) or not all(map(is_printable, reply)):
        raise RunError(f"expected named tensors; {client.site} sent {brief(reply)}.")
    for name, value in reply.items():
        plain = isinstance(value, Tensor) and value.layout is torch.strided and value.device.type != "meta"
        if not plain or value.dtype not in _FLOATS + _WHOLE:
            raise RunError(f"{name} is {_form(value)} in what {client.site} sent; expected a tensor of real numbers.")
    added = {name: value for name, value in reply.items() if kind in OF_METHODS and _method(name, methods)}
    own = {name: value for name, value in reply.items() if name not in added}
    wanted = {"after": Entry(torch.int64, (), -1, round)} | expected(kind, round, client, model, sent, recipe)
    require_same(own, wanted, client.site, "what is expected")
    for name, value in own.items():
        if value.dtype != wanted[name].dtype:
            raise RunError(f"{name} is {value.dtype} in what {client.site} sent; expected {wanted[name].dtype}.")
        _require_range(name, value, wanted[name], client.site)
    if kind == "compare" and (reply["common"] > torch.minimum(reply["found"], reply["truth"])).any():
        raise RunError(f"masks have more in common than they have in what {client.site} sent.")
    require_shapes(added, model, client.site)
    for name, value in added.items():
        method, entry = _method(name, methods), name.partition("/")[2]
        ends = (0, _most_seen(client.images[0], recipe)) if entry in method.counts else method.ranges.get(entry, ())
        _require_range(name, value, Entry(value.dtype, (), *ends), client.site)
    _require_lengths(added, methods, max(client.images[0], len(client.outline.classes)), client.site)
    return reply


def expected(
    kind: str, round: int, client: Introduction, model: nn.Module, sent: Message, recipe: Recipe
) -> dict[str, Entry]:
    """The entries of a reply beside ``after`` and what methods add."""
    images = dict(zip((*SPLITS, "spare"), client.images, strict=False))
    train, test = images["train"], images["test"]
    classes, segmentation = len(client.outline.classes), client.outline.task == "segmentation"
    shown, number, dense = min(1, test), whole(classes), client.outline.image_shape[1:] if segmentation else ()
    pixels = math.prod(client.outline.image_shape[1:])
    if kind == "offer":
        return {"images": Entry(torch.int64, (), train, train)}
    if kind == "work":
        last = round == recipe.rounds and "cross_site" in recipe.evaluation
        local = {n: Entry(value.dtype, tuple(value.shape)) for n, value in state_of(model).items()} if last else {}
        return {"loss": Entry(torch.float64, ())} | _grown(sent, model) | entries("local", local)
    if kind == "represent":
        head: Any = model.head
        features = Entry(torch.float32, (test, head.in_features))
        return {"features": features, "targets": Entry(torch.int64, (test,), 0, classes - 1)}
    if kind == "show":
        return {
            "images": Entry(torch.uint8, (shown, *client.outline.image_shape)),
            "targets": Entry(number, (shown, *dense), 0, IGNORED if segmentation else classes - 1),
            "predictions": Entry(number, (shown, *dense), 0, classes - 1),
        }
    if kind == "compare":
        counts = Entry(torch.int32, (test, classes), 0, pixels)
        return dict.fromkeys(("common", "found", "truth"), counts) | {
            "distances": Entry(torch.float32, (test, classes - 1), 0, pixels, gaps=True),
            "volumes": Entry(torch.int32, (test,)),
        }
    scored = {"test": recipe.scored(round), "visit": ["test"], "measure": ["test"]}.get(kind, [])
    return {split: Entry(torch.float64, (images[split],), 0, 1, ends=not segmentation) for split in scored}


def require_alike(forms: dict[str, tuple[str, ...]], method_names: str) -> None:
    """RunError, naming two clients, where their replies, by name as ``form`` has them, differ.

    All of them were sent the same entries.
    """
    (first, common), *others = forms.items()
    for name, own in others:
        if own != common:
            pairs = (own, common), (common, own)
            here, there = ("; ".join(sorted({*one} - {*other})) or "nothing" for one, other in pairs)
            raise RunError(
                f"{here} in what {name} sent and {there} in what {first} sent, both for {method_names}. "
                "One of them has another recipe, or is not honest."
            )


def form(reply: Message, methods: list[Method]) -> tuple[str, ...]:
    """What methods added, without its numbers, and without the lengths that are each client's own."""
    added = {name: value for name, value in reply.items() if _method(name, methods)}
    return tuple(f"{name} is {_form(value, _has_own_length(name, methods))}" for name, value in sorted(added.items()))


def _form(value, own_length: bool = False) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    shape = ["any" if own_length and number == 0 else size for number, size in enumerate(value.shape)]
    return f"{str(value.dtype).removeprefix('torch.')} [{', '.join(map(str, shape))}]"


def _require_range(name: str, value: Tensor, wanted: Entry, sender: str) -> None:
    value = value[~value.isnan()] if wanted.gaps else value
    if not value.numel():
        return
    low, high = (end.item() for end in value.aminmax())  # NaN where one is among them
    if not (wanted.least <= low and high <= wanted.most):
        raise RunError(
            f"{name} goes from {low:g} to {high:g} in what {sender} sent; expected {wanted.least:g} to {wanted.most:g}."
        )
    if wanted.ends and not ((value == wanted.least) | (value == wanted.most)).all():
        raise RunError(f"{name} has other numbers than {wanted.least} and {wanted.most} in what {sender} sent.")


def _most_seen(images: int, recipe: Recipe) -> float:
    """Images or steps that a client of so many images can count in a round; momentum makes more of each."""
    return max(images * recipe.local_epochs, recipe.local_steps) / (1 - recipe.momentum)


def _require_lengths(added: Message, methods: list[Method], most: int, sender: str) -> None:
    """One length for each method's entries of ``own_lengths``, and at most so many rows."""
    first: dict[str, tuple[str, int]] = {}
    for name, value in added.items():
        if not (value.ndim and _has_own_length(name, methods)):
            continue
        other, expected = first.setdefault(_method(name, methods).name, (name, len(value)))
        if len(value) > most or len(value) != expected:
            wanted = f"{most} at most" if len(value) > most else f"{expected}, as {other} has"
            raise RunError(f"{name} has {len(value)} rows in what {sender} sent; expected {wanted}.")


def _grown(sent: Message, model: nn.Module) -> dict[str, Entry]:
    """Of what is sent back of the network: running statistics may grow in a round, parameters not without end."""
    parameters = {name for name, _ in model.named_parameters()} & sent.keys()
    most = GROWTH * max([1.0, *(sent[name].abs().max().item() for name in parameters if sent[name].numel())])
    ends = {n: (-most, most) if n in parameters else (0,) if n.endswith("running_var") else () for n in sent}
    return entries("model", {n: Entry(value.dtype, tuple(value.shape), *ends[n]) for n, value in sent.items()})


def _method(name: str, methods: list[Method]) -> Method | None:
    first = name.partition("/")[0]
    return next((method for method in methods if method.name == first and first != name), None)


def _has_own_length(name: str, methods: list[Method]) -> bool:
    return name.partition("/")[2] in _method(name, methods).own_lengths
