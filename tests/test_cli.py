"""The command, tried as a user would: on a checkout with a few tiny notebooks."""

import importlib.util
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

import fednb
from fednb import cli
from fednb.commands import folder, notebooks
from fednb.errors import StoreError
from fednb.records import staleness
from fednb.records import store as store_of_runs
from fednb.records.record import Record, to_text
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
ABOUT = {
    "paper": "FedRDN",
    "result": "Table 1",
    "claim": "A < B",
    "data": "embedded",
    "minutes": {"quick": 1},
}


@pytest.fixture
def checkout(made, tmp_path):
    made("fedrdn/study", [STUDY, SHOWN], SETTINGS, {2: ["nbval-check-output"]}, ABOUT)
    made("together/figure", [FIGURE])
    return tmp_path / "checkout"


def test_list_answers_without_torch(checkout):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fednb", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fedrdn/study  (FedRDN Table 1)\n    A < B\n    data: embedded; cost: quick 1 min" in done.stdout
    assert "torch" not in done.stderr and "pandas" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], 'no verb "rnu": did you mean "run"'),
        (["run", "--proflie", "quick"], '"--proflie" is not an option here: did you mean "--profile"'),
        (["--readme", "report"], '"--readme" is not an option here'),
        (["run", "--profile", "qiuck"], 'no profile "qiuck": did you mean "quick"'),
        (["run", "--jobs", "0"], '"0" is not a whole number of at least 1'),
        (["run", "--set", "SEEDS"], '"SEEDS" is not NAME=VALUE'),
        (["run", "quickstart"], "by its name or a part of it: --only quickstart"),
        (["run", "--part", "9/8"], '"9/8" is no part; write 1/8 to 8/8'),
        (["run", "--part", "0/2"], '"0/2" is no part'),
        (["run", "--part", "two"], '"two" is no part'),
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
        (
            ["--set", "SEEDS=0", "--only", "study"],
            "SEEDS is 0, of type int; expected list[int], such as --set 'SEEDS=[0, 1]'.",
        ),
        (["--device", "cuda:77"], 'device "cuda:77" cannot be used'),
        (["--device", "meta"], 'device "meta" cannot be used'),
        (["--device", "cpu,cuda:77"], 'device "cuda:77" cannot be used'),
        (["--record"], "no git checkout"),
    ],
)
def test_run_refuses_before_anything_starts(checkout, capsys, words, message):
    assert cli.main(["run", *words]) == 1
    assert message in capsys.readouterr().err
    assert not (checkout / "report").exists()


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"fednb {fednb.__version__}\n"


