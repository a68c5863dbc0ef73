"""Methods and data from outside: found by name like ours, told where they come from, stale when their source is."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import laws
import pytest
from methods import TINY, federation
from small_runs import SMALL, use_toy

from fednb import catalogue, cli, outside
from fednb.command import laws as verb
from fednb.errors import RecipeError, RunError
from fednb.recipe import Recipe
from fednb.runs.behaviour import changed, used
from fednb.runs.store import Store
from fednb.runs.training import train_one
from fednb.runs.workers import train
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
    write(tmp_path / "mine", "augment/_tint", "TINT = 0.25")
    write(tmp_path / "mine", "augment/tinted", TINTED)
    monkeypatch.setenv(outside.FOLDERS, str(tmp_path / "mine"))
    return tmp_path / "mine"


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "runs")


def again() -> None:
    """As in a new process: what was imported from outside is forgotten."""
    outside.loaded.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("fednb_methods_", "their_package")) and "." in name]:
        del sys.modules[name]


def test_what_lies_in_a_folder_is_found_by_name_and_can_be_run(folder, store, monkeypatch):
    use_toy(monkeypatch)
    recipe = SMALL.with_(augmentations=[{"name": "tinted", "strength": 0.5}])
    assert "tinted" in catalogue.names("augment") and "tinted" not in catalogue.own("augment")
    assert SMALL.with_(augmentations=["tinted"]).full["augmentations"] == [{"name": "tinted", "strength": 0.25}]
    record = train_one(recipe, store)
    assert record.origin["outside"] == {"augment/tinted": "folder mine"}
    assert re.fullmatch("[0-9a-f]{12}", record.behaviours["augment/tinted"])
    assert record.rounds != train_one(SMALL, store).rounds
    assert "outside" not in store.find(SMALL).origin


@pytest.mark.parametrize("file", ["tinted", "_tint"])
def test_a_record_is_stale_when_the_source_or_its_helper_has_changed(folder, store, monkeypatch, file):
    use_toy(monkeypatch)
    recipe = SMALL.with_(augmentations=["tinted"])
    record = train_one(recipe, store)
    before = used(recipe)["augment/tinted"]
    path = folder / f"augment/{file}.py"
    path.write_text(path.read_text() + "# another line\n")
    assert changed(record) == []  # what is imported is what was imported
    again()
    assert changed(record) == ["augment/tinted"] and used(recipe)["augment/tinted"] != before
    monkeypatch.delenv(outside.FOLDERS)
    assert changed(record) == []  # it is not at hand: nothing is known of it


def test_processes_find_it_too(folder, store):
    recipes = Recipe(**TINY | {"rounds": 1, "augmentations": ["tinted"]}).vary(seed=[0, 1])
    assert train(recipes, store, jobs=2) == dict.fromkeys(recipes)


def test_a_checkpoint_of_another_source_is_not_gone_on_from(folder, store, monkeypatch):
    use_toy(monkeypatch)
    recipe, seen = SMALL.with_(augmentations=["tinted"]), []

    def stop(_, rounds):
        if rounds == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("fednb.runs.training.CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train_one(recipe, store, progress=stop)
    write(folder, "augment/_tint", "TINT = 0.25  # still")
    again()
    train_one(recipe, store, progress=lambda _, rounds: seen.append(rounds))
    assert seen[0] == 0 and "was made with other source" in store.notes[0]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that offers modules: call it with a group and an entry's name and value."""
    write(tmp_path / "site", "their_package/__init__", "")
    write(tmp_path / "site", "their_package/_tint", "TINT = 0.125")
    write(tmp_path / "site", "their_package/tinted", TINTED)
    monkeypatch.syspath_prepend(tmp_path / "site")
    outside._packaged.cache_clear()
    offered = []

    def offer(group, name, value):
        entry = metadata.EntryPoint(name, value, group)
        vars(entry)["dist"] = SimpleNamespace(name="their-package", version="0.3")
        offered.append(entry)

    monkeypatch.setattr(metadata, "entry_points", lambda group: [each for each in offered if each.group == group])
    yield offer
    outside._packaged.cache_clear()
    again()


def test_what_a_package_offers_is_found_by_name(package, store, monkeypatch, capsys):
    use_toy(monkeypatch)
    package("fednb.augment", "tinted", "their_package.tinted")
    recipe = SMALL.with_(augmentations=["tinted"])
    assert recipe.full["augmentations"] == [{"name": "tinted", "strength": 0.125}]
    assert train_one(recipe, store).origin["outside"] == {"augment/tinted": "their-package 0.3"}
    assert cli.main(["list", "--methods", "--only", "tinted"]) == 0
    assert capsys.readouterr().out == (
        "tinted  (Tinted; no reference; classification; from their-package 0.3)\n    changes: the images\n"
        "    sends: its docstring does not say\n    keeps: its docstring does not say\n"
        "    a round over FedAvg's: not measured\n"
    )


