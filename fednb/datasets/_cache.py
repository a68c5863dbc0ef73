"""Decoded images on disk, in files named by the content that they were made from, which can be deleted at any time.

They lie in ``.fednb_cache`` next to the data or, where that folder may not be written, in the user's cache folder.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from fednb.errors import StoreError
from fednb.files import write_together

Arrays = dict[str, np.ndarray]
LONGEST = 120  # bytes of a file's name; while it is written it has up to 90 more, and a file system takes 255


def key(parts: Iterable[str]) -> str:
    """24 hex digits over texts, in order."""
    return hashlib.sha256("".join(f"{part}\0" for part in parts).encode()).hexdigest()[:24]


def cached(root: Path, name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays stored as ``name`` for the data folder ``root``; they are made and stored where there are none, or
    their file is damaged. A file that cannot be written is a warning."""
    if len(name.encode()) > LONGEST:
        name = f"{name.encode()[: LONGEST - 25].decode(errors='ignore')}_{key([name])}"
    file = _place(root) / f"{name}.npz"
    arrays = _read(file)
    if arrays is None:
        arrays = make()
        try:
            write_together({file: lambda part: np.savez(part, **arrays)})
        except StoreError as error:
            cause = getattr(error.__cause__, "strerror", None) or error.__cause__
            warnings.warn(f"{file} cannot be written ({cause}). Make room or allow writing.", stacklevel=2)
    return arrays


def _place(root: Path) -> Path:
    # The superuser may write anywhere: a folder without any write bit is left alone all the same.
    if not (os.access(root, os.W_OK) and root.stat().st_mode & 0o222):
        from platformdirs import user_cache_path

        with suppress(RuntimeError):  # nobody's home: it is said that the place next to the data cannot be written
            return user_cache_path("fednb", appauthor=False)
    return root / ".fednb_cache"


def _read(file: Path) -> Arrays | None:
    try:
        # np.load(path) would leave the file of a damaged zip open. Reading verifies the zip's checksums.
        with open(file, "rb") as handle, np.load(handle, allow_pickle=False) as held:
            if sum(entry.file_size for entry in held.zip.infolist()) > file.stat().st_size:
                return None  # ours are not compressed: this one is not ours
            return {name: held[name] for name in held.files}
    except Exception:  # whatever a damaged file makes the readers raise, the answer is to make it again
        return None
