"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

import gzip
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _class_folders as class_folders
from fednb.datasets import _files as files
from fednb.datasets import _images as images
from fednb.datasets._partition import by_class_shares, by_dirichlet, stratified
from fednb.datasets._published import Count, Needs, Published, damage
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split

NEEDS = Needs(
    what="CIFAR-10 (Krizhevsky 2009)",
    layout="as torchvision unpacks it, cifar-10-batches-py/ with data_batch_1 to data_batch_5 and test_batch, or "
    "cifar-10-python.tar.gz, in cifar10/ or in the data folder itself; or cifar10/<train|test>/<class>/<file>",
    page="www.cs.toronto.edu/~kriz/cifar.html",
    download="cifar-10-python.tar.gz, 170 MB",
    licence="for research; that of the photographs is not stated",
    folders=("cifar10",),
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
COMPLETE = {"train": 50_000, "test": 10_000}
SIDE = 32
MOST = 200_000_000  # bytes that an archive may unpack to; the complete ones have 187 million
PARTITIONS = ("class_shares", "dirichlet")


Content = Callable[[Path], bytes | None]  # of a file that is in an archive
Take = Callable[[np.ndarray], np.ndarray]  # positions -> images


@dataclass(frozen=True)
class Cifar(Published):
    """CIFAR-10 or CIFAR-100, as torchvision has it.

    name: of the loader, and of a folder that may hold the files. title: for people. folder, archive: as unpacked, as
    fetched. files: the pickles of each part. labels: their key in a pickle. pictures: whether images in
    <name>/<part>/<class> are read where there are no pickles.
    """

    name: str
    title: str
    folder: str
    archive: str
    files: dict[str, tuple[str, ...]]
    labels: str
    classes: tuple[str, ...]
    needs: Needs
    pictures: bool = False

    def federation(
        self,
        root: Path,
        clients: int,
        partition: str,
        classes_per_client: int,
        concentration: float,
        size: int,
        train_images: int | None,
        test_images: int | None,
        seed: int,
        spare: bool = False,
    ) -> Federation:
        """The images dealt out, each client's resized. The options are those of ``cifar10.load``.

        Raises DataError naming a file that is damaged, holds something else, or is not in the archive, and for an
        archive that unpacks to more than ``MOST`` bytes; it is not unpacked further, and nothing of it is written.
        """
        images.check_size(size)
        self.needs.require(self.missing(root, partition=partition))
        place = self._find(root)
        content = self._contents(place) if place else None
        splits, notes = [], []
        for part, count in {"train": train_images, "test": test_images}.items():
            targets, take = self._pickled(place, content, part) if place else self._in_folders(root, part, notes)
            groups = [self._choose(part, targets, count, seed, notes)]
            if spare and part == "test":
                groups.append(self._left_out(targets, groups[0], notes))
            pixels = np.split(take(np.concatenate(groups)), np.cumsum([len(group) for group in groups])[:-1])
            for own, group in zip(pixels, groups, strict=True):
                splits.append(Split(torch.from_numpy(own), torch.from_numpy(targets[group])))
        train, test, *others = splits
        how, value = by_class_shares, classes_per_client
        if partition == "dirichlet":
            how, value = by_dirichlet, concentration
        dealt = len(self.classes), clients, value, self.name, seed
        sites, said = how(train, test, *dealt, spare=others[0] if others else None)
        resized = [Site(site.name, *(_resize(part, size) for part in site.parts if part is not None)) for site in sites]
        return Federation(self.name, resized, self.classes, (*notes, *said))

    def missing(self, root: Path, *, partition: str = "class_shares", **options) -> str | None:
        """One sentence when neither torchvision's files nor class folders are there."""
        if partition not in PARTITIONS:
            raise RecipeError(f'{self.name} has no partition "{partition}"; {nearest(str(partition), PARTITIONS)}')
        if self._find(root):
            return None
        if self.pictures:
            return class_folders.missing([root / self.name / part for part in COMPLETE], self.classes)
        names = " and ".join(self._names)
        return f"There is no {self.folder} with {names}, and no {self.archive}, in {root / self.name} or {root}."

    def counts(self, root: Path) -> list[Count]:
        """The images of each part and class; as many of each are published."""
        place, made = self._find(root), []
        content = self._contents(place) if place else None
        for part, complete in COMPLETE.items():
            if place:
                found = np.bincount(self._pickled(place, content, part)[0], minlength=len(self.classes)).tolist()
                each = complete // len(self.classes)
                made += [Count(f"{part}, {name}", own, each) for name, own in zip(self.classes, found, strict=True)]
            elif self.pictures:
                made += class_folders.counts(root / self.name / part, self.classes, complete)
        return made

    def told(self, root: Path) -> list[str]:
        if place := self._find(root):
            return [f"files in {place.relative_to(root)}"]
        lines = []
        for part, complete in COMPLETE.items() if self.pictures else ():
            place = root / self.name / part
            lines.append(str(Count(part, len(class_folders.there(place, self.classes)), complete)))
            lines += class_folders.unused(place, self.classes)
        return lines

    def damaged(self, root: Path) -> list[tuple[Path, str]]:
        if not (place := self._find(root)):
            return []
        try:
            content = self._contents(place)
        except DataError as error:
            return [(place, str(error))]
        return damage([place / name for name in self._names], lambda file: self._batch(file, content))

    @property
    def _names(self) -> list[str]:
        return [name for names in self.files.values() for name in names]

    def _find(self, root: Path) -> Path | None:
        """The folder that holds all files, else the archive, which is not looked into."""
        for base in (root / self.name, root):
            if all((base / self.folder / name).is_file() for name in self._names):
                return base / self.folder
        archives = (root / self.name / self.archive, root / self.archive)
        return next((archive for archive in archives if archive.is_file()), None)

    def _pickled(self, place: Path, content: Content, part: str) -> tuple[np.ndarray, Take]:
        """The class numbers of a part, and what gives the images at some positions."""
        batches = [self._batch(place / name, content) for name in self.files[part]]
        pixels, targets = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
        return targets, lambda positions: pixels[positions]

    def _in_folders(self, root: Path, part: str, notes: list[str]) -> tuple[np.ndarray, Take]:
        """The same of class folders; only the images asked for are decoded."""
        paths, targets, unused = class_folders.listed(root / self.name / part, self.classes)

        def take(positions: np.ndarray) -> np.ndarray:
            used = [paths[position] for position in positions]
            if used[0].suffix.lower() in (".jpg", ".jpeg"):
                notes.append(
                    f"The {part} images are JPEG files: their pixels are close to {self.title}'s own, not equal."
                )
            pixels, unusual = images.read(root, f"{self.name}_{part}", used, SIDE)
            notes.extend([*unused, *unusual])
            return pixels

        return targets, take

    def _contents(self, place: Path) -> Content:
        """What gives the bytes of a file in the archive; None where the files are unpacked."""
        if place.is_dir():
            return lambda file: None

        def unpack(archive: Path, most: int) -> tarfile.TarFile:
            return tarfile.open(fileobj=io.BytesIO(files.unpacked(archive, gzip.open(archive), most)))

        archive = files.reading(place, unpack, MOST)

        def member(file: Path) -> bytes:
            entry = archive.getmember(f"{self.folder}/{file.name}")
            if not entry.isreg() or entry.size > MOST:  # a sparse file may claim any size
                raise ValueError(f"{entry.name} is no file of at most {MOST} bytes")
            return archive.extractfile(entry).read()

        return lambda file: files.reading(place, lambda _: member(file))

    def _batch(self, file: Path, content: Content) -> tuple[np.ndarray, np.ndarray]:
        """Images and labels of one file."""
        pixels, labels = files.images_and_labels(file, self.labels, content(file))
        if pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3 * SIDE * SIDE) or not len(labels):
            found = f"{pixels.dtype} {list(pixels.shape)} for {len(labels)} labels"
            raise DataError(f"{file} holds {found}; expected uint8 [n, 3072]. Fetch it again.")
        if labels.min() < 0 or labels.max() >= len(self.classes):
            found = f"{labels.min()} to {labels.max()}"
            raise DataError(f"{file} has labels from {found}; expected 0 to {len(self.classes) - 1}. Fetch it again.")
        return pixels.reshape(-1, 3, SIDE, SIDE), labels

    def _choose(self, part: str, targets: np.ndarray, count: int | None, seed: int, notes: list[str]) -> np.ndarray:
        """So many positions, or all, sorted, with all classes in proportion; a note if some are lacking."""
        on_disk, complete = len(targets), COMPLETE[part]
        if count is None:
            count = on_disk
        elif not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= complete:
            raise RecipeError(f"{part}_images is {count!r}; expected a whole number from 1 to {complete}.")
        if count > on_disk:
            raise DataError(f"{part}_images={count}, but {on_disk} are on disk. Get the others, or ask for fewer.")
        if count < complete:
            notes.append(f"{count} of {self.title}'s {complete} {part} images are used; {on_disk} are on disk.")
        (chosen,) = stratified(targets, [count], self.name, part, seed)
        return np.sort(chosen)

    def _left_out(self, targets: np.ndarray, chosen: np.ndarray, notes: list[str]) -> np.ndarray:
        """The positions of the test images that are not chosen; RecipeError where there are none."""
        others = np.setdiff1d(np.arange(len(targets)), chosen)
        if not len(others):
            raise RecipeError(f"{self.name} has no spare images: all {len(chosen)} are test images. Lower test_images.")
        notes.append(f"{len(others)} other test images are spare.")
        return others


