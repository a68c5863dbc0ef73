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
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=PART, delete=False) as file:
            temporary = Path(file.name)
            write(file)
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        raise StoreError(
            f"{path} could not be written: {error}. Free space or choose another folder, then start again; "
            "finished runs are kept."
        ) from error
    finally:
        if temporary:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """The same for a text in UTF-8."""
    write_atomically(path, lambda file: file.write(text.encode()))
