"""The store: written once and whole, found by recipe, nothing lost when something is damaged or the disk is full."""

import base64
import bz2
import json
import random
import resource
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, record

from fednb.errors import DamagedError, StoreError
from fednb.records import columns
from fednb.records.record import parsed, read, to_text
from fednb.records.store import Record, Store
from fednb.study import default_store

ARRAYS = {"features": {"features": np.arange(6, dtype=np.float16).reshape(2, 3), "labels": np.arange(2)}}
OTHER = SMALL.with_(seed=1)


def files(folder: Path) -> list[str]:
    """All files below, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def full_disk(after: int):
    """Files cannot grow beyond so many bytes, by the operating system's own limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_comes_back_as_it_was_written_and_the_first_writer_wins(store):
    made = record(SMALL)
    path = store.write(SMALL, made, ARRAYS)
    store.write(SMALL, record(SMALL, right=4))
    found = store.find(SMALL)
    assert found == made and found.path == path == store.folder / SMALL.filename
    assert np.array_equal(found.artefact("features")["features"], ARRAYS["features"]["features"])
    assert files(store.folder) == sorted([SMALL.filename, SMALL.filename.replace(".json", ".features.npz")])
    assert store.find(OTHER) is None and store.notes == []


def examples(seed: int) -> dict[str, dict]:
    images = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 4), np.uint8)
    made = {"images": images, "targets": images[:, 0] % 2, "predictions": images[:, 0] % (2 + seed)}
    return {"examples": made}


@pytest.mark.parametrize("hurt", ["gone", "flipped"])
def test_what_runs_have_in_common_is_kept_once_missed_by_name_and_mended_by_one(store, hurt):
    recipes = [SMALL, OTHER]
    shown = [read(store.write(recipe, record(recipe), examples(recipe.seed))) for recipe in recipes]
    one, two = (each.artefact("examples") for each in shown)
    assert list(one) == ["images", "targets", "predictions"] and len(files(store.folder)) == 5
    assert np.array_equal(one["images"], two["images"]) and not np.array_equal(one["predictions"], two["predictions"])
    (place,) = store.folder.rglob("shared/*.npz")
    content = bytearray(place.read_bytes())
    content[100] ^= 1
    place.unlink() if hurt == "gone" else place.write_bytes(content)
    said = "is not there. Copy it from where" if hurt == "gone" else "is damaged"
    with pytest.raises(DamagedError, match=f"{place.name} {said}"):
        shown[0].artefact("examples")
    assert store.found(recipes) == dict.fromkeys(recipes) and place.name in store.notes[0]
    store.write(SMALL, record(SMALL), examples(0))
    assert store.found(recipes) == {recipe: record(recipe) for recipe in recipes}


def test_who_only_reads_changes_nothing(store, tmp_path):
    """Neither does who trains in the folders that are not its own."""
    path = store.write(SMALL, record(SMALL), ARRAYS)
    path.write_text("{")
    before = files(tmp_path)
    assert store.find(SMALL) is None and store.found([SMALL]) == {SMALL: None}
    assert Store(tmp_path / "mine", also=(store.folder,)).find(SMALL, mend=True) is None
    assert files(tmp_path) == before and "The run counts as missing" in store.notes[0]


def test_records_are_found_in_several_folders_and_written_to_the_first(tmp_path):
    recorded = Store(tmp_path / "results")
    recorded.write(SMALL, record(SMALL, right=2))
    both = Store(tmp_path / "runs", also=(tmp_path / "results", tmp_path / "nowhere"))
    assert both.find(SMALL) == record(SMALL, right=2)
    assert both.write(OTHER, record(OTHER)).is_relative_to(tmp_path / "runs")
    assert recorded.find(OTHER) is None and both.find(OTHER) == record(OTHER)
    both.write(SMALL, record(SMALL, right=4))
    assert both.find(SMALL) == record(SMALL, right=4) and recorded.find(SMALL) == record(SMALL, right=2)
    (tmp_path / "runs" / SMALL.filename).write_text("{")  # damaged here: the other folder's is used
    assert both.find(SMALL) == record(SMALL, right=2)


