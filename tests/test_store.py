"""The store: written once and whole, found by recipe, nothing lost when something is damaged or the disk is full."""

import json
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, record

from fednb import recipe as recipe_module
from fednb.errors import StoreError
from fednb.runs.store import Record, Store

ARRAYS = {"features": {"features": np.arange(6, dtype=np.float16).reshape(2, 3), "labels": np.arange(2)}}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "runs")


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


def test_a_record_comes_back_as_it_was_written(store):
    made = record(SMALL)
    path = store.write(SMALL, made, ARRAYS)
    found = store.find(SMALL)
    assert found == made and found.path == path == store.folder / SMALL.filename
    assert np.array_equal(found.artefact("features")["features"], ARRAYS["features"]["features"])
    assert files(store.folder) == sorted([SMALL.filename, SMALL.filename.replace(".json", ".features.npz")])
    assert store.find(SMALL.with_(seed=1)) is None and store.notes == []


def test_a_record_is_json_with_a_line_for_each_round(store):
    text = store.write(SMALL, record(SMALL)).read_text()
    assert json.loads(text)["rounds"] == record(SMALL).rounds
    assert sum(line.strip().startswith('{"round": ') for line in text.splitlines()) == SMALL.rounds
    assert "path" not in json.loads(text)


def test_the_first_writer_wins(store):
    store.write(SMALL, record(SMALL, right=3))
    store.write(SMALL, record(SMALL, right=4), ARRAYS)
    assert store.find(SMALL) == record(SMALL, right=3)
    assert files(store.folder) == [SMALL.filename]


def test_a_missing_or_damaged_artefact_is_named(store):
    store.write(SMALL, record(SMALL), ARRAYS)
    found = store.find(SMALL)
    with pytest.raises(StoreError, match="faces.npz is not there"):
        found.artefact("faces")
    found.path.with_suffix(".features.npz").write_bytes(b"PK half a file")
    with pytest.raises(StoreError, match="features.npz is damaged"):
        found.artefact("features")


@pytest.mark.parametrize("hurt", ["cut", "empty", "binary", "list", "field", "recipe", "rounds"])
def test_a_damaged_record_is_set_aside_and_named(store, hurt):
    path = store.write(SMALL, record(SMALL))
    whole = path.read_bytes()
    entries = json.loads(whole)
    damaged = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "binary": b"\xff\xfe\x00",
        "list": b"[]",
        "recipe": json.dumps(entries | {"recipe": 1}).encode(),
        "rounds": json.dumps(entries | {"rounds": []}).encode(),
        "field": json.dumps({name: entries[name] for name in entries if name != "rounds"}).encode(),
    }[hurt]
    for number in (1, 2):  # twice: the second does not overwrite the first
        path.write_bytes(damaged)
        assert store.find(SMALL) is None
        aside = path.with_name(f"{path.name}.damaged{'' if number == 1 else number}")
        assert aside.read_bytes() == damaged and not path.exists()
        assert len(store.notes) == number
        assert store.notes[-1].startswith(f"{path.name} was damaged and is now {aside.name}: ")
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == record(SMALL)


def test_a_record_that_may_not_be_read_stays_where_it_is(store, monkeypatch):
    path = store.write(SMALL, record(SMALL))
    monkeypatch.setattr(type(path), "read_text", refuse)
    with pytest.raises(StoreError, match="cannot be read: .*Permission denied"):
        store.find(SMALL)
    assert store.found([SMALL]) == {SMALL: None} and "cannot be read" in store.notes[0]
    assert path.exists()


def test_a_damaged_record_that_cannot_be_moved_counts_as_missing(store, monkeypatch):
    store.write(SMALL, record(SMALL)).write_text("{")
    monkeypatch.setattr("os.replace", refuse)
    assert store.find(SMALL) is None
    assert "could not be set aside" in store.notes[0]


def refuse(*_):
    raise PermissionError(13, "Permission denied")


def test_records_are_found_in_several_folders_and_written_to_the_first(tmp_path):
    recorded = Store(tmp_path / "results")
    recorded.write(SMALL, record(SMALL, right=2))
    both = Store(tmp_path / "runs", also=(tmp_path / "results", tmp_path / "nowhere"))
    assert both.find(SMALL) == record(SMALL, right=2)
    other = SMALL.with_(seed=1)
    assert both.write(other, record(other)).is_relative_to(tmp_path / "runs")
    assert recorded.find(other) is None and both.find(other) == record(other)
    both.write(SMALL, record(SMALL, right=4))
    assert both.find(SMALL) == record(SMALL, right=4) and recorded.find(SMALL) == record(SMALL, right=2)
    (tmp_path / "runs" / SMALL.filename).write_text("{")  # damaged here: the other folder's is used
    assert both.find(SMALL) == record(SMALL, right=2)


