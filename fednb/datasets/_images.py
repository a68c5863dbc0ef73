"""Image files: finding, hashing, decoding."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, PngImagePlugin

from fednb.datasets._cache import cached, key
from fednb.errors import DataError, RecipeError
from fednb.pixels import MOST_PIXELS, UNUSUAL, notes, orientation, plain, refuse

SUFFIXES = {".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # the same to Pillow, which would start Ghostscript else
KNOWN = ", ".join(sorted(SUFFIXES))
PngImagePlugin.MAX_TEXT_CHUNK = 2**25  # of text or colour profile: Pillow takes an image with a megabyte for damaged
ADDED = {"__MACOSX", "@eaDir", "#recycle", "@Recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found"}


def is_hidden(path: Path) -> bool:
    """Whether its name says that it is hidden, or that a system has added it to folders and archives."""
    return path.name[0] == "." or path.name in ADDED


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted by name; hidden ones and what systems add are left out."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not is_hidden(p))


def files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted by name."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and not is_hidden(p) and p.is_file())


def check_size(size):
    """RecipeError unless ``size`` is a whole number from 1, and ``size`` x ``size`` no more than an image may have."""
    most = int(MOST_PIXELS**0.5)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most:
        raise RecipeError(f"size is {size!r}; expected the height and width in pixels, a number from 1 to {most}.")


def decode(path: Path, size: int | None, upright: bool = False, crop: int | None = None) -> tuple[np.ndarray, set[str]]:
    """uint8 ``[3, size, size]`` of one file, RGB, resized bilinearly as FedBN's pipeline does unless ``size`` is None,
    and what of ``UNUSUAL`` it is. ``upright``: see ``plain``. ``crop``: side of the centre that is kept before, cut as
    torchvision does. DataError naming a file that is damaged, smaller than ``crop`` or refused by ``pixels.refuse``."""
    with _opened(path) as image:
        image, unusual = plain(image, upright)
        if crop is not None:
            if min(image.size) < crop:
                raise DataError(f"{path} has {image.width} x {image.height} pixels; expected {crop} or more each way.")
            left, top = (round((length - crop) / 2) for length in image.size)
            image = image.crop((left, top, left + crop, top + crop))
        if size is not None:
            image = image.resize((size, size), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)), unusual


def decode_mask(path: Path) -> np.ndarray:
    """uint8 ``[height, width]`` of one file, upright: values or a palette's numbers, as stored; 0 and 255 of black and
    white image. DataError as of ``decode``, and for colours or transparent pixels."""
    with _opened(path) as image:
        if image.mode not in ("1", "L", "P"):
            found = f"{path} has {len(image.getbands())} channels (mode {image.mode})"
            raise DataError(f"{found}; expected a mask, a grey image or one with a palette. Convert it.")
        inverted = image.mode == "L" and getattr(image, "tag_v2", {}).get(262) == 0  # a TIFF in which white is 0
        if image.has_transparency_data and image.convert("RGBA").getchannel("A").getextrema()[0] < 255:
            raise DataError(f"{path} has transparent pixels; expected a mask without. Save it so, the background as 0.")
        if orientation(image) != 1:
            image = ImageOps.exif_transpose(image)
        values = np.array(image.convert("L") if image.mode == "1" else image)
        return 255 - values if inverted else values


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """An image file; DataError naming it, whatever else its damage makes the decoders raise."""
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait
            raise ValueError("no regular file")
        with Image.open(path, formats=FORMATS) as image:
            refuse(image, path)
            yield image
    except (DataError, MemoryError):
        raise
    except Exception as error:  # pillow's decoders raise many kinds for damaged files
        raise DataError(f"{path} cannot be decoded ({error}); expected a whole image. Fetch or remove it.") from error


def stored(path: Path) -> tuple[tuple[int, int], int]:
    """Width and height of an image file as it is stored, and its EXIF orientation."""
    with _opened(path) as image:
        return image.size, orientation(image)


def resized(pixels: np.ndarray, size: int) -> np.ndarray:
    """uint8 ``[n, channels, height, width]``, bilinearly as ``[n, channels, size, size]``."""
    if pixels.shape[2:] == (size, size):
        return pixels
    made = np.empty((*pixels.shape[:2], size, size), np.uint8)
    for image, into in zip(pixels, made, strict=True):
        for number, channel in enumerate(image):
            into[number] = Image.fromarray(channel).resize((size, size), Image.Resampling.BILINEAR)
    return made


def digests(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file's bytes, as hex digits; OSError naming a file that cannot be read."""

    def digest(path: Path) -> str:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return list(for_all(paths, digest))


def read(
    root: Path, name: str, paths: Sequence[Path], size: int, upright: bool = False, crop: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """uint8 ``[n, 3, size, size]`` of these files as ``decode`` gives them, from ``root``'s cache if they are there;
    and notes on unusual ones."""

    def make() -> dict[str, np.ndarray]:
        pixels, unusual = np.zeros((len(paths), 3, size, size), np.uint8), np.zeros((len(paths), len(UNUSUAL)), bool)
        for position, (image, kinds) in enumerate(for_all(paths, lambda path: decode(path, size, upright, crop))):
            pixels[position] = image
            unusual[position] = [kind in kinds for kind in UNUSUAL]
        return {"pixels": pixels, "unusual": unusual}

    how = "upright_" * upright + ("" if crop is None else f"crop{crop}_")
    held = cached(root, f"{name}_{size}_{how}{key(digests(paths))}", make)
    kinds = [{kind for kind, yes in zip(UNUSUAL, row, strict=True) if yes} for row in held["unusual"]]
    return held["pixels"], notes(["/".join(path.parts[-3:]) for path in paths], kinds)


def held(folder: Path) -> str:
    """What a folder has, for an error."""
    inside = sorted(path.name for path in folder.iterdir() if not is_hidden(path)) if folder.is_dir() else []
    more = [f"{len(inside) - 3} more files and folders"] if len(inside) > 4 else []
    return f"it has {', '.join([*inside[: 3 if more else 4], *more])}" if inside else "it is empty"


def for_all(items: Iterable, work: Callable) -> Iterator:
    """``work`` of each item, in order, eight at a time: a large image takes up to 800 MB while it is decoded."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(work, items)