def test_records_like_are_those_on_the_same_data(tmp_path):
    store, other = Store(tmp_path / "new", also=(tmp_path / "old",)), Store(tmp_path / "old")
    for recipe in (SMALL, SMALL.with_(federation="digits")):
        other.write(recipe, record(recipe))
    store.write(OTHER, record(OTHER))
    store.write(SMALL.with_(seed=2), record(SMALL)).write_text("{")
    assert [found.recipe["seed"] for found in store.like([SMALL.with_(seed=5), SMALL])] == [1, 0]
    assert store.notes == []


def test_what_flower_carried_is_found_where_no_other_run_is(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path / "runs"))
    local = record(SMALL)
    carried = replace(local, origin=local.origin | {"engine": "flower 1.41"})
    others = len(default_store().like([SMALL]))
    path = default_store().by("flower").write(SMALL, carried)
    assert default_store().find(SMALL).path == path and len(default_store().like([SMALL])) == others
    default_store().write(SMALL, local)
    assert "engine" not in default_store().find(SMALL).origin and len(default_store().like([SMALL])) == others + 1


def test_a_record_older_than_an_option_is_used(store):
    made = record(SMALL)
    older = {name: value for name, value in made.recipe.items() if name != "buffers"}
    older["federation"] = {"name": "shifted_digits"}
    store.write(SMALL, Record(**{**vars(made), "recipe": older}))
    assert store.find(SMALL).rounds == made.rounds


@pytest.mark.parametrize("room", [100, 5000])
def test_a_full_disk_is_an_error_and_nothing_is_lost(store, room):
    """At 100 bytes the record does not fit, at 5,000 the checkpoint does not, whatever was written of it."""
    store.write(OTHER, record(OTHER))
    store.save_checkpoint(SMALL, {"weights": torch.zeros(10)})
    was = files(store.folder.parent)
    with full_disk(room):
        with pytest.raises(StoreError, match="could not be written: .* Free space"):
            store.save_checkpoint(SMALL, {"weights": torch.rand(100_000)})
        if room == 100:
            with pytest.raises(StoreError, match="File too large"):
                store.write(SMALL, record(SMALL))
    assert files(store.folder.parent) == was
    assert store.find(OTHER) == record(OTHER) and store.find(SMALL) is None
    assert torch.equal(store.load_checkpoint(SMALL, "cpu")["weights"], torch.zeros(10))
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == record(SMALL)


def cut(entries: dict, **changed) -> bytes:
    return json.dumps({name: value for name, value in (entries | changed).items() if value is not None}).encode()


