"""What CelebA and BioID share: faces, where a class is a person and each client holds the images of one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.data import _dealing as dealing
from fednb.data import _images as images
from fednb.data._partition import sizes, stratified
from fednb.data._published import Count, Needs
from fednb.data._text_lists import Listed, pairs
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Split
from fednb.standalone.class_shares import check_whole

SHARES = (0.8, 0.2)  # training and test images of each person


@dataclass(frozen=True)
class Persons(Listed):
    """One of the two. needed: the file with lines "<image> <person>", and the folder of the images.

    title: for people. complete: images in the list, and persons. crop: the side of the square in the centre that is
    kept, in pixels. channels: of the images, 1 or 3.
    """

    needs: Needs
    title: str
    complete: tuple[int, int]
    crop: int
    channels: int

    def federation(self, root: Path, clients: int, size: int, seed: int) -> Federation:
        """The persons with the most images, one for each client; the options are those of ``celeba.load``."""
        images.check_size(size)
        check_whole("clients", clients)
        if clients < 2:
            raise RecipeError("clients is 1; expected 2 or more: each is tested on images of the others as well.")
        self.needs.require(self.missing(root))
        persons = self.listed(root)
        if clients > len(persons):
            raise DataError(
                f"{self.named(root)} has {len(persons)} persons for {clients} clients; expected one for "
                "each. Take fewer clients, or get the whole list."
            )
        chosen = sorted(persons, key=lambda person: (-len(persons[person]), len(person), person))[:clients]
        paths = [path for person in chosen for path in persons[person]]
        targets = np.repeat(np.arange(clients), [len(persons[person]) for person in chosen])
        pixels, unusual = images.read(root, self.name, paths, images.digests(paths), size, False, self.crop)
        whole = Split(torch.from_numpy(pixels[:, : self.channels].copy()), torch.from_numpy(targets))
        train, test = (whole.select(cut) for cut in stratified(targets, sizes(len(whole), SHARES), self.name))
        sites, dealt = dealing.by_class_shares(train, test, clients, clients, 1, self.name, seed)
        fewer, found = "{} images of {} persons are listed; {} has {} of {}.", _counted(persons)
        notes = [fewer.format(*found, self.title, *self.complete)] if found != self.complete else []
        return Federation(self.name, sites, tuple(chosen), (*notes, *dealt, *unusual))

    def listed(self, root: Path) -> dict[str, list[Path]]:
        """The image files of each person, in the order of the list."""
        held = {}
        for name, person in pairs(self.named(root)).items():
            held.setdefault(person, []).append(root / self.name / self.needed[1] / name)
        return held

    def counts(self, root: Path) -> list[Count]:
        persons, (count, number), (file, folder) = self.listed(root), self.complete, self.needed
        paths = [path for own in persons.values() for path in own]
        return [
            Count(file, len(paths), count),
            Count(file, len(persons), number, "persons"),
            Count(f"{folder}, those in the list", sum(path.is_file() for path in paths), count),
        ]

    def told(self, root: Path) -> list[str]:
        found, published = _counted(self.listed(root)), self.complete
        return ["{} images of {} persons are listed (complete: {} of {})".format(*found, *published)]


def _counted(persons: dict[str, list[Path]]) -> tuple[int, int]:
    """Images and persons."""
    return sum(map(len, persons.values())), len(persons)
