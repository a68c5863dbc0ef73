"""The command, tried as a user would: on a checkout with a few tiny notebooks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
import recording
import small_runs
from loaders import picture
from test_provenance import commit, git

from fednb import cli
from fednb.commands import run
from fednb.recipe import Recipe
from fednb.records.record import Record, to_text
from fednb.records.staleness import used
from fednb.records.store import Store
from fednb.study import default_store

STUDY = """from fednb import Recipe, Study
base = Recipe(model={"name": "digits_cnn", "channels": 4, "width": 32}, rounds=ROUNDS)
results = Study(base.vary(seed=SEEDS)).run(data=DATA, device=DEVICE, jobs=JOBS)"""
SETTINGS = 'PROFILE = "quick"\nDATA = None\nDEVICE = "cpu"\nSEEDS = [0]\nJOBS = 1\nROUNDS = 1'
SHOWN = "print(len(results.records), 'recorded')"
FIGURE = """import base64
from IPython.display import HTML, Image, display
display(Image(data=base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")))
display(HTML("<table><tr><td>12.5</td></tr></table>"))"""
ABOUT = {"paper": "FedRDN", "result": "Table 1", "claim": "A < B", "data": "embedded", "minutes": {"quick": 1}}


@pytest.fixture
def checkout(made, tmp_path):
    made("fedrdn/study", [STUDY, SHOWN], SETTINGS, {2: ["nbval-check-output"]}, ABOUT)
    made("together/figure", [FIGURE])
    return tmp_path / "checkout"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list"], "fedrdn/study  (FedRDN Table 1)\n    A < B\n    data: embedded; cost: quick 1 min"),
        (["federate", "nosuch.json"], "nosuch.json is no recipe"),
    ],
)
def test_what_needs_no_torch_does_not_import_it(checkout, words, said):
    asked = [sys.executable, "-X", "importtime", "-m", "fednb", *words]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert said in done.stdout + done.stderr and "torch" not in done.stderr and "pandas" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], 'no verb "rnu": did you mean "run"'),
        (["run", "--proflie", "quick"], '"--proflie" is not an option here: did you mean "--profile"'),
        (["--readme", "report"], '"--readme" is not an option here'),
        (["run", "--profile", "qiuck"], "invalid choice: 'qiuck' (choose from "),
        (["run", "--jobs", "0"], '"0" is not a whole number of at least 1'),
        (["run", "--set", "SEEDS"], '"SEEDS" is not NAME=VALUE'),
        (["run", "quickstart"], "by its name or a part of it: --only quickstart"),
    ],
)
def test_unknown_word_stops_with_the_nearest_valid_one(checkout, capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "fedrnd/study"], 'no notebook matches "fedrnd/study": did you mean "fedrdn/study"'),
        (["--set", "SEED=[0]", "--only", "study"], 'has no parameter "SEED": did you mean "SEEDS"'),
        (["--set", "SEEDS=0", "--only", "study"], "SEEDS is 0, of type int; expected list[int]"),
        (["--device", "cuda:77"], 'device "cuda:77" cannot be used'),
        (["--record"], "no git checkout"),
    ],
)
def test_run_refuses_before_anything_starts(checkout, capsys, words, message):
    assert cli.main(["run", *words]) == 1
    assert message in capsys.readouterr().err
    assert not (checkout / "report").exists()


def test_no_word_at_all_prints_the_help_and_is_no_success(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main([])
    out, err = capsys.readouterr()
    assert "execute notebooks" in out and "example: fednb run" in out and not err


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_of_each_verb_has_an_example(capsys, verb):
    with pytest.raises(SystemExit, match="0"):
        cli.main([verb, "--help"])
    assert f"example: fednb {verb}" in " ".join(capsys.readouterr().out.split())


def test_run_trains_and_executes_and_a_second_one_trains_nothing(checkout, made, monkeypatch, capsys):
    built = []
    monkeypatch.setattr("fednb.commands.report.build", lambda home, report: built.append((home, report)))
    made("together/broken", ["1 / 0"])
    before = {path: path.read_bytes() for path in checkout.rglob("*.ipynb")}
    assert cli.main(["run", "--jobs", "2", "--set", "SEEDS=[0, 1]", "--only", "study"]) == 0
    out = capsys.readouterr().out
    copy = checkout / "report/notebooks/fedrdn/study.ipynb"
    assert "1 notebooks executed, 0 failed; 2 runs trained\n" in out and f"next: jupyter lab {copy}\n" in out
    assert "2 recorded" in copy.read_text() and len(list((checkout / "report/runs").rglob("*.json"))) == 2
    assert not built  # who asked for one waits for no site

    assert cli.main(["run", "--jobs", "2"]) == 1
    out = capsys.readouterr().out
    assert "2 notebooks executed, 1 failed; 0 runs trained\n" in out
    assert "\nFAILED together/broken: cell 1: ZeroDivisionError: division by zero\n" in out
    assert "next: mend what FAILED" in out and built == [(checkout, checkout / "report")]
    assert "1 recorded" in copy.read_text()
    assert all(path.read_bytes() == content for path, content in before.items())


def test_two_notebooks_side_by_side_train_a_run_that_both_need_once(checkout, made, capsys):
    made("fedrdn/again", [STUDY, SHOWN], SETTINGS)
    assert cli.main(["run", "--only", "fedrdn/*", "--jobs", "2"]) == 0
    assert "2 notebooks executed, 0 failed; 1 runs trained\n" in capsys.readouterr().out


def test_jobs_are_shared_out_between_notebooks_and_their_runs(checkout, made, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    executed = []
    monkeypatch.setattr(run, "_execute", lambda chosen, report, given, *rest: executed.append((given, rest[0])) or {})
    made("fedrdn/other", [STUDY], SETTINGS)
    for words, jobs, at_once in (
        (["--only", "fedrdn/*", "--jobs", "6"], 3, 2),
        (["--only", "fedrdn/study"], 8, 1),
        ([], 2, 3),
        (["--jobs", "1"], 1, 1),
    ):
        assert cli.main(["run", *words]) == 0
        given, side = executed.pop()
        assert (given["fedrdn/study"]["JOBS"], side) == (jobs, at_once)


@pytest.mark.parametrize("ending", ["killed", "ctrl-c"])
def test_what_a_command_has_started_ends_with_it(checkout, made, ending):
    made("together/endless", ["import time", "print(open('at', 'w').write('here'), flush=True)", "time.sleep(600)"])
    words = [sys.executable, "-m", "fednb", "run", "--only", "endless"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **streams, text=True, start_new_session=True) as command:
        while not (checkout / "notebooks/together/at").exists():
            assert command.poll() is None
            time.sleep(0.1)
        if ending == "killed":
            command.kill()
        else:
            os.killpg(command.pid, signal.SIGINT)
        try:
            _, error = command.communicate(timeout=120)  # until the last of its processes has closed the pipes
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
    assert ending == "killed" or (command.returncode == 130 and error.startswith("fednb: stopped. "))
    assert error.count("\n") == (ending == "ctrl-c")


OWN = f"""import sys

import fednb
sys.path.append({str(Path(__file__).parents[1] / "notebooks/together")!r})
"""
OWN += """from example_folders import example_folders
folder = DATA or example_folders(per_class=2)
federation = fednb.load("folders", root=folder, size=8)
print(*[site.name for site in federation.sites])"""


def test_images_of_ones_own_reach_the_notebook_that_is_chosen_alone(checkout, made):
    made("together/own", [OWN], SETTINGS.replace("None", '""'), about={"data": "folders"})
    for number in range(16):
        site, label = ("north", "south")[number % 2], ("cat", "dog")[number // 2 % 2]
        picture(checkout / f"mine/{site}/{label}/{number}.png", number)
    copy = checkout / "report/notebooks/together/own.ipynb"
    for words, is_own in ((["--data", "mine"], True), ([], False)):
        assert cli.main(["run", "--only", "own", *words]) == 0
        assert ('"north south' in copy.read_text()) == is_own


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(checkout, monkeypatch, tmp_path, capsys):
    temporary = tempfile.NamedTemporaryFile

    def read_only(*arguments, dir, **settings):
        if Path(dir).is_relative_to(checkout):
            raise OSError(30, "Read-only file system")
        return temporary(*arguments, dir=dir, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "NamedTemporaryFile", read_only)
        assert cli.main(["run"]) == 1
    error = capsys.readouterr().err
    assert "Read-only file system" in error and "--report names another folder" in error and error.count("\n") == 1
    shutil.rmtree(checkout / "report")
    before = sorted(checkout.rglob("*"))
    assert cli.main(["run", "--report", str(tmp_path / "else"), "--only", "study"]) == 0
    assert sorted(checkout.rglob("*")) == before and default_store().checkpoints == tmp_path / "else/checkpoints"
    (checkout / "file").write_text("kept")
    for folder, message in (("file", "could not be written"), ("file/inside", "could not be written")):
        assert cli.main(["run", "--report", folder]) == 1
        assert message in capsys.readouterr().err


@pytest.fixture
def committed(checkout):
    (checkout / ".gitignore").write_text("/report/\n")
    git(checkout, "init", "-q")
    commit(checkout)
    return checkout


def saved_in_jupyterlab(path: Path) -> None:
    """The notebook as it is after a run of its cells there."""
    content = json.loads(path.read_text())
    content["metadata"]["kernelspec"] = {"display_name": "Python (my kernel)", "language": "python", "name": "mine"}
    content["metadata"]["language_info"] = {"name": "python", "file_extension": ".py", "version": "3.13.1"}
    for number, cell in enumerate(content["cells"], 17):
        cell["metadata"] |= {"editable": True, "jupyter": {"source_hidden": False}, "slideshow": {"slide_type": ""}}
        cell["execution_count"] = number
    path.write_text(json.dumps(content))


def test_record_writes_results_outputs_and_figures_and_a_second_one_changes_nothing(committed):
    assert cli.main(["run", "--record", "--jobs", "2"]) == 0
    assert len(list((committed / "results").rglob("*.json"))) == 1
    assert (committed / "figures/together/figure.png").exists() and not (committed / "report/runs").exists()
    source = committed / "notebooks/fedrdn/study.ipynb"
    book = json.loads(source.read_text())
    assert book["cells"][-1]["outputs"][0]["text"] == ["1 recorded\n"] and len(book["cells"]) == 3
    kept = [path for folder in ("results", "notebooks") for path in (committed / folder).rglob("*.*") if path.is_file()]
    first = {path: path.read_bytes() for path in kept}
    assert recording.dirty(committed) == []
    commit(committed)
    saved_in_jupyterlab(source)
    assert source.read_bytes() != first[source] and recording.dirty(committed) == []
    assert cli.main(["run", "--record", "--jobs", "2"]) == 0
    assert {path: path.read_bytes() for path in kept} == first
    for text in (source.read_text().replace("A < B", "A > B"), "<<<<<<< HEAD\n"):
        source.write_text(text)
        assert recording.dirty(committed) == [" M notebooks/fedrdn/study.ipynb"]


def test_record_refuses_what_is_not_committed(committed, capsys):
    source = committed / "notebooks/fedrdn/study.ipynb"
    text = source.read_text()
    (committed / "new.py").write_text("")
    source.write_text(text.replace("rounds=ROUNDS", "rounds=3"))
    assert cli.main(["run", "--record"]) == 1
    error = capsys.readouterr().err
    assert "?? new.py" in error and " M notebooks/fedrdn/study.ipynb" in error
    assert not (committed / "results").exists()


def test_changed_or_deleted_record_is_refused(committed):
    record = committed / "results/a/b.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert recording.dirty(committed) == []
    commit(committed)
    record.write_text("{ }")
    assert recording.dirty(committed) == [" M results/a/b.json"]
    record.unlink()
    assert recording.dirty(committed) == [" D results/a/b.json"]


def test_a_project_inside_a_larger_checkout_is_recorded_by_its_own_folder(committed):
    project = committed / "examples/mine"
    book = project / "notebooks/mine/table1.ipynb"
    book.parent.mkdir(parents=True)
    book.write_text((committed / "notebooks/fedrdn/study.ipynb").read_text())
    assert recording.dirty(project)[0].startswith("no git checkout")  # nothing of it is committed
    commit(committed)
    (committed / "new.py").write_text("")
    (project / "results").mkdir()
    (project / "results/one.json").write_text("{}")
    assert recording.dirty(project) == []
    book.write_text(book.read_text().replace('"outputs": []', '"outputs": [{}]'))
    assert recording.dirty(project) == []
    book.write_text(book.read_text().replace("rounds=ROUNDS", "rounds=3"))
    (project / "data.py").write_text("")
    assert recording.dirty(project) == [" M notebooks/mine/table1.ipynb", "?? data.py"]


@pytest.fixture
def older(committed):
    """A committed record that is stale, as FedAvg behaves otherwise since, and the text of one that is not."""
    recipe = Recipe(model={"name": "digits_cnn", "channels": 4, "width": 32}, rounds=1)
    made = vars(small_runs.record(recipe)) | {"behaviours": used(recipe.full)}
    path = Store(committed / "results").write(recipe, Record(**made))
    fresh = path.read_text()
    path.write_text(
        to_text(Record(**made | {"behaviours": used(recipe.full) | {"algorithms/fedavg": "of older code"}}))
    )
    commit(committed)
    return path, fresh


def test_status_counts_what_is_recorded_by_federation_and_names_older_code(older, committed, monkeypatch, capsys):
    monkeypatch.setattr("fednb.study.__file__", str(committed / "fednb" / "study.py"))  # its results/ are read
    assert cli.main(["status"]) == 0
    out = capsys.readouterr().out
    assert "shifted_digits: 1 runs, 0.0 h; 1 by older code (algorithms/fedavg): `fednb run --stale`" in out
    older[0].write_text("{")
    assert cli.main(["status"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("0 runs are recorded for ") and f"note: {older[0]}" in out


def test_a_stale_record_stays_until_it_is_asked_for_again(older, committed, capsys):
    path, fresh = older
    before = path.read_text()
    for words, kept in (([], True), (["--stale"], False)):
        assert cli.main(["run", "--record", "--only", "study", *words]) == 0
        assert (path.read_text() == before) == kept
        assert recording.dirty(committed) == []  # the replaced record is recording's own product
    assert json.loads(path.read_text())["behaviours"] == json.loads(fresh)["behaviours"]


def test_only_the_record_of_the_same_run_may_stand_in_the_place_of_a_stale_one(older, committed):
    path, fresh = older
    features, name = path.with_suffix(".features.npz"), path.relative_to(committed).as_posix()
    features.write_bytes(b"old")
    commit(committed)
    features.write_bytes(b"new")  # written just before its record, when recording was interrupted
    assert recording.dirty(committed) == []
    path.write_text(fresh)
    assert recording.dirty(committed) == []
    another = to_text(Record(**small_runs.entries_of(fresh) | {"key": "0"}))
    for other in (fresh[:-2], another, "{", "[]"):
        path.write_text(other)
        assert recording.dirty(committed) == [f" M {name}"]
    path.unlink()
    assert recording.dirty(committed) == [f" D {name}"]
    path.write_text(fresh)
    commit(committed)
    features.write_bytes(b"by hand")
    assert recording.dirty(committed) == [f" M {features.relative_to(committed).as_posix()}"]
