"""What a client elsewhere may say of its site, and reply: names, shapes, types, finite, ranges.

What has the right form and lies in range is believed. A client that sends such numbers on purpose can still ruin a run:
aggregation that is robust against it is a method of its own, which is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fednb.errors import RunError
from fednb.federation import AVERAGE, SPLITS, UNITS, Federation, Outline
from fednb.loop.network import require_same
from fednb.loop.server import Server
from fednb.methods import Message, Method, entries
from fednb.recipe import Recipe

MOST = 10**7  # images of a site in a split, classes, a tenth of an image's values: room is made for what is introduced
LONGEST = 200  # characters of a name, or of what went wrong at a client
GROWTH = 1e2  # of a parameter in a round, against the largest that was sent, or 1: a larger one ruins the others' runs
LARGEST = 1e9  # of a number in a reply: a network of larger ones computes what is no number at every other client


@dataclass(frozen=True)
class Introduction:
    """Plain values, and no image.

    images: of training, validation, test and, where the site hands them over, spare. fingerprint: of the federation
    with this site alone. sites, whole: names of all sites, in order, and the fingerprint of all, where the client has
    the others' images as well, as in a simulation.
    """

    site: str
    outline: Outline
    images: tuple[int, ...]
    fingerprint: str
    notes: tuple[str, ...]
    sites: tuple[str, ...] = ()
    whole: str = ""

    @classmethod
    def of(cls, own: Federation, everything: Federation | None = None) -> Introduction:
        """own: the federation with one site. everything: with all of them, where they are available."""
        (site,) = own.sites
        images = tuple(len(part) for part in site.parts if part is not None)
        others = (tuple(each.name for each in everything.sites), everything.fingerprint) if everything else ()
        return cls(site.name, own.outline, images, own.fingerprint, _texts(own.notes), *others)

    @classmethod
    def from_dict(cls, values: dict) -> Introduction:
        """What ``asdict`` gave, after it was JSON; RunError for what no site can say of itself."""
        try:
            outline = values["outline"]
            (channels, height, width), classes = map(int, outline["image_shape"]), _texts(outline["classes"])
            images, site = tuple(map(int, values["images"])), printable(values["site"])
            counts = (*images, channels, height, width, len(classes), channels * height * width // 10)
            least = min(images[0], channels, height, width, len(classes))
            if site in ("", AVERAGE) or outline["task"] not in UNITS or len(images) not in (3, 4):
                raise ValueError("no such site")
            if least < 1 or min(images) < 0 or max(counts) > MOST:
                raise ValueError("no such images")
            own = Outline(printable(outline["name"]), classes, (channels, height, width), outline["task"])
            notes, sites = _texts(values["notes"]), _texts(values["sites"])
            return cls(site, own, images, printable(values["fingerprint"]), notes, sites, printable(values["whole"]))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise RunError(
                f"a client introduces itself as no site can: {printable(values, 500)} ({printable(error)}). Expected a "
                f'name, not "{AVERAGE}", 1 to {MOST} training images, and the classes and image shape of a federation.'
            ) from error


def printable(what, longest: int = LONGEST) -> str:
    """What a client said, in one line that any file can hold and no terminal obeys."""
    line = " ".join(str(what).split())[:longest]
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _texts(values) -> tuple[str, ...]:
    return tuple(printable(value, 10 * LONGEST) for value in values)


class Entry(NamedTuple):
    """An entry that is expected: its numbers from ``least`` to ``most``, and no others where ``ends``."""

    dtype: torch.dtype
    shape: tuple[int, ...] = ()
    least: float = -LARGEST
    most: float = LARGEST
    ends: bool = False


def require(
    reply: Message, kind: str, round: int, client: Introduction, server: Server, methods: list[Method], recipe: Recipe
) -> Message:
    """The reply to "offer", "learn", "work" or "test"; an error, naming the entry, where it is none."""
    added = {name: value for name, value in reply.items() if name.partition("/")[0] in {m.name for m in methods}}
    own = {name: value for name, value in reply.items() if name not in added}
    wanted = {"after": Entry(torch.int64, (), -1, round)} | _expected(kind, round, client, server, recipe)
    require_same(own, wanted, client.site, "what is expected")
    for name, value in own.items():
        if value.dtype != wanted[name].dtype:
            raise RunError(f"{name} is {value.dtype} in what {client.site} sent; expected {wanted[name].dtype}.")
        _require_range(name, value, wanted[name], client.site)
    for name, value in added.items():
        method, _, entry = name.partition("/")
        ends = next(each.ranges.get(entry, ()) for each in methods if each.name == method)
        _require_range(name, value, Entry(value.dtype, (), *ends), client.site)
    return reply


def _expected(kind: str, round: int, client: Introduction, server: Server, recipe: Recipe) -> dict[str, Entry]:
    """The entries of a reply besides ``after`` and what methods add."""
    images = dict(zip((*SPLITS, "spare"), client.images, strict=False))
    if kind == "offer":
        return {"images": Entry(torch.int64, (), images["train"], images["train"])}
    if kind == "test":
        right_or_wrong = client.outline.task == "classification"
        return {split: Entry(torch.float64, (images[split],), 0, 1, right_or_wrong) for split in recipe.scored(round)}
    if kind == "learn":
        return {}
    most = GROWTH * max([1.0, *(server.model[name].abs().max().item() for name in server.parameters)])
    variances = [name for name in server.model if name.endswith("running_var")]
    ends = dict.fromkeys(server.parameters, (-most, most)) | dict.fromkeys(variances, (0,))
    network = {n: Entry(value.dtype, tuple(value.shape), *ends.get(n, ())) for n, value in server.model.items()}
    return {"loss": Entry(torch.float64)} | entries("model", network)


def _require_range(name: str, value: Tensor, wanted: Entry, sender: str) -> None:
    if not value.numel():
        return
    low, high = (end.item() for end in value.aminmax())  # NaN where one is among them
    if not (wanted.least <= low and high <= wanted.most):
        expected = f"expected {wanted.least:g} to {wanted.most:g}"
        raise RunError(f"{name} goes from {low:g} to {high:g} in what {sender} sent; {expected}.")
    if wanted.ends and not ((value == wanted.least) | (value == wanted.most)).all():
        raise RunError(f"{name} has other numbers than {wanted.least} and {wanted.most} in what {sender} sent.")


def require_alike(sent: dict[str, Message], replies: dict[str, Message], methods: list[Method]) -> None:
    """RunError, naming two clients, where methods sent them the same entries and got other names, types or shapes."""
    own_length = {f"{method.name}/{name}" for method in methods for name in method.own_lengths}
    first: dict[frozenset, tuple[str, set]] = {}
    for client, reply in replies.items():
        asked = frozenset(name for name in sent[client] if not name.startswith("model/"))
        added = {name: value for name, value in reply.items() if "/" in name}
        form = {(name, value.dtype, value.ndim, value.shape[name in own_length :]) for name, value in added.items()}
        other, expected = first.setdefault(asked, (client, form))
        if form != expected:
            names = ", ".join(sorted({name for name, *_ in form ^ expected}))
            advice = "One of them has another recipe, or is not honest"
            raise RunError(f"{client} and {other} sent {names} in different forms, or one of them did not. {advice}.")
