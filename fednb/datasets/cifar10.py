"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._files import images_and_labels
from fednb.datasets._listed import Needs, decoded, in_classes, lacking, require_folders, targets
from fednb.datasets._partition import by_class_shares, by_dirichlet, stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split

NEEDS = Needs(
    what="CIFAR-10 (Krizhevsky 2009)",
    layout="as torchvision unpacks it, cifar-10-batches-py/ with data_batch_1 to data_batch_5 and test_batch, in "
    "cifar10/ or in the data folder itself; or cifar10/<train|test>/<class>/<file>",
    page="www.cs.toronto.edu/~kriz/cifar.html",
    download="cifar-10-python.tar.gz, 170 MB",
    licence="for research; that of the photographs is not stated",
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
COMPLETE = {"train": 50_000, "test": 10_000}
SIDE = 32
PARTITIONS = ("class_shares", "dirichlet")


Take = Callable[[np.ndarray], np.ndarray]  # positions -> images


@dataclass(frozen=True)
class Cifar:
    """CIFAR-10 or CIFAR-100, as torchvision has it.

    name: of the loader, and of a folder that may hold the files. title: for people. folder: as unpacked. files: the
    pickles of each part. labels: their key in a pickle. pictures: whether images in <name>/<part>/<class> are read
    where there are no pickles.
    """

    name: str
    title: str
    folder: str
    files: dict[str, tuple[str, ...]]
    labels: str
    classes: tuple[str, ...]
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

        Raises DataError naming a file that is damaged or holds something else.
        """
        images.check_size(size)
        place, splits, notes = self.place(root, partition=partition), [], []
        for part, count in {"train": train_images, "test": test_images}.items():
            labels, take = self._part(root, place, part, notes)
            groups = self._choose(part, labels, count, seed, spare and part == "test", notes)
            pixels = np.split(take(np.concatenate(groups)), [len(groups[0])])
            for own, group in zip(pixels, groups, strict=False):
                splits.append(Split(torch.from_numpy(own), torch.from_numpy(labels[group])))
        train, test, *others = splits
        how, value = by_class_shares, classes_per_client
        if partition == "dirichlet":
            how, value = by_dirichlet, concentration
        dealt = len(self.classes), clients, value, self.name, seed
        sites, said = how(train, test, *dealt, spare=others[0] if others else None)
        resized = [Site(site.name, *(_resize(part, size) for part in site.parts if part is not None)) for site in sites]
        return Federation(self.name, resized, self.classes, (*notes, *said))

    def place(self, root: Path, *, partition: str = PARTITIONS[0], **options) -> Path:
        """The folder that holds all pickles, else that of the class folders; DataError where there is neither."""
        if partition not in PARTITIONS:
            raise RecipeError(f'{self.name} has no partition "{partition}"; {nearest(str(partition), PARTITIONS)}')
        names = [name for names in self.files.values() for name in names]
        for base in (root / self.name, root):
            if all((base / self.folder / name).is_file() for name in names):
                return base / self.folder
        if not self.pictures:
            raise DataError(f"There is no {self.folder} with {' and '.join(names)} in {root / self.name} or {root}.")
        require_folders([root / self.name / part for part in COMPLETE], self.classes)
        return root / self.name

    def _part(self, root: Path, place: Path, part: str, notes: list[str]) -> tuple[np.ndarray, Take]:
        """The class numbers of a part, and what gives the images at some positions; only those are decoded."""
        if place.name == self.folder:
            batches = [self._batch(place / name) for name in self.files[part]]
            pixels, labels = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
            return labels, lambda positions: pixels[positions]
        rows = in_classes(place / part, self.classes)

        def take(positions: np.ndarray) -> np.ndarray:
            used = [rows[position] for position in positions]
            if used[0][0].suffix.lower() in (".jpg", ".jpeg"):
                notes.append(
                    f"The {part} images are JPEG files: their pixels are close to {self.title}'s own, not equal."
                )
            return decoded(root, f"{self.name}_{part}", used, SIDE, notes).images.numpy()

        return targets(rows), take

    def _batch(self, file: Path) -> tuple[np.ndarray, np.ndarray]:
        """Images and labels of one file."""
        (pixels, labels), most = images_and_labels(file, self.labels), len(self.classes) - 1
        if not len(labels) or pixels.shape != (len(labels), 3 * SIDE * SIDE) or min(labels) < 0 or max(labels) > most:
            raise DataError(
                f"{file} holds {list(pixels.shape)} bytes for {len(labels)} labels; expected [n, 3072], and labels "
                f"from 0 to {most}. Fetch it again."
            )
        return pixels.reshape(-1, 3, SIDE, SIDE), labels

    def _choose(
        self, part: str, labels: np.ndarray, count: int | None, seed: int, spare: bool, notes: list[str]
    ) -> list[np.ndarray]:
        """So many positions, or all, sorted, with all classes in proportion, and the others where they are spare; notes
        on how many."""
        on_disk, complete = len(labels), COMPLETE[part]
        if count is None:
            count = on_disk
        elif not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= complete:
            raise RecipeError(f"{part}_images is {count!r}; expected a whole number from 1 to {complete}.")
        if count > on_disk:
            raise DataError(f"{part}_images={count}, but {on_disk} are on disk. Get the others, or ask for fewer.")
        if count < complete:
            notes.append(f"{count} of {self.title}'s {complete} {part} images are used; {on_disk} are on disk.")
        (chosen,) = stratified(labels, [count], self.name, part, seed)
        if not spare:
            return [np.sort(chosen)]
        if count == on_disk:
            raise RecipeError(f"{self.name} has no spare images: all {count} are test images. Lower test_images.")
        notes.append(f"{on_disk - count} other test images are spare.")
        return [np.sort(chosen), np.setdiff1d(np.arange(on_disk), chosen)]


def _resize(split: Split, size: int) -> Split:
    return Split(torch.from_numpy(images.resized(split.images.numpy(), size)), split.targets)


CIFAR = Cifar(
    name="cifar10",
    title="CIFAR-10",
    folder="cifar-10-batches-py",
    files={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    labels="labels",
    classes=CLASSES,
    pictures=True,
)
missing = partial(lacking, CIFAR.place)


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
        partition: ``"class_shares"``: DisTrans' (``_partition.class_shares``), tested on the same classes in the
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
