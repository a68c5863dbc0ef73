"""Images in one folder per class, where the classes are known; and domains of such, cut as FRAug cuts them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fednb.datasets import _images as images
from fednb.datasets._partition import check_shares, sizes, stratified
from fednb.datasets._published import Count, Needs, Published
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Site, chosen_sites

TEST, VALIDATION = 0.1, 0.1  # of a domain's images; of the others


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
    return sum(held, []), targets, unused(place, classes)


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
    """A data set at ``<name>/<folder>/<class>/<file>``.

    title: for people. domains: the folder of each site, and how many images are published. note: the first of every
    federation. side: of the original files, in pixels; where it is given, a note is on it, else on their number.
    """

    name: str
    title: str
    domains: Mapping[str, tuple[str, int]]
    classes: tuple[str, ...]
    needs: Needs
    note: str
    side: int | None = None

    def load(
        self,
        root: Path,
        *,
        fraction: float = 0.1,
        test_fraction: float = 1.0,
        size: int = 224,
        spare: bool = False,
        seed: int = 0,
        site: str | None = None,
    ) -> Federation:
        """A site for each domain: art, clipart, product, real of Office-Home, 65 classes; art_painting, cartoon, photo,
        sketch of PACS, seven classes.

        A domain is cut here, by class, its files sorted by name. A tenth is for testing, always the same; of the rest a
        tenth is validation, drawn by ``seed``, and of what is left ``fraction`` is used for training. FRAug's code
        takes the same shares. Of Office-Home, which has no lists, its cut depends on the order in which the file system
        lists a folder, so it cannot be had again; of PACS it goes the same way from PACS' own training lists, which are
        nine tenths of each domain and are not used here.

        Args:
            fraction: share of a domain's training images that is used, stratified by class. FRAug: 0.1, by which its
                code trains on 8.1 % of a domain of Office-Home; its text says "10% of the original data", which is
                0.1235.
            test_fraction: share of the test images that is used, stratified; below 1 testing takes less time.
            size: FRAug prints none, its code uses 224.
            spare: whether the training images that ``fraction`` leaves out are handed over as each site's ``spare``, as
                FRAug's Table 1 needs; at 224 pixels those of Office-Home take 1.7 GB.
            seed: of the validation and training images.

        ``notes`` says so when a domain has another number of images, or files of another size, than the original.

        Reference: FRAug, Sec. 4.1.1, and its released code.
        """
        images.check_size(size)
        check_shares(fraction=fraction, test_fraction=test_fraction)
        here = chosen_sites(self.name, self.domains, site)
        self.needs.require(self.missing(root, sites=here))
        sites, notes = [], [self.note]
        for domain in here:
            paths, targets, unused = listed(self.place(root, domain), self.classes)
            parts = self._parts(targets, domain, fraction, test_fraction, seed)[: None if spare else 3]
            used = np.sort(np.concatenate(parts))
            chosen = [paths[position] for position in used]
            whole, unusual = images.labelled(root, f"{self.name}_{domain}", chosen, targets[used], size)
            sites.append(Site(domain, *(whole.select(np.searchsorted(used, part)) for part in parts)))
            notes += [*unused, *unusual, *self._otherwise(domain, len(paths), chosen[0])]
        return Federation(self.name, sites, self.classes, tuple(notes))

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

    def _parts(
        self, targets: np.ndarray, domain: str, fraction: float, test_fraction: float, seed: int
    ) -> list[np.ndarray]:
        """The positions of training, validation, test and spare images in a domain."""
        rest, test = stratified(targets, sizes(len(targets), (1 - TEST, TEST)), self.name, domain)
        shares = sizes(len(rest), (1 - VALIDATION, VALIDATION))
        train, validation = (rest[own] for own in stratified(targets[rest], shares, self.name, domain, seed))
        used = round(len(train) * fraction)
        tested = test[: round(len(test) * test_fraction)]
        parts = [train[:used], validation, tested, train[used:]]
        if not all(len(part) for part in parts[:3]):
            raise RecipeError(
                f"{domain} is left with {len(parts[0])} training, {len(validation)} validation and {len(tested)} test "
                f"images by fraction={fraction} and test_fraction={test_fraction}. Enlarge them."
            )
        return parts

    def _otherwise(self, domain: str, count: int, first: Path) -> list[str]:
        """A note, or none, on what is otherwise than in the original."""
        folder, complete = self.domains[domain]
        if not self.side:
            return [f"{folder} has {count} images; {self.title}'s has {complete}."] if count != complete else []
        width, height = images.dimensions(first)
        if (width, height) == (self.side, self.side):
            return []
        return [f"Files of {width} x {height} pixels; {self.title}' own are {self.side} x {self.side}."]