DAMAGE = {
    "half": lambda text: text[: len(text) // 2].encode(),
    "binary": lambda text: b"\xff\xfe\x00",
    "a list": lambda text: b"[]",
    "brackets": lambda text: b"[" * 100_000,
    "an edited number": lambda text: text.replace('"test": [[3,4]', '"test": [[4,4]').encode(),
    "digits": lambda text: text.replace("0.25", "1" * 5000).encode(),
    "no rounds": lambda text: cut(json.loads(text), rounds=None),
    "no checksum": lambda text: cut(json.loads(text), checksums=None),
    "another field": lambda text: cut(json.loads(text), weather="sunny"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_named_and_set_aside_by_who_may(store, damage):
    path = store.write(SMALL, record(SMALL), ARRAYS)
    store.write(OTHER, record(OTHER))
    damaged = damage(path.read_text())
    path.write_bytes(damaged)
    assert store.found([SMALL, OTHER]) == {SMALL: None, OTHER: record(OTHER)}
    assert str(path) in store.notes[0] and path.read_bytes() == damaged
    assert store.find(SMALL, mend=True) is None and not path.exists()
    aside = path.with_name(f"{path.name}.damaged")
    assert aside.read_bytes() == damaged and f"is now {aside.name}: " in store.notes[-1]
    assert not list(path.parent.glob("*.npz"))
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == record(SMALL)


@pytest.mark.parametrize("hurt", ["gone", "half", "a folder", "another run's"])
def test_a_missing_or_damaged_artefact_is_named_and_its_record_counts_as_missing(store, hurt):
    found = read(store.write(SMALL, record(SMALL), ARRAYS))
    theirs = store.write(OTHER, record(OTHER), {"features": {"labels": np.arange(9)}}).with_suffix(".features.npz")
    place = found.path.with_suffix(".features.npz")
    content = {"half": place.read_bytes()[:50], "another run's": theirs.read_bytes()}.get(hurt)
    place.unlink()
    if content:
        place.write_bytes(content)
    elif hurt == "a folder":
        place.mkdir()
    said = {"gone": "is not there", "a folder": "cannot be read: .* Mend its permissions"}.get(hurt, "is damaged")
    with pytest.raises(StoreError, match=f"features.npz {said}"):
        found.artefact("features")
    with pytest.raises(StoreError, match="faces.npz is not there.*'faces' in its evaluation"):
        found.artefact("faces")
    assert store.found([SMALL, OTHER]) == {SMALL: None, OTHER: record(OTHER)}


@pytest.mark.parametrize("damage", ["cut", "empty", "code", "flipped"])
def test_a_damaged_checkpoint_is_set_aside(store, damage):
    store.save_checkpoint(SMALL, {"weights": torch.ones(1000)})
    path = store.checkpoints / f"{SMALL.key}.pt"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes({"cut": whole[:500], "empty": b"", "flipped": whole}.get(damage, b""))
    if damage == "code":
        store.save_checkpoint(SMALL, {"weights": Store})  # a pickle that names a class is not read
    assert store.load_checkpoint(SMALL, "cpu") is None
    assert files(store.checkpoints) == [f"{SMALL.key}.pt.damaged"]
    assert "the run starts from its first round" in store.notes[0]


# Rounds as columns


def drawn(draw: random.Random, clients: list[str], count: int) -> list[dict]:
    """Rounds of clients that take part by chance, who send by turns."""
    rounds = []
    for number in range(1, count + 1):
        part = sorted(draw.sample(clients, draw.randint(1, len(clients))))
        counts = [draw.randint(0, 9) if draw.random() < 0.5 else draw.random() for _ in clients]
        rounds.append(
            {
                "round": number,
                "loss": {name: round(3 * draw.random(), 6) for name in part},
                "up": {"model": 7 * len(part), "head": 10**9} | ({"late": 8} if number > 1 else {}),
                "down": {"model": 7} if draw.random() < 0.9 else {},
                "validation": counts,
                "test": counts[::-1],
            }
            | ({"absent": [clients[0]]} if draw.random() < 0.3 else {})
        )
    return rounds[:-1] + [rounds[-1] | {"cross_site": {clients[0]: [1] * len(clients)}}]


@pytest.mark.parametrize("clients", [["b", "a"], [f"client_{number}" for number in range(300)]])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_rounds_come_back_as_they_were_and_a_long_run_shows_its_last(clients, count):
    rounds = drawn(random.Random(count), clients, count)
    shown = json.loads(columns.to_text(rounds, clients))
    found = columns.to_rounds(shown, clients)
    assert found == rounds and [list(each["loss"]) for each in found] == [list(each["loss"]) for each in rounds]
    assert ("earlier" in shown) == (len(clients) == 300 and count > 1) and shown["test"][-1] == rounds[-1]["test"]


def packed(content: bytes) -> dict:
    return {"earlier": base64.b64encode(content).decode()}


ONE = {"loss": [[0.5, 0.25]], "up": {"model": 8}, "down": {"model": 8}, "validation": [[1, 2]], "test": [[3, 4]]}


@pytest.mark.parametrize(
    "rounds",
    [
        {},
        ONE | {"loss": [[0.5]]},
        ONE | {"test": [[3, 4], [3, 4]]},
        ONE | {"earlier": "?"},
        ONE | packed(b"no archive"),
        ONE | packed(bz2.compress(b"[]")),
        ONE | packed(bz2.compress(json.dumps(ONE).encode())),  # columns, of other numbers
    ],
)
def test_what_are_no_columns_or_others_is_a_damaged_record(rounds):
    whole = to_text(record(SMALL)).rpartition('"rounds": ')[0]
    with pytest.raises(DamagedError, match="a record is damaged"):
        parsed(f'{whole}"rounds": {json.dumps(rounds)}}}')
