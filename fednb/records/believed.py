"""Which texts of records this source of the package has read whole before: they need not be validated again.

The user's cache has a line for each, the SHA-256 of the source and the file's bytes: who changes either is read anew. A
file that is too long, cut or not there costs time alone.
"""

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from fednb.records.provenance import source_hash

MOST = 2**20  # bytes of the file, from which on it begins anew


def before(content: bytes) -> bool:
    """Whether this was added before, by whatever process."""
    return _line(content) in _lines(_file())


def add(content: bytes) -> None:
    """Notes that these bytes are a whole record; nothing where the cache cannot be written."""
    file, line = _file(), _line(content)
    _lines(file).add(line)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a" if not file.exists() or file.stat().st_size < MOST else "w") as lines:
            lines.write(line + "\n")


def _line(content: bytes) -> str:
    return hashlib.sha256(source_hash().encode() + content).hexdigest()


def _file() -> Path:
    try:
        from platformdirs import user_cache_path
    except ImportError:  # a bare machine with torch, numpy and pillow alone
        return Path(os.devnull)
    return user_cache_path("fednb", appauthor=False) / "records_read"


@cache
def _lines(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return set()
