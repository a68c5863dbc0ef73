"""The store: written once and whole, found by recipe, nothing lost when something is damaged or the disk is full."""

import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, entries_of, record

from fednb import recipe as recipe_module
from fednb.errors import DamagedError, HeldError, StoreError
from fednb.files import MACHINE, write_atomically
from fednb.records import believed
from fednb.records import record as record_module
from fednb.records.record import parsed, read, require_readable, to_text
from fednb.records.store import Record, Store
from fednb.study import default_store

ARRAYS = {"features": {"features": np.arange(6, dtype=np.float16).reshape(2, 3), "labels": np.arange(2)}}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "runs")


def files(folder: Path) -> list[str]:
    """All files below, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def sealed(entries: dict) -> str:
    """The entries' text with a checksum that agrees with them."""
    return to_text(Record(**entries | {"checksums": {}}))


def own_checksum(entries: dict) -> str:
    """By its definition: over canonical JSON without itself."""
    content = json.loads(json.dumps(entries))
    content["checksums"].pop("record", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def own_sealed(entries: dict) -> str:
    """The same of entries that are no record's."""
    return json.dumps(entries | {"checksums": entries["checksums"] | {"record": own_checksum(entries)}})


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


def test_a_record_is_json_with_a_line_for_each_column(store):
    text = store.write(SMALL, record(SMALL)).read_text()
    assert json.loads(text)["rounds"] == {
        "loss": [[0.5, 0.25], [0.5, 0.25]],
        "validation": [[1, 2], [1, 2]],
        "test": [[3, 4], [3, 5]],
        "up": {"model": 8},
        "down": {"model": 8},
    }
    assert '"test": [[3,4],[3,5]]' in [line.strip(",") for line in text.splitlines()]
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
    found.path.with_suffix(".features.npz").unlink()
    found.path.with_suffix(".features.npz").mkdir()
    with pytest.raises(StoreError, match="features.npz cannot be read: .* Mend its permissions, or move it away"):
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
        assert store.find(SMALL, mend=True) is None
        aside = path.with_name(f"{path.name}.damaged{'' if number == 1 else number}")
        assert aside.read_bytes() == damaged and not path.exists()
        assert len(store.notes) == number
        assert store.notes[-1].startswith(f"{path.name} was damaged and is now {aside.name}: ")
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == record(SMALL)


def change(entries: dict, where: str, value) -> dict:
    """A copy with the entry at ``rounds.0.test.1`` set; a value of None removes it."""
    changed = json.loads(json.dumps(entries))
    *path, last = [int(step) if step.isdigit() else step for step in where.split(".")]
    place = changed
    for step in path:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        ("recipe", {}, "recipe.federation"),
        ("recipe.algorithm", "fedavg", "recipe.algorithm"),
        ("recipe.augmentations", 1, "recipe.augmentations"),
        ("recipe.rounds", 3, "rounds"),
        ("recipe.local_epochs", None, "recipe.local_epochs"),
        ("clients", "ab", "clients"),
        ("clients", ["a", "a"], "clients"),
        ("clients", ["a"], "images.train"),
        ("images.test", None, "images.test"),
        ("images.test", [5], "images.test"),
        ("images.test.0", 5.5, "images.test"),
        ("prepare", [], "prepare"),
        ("prepare.up.sums", -8, "prepare.up"),
        ("fingerprint", 7, "fingerprint"),
        ("key", "../../x", "key"),
        ("key", 7, "key"),
        ("notes", "one", "notes"),
        ("origin.seconds", "long", "origin.seconds"),
        ("origin.seconds", -1.0, "origin.seconds"),
        ("origin.device", None, "origin.device"),
        ("origin.engine", 7, "origin.engine"),
        ("origin.processor", 7, "origin.processor"),
        ("origin.instructions", ["avx2"], "origin.instructions"),
        ("origin.threads", "four", "origin.threads"),
        ("origin.parameters", -1, "origin.parameters"),
        ("origin.outside", ["augmentations/mine"], "origin.outside"),
        ("origin.wire", {"work": {"up": 1}}, "origin.wire.down"),
        ("origin.wire", {"work": [1]}, "origin.wire"),
        ("origin.wire", {"work": {"up": -1, "down": 1}}, "origin.wire.up"),
        ("behaviours", ["a"], "behaviours"),
        *(
            ("behaviours", {name: "a" * 12}, "behaviours")
            for name in ("odd", "data/a/b", "cli/run", "/", "../augment/x")
        ),
        ("clients", ["a", "\ud800"], "clients"),
        ("notes", ["\udfff"], "notes"),
        ("origin.device", "\ud800", "origin"),
        ("weather\ud800", 1, r"weather.ud800"),
        ("rounds.0.up", {"\ud800": 8}, "rounds"),
        ("images.test.0", 10**400, "images.test"),
        ("recipe.seed", "0", "recipe.seed"),
        ("recipe.seed", True, "recipe.seed"),
        ("recipe.precision", 32, "recipe.precision"),
        ("recipe.momentum", "0.5", "recipe.momentum"),
        ("recipe.evaluation", [1], "recipe.evaluation"),
        ("recipe.unseen", "a", "recipe.unseen"),
        ("recipe.model.name", 7, "recipe.model.name"),
        *((f"recipe.{room}.name", "../../x", f"recipe.{room}.name") for room in ("federation", "model", "algorithm")),
        ("recipe.augmentations", [{"name": "a/b"}], "recipe.augmentations.name"),
        ("recipe.augmentations", [{"name": None}], "recipe.augmentations.name"),
        ("rounds", [], "rounds"),
        ("rounds.1", None, "rounds"),
        ("rounds.1", 7, r"rounds\[2\]"),
        ("rounds.1.round", 1, r"rounds\[2\].round"),
        ("rounds.1.round", True, r"rounds\[2\].round"),
        ("rounds.0.test", None, r"rounds\[1\].test"),
        ("rounds.0.test", 1.5, r"rounds\[1\].test"),
        ("rounds.0.test", [1, 2, 3], r"rounds\[1\].test"),
        ("rounds.0.test.0", 6, r"rounds\[1\].test"),
        ("rounds.0.test.0", True, r"rounds\[1\].test"),
        ("rounds.0.validation.1", -1, r"rounds\[1\].validation"),
        ("rounds.0.loss", [0.5], r"rounds\[1\].loss"),
        ("rounds.0.loss.stranger", 0.5, r"rounds\[1\].loss"),
        ("rounds.0.up.model", "8", r"rounds\[1\].up"),
        ("rounds.1.cross_site", {"a": [1]}, r"rounds\[2\].cross_site"),
        ("rounds.1.own_statistics", [1, 99], r"rounds\[2\].*own_statistics"),
    ],
)
def test_what_no_run_can_have_measured_is_named_by_file_and_field(store, where, value, named):
    """The checksum agrees: only what the record says gives it away."""
    path, other = store.write(SMALL, record(SMALL)), SMALL.with_(seed=1)
    store.write(other, record(other))
    entries = entries_of(path.read_text())
    assert parsed(sealed(entries)) == (record(SMALL), [])
    text = own_sealed(change(entries, where, value))
    path.write_text(text)
    with pytest.raises(DamagedError, match=rf"{path.name} is damaged: {named} is .*; expected "):
        read(path)
    assert store.found([SMALL, other]) == {SMALL: None, other: record(other)}
    (note,) = store.notes
    assert str(path) in note and path.read_text() == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "0" * 16) for name in ("../../x", "/etc/x", "")),
        *(("scores", value) for value in (None, 7)),
        ("examples_shared", "../../x"),
    ],
)
def test_a_record_that_names_what_is_no_artefact_is_damaged(store, name, value):
    entries = entries_of(store.write(SMALL, record(SMALL)).read_text())
    entries["checksums"][name] = value
    path = store.folder / SMALL.filename
    path.write_text(own_sealed(entries))
    assert store.find(SMALL, mend=True) is None and not path.exists()
    assert re.search(r"was damaged and is now .*: checksums.* is .*; expected ", store.notes[0])


