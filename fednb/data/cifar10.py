"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from fednb.data import _class_folders as class_folders
from fednb.data import _dealing as dealing
from fednb.data import _images as images
from fednb.data import _pickles as pickles
from fednb.data._partition import stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import SPLITS, Federation, Site, Split

NEEDS = (
    "CIFAR-10 (Krizhevsky 2009; for research, the licence of the photographs is not stated). As torchvision "
    "unpacks it, cifar-10-batches-py/ with data_batch_1 to data_batch_5 and test_batch, in cifar10/ or in the "
    "data folder itself; or images at cifar10/<train|test>/<class>/<file>. www.cs.toronto.edu/~kriz/cifar.html "
    "has the batches."
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
COMPLETE = {"train": 50_000, "test": 10_000}
SIDE = 32
PARTITIONS = ("class_shares", "dirichlet")
BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}


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
    seed: int = 0,
) -> Federation:
    """Sites client_0, client_1, ...; RGB ``size`` x ``size``, ten classes. A tenth of each client's training
    images is validation.

    Args:
        root: the data folder.
        clients: how many sites. DisTrans: 10; FedFA: 100.
        partition: ``"class_shares"``: DisTrans' (``fednb.standalone.class_shares``), tested on the same classes in the
            same shares; with one class per client on as many images of other classes as well.
            ``"dirichlet"``: FedFA's (``_partition.dirichlet_shares``), at least 10 images for each client
            before a tenth becomes validation, tested on an equal part of all test images.
        classes_per_client: for class shares; times ``clients`` a multiple of ten. DisTrans: 10, 6, 4, 2, 1,
            which are DH = 0, 40, 60, 80, 100 %.
        concentration: for Dirichlet. FedFA: 0.6 and 0.3.
        size: height and width in pixels; resized bilinearly. DisTrans: 64. The files have 32.
        train_images: how many training images to use, stratified by class; None takes all on disk. A tenth of
            them is validation.
        test_images: the same for test images.
        seed: of all draws.

    Complete: 50,000 training and 10,000 test images; ``notes`` says how many are used if it is fewer.
    Licence and layout: see ``NEEDS``. Where there are batches and folders, the batches are read.

    Reference: DisTrans, Sec. 5 and 5.1; FedFA, App. E.1.

    Raises DataError when files are missing, damaged or fewer than asked for; RecipeError for an option out of
    its range.
    """
    images.check_size(size)
    problem = missing(root, partition=partition)
    if problem:
        raise DataError(f"{problem} Expected: {NEEDS}")
    notes = []
    train = _read(root, "train", train_images, seed, notes)
    test = _read(root, "test", test_images, seed, notes)
    if partition == "class_shares":
        cut = dealing.by_class_shares(train, test, len(CLASSES), clients, classes_per_client, "cifar10", seed)
    else:
        cut = dealing.by_dirichlet(train, test, len(CLASSES), clients, concentration, "cifar10", seed)
    sites = [Site(site.name, *(_resize(getattr(site, split), size) for split in SPLITS)) for site in cut[0]]
    return Federation("cifar10", sites, CLASSES, (*notes, *cut[1]))


def missing(root: Path, *, partition: str = "class_shares", **options) -> str | None:
    """One sentence when neither the batches nor the class folders are there."""
    if partition not in PARTITIONS:
        raise RecipeError(f'cifar10 has no partition "{partition}"; {nearest(str(partition), PARTITIONS)}')
    problem = class_folders.missing([root / "cifar10" / part for part in BATCHES], CLASSES)
    return None if _batches(root) else problem


def describe(root: Path) -> list[str]:
    """The batches, or the images in class folders, for ``fednb data``."""
    lines = [missing(root) or "ready"]
    if batches := _batches(root):
        return [*lines, f"batches in {batches.relative_to(root)}"]
    for part, complete in COMPLETE.items():
        found = class_folders.count(root / "cifar10" / part, CLASSES)
        lines.append(f"{part}: {found} images (complete: {complete})")
        lines.extend(class_folders.unused(root / "cifar10" / part, CLASSES))
    return lines


def damaged(root: Path) -> list[tuple[Path, str]]:
    """Batches that cannot be read, each with the reason."""
    found = []
    if batches := _batches(root):
        for file in (batches / name for names in BATCHES.values() for name in names):
            try:
                _batch(file)
            except DataError as error:
                found.append((file, str(error)))
    return found


def _batches(root: Path) -> Path | None:
    """The folder that holds all six batches."""
    for folder in (root / "cifar10" / "cifar-10-batches-py", root / "cifar-10-batches-py"):
        if all((folder / name).is_file() for names in BATCHES.values() for name in names):
            return folder
    return None


def _read(root: Path, part: str, count: int | None, seed: int, notes: list[str]) -> Split:
    """So many images of a part, 32 x 32, with all classes in proportion; only these are decoded."""
    if folder := _batches(root):
        held = [_batch(folder / name) for name in BATCHES[part]]
        pixels, targets = (np.concatenate(arrays) for arrays in zip(*held, strict=True))
        chosen = _choose(targets, part, count, seed, notes)
        return Split(torch.from_numpy(pixels[chosen]), torch.from_numpy(targets[chosen]))
    paths, targets, unused = class_folders.listed(root / "cifar10" / part, CLASSES)
    chosen = _choose(targets, part, count, seed, notes)
    used = [paths[position] for position in chosen]
    if used[0].suffix.lower() in (".jpg", ".jpeg"):
        notes.append(f"The {part} images are JPEG files: their pixels are close to CIFAR-10's own, not equal.")
    pixels, unusual = images.read(root, f"cifar10_{part}", used, images.digests(used), SIDE)
    notes += [*unused, *unusual]
    return Split(torch.from_numpy(pixels), torch.from_numpy(targets[chosen]))


def _batch(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 3, 32, 32] and labels [n] of one of CIFAR-10's own files."""
    pixels, labels = pickles.images_and_labels(file)
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3 * SIDE * SIDE) or not len(labels):
        raise DataError(
            f"{file} holds {pixels.dtype} {list(pixels.shape)} for {len(labels)} labels; expected uint8 [n, 3072]."
        )
    if labels.min() < 0 or labels.max() >= len(CLASSES):
        raise DataError(f"{file} has labels from {labels.min()} to {labels.max()}; expected 0 to 9.")
    return pixels.reshape(-1, 3, SIDE, SIDE), labels


def _choose(targets: np.ndarray, part: str, count: int | None, seed: int, notes: list[str]) -> np.ndarray:
    """Positions, sorted; a note if they are not all of CIFAR-10."""
    on_disk, complete = len(targets), COMPLETE[part]
    if count is None:
        count = on_disk
    elif not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= complete:
        raise RecipeError(f"{part}_images is {count!r}; expected a whole number from 1 to {complete}.")
    if count > on_disk:
        raise DataError(f"{part}_images={count}, but {on_disk} are on disk. Get the others, or ask for fewer.")
    if count < complete:
        notes.append(f"{count} of CIFAR-10's {complete} {part} images are used; {on_disk} are on disk.")
    (chosen,) = stratified(targets, [count], "cifar10", part, seed)
    return np.sort(chosen)


def _resize(split: Split, size: int) -> Split:
    if size == SIDE:
        return split
    pixels = np.empty((len(split), size, size, 3), np.uint8)
    for position, image in enumerate(split.images.permute(0, 2, 3, 1).numpy()):
        pixels[position] = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
    return Split(torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous(), split.targets)
