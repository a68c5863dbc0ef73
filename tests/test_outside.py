"""What comes from outside: found by name like ours, told where it is from, stale when its source is."""

import re
import sys
from pathlib import Path

import check
import pytest
from methods import TINY, federation
from small_runs import SMALL

from fednb import cli, datasets, registry
from fednb.errors import RecipeError
from fednb.recipe import Recipe
from fednb.records.staleness import changed, used
from fednb.records.training import train_one
from fednb.study import Study

TINTED = """
from dataclasses import dataclass
import fednb
from ._tint import TINT

@dataclass(frozen=True)
class Tinted(fednb.Method):
    strength: float = TINT

    def inputs(self, client, batch):
        batch.images = batch.images * (1 - self.strength) + self.strength
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Somebody's folder with one augmentation and its helper, named in the environment."""
    write(tmp_path / "mine", "augmentations/_tint", "TINT = 0.25")
    write(tmp_path / "mine", "augmentations/tinted", TINTED)
    monkeypatch.setenv(registry.FOLDERS, str(tmp_path / "mine"))
    return tmp_path / "mine"


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)


def again() -> None:
    """As in a new process: what was imported from outside is forgotten."""
    registry._imported.cache_clear()
    for name in [name for name in sys.modules if re.match(r"fednb_methods_\w+\.", name)]:
        del sys.modules[name]


def test_what_lies_in_a_folder_is_found_by_name_and_can_be_run(folder, store, toy):
    recipe = SMALL.with_(augmentations=[{"name": "tinted", "strength": 0.5}])
    assert "tinted" in registry.names("augmentations") and "tinted" not in registry.builtin("augmentations")
    assert SMALL.with_(augmentations=["tinted"]).full["augmentations"] == [{"name": "tinted", "strength": 0.25}]
    record = train_one(recipe, store)
    assert record.origin["outside"] == {"augmentations/tinted": "folder mine"}
    assert re.fullmatch("[0-9a-f]{12}", record.behaviours["augmentations/tinted"])
    assert record.rounds != train_one(SMALL, store).rounds
    assert "outside" not in store.find(SMALL).origin


@pytest.mark.parametrize("file", ["tinted", "_tint"])
def test_a_record_is_stale_when_the_source_or_its_helper_has_changed(folder, store, toy, monkeypatch, file):
    recipe = SMALL.with_(augmentations=["tinted"])
    record = train_one(recipe, store)
    before = used(recipe.full)["augmentations/tinted"]
    path = folder / f"augmentations/{file}.py"
    path.write_text(path.read_text() + "# another line\n")
    assert changed(record) == []  # what is imported is what was imported
    again()
    assert changed(record) == ["augmentations/tinted"] and used(recipe.full)["augmentations/tinted"] != before
    monkeypatch.delenv(registry.FOLDERS)
    assert changed(record) == []  # it is not at hand: nothing is known of it


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("fedfa", TINTED, '"fedfa" in folder mine has a name of fednb/methods/augmentations; give it another'),
        ("fedprox", TINTED, '"fedprox" in folder mine has a name of fednb/methods/algorithms; give it another'),
        ("other", "class Other(", "other of folder mine cannot be imported: SyntaxError"),
        ("other", "class Other: pass", "other.py of folder mine has no class of its own name that is a fednb.Method"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(folder, file, text, message):
    write(folder, f"augmentations/{file}", text)
    with pytest.raises(RecipeError, match=re.escape(message)):
        Recipe(augmentations=[file])


def test_a_folder_without_rooms_and_a_name_of_two_folders_are_refused(folder, tmp_path):
    with pytest.raises(RecipeError, match=f"FEDNB_METHODS names {tmp_path}, which has none of the folders algorithms"):
        registry.methods_from(tmp_path)
    write(tmp_path / "more", "augmentations/tinted", TINTED)
    registry.methods_from(tmp_path / "more")
    with pytest.raises(RecipeError, match='"tinted" in folder more has a name of folder mine; give it another one'):
        registry.names("augmentations")


def test_a_folder_is_added_to_those_that_are_named(folder, tmp_path, monkeypatch):
    write(tmp_path / "more", "models/small", "class Small: pass")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert registry.methods_from("more") == ["models/small"]
    assert "small" in registry.names("models") and "tinted" in registry.names("augmentations")
    monkeypatch.chdir("/")
    assert "small" in registry.names("models")


LOADER = """
from fednb.federation import Federation, Site, Split
import torch
NEEDS = None
def load(root=None, *, size: int = 8):
    part = Split(torch.arange(6 * 3 * size * size).reshape(6, 3, size, size).to(torch.uint8), torch.arange(6) % 2)
    return Federation("ours", [Site("a", part, part, part), Site("b", part, part, part)], "xy")
def missing(root=None, **options): return None
"""


def test_a_loader_and_a_network_from_outside_make_a_run(folder, store):
    write(folder, "datasets/ours", LOADER)
    write(folder, "models/theirs", "from fednb.models.digits_cnn import DigitsCNN\nclass Theirs(DigitsCNN): pass\n")
    recipe = Recipe(
        federation={"name": "ours", "size": 8}, model={"name": "theirs", "channels": 2, "width": 8}, rounds=1
    )
    (record,) = Study([recipe], store=store).run().records
    assert record.origin["outside"] == {"datasets/ours": "folder mine", "models/theirs": "folder mine"}
    assert record.clients == ["a", "b"] and record.behaviours["algorithms/fedavg"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "ours.py of folder mine has no missing; see fednb/datasets/__init__.py"),
        ("def missing(root): return None", r"ours.py fails \(TypeError: missing\(\) got an unexpected keyword"),
        ("def missing(root, **options): return {}['folder']", r"ours.py fails \(KeyError: 'folder'\)"),
    ],
)
def test_a_loader_that_lacks_something_is_refused(folder, written, said):
    write(folder, "datasets/ours", LOADER.partition("def missing")[0] + written)
    with pytest.raises(RecipeError, match=said):
        datasets.available("ours", size=8)