def test_what_no_reader_would_believe_is_refused_before_it_is_written():
    made = record(SMALL)
    require_readable(made)
    made.rounds[1]["test"][0] = 6
    with pytest.raises(StoreError, match=r"rounds\[2\].test is 6; expected a number from 0 to 5.* Nothing is written"):
        require_readable(made)
    made.rounds[1]["test"][0] = float("nan")
    with pytest.raises(StoreError, match="measured what no record can hold: Out of range float"):
        require_readable(made)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999", "1" * 5000])
def test_a_loss_that_is_no_number_is_refused(store, word):
    path = store.write(SMALL, record(SMALL))
    path.write_text(path.read_text().replace("0.25", word))
    with pytest.raises(DamagedError, match=path.name):
        read(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"recipe": ' * 100_000])
def test_a_text_of_a_hundred_thousand_brackets_is_a_damaged_record(text):
    with pytest.raises(DamagedError):
        parsed(text)


def test_one_edited_number_is_noticed(store):
    path = store.write(SMALL, record(SMALL))
    whole = path.read_text()
    path.write_text(whole.replace('"test": [[3,4]', '"test": [[4,4]'))
    assert path.read_text() != whole and store.find(SMALL) is None
    assert "checksums.record" in store.notes[0]
    path.write_text(json.dumps({name: value for name, value in json.loads(whole).items() if name != "checksums"}))
    assert store.find(SMALL) is None and "checksums" in store.notes[-1]
    path.write_text(json.dumps(json.loads(whole), indent=1))  # the same content, laid out otherwise
    assert store.find(SMALL) == record(SMALL)
    path.write_text(json.dumps(entries_of(whole)))  # as older versions wrote it
    assert store.find(SMALL) == record(SMALL)


def test_what_was_read_whole_before_is_read_again_when_its_bytes_or_the_source_change(store, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    validate, validated = record_module._validate, []
    monkeypatch.setattr(record_module, "_validate", lambda entries: (validated.append(1), validate(entries)))
    path = store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == store.find(SMALL) == record(SMALL) and len(validated) == 1
    kept, whole = path.stat(), path.read_text()
    path.write_text(whole.replace('"test": [[3,4]', '"test": [[4,4]'))
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # as long and as old as before
    assert store.find(SMALL) is None and "checksums.record" in store.notes[0]
    path.write_text(whole)
    assert store.find(SMALL).rounds == record(SMALL).rounds and len(validated) == 2
    monkeypatch.setattr("fednb.records.believed.source_hash", lambda: "another")
    assert store.find(SMALL) == record(SMALL) and len(validated) == 3
    believed._lines.cache_clear()  # another process
    assert store.find(SMALL) == record(SMALL) and len(validated) == 3


@pytest.mark.parametrize("hurt", ["gone", "binary", "a folder", "long"])
def test_a_damaged_note_of_what_was_read_costs_time_alone(store, monkeypatch, tmp_path, hurt):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / hurt))
    file = tmp_path / hurt / "fednb" / "records_read"
    if hurt != "gone":
        file.parent.mkdir(parents=True)
        file.mkdir() if hurt == "a folder" else file.write_bytes(bytes(believed.MOST) if hurt == "long" else b"\xff\0")
    store.write(SMALL, record(SMALL))
    assert store.find(SMALL) == store.find(SMALL) == record(SMALL)
    assert hurt == "a folder" or file.stat().st_size < 100