def test_a_record_made_with_another_default_is_refused(store, monkeypatch):
    """The short form has the same key, the full form tells."""
    store.write(SMALL, record(SMALL))
    path = store.folder / SMALL.filename
    changed = json.loads(path.read_text())
    changed["recipe"]["momentum"], changed["recipe"]["federation"]["size"] = 0.7, 99
    path.write_text(json.dumps(changed))
    with pytest.raises(StoreError) as raised:
        store.find(SMALL)
    assert "momentum was 0.7 and is 0.5" in str(raised.value) and "federation was" in str(raised.value)
    assert path.exists()


def test_a_record_older_than_an_option_is_used(store):
    made = record(SMALL)
    older = {name: value for name, value in made.recipe.items() if name != "buffers"}
    older["federation"] = {"name": "shifted_digits"}
    store.write(SMALL, Record(**{**vars(made), "recipe": older}))
    assert store.find(SMALL).rounds == made.rounds


@pytest.mark.parametrize("room", [100, 5000])
def test_a_full_disk_is_an_error_and_nothing_is_lost(store, room):
    """At 100 bytes the record does not fit, at 5,000 the checkpoint does not, whatever was written of it."""
    before = SMALL.with_(seed=9)
    store.write(before, record(before))
    store.save_checkpoint(SMALL, {"weights": torch.zeros(10)})
    was = files(store.folder.parent)
    with full_disk(room):
        with pytest.raises(StoreError, match="could not be written: .* Free space"):
            store.save_checkpoint(SMALL, {"weights": torch.rand(100_000)})
        if room == 100:
            with pytest.raises(StoreError, match="File too large"):
                store.write(SMALL, record(SMALL))
    assert files(store.folder.parent) == was
    assert store.find(before) == record(before) and store.find(SMALL) is None
    assert torch.equal(store.load_checkpoint(SMALL, "cpu")["weights"], torch.zeros(10))
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == record(SMALL)


def test_no_space_left_while_an_artefact_is_written_leaves_no_record(store, monkeypatch):
    def no_space(file, arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fednb.runs.store._save_arrays", no_space)
    with pytest.raises(StoreError, match="No space left on device"):
        store.write(SMALL, record(SMALL), ARRAYS)
    assert files(store.folder) == []


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="could not be written"):
        Store(tmp_path / "runs").write(SMALL, record(SMALL))


def test_a_process_killed_while_writing_leaves_nothing_that_a_reader_sees(store):
    """It dies with half the bytes of an artefact on disk, before the record."""
    code = f"""
import os, signal
from types import SimpleNamespace
from fednb.runs import store
def half(file, arrays):
    file.write(b"half"); file.flush(); os.kill(os.getpid(), signal.SIGKILL)
store._save_arrays = half
store.Store({str(store.folder)!r}).write(SimpleNamespace(filename={SMALL.filename!r}), None, {{"features": {{}}}})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (left,) = files(store.folder)
    assert left.endswith(".part") and Path(left).name.startswith(".")
    assert store.find(SMALL) is None and store.notes == []
    store.write(SMALL, record(SMALL), ARRAYS)
    assert store.find(SMALL).artefact("features")["labels"].tolist() == [0, 1]
    store.drop_checkpoint(SMALL)
    assert not any(name.endswith(".part") for name in files(store.folder)) and store.find(SMALL)


def test_checkpoints_are_replaced_and_dropped(store):
    assert store.load_checkpoint(SMALL, "cpu") is None
    for number in (1, 2):
        store.save_checkpoint(SMALL, {"rounds": [{"loss": number}], "weights": torch.ones(number)})
    assert store.load_checkpoint(SMALL, "cpu")["rounds"] == [{"loss": 2}]
    assert store.checkpoints == store.folder.parent / "checkpoints"  # outside the records
    store.drop_checkpoint(SMALL)
    store.drop_checkpoint(SMALL)
    assert files(store.checkpoints) == []


@pytest.mark.parametrize("hurt", ["cut", "empty", "code"])
def test_a_damaged_checkpoint_is_set_aside(store, hurt):
    store.save_checkpoint(SMALL, {"weights": torch.ones(1000)})
    path = store.checkpoints / f"{SMALL.key}.pt"
    if hurt == "code":
        torch.save({"weights": Store}, path)  # a pickle that names a class is not read
    else:
        path.write_bytes(path.read_bytes()[:500] if hurt == "cut" else b"")
    assert store.load_checkpoint(SMALL, "cpu") is None
    assert files(store.checkpoints) == [f"{SMALL.key}.pt.damaged"]
    assert "the run starts from its first round" in store.notes[0]


def test_two_settings_never_share_a_file():
    varied = SMALL.vary(seed=list(range(5)), rounds=[1, 2, 3], algorithm=["fedavg", "fedprox"], momentum=[0.0, 0.5])
    assert len({each.filename for each in varied}) == len(varied) == 60
    assert recipe_module.Recipe().filename != SMALL.filename
