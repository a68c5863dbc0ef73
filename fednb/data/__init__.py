"""Data sets, one file each: every file without a leading underscore is a federation that a recipe can name.

It has

- ``load(root, *, option=default, ...) -> Federation``;
- ``missing(root, **options) -> str | None``: one sentence when these options cannot be loaded, found quickly;
- ``describe(root) -> list[str]``: whether it can be loaded and what of it is on disk, in lines for people;
- ``NEEDS``: where the data come from, their licence and their layout; None if they are embedded;
- if it can read one site without the others, a parameter ``site: str | None = None`` of ``load``;
- if its sites have masks, ``TASK = "segmentation"``: methods without a meaning there are refused before it is loaded;
- if it reads other files than images, ``damaged(root) -> list[(path, reason)]``.
"""

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fednb import catalogue
from fednb.errors import DataError

if TYPE_CHECKING:
    from fednb.federation import Federation

__all__ = ["Check", "available", "check", "data_root", "load"]


def data_root(root: str | os.PathLike | None = None) -> Path:
    """The folder that holds all data: ``root``, else the environment's FEDNB_DATA, else ``./data``."""
    return Path(root or os.environ.get("FEDNB_DATA") or "data").expanduser()


def load(name: str, root: str | os.PathLike | None = None, site: str | None = None, **options) -> "Federation":
    """The federation of this name, with its images as tensors.

    ``root`` is the data folder (see ``data_root``); the options are those of the loader
    ``fednb.data.<name>.load``, whose docstring says what it needs. ``site`` keeps this site alone; the classes are
    those of all. A loader that can reads the images of no other.

    Raises RecipeError for an unknown name or option, or an option out of its range; DataError when data are
    missing or damaged.
    """
    loader = _loader(name, options).load
    alone = {"site": site} if site and "site" in inspect.signature(loader).parameters else {}
    try:
        federation = loader(data_root(root), **options, **alone)
        return federation.only(site) if site else federation
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}. Allow reading it, or fetch it again.") from error
    except MemoryError as error:
        raise DataError(f"{name} needs more memory than there is ({error}). Take smaller or fewer images.") from error


def available(name: str, root: str | os.PathLike | None = None, **options) -> str | None:
    """None when this federation can be loaded, else one sentence that says what is missing.

    Looks for files and folders; does not decode images. Raises RecipeError as ``load`` does.
    """
    try:
        return _loader(name, options).missing(data_root(root), **options)
    except OSError as error:
        return f"{name} cannot be read: {error}."


@dataclass(frozen=True)
class Check:
    """What ``fednb data`` tells: ``str()`` is the text; ``damaged`` names every file that cannot be read."""

    root: Path
    lines: tuple[str, ...]
    damaged: tuple[tuple[Path, str], ...]

    def __str__(self) -> str:
        damaged = [f"  {path}: {reason}" for path, reason in self.damaged]
        count = f"Damaged files: {len(damaged)}" if damaged else "No damaged files."
        return "\n".join((*self.lines, count, *damaged))


def check(root: str | os.PathLike | None = None) -> Check:
    """Looks at all data under ``root`` and decodes every image once (about 10 s per 10,000 small images)."""
    from fednb.data import _images as images

    root = data_root(root)
    lines = [f"Data folder: {root.absolute()}" + ("" if root.is_dir() else " (not there)")]
    damaged, notes = images.survey(root)
    lines += [f"Note: {note}" for note in notes]
    for name in catalogue.names("data"):
        loader = _loader(name, {})
        lines.append(f"{name}:")
        lines.extend(f"  {line}" for line in loader.describe(root))
        if loader.NEEDS:
            lines.append(f"  Source: {loader.NEEDS}")
        if hasattr(loader, "damaged"):
            damaged.extend(loader.damaged(root))
    return Check(root, tuple(lines), tuple(damaged))


def _loader(name: str, options: dict):
    catalogue.require_known(name, options, catalogue.options(catalogue.find("data", name)))
    return catalogue.file("data", name)
