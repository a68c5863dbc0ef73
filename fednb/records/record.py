"""What one run measured: a JSON text that carries its own checksum, read by one reader that believes nothing."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import MISSING, asdict, dataclass, field, fields
from io import BytesIO
from pathlib import Path
from reprlib import repr as brief

from fednb.errors import DamagedError, StoreError
from fednb.federation import SPLITS
from fednb.recipe import ROOMS, Recipe
from fednb.records import believed, columns

FILES_OF = (*ROOMS.values(), "augmentations", "augment", "data")  # what has a behaviour
SHARED = "_shared"  # ends the name of what an artefact has in common with those of other runs
MOST = 2**53  # of a count: beyond it two whole numbers are one float
ROUND = ("round", "loss", "up", "down", "validation", "test", "cross_site", "own_statistics", "absent")


@dataclass(frozen=True)
class Record:
    """What one run measured. Plain values only; anyone can read it without having the data.

    recipe: the full recipe. key: its hash. clients: site names.
    images: for each split, the number of images of each client; of ``spare`` where those are scored.
    prepare: bytes ``up`` and ``down`` by name, over all clients, once before round 1.
    rounds: for each round ``loss`` by client, images classified correctly (or the sum of their Dice coefficients) on
    ``validation`` and ``test`` for each client, bytes ``up`` and ``down`` by name; in the last, where asked for,
    ``cross_site`` (source -> one number per target) and ``own_statistics`` (as ``test``, with running statistics of
    each client's own training images); where clients are elsewhere, ``absent``: those that did not answer, who took no
    part or have the scores of their last test.
    fingerprint: of the federation. notes: what its reader must know (of the federation, of a run that is none).
    origin: version of the code, torch, device, threads, seconds of training and evaluation; where clients were
    elsewhere, ``engine``: what carried their messages, and ``wire``: for each kind of message the bytes ``down`` and
    ``up`` as they were sent, tests included, over the whole run.
    behaviours: the hashes of what it used, as they were then (see ``fednb.records.staleness``).
    checksums: 16 hex digits of SHA-256: ``record`` over all of the above, and one for each artefact beside it by its
    name, over the file's bytes. They are made where it is written. What several runs have in common, such as the images
    of ``examples``, is kept once, as ``examples_shared`` in ``shared/<checksum>.npz`` beside the record.
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
    checksums: dict[str, str] = field(default_factory=dict, compare=False)
    path: Path | None = field(default=None, compare=False)

    def __getattr__(self, name: str):
        """The rounds, where they are still columns."""
        if name != "rounds" or "columns" not in vars(self):
            raise AttributeError(f"a record has no {name}")
        vars(self)["rounds"] = columns.to_rounds(vars(self).pop("columns"), self.clients)
        return self.rounds

    def scores(self, split: str = "test") -> dict[int, list]:
        """By round each client's images' scores in [0, 1], float64 ``[n]``, in the rounds that a rule may choose.

        split: "test", or "spare", in the last ten rounds. Empty where none lie beside the record. Raises DamagedError
        where they are not those of its images.
        """
        from fednb.records.scores import unpacked

        if self.path is None or split not in self.images or not self._beside("scores").exists():
            return {}
        try:
            found = unpacked(self.artefact("scores"), self.images[split], split)
            _need(set(found) <= set(range(1, len(self.rounds) + 1)), "rounds", list(found), "those of the run")
            return found
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise DamagedError(f"{self._beside('scores')}: its scores are not those of this run ({error}).") from error

    def artefact(self, name: str) -> dict:
        """A small file of arrays beside the record, for example ``features``.

        Raises StoreError where there is none, DamagedError where it cannot be read or is not what was written.
        """
        import numpy

        content = BytesIO(self._content(name))
        try:
            with numpy.load(content, allow_pickle=False) as arrays:
                own = dict(arrays)
        except Exception as error:  # numpy and zipfile raise many kinds for a damaged file
            raise DamagedError(
                f"{self._beside(name)} is damaged ({error}). Move it and {self.path.name} away and train the recipe "
                "again."
            ) from error
        return self.artefact(name + SHARED) | own if name + SHARED in self.checksums else own

    def require_artefacts(self) -> None:
        """Raises DamagedError unless every artefact that the record names is there as it was written."""
        for name in self.checksums.keys() - {"record"}:
            self._content(name)

    def _content(self, name: str) -> bytes:
        path = self._beside(name)
        expected = self.checksums.get(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            copy = f"Copy it from where {self.path.name} came from, or move" if name.endswith(SHARED) else "Move"
            raise (DamagedError if expected else StoreError)(
                f"{path} is not there. {copy} {self.path.name} away and train the recipe again, with "
                f"{name.removesuffix(SHARED)!r} in its evaluation."
            ) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}. Mend its permissions, or move it away.") from error
        if expected not in (None, checksum(content)):
            raise DamagedError(
                f"{path} is damaged: its bytes are not those that {self.path.name} was written with. Move both away "
                "and train the recipe again."
            )
        return content

    def _beside(self, name: str) -> Path:
        if name.endswith(SHARED):
            return shared(self.path, self.checksums[name])
        return self.path.with_suffix(f".{name}.npz")


def shared(record: Path, digits: str) -> Path:
    """Where the records of a folder keep what several have in common, by its checksum."""
    return record.parent / "shared" / f"{digits}.npz"


def checksum(content: bytes) -> str:
    """16 hex digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def to_text(record: Record) -> str:
    """JSON with one line for each top-level entry and one for each column of the rounds, and its own checksum."""
    entries = _sealed(record)
    rounds = columns.to_text(entries.pop("rounds"), entries["clients"])
    lines = [f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in entries.items()]
    return "{\n" + ",\n".join([*lines, f'"rounds": {rounds}']) + "\n}\n"


def read(path: Path) -> tuple[Record, list[str]]:
    """The record in a file, and the names of fields that this version does not know.

    Raises DamagedError, naming the file and what is wrong where, and StoreError where the file may not be read.
    """
    try:
        content = path.read_bytes()
        if believed.before(content):
            entries = json.loads(content)
            return _unpacked_later(Record(**entries, path=path)), []
        record, later = parsed(content.decode(), path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. Mend its permissions or move it away.") from error
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path} is damaged: it is not text ({error}).") from error
    if not later:
        believed.add(content)
    return record, later


def _unpacked_later(record: Record) -> Record:
    """Its rounds are columns until somebody asks for them; most commands read a thousand records and ask for none."""
    if isinstance(record.rounds, dict):
        vars(record)["columns"] = vars(record).pop("rounds")
    return record


def parsed(text: str, path: Path | None = None) -> tuple[Record, list[str]]:
    """The same for a text. Its rounds are columns or, as older versions wrote them, a list."""
    try:
        entries = json.loads(text, parse_constant=_no_number)
        if isinstance(entries, dict) and isinstance(entries.get("rounds"), dict):
            entries["rounds"] = columns.to_rounds(entries["rounds"], entries.get("clients"))
        _validate(entries)
    except (ValueError, OverflowError, RecursionError) as error:
        raise DamagedError(f"{path or 'a record'} is damaged: {error}.") from error
    known = {each.name for each in fields(Record)} - {"path"}
    later = [name for name in entries if name not in known]
    later += sorted({f"rounds.{name}" for values in entries["rounds"] for name in values if name not in ROUND})
    return Record(**{name: entries[name] for name in known & entries.keys()}, path=path), later


def require_readable(record: Record) -> None:
    """StoreError, naming the field, for what no reader would believe; nothing is written."""
    try:
        parsed(json.dumps(_sealed(record), allow_nan=False))
    except (DamagedError, ValueError, TypeError) as error:
        raise StoreError(
            f"the run {record.key} measured what no record can hold: {error} Nothing is written, and its checkpoint is "
            "kept: look at the methods and clients that it names."
        ) from error


def require_measured(rounds, clients: list[str], images: dict, prepare, seconds, notes: list[str]) -> None:
    """ValueError, naming the field, unless these can be what a run has measured so far."""
    for number, values in enumerate(rounds, 1):
        _validate_round(values, number, clients, images)
    _bytes(prepare, "prepare")
    _numbers([seconds], [math.inf], "seconds")
    _need(float(seconds) < math.inf, "seconds", seconds, "a number")
    _written("notes", notes)
    _written("rounds", rounds)
    json.dumps(rounds, allow_nan=False)


def require_wire(wire) -> None:
    """ValueError, naming the field, unless these can be bytes on the wire, by kind of message and way."""
    _written("origin.wire", wire)
    _dictionary(wire, "origin.wire")
    for kind, ways in wire.items():
        _dictionary(ways, "origin.wire")
        _bytes({way: {kind: count} for way, count in ways.items()}, "origin.wire")


def _sealed(record: Record) -> dict:
    """Its entries, with its own checksum."""
    entries = {name: value for name, value in asdict(record).items() if name != "path"}
    return entries | {"checksums": record.checksums | {"record": checksum(_own_text(entries).encode())}}


def _own_text(entries: dict) -> str:
    """What a record's own checksum is of: all of it but that."""
    checksums = entries.get("checksums")
    if isinstance(checksums, dict):
        entries = entries | {"checksums": {name: value for name, value in checksums.items() if name != "record"}}
    return json.dumps(entries, sort_keys=True)


def _no_number(word: str):
    raise ValueError(f"it holds {word}; expected numbers")


def _validate(entries) -> None:
    """Raises ValueError, naming the field, unless the entries can be those of a finished run."""
    _need(isinstance(entries, dict), "the whole", entries, "names and values")
    text = _own_text(entries)
    for name, value in entries.items():
        if "\\ud" in text or name == "checksums":  # the text is ASCII, and has not the record's own
            _written(name, value)
    for each in fields(Record):
        required = each.default is each.default_factory is MISSING
        _need(each.name in entries or not required, each.name, None, "to be there")
    _validate_checksums(entries, checksum(text.encode()))
    _validate_recipe(entries["recipe"])
    clients = entries["clients"]
    _texts(clients, "clients")
    _need(clients and len(set(clients)) == len(clients), "clients", clients, "names, each once")
    images = entries["images"]
    _dictionary(images, "images", SPLITS)
    for split, counts in images.items():
        _numbers(counts, [MOST] * len(clients), f"images.{split}", whole=True)
    _bytes(entries["prepare"], "prepare")
    _need(isinstance(entries["fingerprint"], str), "fingerprint", entries["fingerprint"], "a text")
    key = entries["key"]
    _need(isinstance(key, str) and re.fullmatch("[0-9a-f]+", key), "key", key, "a number in base 16")
    _texts(entries["notes"], "notes")
    _validate_origin(entries["origin"])
    behaviours = entries.get("behaviours", {})
    _dictionary(behaviours, "behaviours")
    _texts(list(behaviours.values()), "behaviours")
    for name in behaviours:
        _need(re.fullmatch(f"({'|'.join(FILES_OF)})/[^/]+", name), "behaviours", name, f"{', '.join(FILES_OF)}/name")
    rounds, count = entries["rounds"], entries["recipe"]["rounds"]
    _need(isinstance(rounds, list) and rounds, "rounds", rounds, "a list of rounds")
    _need(len(rounds) == count, "rounds", f"{len(rounds)} long", f"{count}, as the recipe says")
    for number, values in enumerate(rounds, 1):
        _validate_round(values, number, clients, images)


def _validate_checksums(entries: dict, own: str) -> None:
    _dictionary(entries.get("checksums"), "checksums", ("record",))
    for name, value in entries["checksums"].items():
        _need(name.isidentifier() and len(name) < 50, "checksums", name, "the name of an artefact")
        hexadecimal = isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value)
        _need(hexadecimal, f"checksums.{name}", value, "16 hex digits")
    found = entries["checksums"]["record"]
    _need(found == own, "checksums.record", found, f"{own}: it was edited")


