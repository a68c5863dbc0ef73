"""What CelebA and BioID share: faces, where a class is a person and each client holds the images of one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.data import _dealing as dealing
from fednb.data import _images as images
from fednb.data import _text_lists as text_lists
from fednb.data._partition import sizes, stratified
from fednb.data._published import Count, Needs
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Split
from fednb.standalone.class_shares import check_whole

SHARES = (0.8, 0.2)  # training and test images of each person


@dataclass(frozen=True)
class Source:
    """One of the two.

    name: of the loader, and of the folder that holds the list and the images. title: for people. images: their folder
    in it. list: the file with lines "<image> <person>". complete: images in the list, and persons. crop: the side of
    the square in the centre that is kept, in pixels. channels: of the images, 1 or 3.
    """

    name: str
    title: str
    images: str
    list: str
    complete: tuple[int, int]
    crop: int
    channels: int


def federation(source: Source, root: Path, needs: Needs, *, clients: int, size: int, seed: int) -> Federation:
    """The persons with the most images, one for each client; the options are those of ``celeba.load``."""
    images.check_size(size)
    check_whole("clients", clients)
    if clients < 2:
        raise RecipeError("clients is 1; expected 2 or more: each is tested on images of the others as well.")
    if problem := missing(source, root):
        raise DataError(f"{problem} Expected: {needs}")
    persons = _persons(source, root)
    if clients > len(persons):
        raise DataError(
            f"{_list(source, root)} has {len(persons)} persons for {clients} clients; expected one for "
            "each. Take fewer clients, or get the whole list."
        )
    chosen = sorted(persons, key=lambda person: (-len(persons[person]), len(person), person))[:clients]
    paths = [path for person in chosen for path in persons[person]]
    targets = np.repeat(np.arange(clients), [len(persons[person]) for person in chosen])
    pixels, unusual = images.read(root, source.name, paths, images.digests(paths), size, False, source.crop)
    whole = Split(torch.from_numpy(pixels[:, : source.channels].copy()), torch.from_numpy(targets))
    train, test = (whole.select(cut) for cut in stratified(targets, sizes(len(whole), SHARES), source.name))
    sites, dealt = dealing.by_class_shares(train, test, clients, clients, 1, source.name, seed)
    return Federation(source.name, sites, tuple(chosen), (*_fewer(source, persons), *dealt, *unusual))


def missing(source: Source, root: Path) -> str | None:
    """One sentence when the list or the folder of the images is not there."""
    return text_lists.missing(root / source.name / name for name in (source.list, source.images))


def describe(source: Source, root: Path) -> list[str]:
    """How many images and persons are listed, for ``fednb data``."""
    problem = missing(source, root) or "; ".join(reason for _, reason in damaged(source, root))
    if problem:
        return [problem]
    persons = _persons(source, root)
    return ["ready", f"{_counted(persons)} are listed (complete: {source.complete[0]} of {source.complete[1]})"]


def counts(source: Source, root: Path) -> list[Count]:
    """The images and persons in the list, and its images on disk, for ``fednb data --check``."""
    persons = _persons(source, root)
    listed = [path for paths in persons.values() for path in paths]
    count, number = source.complete
    return [
        Count(source.list, len(listed), count),
        Count(source.list, len(persons), number, "persons"),
        Count(f"{source.images}, those in the list", sum(path.is_file() for path in listed), count),
    ]


def damaged(source: Source, root: Path) -> list[tuple[Path, str]]:
    """The list, with the reason, when it cannot be read."""
    return [] if missing(source, root) else text_lists.damage(_list(source, root), lambda: _persons(source, root))


def _list(source: Source, root: Path) -> Path:
    return root / source.name / source.list


def _persons(source: Source, root: Path) -> dict[str, list[Path]]:
    """The image files of each person, in the order of the list."""
    held = {}
    for name, person in text_lists.pairs(_list(source, root)).items():
        held.setdefault(person, []).append(root / source.name / source.images / name)
    return held


def _counted(persons: dict[str, list[Path]]) -> str:
    return f"{sum(map(len, persons.values()))} images of {len(persons)} persons"


def _fewer(source: Source, persons: dict[str, list[Path]]) -> list[str]:
    count, number = source.complete
    if (sum(map(len, persons.values())), len(persons)) == source.complete:
        return []
    return [f"{_counted(persons)} are listed; {source.title} has {count} of {number}."]
