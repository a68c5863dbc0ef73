"""Data sets, one file each: every file without a leading underscore is a federation that a recipe can name.

It has

- ``load(root, *, option=default, ...) -> Federation``;
- ``missing(root, **options) -> str | None``: one sentence when these options cannot be loaded, found quickly;
- ``describe(root) -> list[str]``: whether it can be loaded and what of it is on disk, in lines for people;
- ``NEEDS``: where the data come from, their licence and their layout, as ``_published.Needs`` or in one text; None if
  they are embedded;
- if it can read one site without the others, a parameter ``site: str | None = None`` of ``load``, which asks
  ``federation.chosen_sites`` for the names;
- if its images are dealt out by chance, a parameter ``seed: int = 0`` of ``load``; a recipe may say ``"run"``, its own
  seed, which ``Recipe.dealt`` puts in its place;
- if it is published how many images there are, ``counts(root) -> list[_published.Count]``, called where nothing is
  missing;
- if its sites have masks, ``TASK = "segmentation"``: methods without a meaning there are refused before it is loaded;
  or, where the options decide that, ``task(**options) -> str``;
- if it reads other files than images, ``damaged(root) -> list[(path, reason)]``.

``root`` is the data folder. A published data set takes what it can from ``_published.Published``.

Of every loader, unless its docstring says otherwise: images are RGB, three equal channels of grey ones, resized
bilinearly without cropping to ``size`` x ``size`` pixels; ``seed`` is that of all draws; ``notes`` says where fewer
images are used than are published; ``NEEDS`` has licence and layout. It raises DataError when a file that it needs is
missing or damaged, and when there are too few images for its options; RecipeError for an option out of its range.
"""

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fednb import catalogue, outside
from fednb.errors import DataError, RecipeError, printable

if TYPE_CHECKING:
    from fednb.federation import Federation

__all__ = ["Check", "available", "check", "data_root", "load"]


def data_root(root: str | os.PathLike | None = None) -> Path:
    """The folder that holds all data: ``root``, else the environment's FEDNB_DATA, else ``data/`` of the project or,
    where there is none, of the current folder."""
    own = (outside.project() or Path()) / "data"
    return Path(root or os.environ.get("FEDNB_DATA") or own).expanduser()


def load(name: str, root: str | os.PathLike | None = None, site: str | None = None, **options) -> "Federation":
    """The federation of this name, with its images as tensors.

    ``root`` is the data folder (see ``data_root``); the options are those of the loader
    ``fednb.datasets.<name>.load``, whose docstring says what it needs. ``site`` keeps this site alone; the classes are
    those of all. A loader that can reads the images of no other.

    Raises RecipeError for an unknown name or option, an option out of its range, or the seed ``"run"``, which only a
    recipe has (``Recipe.dealt``); DataError when data are missing or damaged, or there is no such site.
    """
    loader = _loader(name, options).load
    alone = {"site": site} if site and "site" in inspect.signature(loader).parameters else {}
    try:
        federation = loader(data_root(root), **options, **alone)
        return federation.only(site) if site else federation
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}. Allow reading it, or put it there again.") from error
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
    """What ``fednb data`` tells: ``str()`` is the text; ``damaged`` names every file that cannot be read, ``differs``
    says what is otherwise than published, where that was asked for."""

    root: Path
    lines: tuple[str, ...]
    damaged: tuple[tuple[Path, str], ...]
    differs: str = ""

    def __str__(self) -> str:
        damaged = [f"  {path}: {reason}" for path, reason in self.damaged]
        count = f"Damaged files: {len(damaged)}" if damaged else "No damaged files."
        return printable("\n".join((*self.lines, count, *damaged)))


def check(root: str | os.PathLike | None = None, name: str | None = None) -> Check:
    """Looks at all data under ``root``, or at those of the federation ``name``, and decodes every image once (about
    10 s per 10,000 small images). Of one federation it also holds the numbers of images against the published ones.

    Raises RecipeError for an unknown name.
    """
    from fednb.datasets import _images as images

    root = data_root(root)
    loaders = {known: _loader(known, {}) for known in ([name] if name else catalogue.names("datasets"))}
    lines = [f"Data folder: {root.absolute()}" + ("" if root.is_dir() else " (not there)")]
    needs = loaders[name].NEEDS if name else ""
    places = getattr(needs, "folders", (".",) if needs is not None else ())
    looked = [images.survey(root / place) for place in places]
    damaged = [file for files, _ in looked for file in files]
    lines += [f"Note: {note}" for _, notes in looked for note in notes]
    for known, loader in loaders.items():
        lines.append(f"{known}:")
        lines.extend(f"  {line}" for line in loader.describe(root))
        if "seed" in catalogue.options(loader.load):
            lines.append(f'  dealt out by its seed: 0 for all runs, or "{catalogue.OF_THE_RUN}", that of each recipe')
        source = loader.NEEDS and getattr(loader.NEEDS, "lines", [f"Source: {loader.NEEDS}"])
        lines.extend(f"  {line}" for line in source or ())
        if hasattr(loader, "damaged"):
            damaged.extend(loader.damaged(root))
    differs = ""
    if name and hasattr(loaders[name], "counts"):
        differs = _differs(loaders[name], root)
        lines.append(f"Differs from what is published: {differs}" if differs else "As many as published.")
    elif name:
        lines.append(f"No numbers are published that {name} could be held against.")
    return Check(root, tuple(lines), tuple(damaged), differs)


def _differs(loader, root: Path) -> str:
    """The first thing that is otherwise than published, and how many are; empty if none is."""
    if problem := loader.missing(root):
        return problem
    try:
        wrong = [count for count in loader.counts(root) if count.found != count.published]
    except (DataError, OSError) as error:
        return str(error)
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"{wrong[0]}{more}." if wrong else ""


def _loader(name: str, options: dict):
    catalogue.require_known(name, options, catalogue.options(catalogue.find("datasets", name)))
    if options.get("seed") == catalogue.OF_THE_RUN:
        raise RecipeError(
            f'{name} has seed "{catalogue.OF_THE_RUN}", which is the seed of a recipe, and there is none here; '
            "give a whole number, or load(**recipe.dealt)."
        )
    return catalogue.file("datasets", name)