def examples(seed: int) -> dict[str, dict]:
    images = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 4), np.uint8)
    made = {"images": images, "targets": images[:, 0] % 2, "predictions": images[:, 0] % (2 + seed)}
    return {"examples": made}


@pytest.fixture
def shown(store) -> list[Record]:
    """Two records of the same images."""
    for recipe in SMALL.vary(seed=[0, 1]):
        store.write(recipe, record(recipe), examples(recipe.seed))
    return [store.find(recipe) for recipe in SMALL.vary(seed=[0, 1])]


def test_what_runs_have_in_common_is_kept_once(store, shown):
    one, two = (each.artefact("examples") for each in shown)
    assert list(one) == ["images", "targets", "predictions"]
    assert np.array_equal(one["images"], two["images"]) and not np.array_equal(one["predictions"], two["predictions"])
    (shared,) = (name for name in files(store.folder) if "shared" in name)
    assert len(files(store.folder)) == 5 and Path(shared).stem == shown[0].checksums["examples_shared"]
    assert store.notes == []


@pytest.mark.parametrize("hurt", ["gone", "flipped"])
def test_what_runs_have_in_common_is_missed_by_name_and_mended_by_one(store, shown, hurt):
    (place,) = store.folder.rglob("shared/*.npz")
    content = bytearray(place.read_bytes())
    content[100] ^= 1
    place.unlink() if hurt == "gone" else place.write_bytes(content)
    copy = f"is not there. Copy it from where {shown[0].path.name} came from, .* with 'examples' in its evaluation"
    with pytest.raises(DamagedError, match=f"{place.name} {copy if hurt == 'gone' else 'is damaged'}"):
        shown[0].artefact("examples")
    recipes = SMALL.vary(seed=[0, 1])
    assert store.found(recipes) == dict.fromkeys(recipes) and place.name in store.notes[0]
    store.write(recipes[0], record(recipes[0]), examples(0))
    assert store.found(recipes) == {recipe: record(recipe) for recipe in recipes}


