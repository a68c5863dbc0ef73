"""What one run measured: a JSON text that carries its own checksum, by which a reader believes it."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from io import BytesIO
from pathlib import Path

import numpy

from fednb.errors import DamagedError, StoreError
from fednb.records import columns
from fednb.records.scores import unpacked

SHARED = "_shared"  # ends the name of what an artefact has in common with those of other runs


@dataclass(frozen=True)
class Record:
    """What one run measured, in plain values.

    recipe: the full recipe. key: its hash. clients: site names. images: for each split, of each client.
    prepare: bytes ``up`` and ``down`` by name, over all clients, once before round 1.
    rounds: for each round ``loss`` by client, images classified correctly (or the sum of their Dice coefficients) on
    ``validation`` and ``test`` for each client, bytes ``up`` and ``down`` by name; in the last, where asked for,
    ``cross_site`` (source -> one number per target); over a network ``absent``: those that did not
    answer, who took no part or have the scores of their last test.
    fingerprint: of the federation. notes: what its reader must know. origin: see ``provenance.origin``, and what
    carried the messages. behaviours: the hashes of what it used (see ``fednb.records.staleness``).
    activity: of each method that has one the number that shows it at work (``fednb.methods.Method.activity``); none
    over a network, nor of runs before it came.
    checksums: 16 hex digits of SHA-256: ``record`` over all of the above, and one for each artefact by its name. What
    several runs have in common is kept once, in ``shared/<checksum>.npz``."""

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
    activity: dict[str, float] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict, compare=False)
    path: Path | None = field(default=None, compare=False)

    def scores(self, split: str = "test") -> dict[int, list]:
        """By round each client's images' scores in [0, 1], float64 ``[n]``, in the rounds that a rule may choose, of
        the split "spare" in the last ten. Empty where none lie next to the record."""
        if split not in self.images or "scores" not in self.checksums:
            return {}
        return unpacked(self.artefact("scores"), self.images[split], split)

    def artefact(self, name: str) -> dict:
        """A small file of arrays next to the record, for example ``features``. StoreError where there is none,
        DamagedError where it is gone or not what was written."""
        with numpy.load(BytesIO(self._content(name)), allow_pickle=False) as arrays:
            own = dict(arrays)
        return self.artefact(name + SHARED) | own if name + SHARED in self.checksums else own

    def require_artefacts(self) -> None:
        """Raises DamagedError unless every artefact that the record names is there as it was written."""
        for name in self.checksums.keys() - {"record"}:
            self._content(name)

    def _content(self, name: str) -> bytes:
        expected = self.checksums.get(name)
        path = shared(self.path, expected) if name.endswith(SHARED) else self.path.with_suffix(f".{name}.npz")
        if expected is None:
            raise StoreError(f"{path} is not there: train the recipe with {name!r} in its evaluation.")
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            advice = f"Copy it from where {self.path.name} came from, or move that away and train the recipe again"
            raise DamagedError(f"{path} is not there. {advice}.") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}. Mend its permissions, or move it away.") from error
        if expected != checksum(content):
            raise DamagedError(
                f"{path} is damaged: its bytes are not those that {self.path.name} was written with. Move both away "
                "and train the recipe again."
            )
        return content


def shared(record: Path, digits: str) -> Path:
    return record.parent / "shared" / f"{digits}.npz"


def checksum(content: bytes) -> str:
    """16 hex digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def to_text(record: Record) -> str:
    """JSON with a line for each entry and each column of the rounds, and its own checksum; ValueError for NaN."""
    entries = {name: value for name, value in asdict(record).items() if name != "path"}
    entries |= {"checksums": record.checksums | {"record": checksum(_own_text(entries).encode())}}
    rounds = columns.to_text(entries.pop("rounds"), entries["clients"])
    lines = [f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in entries.items()]
    return "{\n" + ",\n".join([*lines, f'"rounds": {rounds}']) + "\n}\n"


def read(path: Path) -> Record:
    """The record in a file, without fields that this version does not know. DamagedError where its checksum says that
    it is not what a run wrote, StoreError where it may not be read."""
    try:
        return parsed(path.read_bytes().decode(), path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. Mend its permissions or move it away.") from error
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path} is damaged: it is not text ({error}).") from error


def parsed(text: str, path: Path | None = None) -> Record:
    """The same for a text."""
    try:
        entries = json.loads(text)
        entries["rounds"] = columns.to_rounds(entries["rounds"], entries["clients"])
        found, own = entries["checksums"]["record"], checksum(_own_text(entries).encode())
        if found != own:
            raise ValueError(f"checksums.record is {found}; expected {own}: it was edited")
        known = [each.name for each in fields(Record) if each.name != "path"]
        return Record(**{name: entries[name] for name in known if name in entries}, path=path)
    except (LookupError, TypeError, AttributeError, ValueError, OSError, ArithmeticError, RecursionError) as error:
        raise DamagedError(f"{path or 'a record'} is damaged: {error}.") from error


def _own_text(entries: dict) -> str:
    """What a record's own checksum is of: all of it but that."""
    kept = {name: value for name, value in entries["checksums"].items() if name != "record"}
    return json.dumps(entries | {"checksums": kept}, sort_keys=True)
