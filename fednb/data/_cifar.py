"""What CIFAR-10 and CIFAR-100 share: torchvision's files, and dealing their images out to clients."""

import gzip
import io
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.data import _dealing as dealing
from fednb.data import _digit_files as digit_files
from fednb.data import _images as images
from fednb.data import _pickles as pickles
from fednb.data._partition import stratified
from fednb.data._published import Count
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split

COMPLETE = {"train": 50_000, "test": 10_000}
SIDE = 32
MOST = 200_000_000  # bytes that an archive may unpack to; the complete ones have 187 million
PARTITIONS = ("class_shares", "dirichlet")


@dataclass(frozen=True)
class Source:
    """One of the two, as torchvision has it.

    name: of the loader, and of a folder that may hold the files. title: for people. folder, archive: as unpacked, as
    fetched. files: the pickles of each part. labels: their key in a pickle.
    """

    name: str
    title: str
    folder: str
    archive: str
    files: dict[str, tuple[str, ...]]
    labels: str
    classes: tuple[str, ...]


def find(source: Source, root: Path) -> Path | None:
    """The folder that holds all files, else the archive, which is not looked into."""
    for base in (root / source.name, root):
        if all((base / source.folder / name).is_file() for names in source.files.values() for name in names):
            return base / source.folder
    archives = (root / source.name / source.archive, root / source.archive)
    return next((archive for archive in archives if archive.is_file()), None)


def splits(
    source: Source, place: Path, counts: dict[str, int | None], seed: int, notes: list[str], spare: bool = False
) -> list[Split]:
    """So many images of each part, 32 x 32, from what ``find`` found, and with ``spare`` the other test images.

    Raises DataError naming a file that is damaged, holds something else, or is not in the archive, and for an archive
    that unpacks to more than ``MOST`` bytes; it is not unpacked further, and nothing of it is written.
    """
    content, made = _contents(source, place), []
    for part, count in counts.items():
        batches = [_batch(source, *content(name)) for name in source.files[part]]
        pixels, targets = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
        chosen = choose(source, part, targets, count, seed, notes)
        for positions in [chosen, *([left_out(source, targets, chosen, notes)] if spare and part == "test" else [])]:
            made.append(Split(torch.from_numpy(pixels[positions]), torch.from_numpy(targets[positions])))
    return made


def counts(source: Source, place: Path) -> list[Count]:
    """The images of each part and class in what ``find`` found; as many of each are published."""
    content, made = _contents(source, place), []
    for part, complete in COMPLETE.items():
        labels = np.concatenate([_batch(source, *content(name))[1] for name in source.files[part]])
        found = np.bincount(labels, minlength=len(source.classes)).tolist()
        each = complete // len(source.classes)
        made += [Count(f"{part}, {name}", own, each) for name, own in zip(source.classes, found, strict=True)]
    return made


def damaged(source: Source, root: Path) -> list[tuple[Path, str]]:
    """Files that cannot be read, each with the reason."""
    if not (place := find(source, root)):
        return []
    try:
        content = _contents(source, place)
    except DataError as error:
        return [(place, str(error))]
    found = []
    for name in (name for names in source.files.values() for name in names):
        try:
            _batch(source, *content(name))
        except DataError as error:
            found.append((place / name, str(error)))
    return found


def _contents(source: Source, place: Path) -> Callable[[str], tuple[Path, bytes | None]]:
    """What gives a file's path and, if it is in the archive, its bytes, for its name."""
    if place.is_dir():
        return lambda name: (place / name, None)

    def unpack(archive: Path, most: int) -> tarfile.TarFile:
        return tarfile.open(fileobj=io.BytesIO(digit_files.unpacked(archive, gzip.open(archive), most)))

    archive = digit_files.reading(place, unpack, MOST)

    def content(name: str) -> tuple[Path, bytes]:
        def member(_, most: int) -> bytes:
            entry = archive.getmember(f"{source.folder}/{name}")
            if not entry.isreg() or entry.size > most:  # a sparse file may claim any size
                raise ValueError(f"{entry.name} is no file of at most {most} bytes")
            return archive.extractfile(entry).read()

        return place / name, digit_files.reading(place, member, MOST)

    return content


def _batch(source: Source, file: Path, content: bytes | None) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of one file."""
    pixels, labels = pickles.images_and_labels(file, source.labels, content)
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3 * SIDE * SIDE) or not len(labels):
        found = f"{pixels.dtype} {list(pixels.shape)} for {len(labels)} labels"
        raise DataError(f"{file} holds {found}; expected uint8 [n, 3072]. Fetch it again.")
    if labels.min() < 0 or labels.max() >= len(source.classes):
        found = f"{labels.min()} to {labels.max()}"
        raise DataError(f"{file} has labels from {found}; expected 0 to {len(source.classes) - 1}. Fetch it again.")
    return pixels.reshape(-1, 3, SIDE, SIDE), labels


def choose(
    source: Source, part: str, targets: np.ndarray, count: int | None, seed: int, notes: list[str]
) -> np.ndarray:
    """So many positions, or all, sorted, with all classes in proportion; a note if they are not all of the source."""
    on_disk, complete = len(targets), COMPLETE[part]
    if count is None:
        count = on_disk
    elif not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= complete:
        raise RecipeError(f"{part}_images is {count!r}; expected a whole number from 1 to {complete}.")
    if count > on_disk:
        raise DataError(f"{part}_images={count}, but {on_disk} are on disk. Get the others, or ask for fewer.")
    if count < complete:
        notes.append(f"{count} of {source.title}'s {complete} {part} images are used; {on_disk} are on disk.")
    (chosen,) = stratified(targets, [count], source.name, part, seed)
    return np.sort(chosen)


def left_out(source: Source, targets: np.ndarray, chosen: np.ndarray, notes: list[str]) -> np.ndarray:
    """The positions of the test images that are not chosen; RecipeError where there are none."""
    others = np.setdiff1d(np.arange(len(targets)), chosen)
    if not len(others):
        raise RecipeError(f"{source.name} has no spare images: all {len(chosen)} are test images. Lower test_images.")
    notes.append(f"{len(others)} other test images are spare.")
    return others


def check_partition(source: Source, partition: str):
    """RecipeError unless it is one of ``PARTITIONS``."""
    if partition not in PARTITIONS:
        raise RecipeError(f'{source.name} has no partition "{partition}"; {nearest(str(partition), PARTITIONS)}')


def federation(
    source: Source,
    train: Split,
    test: Split,
    notes: Sequence[str],
    *,
    clients: int,
    partition: str,
    classes_per_client: int,
    concentration: float,
    size: int,
    seed: int,
    spare: Split | None = None,
) -> Federation:
    """The images dealt out, each client's resized; spare: those to hand over. The options are ``cifar10.load``'s."""
    key = len(source.classes), clients
    if partition == "class_shares":
        sites, dealt = dealing.by_class_shares(train, test, *key, classes_per_client, source.name, seed, spare=spare)
    else:
        sites, dealt = dealing.by_dirichlet(train, test, *key, concentration, source.name, seed, spare=spare)
    resized = [Site(site.name, *(_resize(part, size) for part in site.parts if part is not None)) for site in sites]
    return Federation(source.name, resized, source.classes, (*notes, *dealt))


def _resize(split: Split, size: int) -> Split:
    return Split(torch.from_numpy(images.resized(split.images.numpy(), size)), split.targets)