def _resize(split: Split, size: int) -> Split:
    return Split(torch.from_numpy(images.resized(split.images.numpy(), size)), split.targets)


CIFAR = Cifar(
    name="cifar10",
    title="CIFAR-10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    files={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    labels="labels",
    classes=CLASSES,
    needs=NEEDS,
    pictures=True,
)
missing, describe, counts, damaged = CIFAR.missing, CIFAR.describe, CIFAR.counts, CIFAR.damaged


def load(
    root: Path,
    *,
    clients: int = 10,
    partition: str = "class_shares",
    classes_per_client: int = 10,
    concentration: float = 0.6,
    size: int = 64,
    train_images: int | None = None,
    test_images: int | None = None,
    spare: bool = False,
    seed: int = 0,
) -> Federation:
    """Sites client_0, client_1, ...; ten classes. A tenth of each client's training images is validation.

    Args:
        clients: how many sites. DisTrans: 10; FedFA: 100.
        partition: ``"class_shares"``: DisTrans' (``fednb.standalone.class_shares``), tested on the same classes in the
            same shares; with one class per client on as many images of other classes as well.
            ``"dirichlet"``: FedFA's (``_partition.dirichlet_shares``), at least 10 images for each client
            before a tenth becomes validation, tested on an equal part of all test images.
        classes_per_client: for class shares; times ``clients`` a multiple of ten. DisTrans: 10, 6, 4, 2, 1,
            which are DH = 0, 40, 60, 80, 100 %.
        concentration: for Dirichlet. FedFA: 0.6 and 0.3.
        size: DisTrans: 64. The files have 32.
        train_images: how many training images to use, stratified by class; None takes all on disk. A tenth of
            them is validation.
        test_images: the same for test images.
        spare: whether the test images that ``test_images`` leaves out are handed over as each site's ``spare``, dealt
            out as its test images are.
        seed: of all draws.

    Where there are batches and folders, the batches are read.

    Reference: DisTrans, Sec. 5 and 5.1; FedFA, App. E.1.
    """
    dealt = clients, partition, classes_per_client, concentration
    return CIFAR.federation(root, *dealt, size, train_images, test_images, seed, spare)
