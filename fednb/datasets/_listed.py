"""Data sets of image files: each lists which files are in which part of a site, and they are decoded here."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.errors import DataError
from fednb.federation import Site, Split

Rows = list[tuple[Path, int]]  # image files and the numbers of their classes


def lacking(listing: Callable) -> Callable[..., str | None]:
    """``missing`` of a loader: what ``listing(root, **options)`` raises DataError for, else None."""

    def missing(root: Path, **options) -> str | None:
        try:
            listing(root, **options)
        except DataError as error:
            return str(error)
        return None

    return missing


def require(*paths: Path) -> None:
    """DataError that names the files and folders that are not there."""
    if absent := [str(path) for path in paths if not path.exists()]:
        raise DataError(f"There is no {' and no '.join(absent)}.")


def require_folders(places: Iterable[Path], inside: Sequence[str]) -> None:
    """DataError that names the folders inside of the places, or the places, that are not there."""
    absent = [place / name for place in places for name in inside if not (place / name).is_dir()]
    whole = dict.fromkeys(folder.parent for folder in absent if not folder.parent.is_dir())
    if absent:
        raise DataError(f"There is no folder {', '.join(map(str, whole or absent))}.")


def in_classes(place: Path, classes: Sequence[str]) -> Rows:
    """The image files in a folder for each class, sorted by name; DataError for a class without any."""
    require_folders([place], classes)
    rows = []
    for number, name in enumerate(classes):
        if not (files := images.files(place / name)):
            raise DataError(f"{place / name} has no images; expected those of the class. Add them.")
        rows += [(file, number) for file in files]
    return rows


def targets(rows: Rows) -> np.ndarray:
    """The class numbers, int64 ``[n]``."""
    return np.array([number for _, number in rows], np.int64)


def decoded(root: Path, name: str, rows: Rows, size: int, notes: list[str], **how) -> Split:
    """The images of some rows, cached under a name; adds notes on unusual ones. ``how``: see ``images.decode``."""
    pixels, unusual = images.read(root, name, [file for file, _ in rows], size, **how)
    notes += unusual
    return Split(torch.from_numpy(pixels), torch.from_numpy(targets(rows)))


def site_of(root: Path, data: str, name: str, parts: Sequence[Rows], size: int, notes: list[str]) -> Site:
    """A site of training, validation, test and perhaps spare images, each decoded once."""
    every = sorted({row for part in parts for row in part})
    position = {row: number for number, row in enumerate(every)}
    whole = decoded(root, f"{data}_{name}", every, size, notes)
    return Site(name, *(whole.select([position[row] for row in part]) for part in parts))
