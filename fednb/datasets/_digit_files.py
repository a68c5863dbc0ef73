"""The files that digits come in: MNIST's own, or one ``.npz`` for each source."""

import gzip
from pathlib import Path

import numpy as np

from fednb.datasets._cache import Arrays
from fednb.datasets._files import npz, reading
from fednb.errors import DataError

MNIST = {
    f"{name}_{part}": f"MNIST/raw/{start}-{kind}-ubyte"
    for part, start in {"train": "train", "test": "t10k"}.items()
    for name, kind in {"x": "images-idx3", "y": "labels-idx1"}.items()
}


def find(root: Path, domain: str, more: bool = False) -> list[Path] | None:
    """The files of a domain, in ``root/digits`` or ``root``: an ``.npz``, with ``more`` and ``<domain>_more.npz`` next
    to it, or all four of MNIST's own; None if there are none."""
    for base in (root / "digits", root):
        first, second = base / f"{domain}.npz", base / f"{domain}_more.npz"
        if first.is_file():
            return [first, second] if more and second.is_file() else [first]
        if domain == "mnist":
            files = [file if (file := base / name).is_file() else base / f"{name}.gz" for name in MNIST.values()]
            if all(file.is_file() for file in files):
                return files
    return None


def read(files: list[Path]) -> Arrays:
    """``x_train``, ``y_train``, ``x_test``, ``y_test`` and what else an ``.npz`` holds; of two, one after the other.

    x: uint8 ``[n, height, width]`` or ``[n, height, width, 3]``; y: whole numbers 0..9 ``[n]``. DataError naming the
    file that is damaged, holds something else, or has images of the file before it."""
    if files[0].suffix != ".npz":
        arrays = {name: reading(file, _idx) for name, file in zip(MNIST, files, strict=True)}
        return _checked(files[0].parent, arrays)
    first, *others = [_checked(file, reading(file, npz)) for file in files]
    return reading(files[1], lambda file: _joined(first, others[0])) if others else first


def _joined(first: Arrays, second: Arrays) -> Arrays:
    joined = {name: np.concatenate([first[name], second[name]]) for name in first if name in second}
    for name in ("index_train", "index_test"):
        if name in joined and (twice := len(joined[name]) - len(np.unique(joined[name]))):
            raise ValueError(f"{name} has {twice} numbers of the file before it; expected other images in each")
    return joined


def _checked(place: Path, arrays: Arrays) -> Arrays:
    for part in ("train", "test"):
        x, y = arrays.get(f"x_{part}"), arrays.get(f"y_{part}")
        if x is None or y is None:
            raise DataError(f"{place} holds {', '.join(arrays)}; expected x_train, y_train, x_test and y_test.")
        are_images = x.dtype == np.uint8 and len(x) and (x.ndim == 3 or x.ndim == 4 and x.shape[3] == 3)
        if not are_images or y.shape != x.shape[:1] or y.dtype.kind not in "iu" or y.min() < 0 or y.max() > 9:
            found = f"{part} images are {x.dtype} {[*x.shape]}, labels {y.dtype} {[*y.shape]}"
            expected = "uint8 [n, height, width] or [n, height, width, 3], and for each a digit from 0 to 9"
            raise DataError(f"{place}: {found}; expected {expected}.")
    return arrays


def _idx(file: Path) -> np.ndarray:
    """MNIST's format: two zero bytes, type 8 (uint8), the number of dimensions, big-endian sizes, the bytes."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    dimensions = 3 if "idx3" in file.name else 1
    if content[:4] != bytes((0, 0, 8, dimensions)):
        raise ValueError(f"begins with {content[:4].hex()}, expected 000008{dimensions:02}")
    shape = np.frombuffer(content, ">u4", dimensions, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
