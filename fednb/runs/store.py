"""Runs on disk: one JSON file each, written once, found by recipe; checkpoints beside them while a run trains."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from fednb.errors import StoreError
from fednb.files import PART, write_atomically, write_together
from fednb.recipe import Recipe
from fednb.runs.behaviour import changed


@dataclass(frozen=True)
class Record:
    """What one run measured. Plain values only; anyone can read it without having the data.

    recipe: the full recipe. key: its hash. clients: site names.
    images: for each split, the number of images of each client.
    prepare: bytes ``up`` and ``down`` by name, over all clients, once before round 1.
    rounds: for each round ``loss`` by client, images classified correctly (or the sum of their Dice coefficients) on
    ``validation`` and ``test`` for each client, bytes ``up`` and ``down`` by name; in the last, where asked for,
    ``cross_site`` (source -> one number per target) and ``own_statistics`` (as ``test``, with running statistics of
    each client's own training images).
    fingerprint: of the federation. notes: what its reader must know (from the federation).
    origin: version of the code, torch, device, threads, seconds of training and evaluation.
    behaviours: the hashes of what it used, as they were then (see ``fednb.runs.behaviour``); empty in older records.
    """

    recipe: dict
    key: str
    clients: list[str]
    images: dict[str, list[int]]
    prepare: dict[str, dict[str, int]]
    rounds: list[dict]
    fingerprint: str
    notes: list[str]
    origin: dict
    behaviours: dict[str, str] = field(default_factory=dict)
    path: Path | None = field(default=None, compare=False)

    def scores(self) -> dict[int, list]:
        """By round each client's test images' scores in [0, 1], float64 ``[n]``, in the rounds that a rule may choose.

        Empty where the record is older than such scores.
        """
        from fednb.runs.scores import unpacked

        if self.path is None or not self._beside("scores").exists():
            return {}
        return unpacked(self.artefact("scores"), self.images["test"])

    def artefact(self, name: str) -> dict:
        """A small file of arrays beside the record, for example ``features``.

        Raises StoreError where there is none or it cannot be read.
        """
        import numpy

        path = self._beside(name)
        if not path.exists():
            raise StoreError(
                f"{path} is not there. Move {self.path.name} away and train the recipe again, with {name!r} in its "
                "evaluation."
            )
        try:
            with open(path, "rb") as file, numpy.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # numpy and zipfile raise many kinds for a damaged file
            raise StoreError(
                f"{path} is damaged ({error}). Move it and {self.path.name} away and train the recipe again."
            ) from error

    def _beside(self, name: str) -> Path:
        return self.path.with_suffix(f".{name}.npz")


class Store:
    """Finds records in several folders and writes new ones to the first.

    A record is *stale* when something that it used behaves otherwise today. It is found like any other, after those
    that are not; only where ``renew`` is set it counts as missing, and its files are replaced by those of a new run.

    Args:
        folder: where new records are written.
        also: folders that are only read, for example the recorded runs of the project.
        checkpoints: where unfinished runs keep their state; a sibling of ``folder`` unless given.

    ``notes`` collects what was found wrong and set aside; a summary shows it.
    """

    def __init__(self, folder: Path, also: tuple[Path, ...] = (), checkpoints: Path | None = None):
        self.folder = Path(folder)
        self.folders = (self.folder, *(Path(path) for path in also))
        self.checkpoints = Path(checkpoints) if checkpoints else self.folder.parent / "checkpoints"
        self.renew = False
        self.notes: list[str] = []

    def find(self, recipe: Recipe) -> Record | None:
        """The record of a recipe, or None.

        A damaged file is set aside with the suffix ``.damaged`` and named in ``notes``. StoreError when the
        record was made while an option that the recipe leaves at its default had another default.
        """
        stale = None
        for folder in self.folders:
            path = folder / recipe.filename
            record = self._read(path) if path.exists() else None
            if record and not (self.renew and changed(record)):
                _require_same(record, recipe, path)
                if not changed(record):
                    return record
                stale = stale or record
        return stale

    def found(self, recipes: list[Recipe]) -> dict[Recipe, Record | None]:
        """The record of each recipe, or None; one that ``find`` refuses counts as missing and is named in ``notes``."""
        records = {}
        for recipe in recipes:
            try:
                records[recipe] = self.find(recipe)
            except StoreError as error:
                records[recipe] = None
                self.notes.append(str(error))
        return records

    def write(self, recipe: Recipe, record: Record, artefacts: dict[str, dict] | None = None) -> Path:
        """Writes a record once, atomically; the first writer of a recipe wins, unless it is stale and ``renew`` is set.

        Raises StoreError when the disk is full or not writable; nothing recorded before is touched.
        """
        path = self.folder / recipe.filename
        if path.exists() and not (self.renew and self._is_stale(path)):
            return path
        files = {
            path.with_suffix(f".{name}.npz"): partial(_save_arrays, arrays=arrays)
            for name, arrays in (artefacts or {}).items()
        }
        write_together({**files, path: lambda file: file.write(to_text(record).encode())})
        return path

    @contextmanager
    def lock(self, recipe: Recipe):
        """Held while a run trains: a second process that wants the same run says so, waits, then finds it done."""
        from filelock import FileLock, Timeout

        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.checkpoints} cannot be made: {error}. Choose another folder for runs.") from error
        lock, holder = FileLock(self.checkpoints / f"{recipe.key}.lock"), self.checkpoints / f"{recipe.key}.holder"
        try:
            lock.acquire(timeout=1)
        except Timeout:
            whom = holder.read_text() if holder.exists() else "unknown"
            print(f"waiting for process {whom}, which trains {recipe}", file=sys.stderr, flush=True)
            lock.acquire()
        with suppress(OSError):  # a full disk: those who wait are not told for whom
            holder.write_text(str(os.getpid()))
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def save_checkpoint(self, recipe: Recipe, state: dict) -> None:
        """Replaces the checkpoint of a run, atomically."""
        import torch

        write_atomically(self._checkpoint(recipe), lambda file: torch.save(state, file))

    def load_checkpoint(self, recipe: Recipe, device) -> dict | None:
        """The state of an unfinished run, or None; a damaged file is set aside and the run starts again."""
        import torch

        path = self._checkpoint(recipe)
        if not path.exists():
            return None
        try:
            return torch.load(path, map_location=device, weights_only=True)
        except Exception as error:  # torch raises many kinds for a damaged file
            self._set_aside(path, f"{type(error).__name__}; the run starts from its first round")
            return None

    def drop_checkpoint(self, recipe: Recipe) -> None:
        """Removes a finished run's checkpoint, and half files of processes that were killed while writing."""
        self._checkpoint(recipe).unlink(missing_ok=True)
        for path in (self._checkpoint(recipe), self.folder / recipe.filename):
            for leftover in path.parent.glob(f".{path.stem}.*{PART}"):
                leftover.unlink(missing_ok=True)

    def _is_stale(self, path: Path) -> bool:
        record = self._read(path)
        return record is None or bool(changed(record))

    def _checkpoint(self, recipe: Recipe) -> Path:
        return self.checkpoints / f"{recipe.key}.pt"

    def _read(self, path: Path) -> Record | None:
        try:
            record = Record(**json.loads(path.read_text()), path=path)
            if not (isinstance(record.recipe, dict) and isinstance(record.rounds, list) and record.rounds):
                raise ValueError("it has no recipe or no rounds")
            return record
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}. Mend its permissions or move it away.") from error
        except (ValueError, TypeError) as error:
            self._set_aside(path, f"{error}; the run counts as missing")
            return None

    def _set_aside(self, path: Path, why: str) -> None:
        aside = path.with_name(f"{path.name}.damaged")
        number = 1
        while aside.exists():
            number += 1
            aside = path.with_name(f"{path.name}.damaged{number}")
        try:
            os.replace(path, aside)
        except OSError as error:  # another process was faster, or the folder is read-only
            self.notes.append(f"{path.name} is damaged and could not be set aside ({error.strerror}): {why}.")
        else:
            self.notes.append(f"{path.name} was damaged and is now {aside.name}: {why}.")


def to_text(record: Record) -> str:
    """JSON with one line for each top-level entry and one for each round."""
    entries = {name: value for name, value in asdict(record).items() if name != "path"}
    lines = [f'"{name}": {json.dumps(value)}' for name, value in entries.items() if name != "rounds"]
    rounds = ",\n".join(f"  {json.dumps(values)}" for values in entries["rounds"])
    return "{\n" + ",\n".join([*lines, f'"rounds": [\n{rounds}\n]']) + "\n}\n"


def _require_same(record: Record, recipe: Recipe, path: Path) -> None:
    if record.key != recipe.key:
        raise StoreError(
            f"{path} holds the run with key {record.key}, not {recipe.key}: the file name was chosen for the latter. "
            "Give the file its own name, or change the seed."
        )
    differing = [
        f"{name} was {value!r} and is {recipe.full[name]!r}"
        for name, value in record.recipe.items()
        if name in recipe.full and not _agree(value, recipe.full[name])
    ]
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


def _save_arrays(file, arrays: dict) -> None:
    import numpy

    numpy.savez_compressed(file, **arrays)