def test_one_name_in_two_places_is_refused(folder, package):
    package("fednb.augment", "tinted", "their_package.tinted")
    with pytest.raises(RecipeError, match='"tinted" is found twice .* in their-package 0.3 and in folder mine'):
        Recipe(augmentations=["tinted"])


@pytest.mark.parametrize("value", ["their_package.tinted:Tinted", "their_package.other"])
def test_an_entry_that_names_no_module_of_its_name_is_refused(package, value):
    package("fednb.augment", "tinted", value)
    with pytest.raises(RecipeError, match=re.escape(f'their-package 0.3 offers "tinted = {value}" for augment')):
        catalogue.names("augment")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("augment/fedfa", TINTED, '"fedfa" in folder mine has the name of fednb/augment/fedfa.py; give it another'),
        ("augment/fedprox", TINTED, '"fedprox" in folder mine has the name of fednb/algorithms/fedprox.py'),
        ("augment/other", "import nowhere", "other of folder mine cannot be imported: ModuleNotFoundError"),
        ("augment/other", "class Other(", "other of folder mine cannot be imported: SyntaxError"),
        ("augment/other", "class Another: pass", "other.py of folder mine defines no class of its own name"),
        ("augment/other", "class Other: pass", "Other in other.py of folder mine is no method; expected a class of"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(folder, file, text, message):
    write(folder, file, text)
    with pytest.raises(RecipeError, match=re.escape(message)):
        Recipe(augmentations=[file.partition("/")[2]])


def test_a_folder_without_rooms_is_refused(tmp_path, monkeypatch):
    with pytest.raises(RecipeError, match="which has none of the folders algorithms, augment, models, data"):
        outside.methods_from(tmp_path)
    monkeypatch.setenv(outside.FOLDERS, str(tmp_path))
    with pytest.raises(RecipeError, match=f"FEDNB_METHODS names {tmp_path}"):
        catalogue.names("augment")


def test_a_folder_is_added_to_those_that_are_named(folder, tmp_path, monkeypatch):
    write(tmp_path / "more", "models/small", "class Small: pass")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert outside.methods_from("more") == ["models/small"]
    assert "small" in catalogue.names("models") and "tinted" in catalogue.names("augment")
    monkeypatch.chdir("/")
    assert "small" in catalogue.names("models")


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
    write(folder, "data/ours", LOADER + "def describe(root=None): return ['made']\n")
    write(folder, "models/theirs", "from fednb.models.digits_cnn import DigitsCNN\nclass Theirs(DigitsCNN): pass\n")
    recipe = Recipe(
        federation={"name": "ours", "size": 8}, model={"name": "theirs", "channels": 2, "width": 8}, rounds=1
    )
    (record,) = Study([recipe], store=store).run().records
    assert record.origin["outside"] == {"data/ours": "folder mine", "models/theirs": "folder mine"}
    assert record.clients == ["a", "b"] and record.behaviours["algorithms/fedavg"]


def test_a_loader_that_lacks_something_is_refused(folder):
    write(folder, "data/ours", LOADER)
    with pytest.raises(
        RecipeError, match="ours.py of folder mine has no describe; fednb/data/__init__.py says what for"
    ):
        Recipe(federation="ours")


class TestLaws:
    """`fednb laws`: what it runs is pytest in the repository, on the rows of the method."""

    @pytest.fixture
    def ran(self, monkeypatch):
        found = []
        monkeypatch.setattr(
            subprocess, "run", lambda words, **how: found.append((words, how)) or SimpleNamespace(returncode=1)
        )
        return found

    def test_it_runs_the_tests_of_one_method_with_its_folder(self, folder, ran):
        assert cli.main(["laws", "tinted"]) == 1
        (words, how), *_ = ran
        assert how["env"]["FEDNB_LAWS"] == "tinted"
        assert all((how["cwd"] / test).is_file() for test in laws.LAWS)

    def test_an_unknown_method_is_refused_by_name(self, ran, capsys):
        assert cli.main(["laws", "fedprx"]) == 1
        assert 'no method is called "fedprx": did you mean "fedprox"?' in capsys.readouterr().err and not ran

    def test_each_law_that_does_not_hold_is_told_in_a_sentence(self, folder, monkeypatch, capfd):
        write(
            folder,
            "augment/tinted",
            TINTED.replace("+ self.strength", "+ torch.ones(1)").replace("import fednb", "import fednb, torch"),
        )
        monkeypatch.setattr(laws, "LAWS", ("tests/test_devices.py", "tests/test_task.py"))
        assert cli.main(["laws", "tinted"]) == 1
        dots, law, line, test, last = capfd.readouterr().out.splitlines()
        assert law.startswith("device: make tensors on client.device")
        assert line.startswith("    test_devices.Mixed: aten.add.Tensor") and f"{folder}/augment/tinted.py:11)" in line
        assert "tests/test_devices.py::" in test and last == "tinted: not every law holds; see above"

    def test_what_laws_of_a_file_cannot_be_is_told(self, folder, monkeypatch, capfd):
        write(folder, "augment/tinted", TINTED + "\nLAWS = {'neutrl': {}}")
        monkeypatch.setattr(laws, "LAWS", ("tests/test_devices.py", "tests/test_task.py"))
        assert cli.main(["laws", "tinted"]) == 2
        out = capfd.readouterr().out
        assert out.count("unexpected keyword argument 'neutrl'") == 1 and "LAWS: name fields of Row" in out
        assert out.endswith("tinted: the laws could not be tried; see above\n")

    def test_a_method_without_a_row_is_told_where_it_goes(self, monkeypatch, capfd):
        """Its name begins that of others."""
        monkeypatch.setattr(laws.catalogue, "names", lambda room: ("fed",) if room == "augment" else ())
        monkeypatch.setattr(laws, "LAWS", ("tests/test_devices.py",))
        assert cli.main(["laws", "fed"]) == 1
        out, err = capfd.readouterr()
        assert 'fed has no row in tests/methods.py, so that no law was tried. Add Row("augment", "fed")' in err
        assert "holds" not in out

    @pytest.mark.parametrize("absent", ["repository", "pytest"])
    def test_without_tests_it_says_what_to_do(self, ran, monkeypatch, absent):
        if absent == "pytest":
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        else:
            monkeypatch.setattr(verb, "tool", lambda name: (_ for _ in ()).throw(verb.NotebookError("none")))
        with pytest.raises(RunError, match="Clone it" if absent == "repository" else "fednb\\[test\\]"):
            verb.main(SimpleNamespace(method="fedprox"))


def test_the_row_of_a_method_from_outside_is_what_its_class_and_its_laws_say(folder):
    import methods

    write(folder, "augment/quiet", TINTED.replace("Tinted", "Quiet") + "\nLAWS = {'neutral': {'strength': 0.0}}")
    (row,) = methods.from_outside("quiet")
    assert (row.room, row.tasks, row.plain, row.exact) == ("augment", ("classification",), False, True)
    assert row.neutral == {"augmentations": ({"name": "quiet", "strength": 0.0},)}
    assert methods.from_outside("fedprox") == methods.from_outside("") == []


class TestInMemory:
    """A federation made in memory is keyed by its fingerprint."""

    BASE = Recipe(**TINY | {"rounds": 1})

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_it_trains_and_is_found_again(self, store, jobs):
        recipes, mine = self.BASE.vary(seed=[0, 1]), federation()
        study = Study(recipes, store=store, federation=mine)
        results = study.run(jobs=jobs)
        assert [record.fingerprint for record in results.records] == [mine.fingerprint] * 2
        assert results.records[0].recipe["federation"] == {"name": "in_memory", "fingerprint": mine.fingerprint}
        assert not set(study.recipes) & set(recipes) and "data/in_memory" not in results.records[0].behaviours
        paths = {path: path.read_bytes() for path in store.folder.rglob("*.json")}
        Study(recipes, store=store, federation=federation()).run()
        assert {path: path.read_bytes() for path in store.folder.rglob("*.json")} == paths and len(paths) == 2
        assert results.frame["federation"].unique().tolist() == ["in_memory"] and not results.stale

    def test_other_images_are_other_runs(self, store):
        one, other = (Study([self.BASE], store=store, federation=federation(held_out=n)) for n in (0, 1))
        one.run()
        assert other.recorded().missing and one.recipes != other.recipes

    def test_without_its_images_a_record_is_shown_and_nothing_is_trained(self, store):
        study = Study(self.BASE.vary(seed=[0, 1]), store=store, federation=federation())
        Study([self.BASE], store=store, federation=federation()).run()
        results = Study(study.recipes, store=store).run()
        assert len(results.records) == 1 and "make them again, and give them to Study" in results.notes[-1]

    def test_masks_are_named_apart(self, store):
        from methods import PIXELS, pixel_federation

        recipe = Recipe(**PIXELS | {"rounds": 1})
        results = Study([recipe], store=store, federation=pixel_federation()).run()
        assert results.records[0].recipe["federation"]["name"] == "in_memory_masks"
        from fednb.report import words

        assert words.measure(results.frame) == "Dice"

    def test_images_of_another_federation_are_refused(self, store):
        (recipe,) = Study([self.BASE], store=store, federation=federation()).recipes
        with pytest.raises(RunError, match="is not for toy .fingerprint"):
            train_one(recipe, store, federation=federation(held_out=1))