def test_no_word_at_all_prints_the_help_and_is_no_success(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main([])
    out, err = capsys.readouterr()
    assert "train what is missing" in out and "example: fednb run" in out and not err


VERBS = ("list", "run", "status", "export", "data", "report", "check", "bench", "federate", "new")


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_has_an_example(capsys, verb):
    with pytest.raises(SystemExit, match="0"):
        cli.main([verb, "--help"])
    assert f"example: fednb {verb}" in " ".join(capsys.readouterr().out.split())


def test_run_trains_executes_and_reports_then_only_what_is_missing(checkout, made, capsys):
    made("together/broken", ["1 / 0"])
    before = {path: path.read_bytes() for path in checkout.rglob("*.ipynb")}
    assert cli.main(["status"]) == 0
    assert "fedrdn/study        0 recorded    1 missing, about 8 s to 3 min to train" in capsys.readouterr().out
    assert cli.main(["run", "--jobs", "2", "--set", "SEEDS=[0, 1]", "--only", "study"]) == 0
    out = capsys.readouterr().out
    assert "2 runs to train, about" in out and "round 1/1, for fedrdn/study" in out
    assert "writing the report. This report is a page of links, as " in out
    done, place, next_step = out.rpartition("\n\n")[2].splitlines()
    assert done == "0 runs recorded before, 2 trained; 1 notebooks executed"
    assert place == f"report: {checkout / 'report/index.html'}" and next_step.startswith("next: open the report in a")
    runs = list((checkout / "report/runs").rglob("*.json"))
    assert len(runs) == 2
    assert cli.main(["status"]) == 0
    assert "fedrdn/study        1 recorded    0 missing\n" in capsys.readouterr().out

    assert cli.main(["run", "--jobs", "2"]) == 1
    out = capsys.readouterr().out
    assert "\n1 runs recorded, none trained; 2 notebooks executed, 1 failed\n" in out
    assert "\nFAILED notebook together/broken: cell 1: ZeroDivisionError: division by zero\n" in out
    assert "next: mend what FAILED" in out

    (checkout / "notebooks/together/broken.ipynb").unlink()
    assert cli.main(["run", "--jobs", "2"]) == 0
    assert "1 runs recorded, none trained; 0 notebooks executed, 2 up to date before" in capsys.readouterr().out

    page = (checkout / "report/index.html").read_text()
    assert 'href="notebooks/fedrdn/study.ipynb"' in page and "http" not in page
    assert "1 recorded" in (checkout / "report/notebooks/fedrdn/study.ipynb").read_text()
    assert (checkout / "report/figures/together/figure.png").read_bytes().startswith(b"\x89PNG")
    del before[checkout / "notebooks/together/broken.ipynb"]
    assert all(path.read_bytes() == content for path, content in before.items())


def test_status_says_how_far_it_is_where_it_takes_long_and_reads_each_record_once(checkout, made, monkeypatch, capsys):
    book = made("fedrdn/again", [STUDY], SETTINGS)
    (recipe,) = notebooks.plan(book)
    default_store().write(recipe, small_runs.record(recipe))
    read, seen = store_of_runs.read, []
    monkeypatch.setattr(store_of_runs, "read", lambda path: seen.append(path) or read(path))
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().err == "" and len(seen) == 1
    monkeypatch.setattr("fednb.records.progress.LINE_SECONDS", 0.0)
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().err.startswith("planning notebook 1/3: fedrdn/again (")


def test_parts_have_all_runs_between_them_and_execute_no_notebook(checkout, capsys):
    words = ["run", "--jobs", "1", "--only", "study", "--set", "SEEDS=[0, 1, 2]"]
    told = {
        "1/2": "0 runs recorded before, 2 trained, 1 of the other parts",
        "2/2": "2 runs recorded before, 1 trained",
    }
    for part, runs in told.items():
        assert cli.main([*words, "--part", part]) == 0
        out = capsys.readouterr().out
        assert f"\n{runs}; 0 notebooks executed, 1 not executed\n" in out
        assert "next: when all parts are done, `fednb run` without --part" in out
    assert not (checkout / "report/index.html").exists()
    assert cli.main([*words, "--part", "1/2"]) == 0  # what the others have recorded is theirs
    assert "3 runs recorded, none trained" in capsys.readouterr().out


def test_failed_run_is_named_and_stops_no_other(checkout, made, capsys):
    diverging = STUDY.replace("rounds=ROUNDS", "rounds=ROUNDS, learning_rate=RATE")
    made("fedrdn/diverging", [diverging, SHOWN], SETTINGS + "\nRATE = 1e30")
    assert cli.main(["run", "--only", "fedrdn/*", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "FAILED run fedavg on shifted_digits, seed 0" in out and "FAILED notebook fedrdn/diverging" in out
    assert "1 trained, 1 failed; 1 notebooks executed, 1 failed" in out


@pytest.mark.parametrize("ending", ["killed", "ctrl-c"])
def test_what_a_command_has_started_ends_with_it(checkout, made, ending):
    made("together/endless", ["import time", "print(open('at', 'w').write('here'), flush=True)", "time.sleep(600)"])
    words = [sys.executable, "-m", "fednb", "run", "--only", "endless", "--jobs", "1000"]
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
            out, told = command.communicate(timeout=120)  # until the last of its processes has closed the pipes
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
    assert f"--jobs 1000: no more than {os.cpu_count()} side by side, one for each core\n" in out
    assert ending == "killed" or (command.returncode == 130 and told.startswith("fednb: stopped. "))
    assert told.count("\n") == (ending == "ctrl-c")


def test_notebook_that_cannot_be_planned_is_named(checkout, made, capsys):
    made("fedrdn/unplanned", ["1 / 0", STUDY], SETTINGS)
    assert cli.main(["status"]) == 1
    assert "fedrdn/unplanned  cannot be planned" in capsys.readouterr().out


def test_embedded_data_stand_in_where_the_paper_has_others(checkout, made, capsys):
    office = STUDY.replace("base = Recipe(", 'base = Recipe(federation="office_caltech10", ')
    made("fedrdn/alien", [office.replace(").run(", ', "fedrdn").run(')], SETTINGS, about=ABOUT | {"paper": "fedrdn"})
    made("fedrdn/blank", [office], SETTINGS)
    assert cli.main(["status", "--only", "fedrdn/*"]) == 0
    alien, blank, _ = capsys.readouterr().out.splitlines()
    assert "1 missing, about" in alien and alien.endswith("(stand-in data)")
    assert "1 missing; data missing: " in blank and "office" in blank.lower()


def test_bare_machine_trains_and_says_what_it_left_out(checkout, monkeypatch, capsys):
    find = importlib.util.find_spec
    bare = ("papermill", "nbclient", "ipykernel")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name in bare else find(name, *rest))
    assert cli.main(["run", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 trained" in out and "notebooks need papermill, nbclient, ipykernel" in out
    assert not (checkout / "report/index.html").exists()


def test_report_is_written_again_from_executed_notebooks(checkout, capsys):
    assert cli.main(["report"]) == 1
    assert "has no executed notebook to show" in capsys.readouterr().err
    assert cli.main(["run", "--only", "figure"]) == 0
    (checkout / "report/index.html").unlink()
    assert cli.main(["report"]) == 0
    assert 'href="notebooks/together/figure.ipynb"' in (checkout / "report/index.html").read_text()


def test_an_execution_that_failed_or_was_killed_is_shown_as_such_and_done_again(made, capsys):
    book = made("a/b", ["import pathlib\nassert not pathlib.Path('fail').exists(), 'as told'"])
    checkout, page = book.path.parents[2], book.path.parents[2] / "report/index.html"
    record = checkout / "report/runs/x.json"
    record.parent.mkdir(parents=True)
    record.write_text("[1]")
    assert cli.main(["run"]) == 0
    fail = book.path.with_name("fail")
    fail.touch()
    record.write_text("[2]")  # of the same size: contents are compared
    assert cli.main(["run"]) == 1
    assert "1 failed" in capsys.readouterr().out
    record.write_text("[1]")
    assert cli.main(["report"]) == 0
    assert "<strong>failed: AssertionError: as told" in page.read_text()
    fail.unlink()
    assert cli.main(["run"]) == 0
    assert "; 1 notebooks executed\n" in capsys.readouterr().out and "as told" not in page.read_text()
    folder.unstamp(checkout / "report", book)  # as where an execution is killed
    assert cli.main(["report"]) == 0
    assert "failed: its last execution did not end" in page.read_text()


def test_a_notebook_is_executed_again_when_a_file_beside_it_changes(checkout, made, capsys):
    book = made("together/beside", ["import helper_of_this_test as helper\n\nhelper.WORD"])
    for word in ("one", "two"):
        book.path.with_name("helper_of_this_test.py").write_text(f"WORD = {word!r}")
        assert cli.main(["run", "--only", "beside"]) == 0
        assert "; 1 notebooks executed\n" in capsys.readouterr().out
        assert f"'{word}'" in folder.executed(checkout / "report", book).read_text()


def test_half_an_executed_notebook_is_named_and_made_again(checkout, made, capsys):
    made("together/other", ["1"])
    assert cli.main(["run", "--only", "together/*", "--jobs", "2"]) == 0
    copy = checkout / "report/notebooks/together/figure.ipynb"
    whole = copy.read_bytes()
    for damage in (whole[:700], b"", b'{"cells": [{}], "metadata": {}}', b"\xff"):
        copy.write_bytes(damage)
        capsys.readouterr()
        assert cli.main(["report"]) == 0
        out = capsys.readouterr().out
        assert "1 of 3 notebooks were executed" in out and f"{copy} is damaged and counts as not executed" in out
    assert cli.main(["run", "--only", "together/*"]) == 0
    out = capsys.readouterr().out
    assert "; 1 notebooks executed, 1 up to date before\n" in out and f"{copy} is damaged" in out
    assert 'href="notebooks/together/figure.ipynb"' in (checkout / "report/index.html").read_text()


def test_a_report_that_cannot_be_written_hides_no_summary(checkout, monkeypatch, capsys):
    def full(path, text):
        raise StoreError(f"{path} could not be written: no space left")

    monkeypatch.setattr(folder, "write_text", full)
    assert cli.main(["run", "--only", "figure"]) == 1
    out = capsys.readouterr().out
    assert "0 runs recorded, none trained" in out and "FAILED report: " in out and "no space left" in out


def test_records_from_other_images_are_told_on_the_page_and_not_in_the_summary(made, capsys):
    book = made("a/b", [STUDY + "\nfor note in results.notes:\n    print(note)"], SETTINGS)
    (recipe,) = notebooks.plan(book)
    store = Store(book.path.parents[2] / "report/runs")
    store.write(recipe, small_runs.record(recipe))  # its fingerprint is none of any images
    assert cli.main(["run"]) == 0
    told = f"{recipe} was recorded from other images"
    page = book.path.parents[2] / "report/index.html"
    assert told not in capsys.readouterr().out and page.read_text().count(told) == 1
    assert cli.main(["run"]) == 0
    out = capsys.readouterr().out
    assert "1 up to date before" in out and told not in out and page.read_text().count(told) == 1
    assert cli.main(["report"]) == 0
    assert told not in capsys.readouterr().out
    assert page.read_text().count(told) == 1


OWN = """import fednb
from fednb.analyses.example_folders import example_folders
folder = DATA or example_folders(per_class=2)
federation = fednb.load("folders", root=folder, size=8)
named = {"name": "folders", "size": 8, "fingerprint": federation.fingerprint}
base = fednb.Recipe(federation=named, model={"name": "digits_cnn", "channels": 4, "width": 32}, rounds=1)
results = fednb.Study(base.vary(seed=SEEDS)).run(data=folder, device=DEVICE, jobs=JOBS)
print(*[site.name for site in federation.sites])"""


def test_images_of_ones_own_reach_the_notebook_and_its_runs_are_counted(checkout, made, picture, capsys):
    tags, own = {1: ["nbval-check-output"]}, {"data": "folders"}
    made("together/own", [OWN], SETTINGS.replace("None", '""'), tags, own)
    for number in range(16):
        site, label = ("north", "south")[number % 2], ("cat", "dog")[number // 2 % 2]
        picture(checkout / f"mine/{site}/{label}/{number}.png", number)
    copy = checkout / "report/notebooks/together/own.ipynb"
    for trained in (True, False):
        assert cli.main(["run", "--only", "own", "--data", "mine"]) == 0
        out = capsys.readouterr().out
        assert ("0 runs recorded before, 1 trained;" if trained else "1 runs recorded, none trained;") in out
        assert '"north south' in copy.read_text() and "data missing" not in out
    assert cli.main(["run", "--only", "own"]) == 0  # the example: trained by the notebook itself
    out = capsys.readouterr().out
    assert "0 runs recorded before, 1 trained;" in out and "data missing" not in out
    assert '"north south' not in copy.read_text()
    assert cli.main(["status", "--only", "together/*", "--data", "mine"]) == 0
    assert "together/own        1 recorded    0 missing" in capsys.readouterr().out  # one of several: the example


def test_a_checkout_that_cannot_be_written_has_its_report_elsewhere(checkout, monkeypatch, tmp_path, capsys):
    temporary = tempfile.NamedTemporaryFile

    def read_only(*arguments, dir, **settings):
        if Path(dir).is_relative_to(checkout):
            raise OSError(30, "Read-only file system")
        return temporary(*arguments, dir=dir, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "NamedTemporaryFile", read_only)
        patch.setattr("fednb.records.workers.train", lambda *_: pytest.fail("trained what cannot be kept"))
        assert cli.main(["run"]) == 1
    error = capsys.readouterr().err
    assert "Read-only file system" in error and "--report names another folder" in error and error.count("\n") == 1
    shutil.rmtree(checkout / "report")
    before = sorted(checkout.rglob("*"))
    assert cli.main(["run", "--report", str(tmp_path / "else"), "--jobs", "1"]) == 0
    assert sorted(checkout.rglob("*")) == before and (tmp_path / "else/index.html").exists()
    assert default_store().checkpoints == tmp_path / "else/checkpoints"


@pytest.mark.parametrize("verb", ["run", "status", "report"])
def test_a_report_is_a_folder(checkout, verb, capsys):
    (checkout / "file").write_text("kept")
    assert cli.main([verb, "--report", "file"]) == 1
    assert "file is a file; name a folder for the report" in capsys.readouterr().err
    if verb == "run":
        assert cli.main([verb, "--report", "file/inside"]) == 1
        assert "could not be written" in capsys.readouterr().err
    assert (checkout / "file").read_text() == "kept"


def git(root, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture
def committed(checkout):
    (checkout / ".gitignore").write_text("/report/\n")
    git(checkout, "init", "-q")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "start")
    return checkout


def test_record_writes_results_outputs_and_figures(committed, capsys):
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    assert len(list((committed / "results").rglob("*.json"))) == 1
    assert (committed / "figures/together/figure.png").exists()
    book = json.loads((committed / "notebooks/fedrdn/study.ipynb").read_text())
    assert book["cells"][-1]["outputs"][0]["text"] == ["1 recorded\n"] and len(book["cells"]) == 3
    assert not (committed / "report/runs").exists()
    kept = [path for folder in ("results", "notebooks") for path in (committed / folder).rglob("*.*") if path.is_file()]
    first = {path: path.read_bytes() for path in kept}
    assert recording.dirty(committed) == []
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    assert "1 runs recorded, none trained" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in kept} == first


def test_what_jupyterlab_changes_when_it_saves_is_no_change(committed, saved_in_jupyterlab):
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "record")
    book = committed / "notebooks/fedrdn/study.ipynb"
    recorded = book.read_bytes()
    saved_in_jupyterlab(book)
    assert book.read_bytes() != recorded and recording.dirty(committed) == []
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    assert book.read_bytes() == recorded
    book.write_text(book.read_text().replace("A < B", "A > B"))
    assert recording.dirty(committed) == [" M notebooks/fedrdn/study.ipynb"]
    book.write_text("<<<<<<< HEAD\n")
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


def test_a_copy_without_git_is_recorded_where_its_commit_is_named(checkout, monkeypatch):
    assert recording.dirty(checkout) == [
        "no git checkout: set FEDNB_COMMIT to the commit that these files are a copy of"
    ]
    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    assert recording.dirty(checkout) == []


def test_changed_or_deleted_record_is_refused(committed):
    record = committed / "results/a/b.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    (record.parent.parent / "README.md").write_text("0 records")
    assert recording.dirty(committed) == []
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "record")
    (record.parent.parent / "README.md").write_text("1 record")
    assert recording.dirty(committed) == []
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
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "a project")
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
def older(committed, monkeypatch):
    """A committed record that is stale: FedAvg has been recorded as behaving otherwise since."""
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "record")
    (path,) = (committed / "results").rglob("*.json")
    known = json.loads(staleness.FILE.read_text())
    known["now"]["algorithms/fedavg"] = ["another"]
    monkeypatch.setattr(staleness, "known", lambda: known)
    monkeypatch.setattr("fednb.study.__file__", str(committed / "fednb" / "study.py"))  # its results/ are read
    return path


