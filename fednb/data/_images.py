"""Image files: finding, hashing, decoding."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from fednb.data._cache import cached, key
from fednb.errors import DataError, RecipeError

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted by name, hidden ones left out."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted by name; other and hidden files are ignored."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file() and p.name[0] != ".")


def check_size(size):
    """RecipeError unless ``size`` is a whole number from 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise RecipeError(f"size is {size!r}; expected the height and width in pixels, a whole number from 1.")


def decode(path: Path, size: int | None) -> np.ndarray:
    """uint8 ``[3, size, size]`` of one file: RGB, resized bilinearly without cropping, as FedBN's pipeline
    does.

    Grey images get three equal channels. ``size=None`` keeps the file's own size.
    Raises DataError naming the file if it is missing, truncated, no image, or has more than 8 bits a channel.
    """
    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):
                raise DataError(
                    f"{path} has more than 8 bits a channel (mode {image.mode}); expected 8. "
                    "Convert it with the grey levels you want: fednb does not guess a window."
                )
            image = image.convert("RGB")
            if size is not None:
                image = image.resize((size, size), Image.Resampling.BILINEAR)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} is not there; expected an image.") from None
    except Exception as error:  # pillow's decoders raise many kinds for damaged files
        raise DataError(
            f"{path} cannot be decoded ({error}); expected a whole image file. "
            "Fetch it again, or remove it from the folder; `fednb data` names all such files."
        ) from error
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def dimensions(path: Path) -> tuple[int, int]:
    """Width and height of an image file, without decoding it; DataError if it is none."""
    try:
        with Image.open(path) as image:
            return image.size
    except OSError as error:
        raise DataError(
            f"{path} cannot be decoded ({error}); expected a whole image file. Fetch it again, or remove it."
        ) from error


def digests(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file's bytes, as hex digits."""

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    with ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(digest, paths))


def read(root: Path, name: str, paths: Sequence[Path], hashes: Sequence[str], size: int) -> np.ndarray:
    """uint8 ``[n, 3, size, size]`` of these files, from the cache of ``root`` if they have been decoded
    before.

    ``hashes`` are the files' ``digests``; with the size they name the cache file.
    Raises DataError naming the first file that cannot be decoded.
    """

    def make() -> dict[str, np.ndarray]:
        pixels = np.empty((len(paths), 3, size, size), np.uint8)
        with ThreadPoolExecutor(_workers()) as pool:
            for position, image in enumerate(pool.map(lambda path: decode(path, size), paths)):
                pixels[position] = image
        return {"pixels": pixels}

    return cached(root, f"{name}_{size}_{key(hashes)}", make)["pixels"]


def corrupt(root: Path) -> list[tuple[Path, str]]:
    """Every image file under ``root`` that cannot be decoded, with the reason, sorted by path."""
    paths = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if Path(name).suffix.lower() in SUFFIXES and name[0] != "."
    )

    def reason(path: Path) -> str | None:
        try:
            decode(path, None)
        except DataError as error:
            return str(error.__cause__ or error)

    with ThreadPoolExecutor(_workers()) as pool:
        return [(path, why) for path, why in zip(paths, pool.map(reason, paths), strict=True) if why]


def _workers() -> int:
    return min(16, os.cpu_count() or 1)
