"""Files written whole or not at all."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from fednb.errors import StoreError

PART = ".part"


def write_text(path: Path, text: str) -> None:
    write_together({path: text.encode()})


def write_together(files: dict[Path, bytes | Callable]) -> None:
    """Writes files that belong together, bytes or with ``write(file)``, opened for bytes: a reader sees the old file or
    the new one. All are whole under other names before they take their places, in the order given. StoreError when the
    disk is full or not writable."""
    written = {}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = {"dir": path.parent, "prefix": f".{path.name}.", "suffix": PART}
            with tempfile.NamedTemporaryFile(**beside, delete=False) as file:
                written[path] = Path(file.name)
                content(file) if callable(content) else file.write(content)
            written[path].chmod(0o644)
        for path, temporary in written.items():
            os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        advice = "Free space or choose another folder, then start again; finished runs are kept"
        raise StoreError(f"{path} could not be written: {error}. {advice}.") from error
    finally:
        for temporary in written.values():
            remove(temporary)


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def unwritable(*folders: Path) -> str | None:
    """Why no file can be written to one of these folders, or None."""
    for folder in folders:
        try:
            write_text(folder / ".writable", "fednb")
        except StoreError as error:
            return str(error)
        remove(folder / ".writable")
    return None


def hash_of(contents: dict[str, bytes]) -> str:
    """12 hex digits over names and what they hold."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name} {len(contents[name])}\n".encode() + contents[name])
    return digest.hexdigest()[:12]


def source_hash(package: Path) -> str:
    """The same of all Python files of a package."""
    return hash_of({path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")})


@contextmanager
def environment(**values: str):
    """Inside, these variables are set, for the processes that start there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
