"""What a client elsewhere may reply: names, shapes, types, finite, ranges, before anything is made of it.

What has the right form and lies in range is believed. A client that sends such numbers on purpose can still ruin a run:
aggregation that is robust against it is a method of its own, which is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from fednb.errors import RunError
from fednb.federation import SPLITS
from fednb.loop.flower.handshake import Introduction
from fednb.loop.network import require_same, require_shapes
from fednb.methods import Message, Method, entries, part

if TYPE_CHECKING:
    from fednb.recipe import Recipe

LARGEST = 1e9  # of a number in a reply: a network of larger ones computes what is no number at every other client
GROWTH = 1e2  # of a parameter in a round, against the largest that was sent, or 1: a larger one ruins the others' runs
REAL = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool}
REAL |= {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class Entry(NamedTuple):
    """An entry that is expected: its numbers from ``least`` to ``most``, and no others where ``ends``."""

    dtype: torch.dtype
    shape: tuple[int, ...] = ()
    least: float = -LARGEST
    most: float = LARGEST
    ends: bool = False


def require(
    reply: Message,
    kind: str,
    round: int,
    client: Introduction,
    model: nn.Module,
    sent: Message,
    methods: list[Method],
    recipe: Recipe,
) -> Message:
    """The reply to "offer", "learn", "work" or "test"; RunError, naming the entry, where it is none.

    client: what it said of itself. model: a network as its own. sent: the entries of it that are sent, as the server
    has them. Methods' entries: see ``Method.own_lengths``, ``counts`` and ``ranges``.
    """
    added = {name: value for name, value in reply.items() if name.partition("/")[0] in {m.name for m in methods}}
    own = {name: value for name, value in reply.items() if name not in added}
    wanted = {"after": Entry(torch.int64, (), -1, round)} | _expected(kind, round, client, model, sent, recipe)
    require_same(own, wanted, client.site, "what is expected")
    for name, value in own.items():
        if value.dtype != wanted[name].dtype:
            raise RunError(f"{name} is {value.dtype} in what {client.site} sent; expected {wanted[name].dtype}.")
        _require_range(name, value, wanted[name], client.site)
    require_shapes(added, model, client.site)
    train = client.images[0]
    most = max(train, len(client.outline.classes))
    seen = max(train * recipe.local_epochs, recipe.local_steps) / (1 - recipe.momentum)  # images or steps in a round
    for method in methods:
        values = part(added, method.name)
        for name, value in values.items():
            if value.dtype not in REAL:
                raise RunError(f"{method.name}/{name} is {value.dtype} in what {client.site} sent; expected numbers.")
            ends = (0, seen) if name in method.counts else method.ranges.get(name, ())
            _require_range(f"{method.name}/{name}", value, Entry(value.dtype, (), *ends), client.site)
        rows = {value.shape[:1].numel() for name, value in values.items() if name in method.own_lengths}
        if len(rows) > 1 or max(rows, default=0) > most:
            names = " and ".join(f"{method.name}/{name}" for name in method.own_lengths)
            raise RunError(
                f"{names} have {sorted(rows)} rows in what {client.site} sent; expected one number, {most} at most."
            )
    return reply


def _expected(
    kind: str, round: int, client: Introduction, model: nn.Module, sent: Message, recipe: Recipe
) -> dict[str, Entry]:
    """The entries of a reply beside ``after`` and what methods add."""
    images = dict(zip((*SPLITS, "spare"), client.images, strict=False))
    if kind == "offer":
        return {"images": Entry(torch.int64, (), images["train"], images["train"])}
    if kind == "test":
        right_or_wrong = client.outline.task == "classification"
        return {split: Entry(torch.float64, (images[split],), 0, 1, right_or_wrong) for split in recipe.scored(round)}
    if kind == "learn":
        return {}
    parameters = {name for name, _ in model.named_parameters()} & sent.keys()
    most = GROWTH * max([1.0, *(sent[name].abs().max().item() for name in parameters if sent[name].numel())])
    ends = {n: (-most, most) if n in parameters else (0,) if n.endswith("running_var") else () for n in sent}
    network = {name: Entry(value.dtype, tuple(value.shape), *ends[name]) for name, value in sent.items()}
    return {"loss": Entry(torch.float64)} | entries("model", network)


def _require_range(name: str, value: Tensor, wanted: Entry, sender: str) -> None:
    if not value.numel():
        return
    low, high = (end.item() for end in value.aminmax())  # NaN where one is among them
    if not (wanted.least <= low and high <= wanted.most):
        raise RunError(
            f"{name} goes from {low:g} to {high:g} in what {sender} sent; expected {wanted.least:g} to {wanted.most:g}."
        )
    if wanted.ends and not ((value == wanted.least) | (value == wanted.most)).all():
        raise RunError(f"{name} has other numbers than {wanted.least} and {wanted.most} in what {sender} sent.")


def require_alike(sent: dict[str, Message], replies: dict[str, Message], methods: list[Method]) -> None:
    """RunError, naming two clients, where methods sent them the same entries and got other names, types or shapes."""
    own_length = {f"{method.name}/{name}" for method in methods for name in method.own_lengths}
    first: dict[frozenset, tuple[str, set]] = {}
    for client, reply in replies.items():
        asked = frozenset(name for name in sent[client] if not name.startswith("model/"))
        form = {
            (name, value.dtype, value.ndim, value.shape[name in own_length :])
            for name, value in reply.items()
            if "/" in name
        }
        other, expected = first.setdefault(asked, (client, form))
        if form != expected:
            names = ", ".join(sorted({name for name, *_ in form ^ expected}))
            raise RunError(
                f"{client} and {other} sent {names} in different forms, or one of them did not. One of them has "
                "another recipe, or is not honest."
            )