def _validate_origin(origin) -> None:
    _dictionary(origin, "origin", ("code", "torch", "device", "seconds"))
    _numbers([origin["seconds"]], [math.inf], "origin.seconds")
    for name in ("code", "torch", "device", "engine", "processor", "instructions", "protocol", "weights"):
        _need(isinstance(origin.get(name, ""), str), f"origin.{name}", origin.get(name), "a text")
    for name in ("threads", "parameters"):
        _numbers([origin.get(name, 0)], [MOST], f"origin.{name}", whole=True)
    _dictionary(origin.get("outside", {}), "origin.outside")
    _texts(list(origin.get("outside", {}).values()), "origin.outside")
    _texts(origin.get("declared", []), "origin.declared")
    require_wire(origin.get("wire", {}))


def _validate_recipe(recipe) -> None:
    """Each setting is of the type that it has today; one that is younger than the record may not be there."""
    _dictionary(recipe, "recipe", ("federation", "model", "algorithm", "augmentations", "rounds", "local_epochs"))
    _dictionary(recipe, "recipe", ("precision", "seed", "evaluation"))
    for each in fields(Recipe):
        kind = dict if each.name in ROOMS else {tuple: list}.get(type(each.default), type(each.default))
        value = recipe.get(each.name, kind())
        _need(type(value) is kind, f"recipe.{each.name}", value, f"a value of type {kind.__name__}")
    for name in ("flow", "unseen", "evaluation"):
        _texts(recipe.get(name, []), f"recipe.{name}")
    for name, given in [(name, recipe[name]) for name in ROOMS] + [
        ("augmentations", a) for a in recipe["augmentations"]
    ]:
        _dictionary(given, f"recipe.{name}", ("name",))
        _texts([given["name"]], f"recipe.{name}.name")
        _need(given["name"].isidentifier(), f"recipe.{name}.name", given["name"], "the name of a module")
    for name in ("rounds", "local_epochs"):
        _need(recipe[name] > 0, f"recipe.{name}", recipe[name], "a whole number above 0")