def test_status_names_what_is_recorded_by_older_code(older, capsys):
    assert cli.main(["status"]) == 0
    out = capsys.readouterr().out
    assert "1 recorded    0 missing; 1 of 1 recorded are by older code: algorithms/fedavg\n" in out
    assert "\nby older code: 1 runs; `fednb run --stale` trains 1 of them again, about " in out
    assert cli.main(["status", "--only", "figure"]) == 0
    assert "older" not in capsys.readouterr().out


def test_a_stale_record_stays_until_it_is_asked_for_again(older, committed, capsys):
    before = older.read_bytes()
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 runs recorded, none trained" in out and "`fednb run --stale` trains 1 runs again that older code" in out
    assert older.read_bytes() == before
    assert cli.main(["run", "--record", "--stale", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 runs to train" in out and "0 runs recorded before, 1 trained" in out and "older code" not in out
    made = json.loads(older.read_text())
    assert made["behaviours"]["algorithms/fedavg"] == "another"
    assert made["rounds"] == json.loads(before)["rounds"] and made["origin"]["seconds"] >= 0
    assert (
        cli.main(["run", "--record", "--stale", "--jobs", "1"]) == 0
    )  # the replaced record is recording's own product
    assert "1 runs recorded, none trained" in capsys.readouterr().out


def test_what_cannot_be_trained_again_here_is_not_advised(older, monkeypatch, capsys):
    monkeypatch.setattr("fednb.commands.desk._lacks", lambda recipe, own: "its images are elsewhere")
    assert cli.main(["run", "--record", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 runs recorded, none trained" in out and "--stale" not in out and "`fednb data` says which" in out


def test_a_report_trains_again_beside_the_record(older, committed, capsys):
    before = older.read_bytes()
    assert cli.main(["run", "--stale", "--jobs", "1", "--only", "study"]) == 0
    assert older.read_bytes() == before
    (again,) = (committed / "report/runs").rglob("*.json")
    assert json.loads(again.read_text())["behaviours"]["algorithms/fedavg"] == "another"
    capsys.readouterr()
    assert cli.main(["status"]) == 0
    assert "older" not in capsys.readouterr().out


def test_a_run_that_fails_leaves_the_stale_record(older, monkeypatch, capsys):
    before = older.read_bytes()
    monkeypatch.setattr("fednb.loop.loop.FederatedRun.advance", lambda run: 1 / 0)
    cli.main(["run", "--record", "--stale", "--jobs", "1"])
    assert "none trained, 1 failed" in capsys.readouterr().out
    assert older.read_bytes() == before


def test_only_the_record_of_the_same_run_may_stand_in_the_place_of_a_stale_one(older, committed):
    features = older.with_suffix(".features.npz")
    features.write_bytes(b"old")
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "features")
    stale, entries = older.read_text(), small_runs.entries_of(older.read_text())
    features.write_bytes(b"new")  # written just before its record, when recording was interrupted
    assert recording.dirty(committed) == []
    name = older.relative_to(committed).as_posix()
    entries |= {"behaviours": entries["behaviours"] | {"algorithms/fedavg": "another"}, "checksums": {}}
    fresh = to_text(Record(**entries))
    older.write_text(fresh)
    assert recording.dirty(committed) == []
    for other in (stale + " ", to_text(Record(**entries | {"key": "0"})), "{", "[]"):
        older.write_text(other)
        assert recording.dirty(committed) == [f" M {name}"]
    older.unlink()
    assert recording.dirty(committed) == [f" D {name}"]
    older.write_text(fresh)
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "made again")
    features.write_bytes(b"by hand")
    assert recording.dirty(committed) == [f" M {features.relative_to(committed).as_posix()}"]
