"""Files written whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from fednb.errors import StoreError

PART = ".part"


def write_atomically(path: Path, write: Callable) -> None:
    """Writes a file under another name with ``write(file)``, opened for bytes, and puts it in its place at the end.

    A reader sees the old file or the new one. Raises StoreError when the disk is full or not writable; what was
    there before is kept.
    """
    write_together({path: write})


def write_together(files: dict[Path, Callable]) -> None:
    """The same for files that belong together: all are whole under other names before the first takes its place.

    They take their places in the order given.
    """
    written = {}
    try:
        for path, write in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = {"dir": path.parent, "prefix": f".{path.name}.", "suffix": PART}
            with tempfile.NamedTemporaryFile(**beside, delete=False) as file:
                written[path] = Path(file.name)
                write(file)
            written[path].chmod(0o644)
        for path, temporary in written.items():
            os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        raise StoreError(
            f"{path} could not be written: {error}. Free space or choose another folder, then start again; "
            "finished runs are kept."
        ) from error
    finally:
        for temporary in written.values():
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """The same for a text in UTF-8."""
    write_atomically(path, lambda file: file.write(text.encode()))
