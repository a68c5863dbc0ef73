"""The files that digits come in: torchvision's own formats, or one ``.npz`` for each source."""

import bz2
import gzip
import io
from pathlib import Path

import numpy as np

from fednb.datasets._files import mat, npz, reading, unpacked
from fednb.errors import DataError

Arrays = dict[str, np.ndarray]

_OWN = {
    "mnist": [
        f"MNIST/raw/{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
    ],
    "usps": ["usps.bz2", "usps.t.bz2"],
    "svhn": ["train_32x32.mat", "test_32x32.mat"],
}
# Bytes that a file may unpack to: the largest of each have 47, 45 and 225 million, and SVHN as an .npz 305 in all.
MOST, MOST_NPZ = {"mnist": 2**26, "usps": 2**26, "svhn": 2**28}, 2**29


def find(root: Path, domain: str, more: bool = False) -> list[Path] | None:
    """The files of a domain, in ``root/digits`` or ``root``: an ``.npz``, or torchvision's own files.

    None if there are none or not all. more: with ``<domain>_more.npz`` where it lies beside the ``.npz``.
    """
    for base in (root / "digits", root):
        first, second = base / f"{domain}.npz", base / f"{domain}_more.npz"
        if first.is_file():
            return [first, second] if more and second.is_file() else [first]
        files = [_plain_or_gzipped(base / name) for name in _OWN.get(domain, [])]
        if files and all(files):
            return files
    return None


def _plain_or_gzipped(file: Path) -> Path | None:
    packed = file.with_name(file.name + ".gz")
    return next((f for f in (file, packed) if f.is_file()), None)


def read(domain: str, files: list[Path]) -> Arrays:
    """``x_train``, ``y_train``, ``x_test``, ``y_test`` and whatever else an ``.npz`` holds.

    x: uint8 ``[n, height, width]`` or ``[n, height, width, 3]``; y: whole numbers 0..9 ``[n]``. Of several ``.npz``,
    one after the other. Raises DataError naming the file that is damaged, holds something else, unpacks to more than
    it may (it is not unpacked further), or has images of the file before it.
    """
    if len(files) > 1 and files[0].suffix == ".npz":
        return _joined(files, [read(domain, [file]) for file in files])
    if files[0].suffix == ".npz":
        arrays = reading(files[0], npz, MOST_NPZ)
    elif domain == "mnist":
        names = ("x_train", "y_train", "x_test", "y_test")
        arrays = {name: reading(file, _idx, MOST[domain]) for name, file in zip(names, files, strict=True)}
    else:
        arrays, reader = {}, {"usps": _libsvm, "svhn": _svhn}[domain]
        for part, file in zip(("train", "test"), files, strict=True):
            arrays[f"x_{part}"], arrays[f"y_{part}"] = reading(file, reader, MOST[domain])
    for position, part in enumerate(("train", "test")):
        _check(files[position * len(files) // 2], part, arrays)
    return arrays


def _joined(files: list[Path], parts: list[Arrays]) -> Arrays:
    """What all have in common, one after the other."""
    joined = {}
    for name in [name for name in parts[0] if all(name in part for part in parts)]:
        shapes = {part[name].shape[1:] for part in parts}
        if len(shapes) > 1:
            raise DataError(f"{name} is {shapes} in {' and '.join(map(str, files))}; expected one shape in all.")
        joined[name] = np.concatenate([part[name] for part in parts])
        if name.startswith("index_") and (twice := len(joined[name]) - len(np.unique(joined[name]))):
            raise DataError(
                f"{name} has {twice} numbers twice in {' and '.join(map(str, files))}; expected other images in each."
            )
    return joined


def _check(file: Path, part: str, arrays: Arrays):
    x, y = arrays.get(f"x_{part}"), arrays.get(f"y_{part}")
    if x is None or y is None:
        raise DataError(f"{file} holds {', '.join(arrays)}; expected x_train, y_train, x_test and y_test.")
    if x.dtype != np.uint8 or not (x.ndim == 3 or x.ndim == 4 and x.shape[3] == 3):
        raise DataError(
            f"{file}: {part} images are {x.dtype} {list(x.shape)}; expected uint8 [n, height, width] or [n, "
            f"height, width, 3]."
        )
    if not len(x) or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        raise DataError(f"{file}: {len(x)} {part} images and {y.dtype} {list(y.shape)} labels; expected one each.")
    if y.min() < 0 or y.max() > 9:
        raise DataError(f"{file}: {part} labels run from {y.min()} to {y.max()}; expected digits 0 to 9.")


def _idx(file: Path, most: int) -> np.ndarray:
    """MNIST's format: two zero bytes, type 8 (uint8), the number of dimensions, big-endian sizes, the
    bytes."""
    content = unpacked(file, gzip.open(file) if file.suffix == ".gz" else open(file, "rb"), most)
    dimensions = 3 if "idx3" in file.name else 1
    if content[:4] != bytes((0, 0, 8, dimensions)):
        raise ValueError(f"begins with {content[:4].hex()}, expected 000008{dimensions:02}")
    shape = np.frombuffer(content, ">u4", dimensions, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _libsvm(file: Path, most: int) -> tuple[np.ndarray, np.ndarray]:
    """USPS: a line for each image, label 1..10 for digit 0..9, then ``number:value`` with values -1..1.

    Rounded to grey levels (torchvision cuts off instead: at most one level apart).
    """
    pixels, labels = [], []
    for line in io.BytesIO(unpacked(file, bz2.open(file), most)):
        label, *entries = line.split(maxsplit=257)
        values = np.array([entry.partition(b":")[2] for entry in entries[:256]], np.float64)
        if len(entries) != 256 or not np.abs(values).max() <= 1:
            raise ValueError(f"line {len(labels) + 1} has other values; expected 256 each from -1 to 1")
        pixels.append(np.rint((values + 1) / 2 * 255).astype(np.uint8).reshape(16, 16))
        labels.append(int(float(label)) - 1)
    return np.array(pixels), np.array(labels)


def _svhn(file: Path, most: int) -> tuple[np.ndarray, np.ndarray]:
    """X [32, 32, 3, n] and y [n, 1], where 10 stands for the digit 0."""
    held = mat(file, most)
    digits = held["y"].ravel().astype(np.int64)
    return np.ascontiguousarray(held["X"].transpose(3, 0, 1, 2)), np.where(digits == 10, 0, digits)