class TestCheck:
    """`fednb check`: what it runs is pytest in the repository, on the rows of the method."""

    def test_each_test_that_fails_is_named_by_a_sentence(self, folder, monkeypatch, capfd):
        broken = TINTED.replace("+ self.strength", "+ torch.ones(1)").replace("import fednb", "import fednb, torch")
        write(folder, "augmentations/tinted", broken)
        monkeypatch.setattr(check, "TESTS", ("tests/test_devices.py", "tests/test_task.py"))
        assert cli.main(["check", "tinted"]) == 1
        dots, law, line, test, last = capfd.readouterr().out.splitlines()
        assert law.startswith("device: make tensors on client.device")
        assert line.startswith("    test_devices.Mixed: aten.add") and f"{folder}/augmentations/tinted.py:11)" in line
        assert "tests/test_devices.py::" in test and last == "tinted: not every conformance test passes; see above"

    def test_the_second_model_of_the_docs_conforms(self, folder, monkeypatch, capfd):
        """Its draws, its memory, who is visiting, and its missing neutral setting, which is named."""
        text = (Path(check.__file__).parents[1] / "docs" / "writing.md").read_text(encoding="utf-8")
        code = text.partition("[Ditto]")[2].partition("```python\n")[2].partition("```")[0]
        write(folder, "algorithms/ditto", code)
        monkeypatch.setattr(check, "TESTS", ("tests/test_randomness.py", "tests/test_remote.py"))
        assert cli.main(["check", "ditto"]) == 0
        assert capfd.readouterr().out.endswith("ditto: every conformance test passes\n")
        write(folder, "algorithms/silent", code.replace("CONFORMANCE", "_LAWS").replace("Ditto", "Silent"))
        monkeypatch.setattr(check, "TESTS", ("tests/test_devices.py",))
        assert cli.main(["check", "silent"]) == 0
        assert "not tested: at which options silent is a simpler method. Add CONFORMANCE" in capfd.readouterr().out


def test_a_federation_made_in_memory_is_keyed_by_its_fingerprint_and_found_again(store):
    recipes, mine = Recipe(**TINY | {"rounds": 1}).vary(seed=[0, 1]), federation()
    study = Study(recipes, store=store, federation=mine)
    results = study.run(jobs=2)
    assert [record.fingerprint for record in results.records] == [mine.fingerprint] * 2
    assert results.records[0].recipe["federation"] == {"name": "in_memory", "fingerprint": mine.fingerprint}
    assert not set(study.recipes) & set(recipes) and "datasets/in_memory" not in results.records[0].behaviours
    paths = {path: path.read_bytes() for path in store.folder.rglob("*.json")}
    Study(recipes, store=store, federation=federation()).run()
    assert {path: path.read_bytes() for path in store.folder.rglob("*.json")} == paths and len(paths) == 2
    assert results.frame["federation"].unique().tolist() == ["in_memory"] and not results.stale
