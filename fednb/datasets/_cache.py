"""Decoded images on disk, so that they are decoded once.

A cache file is named by the content that it was made from, so it is never out of date, and can be deleted at any time.
It lies in ``.fednb_cache`` beside the data or, where that folder may not be written, in the user's cache folder.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from fednb.errors import StoreError
from fednb.files import write_atomically

Arrays = dict[str, np.ndarray]
LONGEST = 120  # bytes of a file's name; while it is written it has up to 90 more, and a file system takes 255


def key(parts: Iterable[str]) -> str:
    """24 hex digits over texts, in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:24]


def cached(root: Path, name: str, make: Callable[[], Arrays], fits: Callable[[Arrays], bool] = bool) -> Arrays:
    """The arrays stored as ``name`` for the data folder ``root``; if there are none, they are made and stored.

    A file that cannot be read, or whose arrays do not satisfy ``fits``, is made again. A file that cannot be written
    (no room, no permission) is a warning: the arrays are there all the same. Of a long name the file has the beginning.
    """
    if len(name.encode()) > LONGEST:
        name = f"{name.encode()[: LONGEST - 25].decode(errors='ignore')}_{key([name])}"
    file = _place(root) / f"{name}.npz"
    arrays = _read(file, fits)
    if arrays is None:
        arrays = make()
        try:
            write_atomically(file, lambda part: np.savez(part, **arrays))
        except StoreError as error:
            cause = getattr(error.__cause__, "strerror", None) or error.__cause__
            warnings.warn(
                f"{file} cannot be written ({cause}): images will be decoded again next time. Make room or allow "
                "writing.",
                stacklevel=2,
            )
    return arrays


def of_forms(forms: dict[str, tuple]) -> Callable[[Arrays], bool]:
    """``fits`` of ``cached``: whether the arrays of these names have these shapes and types."""
    return lambda held: {name: (array.shape, array.dtype) for name, array in held.items()} == forms


def _place(root: Path) -> Path:
    # The superuser may write anywhere: a folder without any write bit is left alone all the same.
    if os.access(root, os.W_OK) and root.stat().st_mode & 0o222:
        return root / ".fednb_cache"
    try:
        from platformdirs import user_cache_path

        return user_cache_path("fednb", appauthor=False)
    except (ImportError, RuntimeError):  # a bare machine, or nobody's home
        return root / ".fednb_cache"  # of which it is said that it cannot be written


def _read(file: Path, fits: Callable[[Arrays], bool]) -> Arrays | None:
    if not file.is_file():
        return None
    try:
        # np.load(path) would leave the file of a damaged zip open. Reading verifies the zip's checksums.
        with open(file, "rb") as handle, np.load(handle, allow_pickle=False) as held:
            if sum(entry.file_size for entry in held.zip.infolist()) > file.stat().st_size:
                return None  # ours are not compressed: this one is not ours
            arrays = {name: held[name] for name in held.files}
            return arrays if fits(arrays) else None
    except Exception:  # whatever a damaged file makes the readers raise, the answer is to make it again
        return None