def _validate_round(values, number: int, clients: list[str], images: dict[str, list[int]]) -> None:
    where = f"rounds[{number}]"
    _dictionary(values, where, ROUND[:6])
    _need(type(values["round"]) is int and values["round"] == number, f"{where}.round", values["round"], str(number))
    losses = values["loss"]
    _dictionary(losses, f"{where}.loss")
    _need(losses.keys() <= set(clients), f"{where}.loss", list(losses), "names of clients")
    for loss in losses.values():
        if not (type(loss) in (int, float) and math.isfinite(loss)):
            _need(False, f"{where}.loss", loss, "a number")
    _bytes({way: values[way] for way in ("up", "down")}, where)
    for split in ("validation", "test"):
        _numbers(values[split], images[split], f"{where}.{split}")
    if "cross_site" in values:
        sources = values["cross_site"]
        _dictionary(sources, f"{where}.cross_site")
        _need(sources.keys() <= set(clients), f"{where}.cross_site", list(sources), "names of clients")
        for row in sources.values():
            _numbers(row, images["test"], f"{where}.cross_site")
    if "absent" in values:
        absent = values["absent"]
        _texts(absent, f"{where}.absent")
        _need(set(absent) <= set(clients), f"{where}.absent", absent, "names of clients")
    if "own_statistics" in values:
        _numbers(values["own_statistics"], images["test"], f"{where}.own_statistics")


