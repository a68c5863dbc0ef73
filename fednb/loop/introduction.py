"""What a client elsewhere tells of its site before all else: checked where it enters, before anything is made of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from reprlib import repr as brief

import torch

from fednb.errors import RunError
from fednb.federation import AVERAGE, UNITS, Federation, Outline

MOST = 10**7  # images of a site in a split, classes, pixels along a side: room is made for all that are introduced
LONGEST = 200  # characters of what went wrong at a client, for the record
TORCH = str(torch.__version__)


@dataclass(frozen=True)
class Introduction:
    """Plain values, and no image; RunError for what no site can say of itself.

    images: of training, validation, test and, where the site hands them over, spare. fingerprint: of the federation
    with this site alone. sites, whole: names of all sites, in order, and the fingerprint of all, where the client
    happens to have the others' images as well.
    torch: its version there.
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
            and all(map(is_text, (*single, *self.notes, *self.sites, *outline.classes)))
            and all(0 < len(name) <= LONGEST and name.isprintable() for name in (self.site, *self.sites))
            and AVERAGE not in (self.site, *self.sites)
            and outline.task in UNITS
            and len(outline.image_shape) == 3
            and len(self.images) in (3, 4)
            and all(_is_count(n) for n in (*self.images, *outline.image_shape, len(outline.classes)))
            and 1 <= math.prod((self.images[0], *outline.image_shape, len(outline.classes)))
            and math.prod(outline.image_shape) <= 10 * MOST
        )
        if not possible:
            raise RunError(
                f"{worded(self.site)} introduces itself as no site can: {worded(self)}. Expected texts, a name of 1 to "
                f'{LONGEST} letters and not "{AVERAGE}", 1 to {MOST} training images, and the classes and image shape '
                "of a federation."
            )

    @classmethod
    def of(cls, own: Federation, everything: Federation | None = None) -> Introduction:
        """own: the federation with one site. everything: with all of them, where they are at hand."""
        (site,) = own.sites
        images = tuple(len(part) for part in site.parts if part is not None)
        others = (tuple(each.name for each in everything.sites), everything.fingerprint) if everything else ()
        return cls(site.name, own.outline, images, own.fingerprint, own.notes, *others)

    @classmethod
    def from_dict(cls, told: dict) -> Introduction:
        """What ``asdict`` gave, after it was JSON; RunError for what it cannot have given."""
        try:
            known: dict = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
            outline: dict = {name: tuple(v) if isinstance(v, list) else v for name, v in told["outline"].items()}
            return cls(**known | {"outline": Outline(**outline)})
        except (AttributeError, KeyError, TypeError) as error:
            raise RunError(f"a client introduces itself as no site can: {brief(told)} ({error}).") from error


def worded(why) -> str:
    """What went wrong, in one line that any file can hold and no terminal obeys."""
    line = " ".join(str(why).encode("utf-8", "replace").decode().split())[:LONGEST]
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def is_text(text) -> bool:
    """Half of a surrogate pair is none: no file can hold it."""
    return isinstance(text, str) and text == text.encode("utf-8", "replace").decode()


def _is_count(number) -> bool:
    return type(number) is int and 0 <= number <= MOST