def test_artefacts_of_two_runs_that_change_places_are_noticed(store):
    recipes = SMALL.vary(seed=[0, 1])
    for recipe in recipes:
        store.write(recipe, record(recipe), {"features": {"features": np.full((2, 3), recipe.seed)}})
    found = [store.find(recipe) for recipe in recipes]
    one, two = (each.path.with_suffix(".features.npz") for each in found)
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)
    for each in found:
        with pytest.raises(DamagedError, match="not those that .* was written with"):
            each.artefact("features")
    before = files(store.folder)
    assert store.found(recipes) == dict.fromkeys(recipes) and files(store.folder) == before
    assert store.find(recipes[0], mend=True) is None
    assert {f"{one.name}.damaged", f"{found[0].path.name}.damaged"} <= {Path(name).name for name in files(store.folder)}
    two.unlink()
    assert store.find(recipes[1]) is None and f"{two} is not there" in store.notes[-1]


def test_scores_of_other_images_are_named(store):
    """Where the record has no checksum of them."""
    made = record(SMALL)
    path = store.write(
        SMALL, made, {"scores": {"rounds": np.array([1, 2], np.int32), "test": np.zeros((2, 15), np.float16)}}
    )
    path.write_text(sealed(entries_of(path.read_text())))
    assert len(store.find(SMALL).scores()[2][1]) == 10
    for damaged in (
        {"rounds": np.arange(2)},
        {"rounds": np.arange(3), "test": np.zeros((2, 15))},
        {"test": np.zeros(3)},
        {"rounds": np.arange(1, 3), "test": np.zeros((2, 14))},
        {"rounds": np.arange(1, 3), "test": np.zeros((2, 16))},
        {"rounds": np.arange(1, 3), "test": np.zeros((2, 1), np.uint8)},
        {"rounds": np.arange(1, 3), "test": np.full((2, 15), np.nan)},
        {"rounds": np.arange(1, 3), "test": np.full((2, 15), 1.5)},
        {"rounds": np.arange(2, 4), "test": np.zeros((2, 15))},
    ):
        np.savez(path.with_suffix(".scores.npz"), **damaged)
        with pytest.raises(DamagedError, match="scores.npz"):
            store.find(SMALL).scores()


def test_who_only_reads_changes_nothing(store, tmp_path):
    """Neither does who trains in the folders that are not its own."""
    path = store.write(SMALL, record(SMALL), ARRAYS)
    path.write_text("{")
    before = files(tmp_path)
    assert store.find(SMALL) is None and store.found([SMALL]) == {SMALL: None}
    assert Store(tmp_path / "mine", also=(store.folder,)).find(SMALL, mend=True) is None
    assert files(tmp_path) == before and "The run counts as missing" in store.notes[0]


def test_fields_of_a_later_version_are_tolerated_and_named(store):
    path = store.write(SMALL, record(SMALL))
    entries = entries_of(path.read_text())
    for values in entries["rounds"]:
        values["energy"] = 7
    later = entries_of(sealed(entries)) | {"weather": "sunny"}
    path.write_text(json.dumps(later))
    assert store.find(SMALL) is None  # the checksum does not know of the weather
    store.notes.clear()
    later["checksums"] = {"record": own_checksum(later)}
    path.write_text(json.dumps(later))
    assert store.find(SMALL).key == SMALL.key == store.find(SMALL).key
    assert store.notes == [f"{path.name} has fields of a later version, which are not used: weather, rounds.energy."]
    path.write_text(json.dumps({name: value for name, value in later.items() if name != "checksums"}))
    assert store.find(SMALL) is None  # every version writes checksums


def test_every_committed_record_is_read_without_a_note():
    paths = sorted((Path(__file__).parents[1] / "results").rglob("*.json"))
    assert len(paths) >= 720
    for path in paths:
        made, later = read(path)
        made.require_artefacts()
        assert later == []


def test_a_record_that_may_not_be_read_stays_where_it_is(store, monkeypatch):
    path = store.write(SMALL, record(SMALL))
    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(StoreError, match="cannot be read: .*Permission denied"):
        store.find(SMALL)
    assert store.found([SMALL]) == {SMALL: None} and "cannot be read" in store.notes[0]
    assert path.exists()


def test_a_damaged_record_that_cannot_be_moved_counts_as_missing(store, monkeypatch):
    store.write(SMALL, record(SMALL)).write_text("{")
    monkeypatch.setattr("os.replace", refuse)
    assert store.find(SMALL, mend=True) is None
    assert "could not be set aside" in store.notes[0]


