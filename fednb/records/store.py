"""Runs on disk: one JSON file each, written once, found by recipe; locks and checkpoints while one trains."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy
import torch
from filelock import FileLock, Timeout

from fednb.errors import DamagedError, HeldError, StoreError
from fednb.files import PART, remove, write_together
from fednb.recipe import Recipe
from fednb.records import signals
from fednb.records.record import SHARED, Record, checksum, read, shared, to_text
from fednb.records.staleness import changed

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)  # what a shared file system without locks answers
OF_THE_IMAGES = {"examples": ("images", "targets")}  # the same in every run on a federation


@lru_cache(maxsize=4096)
def _as_it_was(path: Path, *file: int) -> Record:
    return read(path)  # every table asks for all of them again


class Store:
    """Finds records in several folders and writes new ones to the first.

    A record is *stale* when something that it used behaves otherwise today. It is found after those that are not; only
    where ``renew`` is set it counts as missing, and its files are replaced by those of a new run. ``notes`` collects
    what was found wrong and set aside.

    folder: where new records are written. also: folders that are only read. checkpoints: where unfinished runs keep
    their state; next to ``folder`` unless given."""

    def __init__(self, folder: Path, also: tuple[Path, ...] = (), checkpoints: Path | None = None):
        self.folder = Path(folder).absolute()  # of processes elsewhere it is the same
        self.folders = (self.folder, *(Path(path).absolute() for path in also))
        self.checkpoints = Path(checkpoints or self.folder.parent / "checkpoints").absolute()
        self.locks = self.folder / ".locks"
        self.renew = False
        self.notes: list[str] = []

    def by(self, engine: str) -> Store:
        """Where the runs lie whose messages an engine carried, such as "flower"."""
        return Store(self.folder / engine, tuple(path / engine for path in self.folders[1:]), self.checkpoints / engine)

    def find(self, recipe: Recipe, mend: bool = False) -> Record | None:
        """The record of a recipe, or None. StoreError when it was made under another default of an option.

        What is damaged is named in ``notes`` and counts as missing. Where ``mend`` is set, which needs the recipe's
        lock, a damaged record in ``folder`` and its artefacts get the suffix ``.damaged``."""
        stale = None
        for folder in self.folders:
            path = folder / recipe.filename
            try:
                record = read(path) if path.exists() else None
                if record is None or (self.renew and changed(record)):
                    continue
                record.require_artefacts()
            except DamagedError as error:
                if mend and folder == self.folder:
                    self._set_aside([path, *path.parent.glob(f"{glob.escape(path.stem)}.*.npz")], str(error))
                else:
                    self.note(f"{error} The run counts as missing.")
                continue
            _require_same(record, recipe, path)
            if not changed(record):
                return record
            stale = stale or record
        return stale

    def found(self, recipes: list[Recipe]) -> dict[Recipe, Record | None]:
        """``find`` for each recipe; what it refuses is named in ``notes``."""
        records = {}
        for recipe in recipes:
            try:
                records[recipe] = self.find(recipe)
            except StoreError as error:
                records[recipe] = None
                self.note(str(error))
        return records

    def like(self, recipes: list[Recipe]) -> list[Record]:
        """All records on the data sets of these recipes that no engine carried; what cannot be read is left out."""
        places = dict.fromkeys((folder / recipe.filename).parent for folder in self.folders for recipe in recipes)
        records = []
        for path in (path for place in places for path in place.glob("*.json")):
            with suppress(StoreError, OSError):
                file = path.stat()
                records.append(_as_it_was(path, file.st_ino, file.st_mtime_ns, file.st_size))
        return [record for record in records if "engine" not in record.origin]

    def write(self, recipe: Recipe, record: Record, artefacts: dict[str, dict] | None = None) -> Path:
        """Writes a record once, atomically. The first writer of a recipe wins, unless what it wrote is damaged, or
        stale where ``renew`` is set. StoreError when the disk is full or not writable; what is recorded stays."""
        path = self.folder / recipe.filename
        if path.exists() and self._stays(path):
            return path
        files, checksums = {}, {}
        for name, arrays in _parts(artefacts or {}):
            content = BytesIO()
            numpy.savez_compressed(content, **arrays)
            checksums[name] = checksum(content.getvalue())
            own = path.with_suffix(f".{name}.npz")
            files[shared(path, checksums[name]) if name.endswith(SHARED) else own] = content.getvalue()
        write_together(files | {path: to_text(replace(record, checksums=checksums)).encode()})  # the record last
        return path

    def _stays(self, path: Path) -> bool:
        with suppress(DamagedError):
            record = read(path)
            record.require_artefacts()
            return not (self.renew and changed(record))
        return False

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def lock(self, recipe: Recipe, wait: bool = True):
        """Held while a run trains: a second process that wants the same run says so and waits, or raises HeldError.
        Half files of processes that were killed are removed. Without locks a run may be trained twice."""
        lock = FileLock(self.locks / f"{recipe.key}.lock")
        try:
            self.locks.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=int(wait))
        except Timeout:
            if not wait:
                raise HeldError(f"another process trains {recipe}.") from None
            print(f"waiting for another process, which trains {recipe}", file=sys.stderr, flush=True)
            while not lock.is_locked:
                signals.end_if_requested()
                with suppress(Timeout):
                    lock.acquire(timeout=1)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise StoreError(f"{self.locks} cannot be used: {error}. Choose another folder for runs.") from error
            self.note(f"{self.locks}: {error.strerror}. Another process may train the same runs once more.")
        try:
            for path in (self._checkpoint(recipe), self.folder / recipe.filename):
                for part in path.parent.glob(f".{glob.escape(path.stem)}.*{PART}"):
                    remove(part)
            yield
        finally:
            lock.release()

    def save_checkpoint(self, recipe: Recipe, state: dict, keep_last: bool = False) -> None:
        """Replaces the checkpoint of a run, atomically; its last 32 bytes are a SHA-256. With ``keep_last`` the one
        before stays for ``step_back``."""
        path = self._checkpoint(recipe)
        if keep_last and path.exists():
            os.replace(path, _before(path))

        def save(file) -> None:
            torch.save(state, file)
            file.seek(0)
            file.write(hashlib.file_digest(file, "sha256").digest())

        write_together({path: save})

    def step_back(self, recipe: Recipe) -> None:
        """The next start goes on from the checkpoint before the last, where there is one."""
        with suppress(FileNotFoundError):
            os.replace(_before(self._checkpoint(recipe)), self._checkpoint(recipe))

    def load_checkpoint(self, recipe: Recipe, device) -> dict | None:
        """The state of an unfinished run, or None; a damaged file is set aside and the run starts again."""
        path = self._checkpoint(recipe)
        if not path.exists():  # a process was killed between two checkpoints, or there is none
            self.step_back(recipe)
        if not path.exists():
            return None
        try:
            content = path.read_bytes()
            if hashlib.sha256(content[:-32]).digest() != content[-32:]:
                raise ValueError("its bytes are not those that were written")
            return torch.load(BytesIO(content[:-32]), map_location=device, weights_only=True)
        except Exception as error:  # torch raises many kinds
            self._set_aside([path], f"{error}; the run starts from its first round.")
            return None

    def drop_checkpoint(self, recipe: Recipe) -> None:
        remove(self._checkpoint(recipe))
        remove(_before(self._checkpoint(recipe)))

    def _checkpoint(self, recipe: Recipe) -> Path:
        return self.checkpoints / f"{recipe.key}.pt"

    def _set_aside(self, paths: list[Path], why: str) -> None:
        """Renames files that belong together; the first names them."""
        name = paths[0].name
        try:
            for path in paths:
                os.replace(path, f"{path}.damaged")
            self.note(f"{name} was damaged and is now {name}.damaged: {why}")
        except OSError as error:  # the folder is read-only
            self.note(f"{name} is damaged and could not be set aside ({error.strerror}): {why}")


def _require_same(record: Record, recipe: Recipe, path: Path) -> None:
    both = [(name, then, recipe.full[name]) for name, then in record.recipe.items() if name in recipe.full]
    differing = [f"{name} was {then!r} and is {now!r}" for name, then, now in both if not _agree(then, now)]
    if differing:
        raise StoreError(
            f"{path} holds another run than the recipe asks for: {'; '.join(differing)}. A default has changed "
            "since it was made: spell the option out in the recipe, or move the file away to train again."
        )


def _agree(recorded, wanted) -> bool:
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        return all(_agree(recorded[key], wanted[key]) for key in recorded.keys() & wanted.keys())
    if isinstance(recorded, list) and isinstance(wanted, list):
        return len(recorded) == len(wanted) and all(map(_agree, recorded, wanted))
    return recorded == wanted


def _before(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(".before.pt")


def _parts(artefacts: dict[str, dict]):
    """The artefacts by name; before each what it has in common with those of other runs."""
    for name, arrays in artefacts.items():
        common = {entry: arrays[entry] for entry in OF_THE_IMAGES.get(name, ()) if entry in arrays}
        if common:
            yield name + SHARED, common
        yield name, {entry: array for entry, array in arrays.items() if entry not in common}
