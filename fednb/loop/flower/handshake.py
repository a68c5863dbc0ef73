"""What a client elsewhere says of its site before all else: checked where it enters, before anything is made of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from reprlib import repr as brief
from unicodedata import category

import torch

from fednb.errors import RunError
from fednb.federation import AVERAGE, UNITS, Federation, Outline

MOST = 10**7  # images of a site in a split, classes, pixels along a side: room is made for all that are introduced
LONGEST = 200  # characters of a name, or of what went wrong at a client
TORCH = str(torch.__version__)


@dataclass(frozen=True)
class Introduction:
    """Plain values, and no image; RunError for what no site can say of itself.

    images: of training, validation, test and, where the site hands them over, spare. fingerprint: of the federation
    with this site alone. sites, whole: names of all sites, in order, and the fingerprint of all, where the client
    happens to have the others' images as well. torch: its version there.
    """

    site: str
    outline: Outline
    images: tuple[int, ...]
    fingerprint: str
    notes: tuple[str, ...]
    sites: tuple[str, ...] = ()
    whole: str = ""
    torch: str = TORCH

    def __post_init__(self):
        outline = self.outline
        lists = (self.images, self.notes, self.sites, outline.classes, outline.image_shape)
        single = (self.site, self.fingerprint, self.whole, self.torch, outline.name, outline.task)
        possible = (
            all(isinstance(each, tuple) for each in lists)
            and all(map(is_printable, (*single, *self.notes, *self.sites, *outline.classes)))
            and all(0 < len(name) <= LONGEST for name in (self.site, *self.sites))
            and AVERAGE not in (self.site, *self.sites)
            and outline.task in UNITS
            and len(outline.image_shape) == 3
            and len(self.images) in (3, 4)
            and all(type(n) is int and 0 <= n <= MOST for n in (*self.images, *outline.image_shape))
            and 1 <= math.prod((self.images[0], *outline.image_shape, len(outline.classes)))
            and max(len(outline.classes), math.prod(outline.image_shape) // 10) <= MOST
        )
        if not possible:
            raise RunError(
                f"{printable(self.site)} introduces itself as no site can: {printable(self)}. Expected printable "
                f'texts, a name of 1 to {LONGEST} letters and not "{AVERAGE}", 1 to {MOST} training images, and the '
                "classes and the image shape of a federation."
            )

    @classmethod
    def of(cls, own: Federation, everything: Federation | None = None) -> Introduction:
        """own: the federation with one site. everything: with all of them, where they are available."""
        (site,) = own.sites
        images = tuple(len(part) for part in site.parts if part is not None)
        others = (tuple(each.name for each in everything.sites), everything.fingerprint) if everything else ()
        notes = tuple(printable(note, 10 * LONGEST) for note in own.notes)
        return cls(site.name, own.outline, images, own.fingerprint, notes, *others)

    @classmethod
    def from_dict(cls, values: dict) -> Introduction:
        """What ``asdict`` gave, after it was JSON; RunError for what it cannot have given."""
        try:
            known: dict = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            outline: dict = {name: tuple(v) if isinstance(v, list) else v for name, v in values["outline"].items()}
            return cls(**known | {"outline": Outline(**outline)})
        except (AttributeError, KeyError, TypeError) as error:
            raise RunError(f"a client introduces itself as no site can: {brief(values)} ({error}).") from error


def require_one_federation(introductions: list[Introduction]) -> None:
    """RunError, naming the site, where two have one name, speak of different classes or images, or one is not there."""
    first, *others = introductions
    for each in others:
        for what in ("classes", "image_shape", "task"):
            here, there = getattr(each.outline, what), getattr(first.outline, what)
            if here != there:
                raise RunError(
                    f"{each.site} has {what} {_listed(here)}; {first.site} has {_listed(there)}. All sites of a "
                    "federation need the same: name the classes in the recipe, and look at the sites' folders."
                )
    names = Counter(each.site for each in introductions)
    for name, count in names.items():
        if count > 1:
            raise RunError(f"two clients say that they are {name}; expected one for each site. Stop one of them.")
    for each in introductions:
        if missing := [name for name in each.sites if name not in names]:
            raise RunError(
                f"{', '.join(missing)} of {each.outline.name} did not come; the recipe's federation has "
                f"{', '.join(each.sites)}. Start a client for each, or take a recipe for the sites that take part."
            )


def is_printable(text) -> bool:
    """Whether any file can hold it and no terminal obeys it: no half of a surrogate pair, no escape."""
    return isinstance(text, str) and not {"Cc", "Cs"} & set(map(category, text))


def printable(what, longest: int = LONGEST) -> str:
    """What a client said, in one line that any file can hold and no terminal obeys."""
    line = " ".join(str(what).encode("utf-8", "replace").decode().split())[:longest]
    return "".join(letter if is_printable(letter) else "?" for letter in line)


def _listed(value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
