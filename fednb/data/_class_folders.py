"""Images in one folder per class, where the classes are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fednb.data import _images as images
from fednb.data._published import Count, Published
from fednb.errors import DataError


def missing(places: Iterable[Path], classes: Sequence[str]) -> str | None:
    """One sentence that names the class folders that are not in these places, or the places themselves."""
    absent = [place / name for place in places for name in classes if not (place / name).is_dir()]
    whole = dict.fromkeys(folder.parent for folder in absent if not folder.parent.is_dir())
    return f"There is no folder {', '.join(str(folder) for folder in whole or absent)}." if absent else None


def listed(place: Path, classes: Sequence[str]) -> tuple[list[Path], np.ndarray, list[str]]:
    """The image files class by class, sorted by name, their class numbers, and a note on images in other places.

    Raises DataError when a class has no image.
    """
    held = [images.files(place / name) for name in classes]
    for name, files in zip(classes, held, strict=True):
        if not files:
            raise DataError(f"{place / name} has no images; expected those of the class {name}. Add them.")
    targets = np.repeat(np.arange(len(classes)), [len(files) for files in held])
    return [file for files in held for file in files], targets, unused(place, classes)


def there(place: Path, classes: Sequence[str]) -> list[Path]:
    """The image files in the class folders that are there."""
    return [file for name in classes if (place / name).is_dir() for file in images.files(place / name)]


def unused(place: Path, classes: Sequence[str]) -> list[str]:
    """A note, or none, on image files that are in none of the class folders."""
    return images.unused(place, there(place, classes), f"{place.name}/<class>/<file>")


def counts(place: Path, classes: Sequence[str], complete: int) -> list[Count]:
    """The image files of each class; as many of each are published, ``complete`` in all."""
    return [Count(f"{place.name}, {name}", len(there(place, [name])), complete // len(classes)) for name in classes]


@dataclass(frozen=True)
class Domains(Published):
    """A data set at ``<name>/<folder>/<class>/<file>``. ``domains``: the folder of each site, and its images."""

    name: str
    domains: Mapping[str, tuple[str, int]]
    classes: tuple[str, ...]

    def missing(self, root: Path, *, sites: Iterable[str] | None = None, **options) -> str | None:
        """One sentence when the folder of one of the sites, or of a class there, is not there."""
        return missing([self.place(root, site) for site in sites or self.domains], self.classes)

    def counts(self, root: Path) -> list[Count]:
        return [
            Count(folder, len(there(self.place(root, site), self.classes)), complete)
            for site, (folder, complete) in self.domains.items()
        ]

    def told(self, root: Path) -> list[str]:
        counted = zip(self.counts(root), self.domains, strict=True)
        return [line for count, site in counted for line in (str(count), *unused(self.place(root, site), self.classes))]

    def place(self, root: Path, site: str) -> Path:
        return root / self.name / self.domains[site][0]
