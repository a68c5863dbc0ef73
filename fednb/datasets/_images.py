"""Image files: finding, hashing, decoding."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps

from fednb.datasets._cache import cached, key
from fednb.errors import DataError, RecipeError
from fednb.federation import Split

SUFFIXES = {".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # the same, as Pillow tells them by the first bytes
MOST_PIXELS = 2**26  # of an image, 8192 x 8192: the largest of the published data sets, in Office-Home, has 32 million
ONE_AT_A_TIME = 2**24  # pixels; larger images are decoded one after the other, at up to 12 bytes a pixel
LYING = range(5, 9)  # of the EXIF orientations, those that exchange width and height
UNUSUAL = {
    "turned": "Stored turned (EXIF), which is heeded in your own folders alone",
    "transparent": "With transparent pixels, which become white",
    "frames": "With later frames or pages, which are not used",
}


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted by name; hidden ones and what macOS adds to archives are left out."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] != "." and p.name != "__MACOSX")


def files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted by name; other and hidden files are ignored."""
    return sorted(p for p in folder.iterdir() if p.name[0] != "." and _is_image(p) and p.is_file())


def _is_image(path: Path) -> bool:
    """By its suffix or, where it has none, by its first bytes."""
    if path.suffix or not path.is_file():
        return path.suffix.lower() in SUFFIXES
    try:
        with Image.open(path, formats=FORMATS):
            return True
    except Exception:  # pillow's decoders raise many kinds
        return False


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

    Grey images get three equal channels; transparent pixels are shown on white; the first frame counts.
    ``size=None`` keeps the file's own size. ``upright`` turns a photograph as its EXIF tag says; the papers' code, and
    torchvision's, take it as it is stored. ``crop`` keeps the centre alone, ``crop`` x ``crop`` pixels, before it
    is resized.
    Raises DataError naming the file if it is missing, truncated, no image, smaller than ``crop``, has more than 8 bits
    a channel or more than ``MOST_PIXELS`` pixels.
    """
    with _opened(path) as image:
        image, unusual = _plain(image, upright)
        if crop is not None:
            image = _centre(path, image, crop)
        if size is not None:
            image = image.resize((size, size), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)), unusual


def decode_mask(path: Path) -> np.ndarray:
    """uint8 ``[height, width]`` of one file, upright: the values of a grey image or of a palette's numbers, as they are
    stored; 0 and 255 of a black and white one.

    Raises DataError as ``decode`` does, and for an image of colours or of a channel for transparency.
    """
    with _opened(path) as image:
        if image.mode not in ("1", "L", "P"):
            raise DataError(
                f"{path} has {len(image.getbands())} channels (mode {image.mode}); expected a mask, one number for "
                "each pixel: a grey image, or one with a palette. Convert it."
            )
        image = ImageOps.exif_transpose(image)
        return np.array(image.convert("L") if image.mode == "1" else image)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """An image file; DataError naming it, whatever else its damage makes the decoders raise."""
    try:
        with Image.open(path) as image:
            _refuse(path, image)
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


def _refuse(path: Path, image: Image.Image):
    """DataError for an opened image that is not to be decoded."""
    if image.width * image.height > MOST_PIXELS:
        raise DataError(
            f"{path} has {image.width} x {image.height} pixels; expected {MOST_PIXELS} or fewer. Make it smaller."
        )
    layout = [tile[3] for tile in image.tile]  # of the samples in the file; the mode alone hides 16-bit colours
    deep = any(re.search(r";16[BLN]", str(entry)) for entry in layout)
    deep |= image.format == "PPM" and any(isinstance(entry, tuple) and entry[-1] > 255 for entry in layout)
    if deep or image.mode.startswith(("I", "F")):
        raise DataError(
            f"{path} has more than 8 bits a channel (mode {image.mode}); expected 8. "
            "Convert it with the levels you want: fednb does not guess a window."
        )


def _plain(image: Image.Image, upright: bool) -> tuple[Image.Image, set[str]]:
    """The first frame in RGB, and what of ``UNUSUAL`` the file is."""
    unusual = set()
    if getattr(image, "is_animated", False) and image.format != "MPO":  # there the others are previews
        unusual.add("frames")
    image.load()
    if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
        unusual.add("turned")
        image = ImageOps.exif_transpose(image) if upright else image
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        if shown.getchannel("A").getextrema()[0] < 255:
            unusual.add("transparent")
            image = Image.new("RGB", shown.size, "white")
            image.paste(shown, mask=shown)
    return image if image.mode == "RGB" else image.convert("RGB"), unusual


def _centre(path: Path, image: Image.Image, side: int) -> Image.Image:
    """The square in the centre of an image, as torchvision cuts it; DataError if the image is smaller."""
    if min(image.size) < side:
        raise DataError(f"{path} has {image.width} x {image.height} pixels; expected {side} or more each way.")
    left, top = (round((length - side) / 2) for length in image.size)
    return image.crop((left, top, left + side, top + side))


def dimensions(path: Path, upright: bool = False) -> tuple[int, int]:
    """Width and height of an image file, without decoding it; DataError if it is none, or not to be decoded."""
    if not path.is_file():  # opening a pipe would wait
        raise DataError(f"{path} cannot be decoded (no regular file); expected a whole image file. Remove it.")
    with _opened(path) as image:
        turned = upright and image.format != "TIFF"  # whose sizes are upright
        lying = turned and image.getexif().get(ExifTags.Base.Orientation, 1) in LYING
        return image.size[::-1] if lying else image.size


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
    shape = len(paths), 3, size, size

    def make() -> dict[str, np.ndarray]:
        pixels, unusual = np.empty(shape, np.uint8), np.zeros((len(paths), len(UNUSUAL)), bool)

        def put(position: int):
            pixels[position], found = decode(paths[position], size, upright, crop)
            unusual[position] = [kind in found for kind in UNUSUAL]

        for_all(paths, put)
        return {"pixels": pixels, "unusual": unusual}

    def fits(held: dict[str, np.ndarray]) -> bool:
        same_shape = held["pixels"].shape == shape and held["unusual"].shape == (len(paths), len(UNUSUAL))
        return same_shape and held["pixels"].dtype == np.uint8 and held["unusual"].dtype == bool

    how = "upright_" * upright + ("" if crop is None else f"crop{crop}_")
    held = cached(root, f"{name}_{size}_{how}{key(hashes or digests(paths))}", make, fits)
    kinds = [{kind for kind, yes in zip(UNUSUAL, row, strict=True) if yes} for row in held["unusual"]]
    return held["pixels"], notes(paths, [found - {"turned"} if upright else found for found in kinds])


def notes(paths: Sequence[Path], unusual: Sequence[set[str]]) -> list[str]:
    """A line for each kind of ``UNUSUAL``: what it is, how many of the images are, and the first."""
    lines = []
    for kind, text in UNUSUAL.items():
        first = [path for path, kinds in zip(paths, unusual, strict=True) if kind in kinds]
        if first:
            where = "/".join(first[0].parts[-3:])
            lines.append(f"{text}: {len(first)} of {len(paths)} images, first {where}.")
    return lines


def unused(place: Path, used: Sequence[Path], expected: str) -> list[str]:
    """A note, or none, on the image files anywhere under ``place`` that are not among those used:
    how many, and in which folders."""
    counts = {}
    for path in filter(_is_image, sorted(_under(place) - set(used))):
        folder = str(path.parent.relative_to(place.parent))
        counts[folder] = counts.get(folder, 0) + 1
    if not counts:
        return []
    listed = few([f"{count} in {folder}" for folder, count in counts.items()], "folders")
    return [f"Image files that are not used: {listed}. Expected: {expected}."]


def others(place: Path, used: Sequence[Path] = ()) -> str:
    """How many files of each suffix anywhere under ``place`` are no images, hidden ones aside: "12 .heic, 1 .txt"."""
    shown = [
        path
        for path in _under(place) - set(used)
        if not any(name[0] == "." or name == "__MACOSX" for name in path.relative_to(place).parts)
    ]
    counts = Counter(path.suffix.lower() or "without suffix" for path in shown if not _is_image(path))
    return few(
        [f"{count} {suffix}" for suffix, count in sorted(counts.items(), key=lambda own: (-own[1], own))], "suffixes"
    )


def held(folder: Path) -> str:
    """What a folder has in the place of images, for an error."""
    own = f"{count} images that lie in no folder below it" if folder.is_dir() and (count := len(files(folder))) else ""
    found = [*(path.name for path in subfolders(folder)), own, others(folder)] if folder.is_dir() else []
    return f"it has {', '.join(filter(None, found))}" if any(found) else "it is empty"


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
