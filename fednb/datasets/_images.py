"""Image files: finding, hashing, decoding."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, PngImagePlugin

from fednb.datasets._cache import cached, key, of_forms
from fednb.errors import DataError, RecipeError
from fednb.federation import Split
from fednb.pixels import MOST_PIXELS, UNUSUAL, notes, orientation, plain, refuse

SUFFIXES = {".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # the same to Pillow, which would start Ghostscript else
KNOWN = ", ".join(sorted(SUFFIXES))
PngImagePlugin.MAX_TEXT_CHUNK = 2**25  # of text or colour profile: Pillow takes an image with a megabyte for damaged
ADDED = {"__MACOSX", "@eaDir", "#recycle", "@Recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found"}
ONE_AT_A_TIME = 2**24  # pixels; larger images are decoded one after the other, at up to 12 bytes a pixel
LYING = range(5, 9)  # of the EXIF orientations, those that exchange width and height


def is_hidden(path: Path) -> bool:
    """Whether its name says that it is hidden, or that a system has added it to folders and archives."""
    return path.name[0] == "." or path.name in ADDED


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted by name; hidden ones and what systems add are left out."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not is_hidden(p))


def files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted by name; other and hidden files are ignored."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and not is_hidden(p) and p.is_file())


def check_size(size):
    """RecipeError unless ``size`` is a whole number from 1, and ``size`` x ``size`` no more than an image may have."""
    most = int(MOST_PIXELS**0.5)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most:
        raise RecipeError(
            f"size is {size!r}; expected the height and width in pixels, a whole number from 1 to {most}."
        )


def decode(path: Path, size: int | None, upright: bool = False, crop: int | None = None) -> tuple[np.ndarray, set[str]]:
    """uint8 ``[3, size, size]`` of one file, RGB, resized bilinearly without cropping as FedBN's pipeline does, and
    what of ``UNUSUAL`` it is.

    ``size=None`` keeps the file's own size. ``upright``: see ``plain``. ``crop`` keeps the centre alone, ``crop`` x
    ``crop`` pixels, before it is resized.
    Raises DataError naming the file if it is missing, truncated, no image, smaller than ``crop``, has more than 8 bits
    a channel or more than ``MOST_PIXELS`` pixels.
    """
    with _opened(path) as image:
        image, unusual = plain(image, upright)
        if crop is not None:
            image = _centre(path, image, crop)
        if size is not None:
            image = image.resize((size, size), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)), unusual


def decode_mask(path: Path) -> np.ndarray:
    """uint8 ``[height, width]`` of one file, upright: the values of a grey image or of a palette's numbers, as they are
    stored; 0 and 255 of a black and white one.

    Raises DataError as ``decode`` does, and for an image of colours, with a channel for transparency, or with
    transparent pixels.
    """
    with _opened(path) as image:
        if image.mode not in ("1", "L", "P"):
            raise DataError(
                f"{path} has {len(image.getbands())} channels (mode {image.mode}); expected a mask, one number for "
                "each pixel: a grey image, or one with a palette. Convert it."
            )
        inverted = image.mode == "L" and getattr(image, "tag_v2", {}).get(262) == 0  # a TIFF in which white is 0
        if image.has_transparency_data and image.convert("RGBA").getchannel("A").getextrema()[0] < 255:
            raise DataError(
                f"{path} has transparent pixels; expected a mask, which says of each pixel what it is. Save it without "
                "transparency, the background as 0."
            )
        if orientation(image) != 1:
            image = ImageOps.exif_transpose(image)
        values = np.array(image.convert("L") if image.mode == "1" else image)
        return 255 - values if inverted else values


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """An image file; DataError naming it, whatever else its damage makes the decoders raise."""
    if path.exists() and not path.is_file():  # opening a pipe would wait
        raise DataError(f"{path} cannot be decoded (no regular file); expected a whole image file. Remove it.")
    try:
        with Image.open(path, formats=FORMATS) as image:
            refuse(image, path)
            yield image
    except (DataError, MemoryError):
        raise
    except FileNotFoundError:
        raise DataError(f"{path} is not there; expected an image.") from None
    except Exception as error:  # pillow's decoders raise many kinds for damaged files
        raise DataError(
            f"{path} cannot be decoded ({error}); expected a whole image file. "
            "Fetch it again, or remove it from the folder."
        ) from error


def _centre(path: Path, image: Image.Image, side: int) -> Image.Image:
    """The square in the centre of an image, as torchvision cuts it; DataError if the image is smaller."""
    if min(image.size) < side:
        raise DataError(f"{path} has {image.width} x {image.height} pixels; expected {side} or more each way.")
    left, top = (round((length - side) / 2) for length in image.size)
    return image.crop((left, top, left + side, top + side))


def dimensions(path: Path, upright: bool = False) -> tuple[int, int]:
    """Width and height of an image file, without decoding it; DataError if it is none, or not to be decoded."""
    with _opened(path) as image:
        turned = upright and image.format != "TIFF"  # whose sizes are upright
        return image.size[::-1] if turned and orientation(image) in LYING else image.size


def stored_turned(path: Path) -> int:
    """The EXIF orientation of an image file."""
    with _opened(path) as image:
        return orientation(image)


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
    """SHA-256 of each file's bytes, as hex digits; DataError naming a file that cannot be read."""

    def digest(path: Path) -> str:
        try:
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(
                f"{path} cannot be read ({error.strerror}). Allow reading it, or fetch it again."
            ) from error

    with ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(digest, paths))


