"""What a client elsewhere says of its site before all else: checked where it enters, before anything is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fednb.errors import RunError
from fednb.federation import AVERAGE, UNITS, Federation, Outline

MOST = 10**7  # images of a site in a split, classes, a tenth of an image's values: room is made for what is introduced
LONGEST = 200  # characters of a name, or of what went wrong at a client
TORCH = str(torch.__version__)


@dataclass(frozen=True)
class Introduction:
    """Plain values, and no image.

    images: of training, validation, test and, where the site hands them over, spare. fingerprint: of the federation
    with this site alone. sites, whole: names of all sites, in order, and the fingerprint of all, where the client has
    the others' images as well, as in a simulation. torch: its version there.
    """

    site: str
    outline: Outline
    images: tuple[int, ...]
    fingerprint: str
    notes: tuple[str, ...]
    sites: tuple[str, ...] = ()
    whole: str = ""
    torch: str = TORCH

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
            return cls(
                site,
                Outline(printable(outline["name"]), classes, (channels, height, width), outline["task"]),
                images,
                printable(values["fingerprint"]),
                _texts(values["notes"]),
                _texts(values["sites"]),
                printable(values["whole"]),
                printable(values["torch"]),
            )
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
