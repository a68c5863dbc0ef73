"""Decoded images on disk, so that they are decoded once.

A cache file is named by the content that it was made from, so it is never out of date. It lies in
``.fednb_cache`` beside the data or, where that folder may not be written, in the user's cache folder. It can
be deleted at any time.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from fednb.errors import StoreError
from fednb.files import PART, remove, write_atomically

Arrays = dict[str, np.ndarray]
LONGEST = 120  # bytes of a file's name; while it is written it has up to 90 more, and a file system takes 255


def key(parts: Iterable[str]) -> str:
    """24 hex digits over texts, in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:24]


def cached(root: Path, name: str, make: Callable[[], Arrays], fits: Callable[[Arrays], bool] = bool) -> Arrays:
    """The arrays stored as ``name`` for the data folder ``root``; if there are none, they are made and
    stored.

    A file that cannot be read, or whose arrays do not satisfy ``fits``, is made again. A file that cannot be written
    (no room, no permission) is a warning: the arrays are there all the same. Of a long name the file has the beginning.
    """
    if len(name.encode()) > LONGEST:
        name = f"{name.encode()[: LONGEST - 25].decode(errors='ignore')}_{key([name])}"
    places = _places(root)
    for place in places:
        arrays = _read(place / f"{name}.npz", fits)
        if arrays is not None:
            return arrays
    arrays = make()
    reasons = []
    for place in places:
        try:
            write_atomically(place / f"{name}.npz", lambda file: np.savez(file, **arrays))
            return arrays
        except StoreError as error:
            cause = error.__cause__
            reasons.append(f"{place}: {getattr(cause, 'strerror', None) or cause}")
    warnings.warn(
        f"decoded images of {name} are not cached and will be decoded again next time. "
        f"{'; '.join(reasons) or 'There is no folder to write to.'} Make room or allow writing.",
        stacklevel=2,
    )
    return arrays


def clear(root: Path, beside: Path) -> None:
    """Removes what is cached for the data folder ``root`` on the disk that the folder ``beside`` lies on.

    Whoever writes a cache file meanwhile finds that it could not be written.
    """
    for place in _places(root) if beside.exists() else ():
        if place.is_dir() and place.stat().st_dev == beside.stat().st_dev:
            for file in (*place.glob("*.npz"), *place.glob(f".*{PART}")):
                remove(file)


def _places(root: Path) -> list[Path]:
    places = []
    # The superuser may write anywhere: a folder without any write bit is left alone all the same.
    if os.access(root, os.W_OK) and root.stat().st_mode & 0o222:
        places.append(root / ".fednb_cache")
    try:
        from platformdirs import user_cache_path

        places.append(user_cache_path("fednb", appauthor=False))
    except ImportError:  # a bare machine with torch, numpy and pillow alone
        pass
    return places


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