def labelled(root: Path, name: str, paths: Sequence[Path], targets, size: int, **how) -> tuple[Split, list[str]]:
    """These images with their targets, and notes on unusual ones; see ``read``."""
    pixels, notes = read(root, name, paths, size, **how)
    return Split(torch.from_numpy(pixels), torch.as_tensor(targets)), notes


def read(
    root: Path,
    name: str,
    paths: Sequence[Path],
    size: int,
    upright: bool = False,
    crop: int | None = None,
    hashes: Sequence[str] = (),
) -> tuple[np.ndarray, list[str]]:
    """uint8 ``[n, 3, size, size]`` of these files, from the cache of ``root`` if they have been decoded
    before, and notes on unusual ones.

    ``hashes`` are the files' ``digests``, where they are known; with the size they name the cache file. ``upright``,
    ``crop``: see ``decode``.
    Raises DataError naming the first file that cannot be decoded.
    """
    forms = {"pixels": ((len(paths), 3, size, size), np.uint8), "unusual": ((len(paths), len(UNUSUAL)), np.bool_)}

    def make() -> dict[str, np.ndarray]:
        pixels, unusual = (np.zeros(*form) for form in forms.values())

        def put(position: int):
            pixels[position], found = decode(paths[position], size, upright, crop)
            unusual[position] = [kind in found for kind in UNUSUAL]

        for_all(paths, put)
        return {"pixels": pixels, "unusual": unusual}

    how = "upright_" * upright + ("" if crop is None else f"crop{crop}_")
    held = cached(root, f"{name}_{size}_{how}{key(hashes or digests(paths))}", make, of_forms(forms))
    kinds = [{kind for kind, yes in zip(UNUSUAL, row, strict=True) if yes} for row in held["unusual"]]
    return held["pixels"], notes(["/".join(path.parts[-3:]) for path in paths], kinds)


def left_out(place: Path, used: Sequence[Path], expected: str) -> list[str]:
    """A note, or none, on the files anywhere under ``place`` that are not among those used and not hidden: how many of
    each suffix, and the first."""
    rest = (path.relative_to(place) for path in sorted(_under(place) - set(used)))
    shown = [path for path in rest if not any(is_hidden(part) for part in (path, *path.parents[:-1]))]
    counts = Counter(path.suffix.lower() or "without suffix" for path in shown).most_common()
    listed = few([f"{count} {suffix}" for suffix, count in counts], "suffixes")
    return [f"Files left out: {listed}, first {shown[0]}. Expected: {expected}, in {KNOWN}."] if shown else []


def held(folder: Path) -> str:
    """What a folder has, for an error."""
    inside = sorted(path.name for path in folder.iterdir() if not is_hidden(path)) if folder.is_dir() else []
    return f"it has {few(inside, 'files and folders')}" if inside else "it is empty"


def few(entries: Sequence[str], kind: str) -> str:
    """Up to four of them, or three and how many more."""
    more = [f"{len(entries) - 3} more {kind}"] if len(entries) > 4 else []
    return ", ".join([*entries[: 3 if more else 4], *more])


def _under(place: Path) -> set[Path]:
    """Everything anywhere in a folder, folders aside."""
    return {Path(folder, name) for folder, _, names in os.walk(place) for name in names}


def for_all(paths: Sequence[Path], work: Callable[[int], object]) -> list:
    """``work`` of every position, many at a time; but of large images one after the other."""

    def if_small(position: int) -> tuple:
        return () if _large(paths[position]) else (work(position),)

    with ThreadPoolExecutor(_workers()) as pool:
        done = list(pool.map(if_small, range(len(paths))))
    return [made[0] if made else work(position) for position, made in enumerate(done)]


def _large(path: Path) -> bool:
    try:
        width, height = dimensions(path)
    except DataError:  # which whoever decodes it will say
        return False
    return width * height > ONE_AT_A_TIME


def _workers() -> int:
    return min(16, os.cpu_count() or 1)