def _written(name: str, value) -> None:
    """Half of a surrogate pair is no character: no page and no other file can hold it."""
    text = json.dumps([name, value], ensure_ascii=False)
    if text != text.encode("utf-8", "replace").decode():
        raise ValueError(f"{ascii(name)[1:-1]} is {brief(ascii(value))}; expected texts of whole characters")


def _need(holds, where: str, found, expected: str) -> None:
    if not holds:
        raise ValueError(f"{where} is {found if isinstance(found, str) else brief(found)}; expected {expected}")


def _dictionary(value, where: str, names: tuple[str, ...] = ()) -> None:
    _need(isinstance(value, dict), where, value, "names and values")
    for name in names:
        if name not in value:
            _need(False, f"{where}.{name}", None, "to be there")


def _texts(value, where: str) -> None:
    _need(isinstance(value, list) and all(isinstance(each, str) for each in value), where, value, "texts")


def _bytes(ways, where: str) -> None:
    _dictionary(ways, where, ("up", "down"))
    for way in ("up", "down"):
        _dictionary(ways[way], f"{where}.{way}")
        counts = list(ways[way].values())
        _numbers(counts, [MOST] * len(counts), f"{where}.{way}", whole=True)


def _numbers(values, most: list, where: str, whole: bool = False) -> None:
    """A list as long as ``most``, of numbers from 0 to those."""
    _need(isinstance(values, list) and len(values) == len(most), where, values, f"a list of {len(most)}")
    kinds = (int,) if whole else (int, float)
    for value, limit in zip(values, most, strict=True):
        if not (type(value) in kinds and 0 <= value <= limit and value < math.inf):
            _need(False, where, value, f"a number from 0 to {limit}")
