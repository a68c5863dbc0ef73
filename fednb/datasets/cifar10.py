"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._listed import decoded, in_classes, lacking, require_folders, targets
from fednb.datasets._partition import by_class_shares, by_dirichlet, check_whole, stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split

NEEDS = (
    "CIFAR-10 (Krizhevsky 2009). Layout: torchvision's cifar-10-batches-py/; or the binary version, "
    "cifar-10-batches-bin/ with data_batch_1.bin to data_batch_5.bin and test_batch.bin; or "
    "cifar10/<train|test>/<class>/<file>. From www.cs.toronto.edu/~kriz/cifar.html; two archives of 162 MB. "
    "Licence: for research; that of the photographs is not stated."
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
COMPLETE = {"train": 50_000, "test": 10_000}
SIDE = 32
PARTITIONS = ("class_shares", "dirichlet")


@dataclass(frozen=True)
class Cifar:
    """CIFAR-10 or CIFAR-100: its binary version in ``folder``, torchvision's files in ``pickled``, or images in
    <name>/<part>/<class>.

    files: of each part, without a suffix. label: which byte of a binary image is its class; its pixels follow.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    folder: str
    pickled: str
    files: dict[str, tuple[str, ...]]
    label: int

    def load(
        self,
        root: Path,
        *,
        clients: int = 10,
        partition: str = PARTITIONS[0],
        classes_per_client: int = 10,
        concentration: float = 0.6,
        size: int = 64,
        train_images: int | None = None,
        test_images: int | None = None,
        spare: bool = False,
        seed: int = 0,
    ) -> Federation:
        """Sites client_0, client_1, ...; ten classes, or the hundred fine ones of CIFAR-100. A tenth of each client's
        training images is validation.

        Args:
            clients: how many sites. DisTrans: 10, in its Table 6 50, 100 and 500 for CIFAR-100; FedFA: 100.
            partition: ``"class_shares"``: DisTrans' (``_partition.class_shares``), tested on the same classes in the
                same shares. ``"dirichlet"``: FedFA's (``_partition.dirichlet_shares``), at least 10 images for each
                client before a tenth becomes validation, tested on an equal part of all test images.
            classes_per_client: for class shares; times ``clients`` a multiple of the classes. DisTrans, with 10
                clients: 10, 6, 4, 2, 1 of ten (DH = 0, 40, 60, 80, 100 %), ten times as many of a hundred; Table 6: 10.
            concentration: for Dirichlet. FedFA: 0.6 and 0.3.
            size: the files have 32. DisTrans: 64 for CIFAR-10 by its code, for CIFAR-100 by the counts of its Table 7.
            train_images, test_images: how many to use, stratified by class; None takes all on disk.
            spare: whether the test images that ``test_images`` leaves out are each site's ``spare``.

        Reference: DisTrans, Sec. 5, 5.1 and 5.4, whose released code has no CIFAR-100; FedFA, App. E.1.
        """
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
        """The folder of all binary or torchvision's files, else of the class folders; DataError where there is none."""
        if partition not in PARTITIONS:
            raise RecipeError(f'{self.name} has no partition "{partition}"; {nearest(str(partition), PARTITIONS)}')
        names, places = sum(self.files.values(), ()), [root / self.name / part for part in COMPLETE]
        for folder, suffix in ((self.folder, ".bin"), (self.pickled, "")):
            if all((root / folder / f"{name}{suffix}").is_file() for name in names):
                return root / folder
        if not any(place.is_dir() for place in places):
            binary = f"{root / self.folder} with {'.bin, '.join(names)}.bin"
            raise DataError(f"There is neither {root / self.pickled} nor {binary}.")
        require_folders(places, self.classes)
        return root / self.name

    def _part(self, root: Path, place: Path, part: str, notes: list[str]) -> tuple[np.ndarray, Callable]:
        """The class numbers of a part, and what gives the images at some positions; only those are decoded."""
        if place.name == self.folder:
            entries = np.concatenate([self._entries(place / f"{name}.bin") for name in self.files[part]])
            pixels = entries[:, self.label + 1 :].reshape(-1, 3, SIDE, SIDE)
            return entries[:, self.label].astype(np.int64), pixels.__getitem__
        if place.name == self.pickled:
            import torchvision

            try:  # it unpickles, which can execute code, only files that have the MD5 sums of CIFAR's own
                data = getattr(torchvision.datasets, self.title.replace("-", ""))(root, train=part == "train")
            except RuntimeError as error:
                raise DataError(f"{place} has other files than {self.title}'s own. Fetch it again.") from error
            return np.array(data.targets, np.int64), data.data.transpose(0, 3, 1, 2).__getitem__
        rows = in_classes(place / part, self.classes)

        def take(positions: np.ndarray) -> np.ndarray:
            used = [rows[position] for position in positions]
            if used[0][0].suffix.lower() in (".jpg", ".jpeg"):
                same = f"their pixels are close to {self.title}'s own, not equal."
                notes.append(f"The {part} images are JPEG files: {same}")
            return decoded(root, f"{self.name}_{part}", used, SIDE, notes).images.numpy()

        return targets(rows), take

    def _entries(self, file: Path) -> np.ndarray:
        content, length = np.fromfile(file, np.uint8), self.label + 1 + 3 * SIDE * SIDE
        if not len(content) or len(content) % length or content[self.label :: length].max() >= len(self.classes):
            classed = f"of which no. {self.label + 1} is its class, below {len(self.classes)}. Fetch it again"
            raise DataError(f"{file} has {len(content)} bytes; expected {length} an image, {classed}.")
        return content.reshape(-1, length)

    def _choose(self, part: str, labels, count: int | None, seed: int, spare: bool, notes: list) -> list[np.ndarray]:
        """So many positions, sorted, and the others where they are spare."""
        on_disk, complete = len(labels), COMPLETE[part]
        count = on_disk if count is None else count
        check_whole(**{f"{part}_images": count})
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
    "cifar10",
    "CIFAR-10",
    CLASSES,
    folder="cifar-10-batches-bin",
    pickled="cifar-10-batches-py",
    files={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    label=0,
)
load, missing = CIFAR.load, lacking(CIFAR.place)