def refuse(*_, **named):
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


def test_a_recipe_has_one_record_of_each_engine(tmp_path):
    recorded, new = Store(tmp_path / "results"), Store(tmp_path / "runs", also=(tmp_path / "results",))
    carried = replace(record(SMALL), origin=record(SMALL).origin | {"engine": "flower 1.41.0"})
    recorded.write(SMALL, record(SMALL))
    assert new.by("flower").find(SMALL) is None
    recorded.by("flower").write(SMALL, carried)
    assert new.find(SMALL) == record(SMALL) and new.by("flower").find(SMALL) == carried
    assert new.by("flower").folder == tmp_path / "runs" / "flower"


def test_a_record_made_with_another_default_is_refused(store, monkeypatch):
    """The short form has the same key, the full form tells."""
    store.write(SMALL, record(SMALL))
    path = store.folder / SMALL.filename
    changed = entries_of(path.read_text())
    changed["recipe"]["momentum"], changed["recipe"]["federation"]["size"] = 0.7, 99
    path.write_text(sealed(changed))
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

    monkeypatch.setattr("fednb.records.store._save_arrays", no_space)
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
from fednb.records import store
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


def test_every_flipped_bit_of_a_checkpoint_is_noticed(store):
    store.save_checkpoint(SMALL, {"weights": torch.rand(50)})
    path = store.checkpoints / f"{SMALL.key}.pt"
    whole = path.read_bytes()
    for number in range(0, 8 * len(whole), 97):
        flipped = bytearray(whole)
        flipped[number // 8] ^= 1 << number % 8
        path.write_bytes(flipped)
        assert store.load_checkpoint(SMALL, "cpu") is None
        (aside,) = store.checkpoints.glob("*.damaged")
        aside.unlink()


def test_a_write_that_fails_twice_leaves_no_part(tmp_path, monkeypatch):
    """Closing fails after writing has: what is in the buffer finds no room either."""
    path = tmp_path / "file"
    with full_disk(1000), pytest.raises(StoreError, match="File too large"):
        write_atomically(path, lambda file: (file.write(bytes(900)), file.flush(), file.write(bytes(900))))
    assert files(tmp_path) == []
    write_atomically(path, lambda file: file.write(b"old"))
    unlink = type(path).unlink

    def refused(self, missing_ok=False):
        unlink(self, missing_ok)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "unlink", refused)
    with full_disk(1000), pytest.raises(StoreError, match="File too large"):
        write_atomically(path, lambda file: file.write(bytes(9000)))
    assert path.read_bytes() == b"old"


def test_parts_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path):
    living, dead, other = (tmp_path / name for name in (".a.npz.1.part", ".a.npz.2.part", ".b.npz.3.part"))
    for part in (living, dead, other):
        part.write_bytes(b"half")
    os.utime(dead, (0, 0))
    write_atomically(tmp_path / "a.npz", lambda file: file.write(b"whole"))
    assert files(tmp_path) == [living.name, other.name, "a.npz"]


def test_a_lock_clears_the_parts_of_its_run_and_none_that_another_worker_writes(store):
    """A lock may do nothing, where the file system says that it does."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    path = store.write(SMALL, record(SMALL))
    writers = f"{MACHINE}~{ended.pid}", f"{MACHINE}~{os.getpid()}", f"{MACHINE}~1", f"elsewhere~{ended.pid}"
    gone, *there = (path.with_name(f".{path.stem}.features.npz.x~{writer}.part") for writer in writers)
    for part in (gone, *there):
        part.write_bytes(b"half")
    with store.lock(SMALL):
        assert not gone.exists() and all(part.exists() for part in there) and store.find(SMALL)


def test_a_part_that_another_process_has_removed_is_no_full_disk(tmp_path):
    with pytest.raises(HeldError, match=r"file could not be written: another process removed .*part"):
        write_atomically(tmp_path / "file", lambda file: os.unlink(file.name))


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


def test_what_flower_carried_is_found_where_no_other_run_is(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path / "runs"))
    local = record(SMALL)
    carried = replace(local, origin=local.origin | {"engine": "flower 1.41"})
    others = len(default_store().like([SMALL]))
    path = default_store().by("flower").write(SMALL, carried)
    assert default_store().find(SMALL).path == path and len(default_store().like([SMALL])) == others
    default_store().write(SMALL, local)
    assert "engine" not in default_store().find(SMALL).origin and len(default_store().like([SMALL])) == others + 1
