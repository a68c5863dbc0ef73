"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

from pathlib import Path

import numpy as np
import torch

from fednb.data import _cifar as cifar
from fednb.data import _class_folders as class_folders
from fednb.data import _images as images
from fednb.data._cifar import COMPLETE
from fednb.data._published import Count, Needs
from fednb.errors import DataError
from fednb.federation import Federation, Split

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
SOURCE = cifar.Source(
    name="cifar10",
    title="CIFAR-10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    files={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    labels="labels",
    classes=CLASSES,
)


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
        spare: whether the test images that ``test_images`` leaves out are handed over as each site's ``spare``, dealt
            out as its test images are.
        seed: of all draws.

    Complete: 50,000 training and 10,000 test images; ``notes`` says how many are used if it is fewer.
    Licence and layout: see ``NEEDS``. Where there are batches and folders, the batches are read.

    Reference: DisTrans, Sec. 5 and 5.1; FedFA, App. E.1.

    Raises DataError when files are missing, damaged, fewer than asked for or too few for so many clients; RecipeError
    for an option out of its range.
    """
    images.check_size(size)
    problem = missing(root, partition=partition)
    if problem:
        raise DataError(f"{problem} Expected: {NEEDS}")
    notes = []
    counts = {"train": train_images, "test": test_images}
    if place := cifar.find(SOURCE, root):
        train, test, *others = cifar.splits(SOURCE, place, counts, seed, notes, spare)
    else:
        (train,) = _from_folders(root, "train", train_images, seed, notes)
        test, *others = _from_folders(root, "test", test_images, seed, notes, spare)
    return cifar.federation(
        SOURCE,
        train,
        test,
        notes,
        clients=clients,
        partition=partition,
        classes_per_client=classes_per_client,
        concentration=concentration,
        size=size,
        seed=seed,
        spare=others[0] if others else None,
    )


def missing(root: Path, *, partition: str = "class_shares", **options) -> str | None:
    """One sentence when neither torchvision's files nor the class folders are there."""
    cifar.check_partition(SOURCE, partition)
    problem = class_folders.missing([root / "cifar10" / part for part in COMPLETE], CLASSES)
    return None if cifar.find(SOURCE, root) else problem


def describe(root: Path) -> list[str]:
    """The batches, or the images in class folders, for ``fednb data``."""
    lines = [missing(root) or "ready"]
    if place := cifar.find(SOURCE, root):
        return [*lines, f"batches in {place.relative_to(root)}"]
    for part, complete in COMPLETE.items():
        found = len(class_folders.there(root / "cifar10" / part, CLASSES))
        lines.append(f"{part}: {found} images (complete: {complete})")
        lines.extend(class_folders.unused(root / "cifar10" / part, CLASSES))
    return lines


def counts(root: Path) -> list[Count]:
    """Images by part and class, for ``fednb data --check``."""
    if place := cifar.find(SOURCE, root):
        return cifar.counts(SOURCE, place)
    parts = COMPLETE.items()
    return [one for part, all in parts for one in class_folders.counts(root / "cifar10" / part, CLASSES, all)]


def damaged(root: Path) -> list[tuple[Path, str]]:
    """Batches that cannot be read, each with the reason."""
    return cifar.damaged(SOURCE, root)


def _from_folders(
    root: Path, part: str, count: int | None, seed: int, notes: list[str], spare: bool = False
) -> list[Split]:
    """So many images of a part, and with ``spare`` the others; only these are decoded."""
    paths, targets, unused = class_folders.listed(root / "cifar10" / part, CLASSES)
    chosen = cifar.choose(SOURCE, part, targets, count, seed, notes)
    groups = [chosen, *([cifar.left_out(SOURCE, targets, chosen, notes)] if spare else [])]
    used = [paths[position] for position in np.concatenate(groups)]
    if used[0].suffix.lower() in (".jpg", ".jpeg"):
        notes.append(f"The {part} images are JPEG files: their pixels are close to CIFAR-10's own, not equal.")
    pixels, unusual = images.read(root, f"cifar10_{part}", used, images.digests(used), cifar.SIDE)
    notes += [*unused, *unusual]
    parts = np.split(pixels, [len(chosen)]) if spare else [pixels]
    return [Split(*map(torch.from_numpy, (p, targets[g]))) for p, g in zip(parts, groups, strict=True)]
