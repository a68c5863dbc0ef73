"""Reading, executing and settling notebooks; and the traps that every committed one must avoid."""

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import loaders
import papermill
import pytest
import recording

from fednb import parameters
from fednb.commands import notebooks
from fednb.errors import NotebookError

ALL = notebooks.select()
CHECKED = "nbval-check-output"
SMOKE = (  # one of each shape: nbval executes all of them
    *("together/quickstart", "together/your_data", "together/your_method", "together/network", "together/vessels"),
    *("fedrdn/table1_main", "fedfa/table1_main", "fraug/table1_motivation", "distrans/table1_main"),
    *("methods/fedrdn", "fedrdn/table3_cross_site", "fedfa/table4_unseen_clients", "distrans/fig7_umap"),
    "distrans/table6_many_clients",
)


def test_pattern_chooses_and_a_wrong_one_names_the_nearest(made, tmp_path, monkeypatch):
    for name in ("fedrdn/table1", "fedrdn/.ipynb_checkpoints/table1", "together/start"):
        made(name, ["x = 1"])
    (tmp_path / "checkout").rename(tmp_path / ".checkout")  # the folder itself may be a hidden one
    monkeypatch.chdir(tmp_path / ".checkout")
    for only, chosen in ((None, ["fedrdn/table1", "together/start"]), ("start", ["together/start"])):
        assert [book.name for book in notebooks.select(only)] == chosen
    assert [book.name for book in notebooks.select("fedrdn/*")] == ["fedrdn/table1"]
    with pytest.raises(NotebookError, match='did you mean "fedrdn/table1"'):
        notebooks.select("fedrdn/tabel1")


def test_parameters_are_plain_values_read_from_the_syntax(made):
    cell = 'PROFILE = "quick"  # or PROFILE = "paper"\nSEEDS = [0]\nWIDTH: int | None = None\nRATE = -0.5'
    book = made("a/b", ["import json"], parameters=cell)
    assert notebooks.parameters(book) == {"PROFILE": "quick", "SEEDS": [0], "WIDTH": None, "RATE": -0.5}
    with pytest.raises(NotebookError, match=r'cell 1: "RATE = 1 / 3" is no parameter'):
        notebooks.parameters(made("a/b", [], parameters="RATE = 1 / 3"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"PROFIL": "quick"}, 'no parameter "PROFIL": did you mean "PROFILE"'),
        ({"PROFILE": 3}, "PROFILE is 3, of type int; expected str, with quotes around it: 'PROFILE=\"3\"'."),
        ({"JOBS": True}, "JOBS is True, of type bool; expected int"),
        ({"RATE": "0.1"}, "RATE is '0.1', of type str; expected float."),
        ({"SEEDS": [0, "one"]}, "SEEDS is [0, 'one'], of type list; expected list[int]"),
    ],
)
def test_unknown_name_and_wrong_type_are_refused(made, given, message):
    book = made("a/b", [], parameters='PROFILE = "quick"\nJOBS = 1\nRATE = 0.1\nSEEDS = [0]')
    with pytest.raises(NotebookError, match=re.escape(message)):
        notebooks.check(book, given)
    notebooks.check(book, {"PROFILE": "paper", "JOBS": 2, "RATE": 1, "SEEDS": [0, 1]})


def test_what_papermill_gives_is_held_to_the_types_of_the_cell(made, tmp_path):
    """Its parameters go to the kernel past everything of ours."""
    book = made("a/b", ["import fednb\nfednb.check_parameters(globals())\nnever = DATA"], parameters='DATA: str = ""')
    with pytest.raises(papermill.PapermillExecutionError, match="NotebookError: DATA is 2024, of type int; "):
        papermill.execute_notebook(str(book.path), str(tmp_path / "out.ipynb"), {"DATA": 2024}, progress_bar=False)


def test_kinds_and_what_fits_them():
    assert (
        parameters.fits(None, int | None) and parameters.fits(["a"], list) and parameters.fits({"a": 1}, dict[str, int])
    )
    assert not parameters.fits({"a": "1"}, dict[str, int]) and not parameters.fits("a", int | None)


def test_a_kernel_runs_no_file_of_the_notebooks_folder_in_the_place_of_pythons_own(made, tmp_path):
    """What lies beside a notebook is imported all the same."""
    book = made("a/b", ["import helper, decimal\nhelper.HERE"])
    (book.path.parent / "helper.py").write_text("HERE = True")
    for name in ("pkgutil", "typing", "socket", "decimal"):
        (book.path.parent / f"{name}.py").write_text("raise SystemExit('a file of the folder was executed')")
    assert notebooks.execute(book, tmp_path / "out.ipynb", {}) is None


def test_a_kernel_with_another_copy_of_the_package_is_refused(tmp_path, monkeypatch):
    (tmp_path / "fednb").mkdir()
    (tmp_path / "fednb" / "registry.py").write_text("another")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotebookError, match=f"imports fednb from .*, which differs from {tmp_path}/fednb"):
        parameters.check_parameters({})
    monkeypatch.setenv(parameters.COPY, str(Path(parameters.__file__).parent))
    parameters.check_parameters({})


def test_settled_notebook_has_no_times_and_keeps_its_source(made, tmp_path):
    book = made("a/b", ["x = 2\nprint(x)"], parameters="ROUNDS = 3", tags={1: [CHECKED]})
    output = tmp_path / "out.ipynb"
    assert notebooks.execute(book, output, {"ROUNDS": 4}) is None
    executed = json.loads(output.read_text())
    assert len(executed["cells"]) == 3 and "papermill" in executed["metadata"]
    committed = recording.settle(executed)
    assert ["".join(cell["source"]) for cell in committed["cells"]] == ["ROUNDS = 3", "x = 2\nprint(x)"]
    assert committed["cells"][1]["outputs"][0]["text"] == ["2\n"]
    assert committed["cells"][1]["metadata"] == {"tags": [CHECKED]}
    assert [cell["execution_count"] for cell in committed["cells"]] == [1, 2]
    assert not re.search("papermill|duration|_time|iopub", json.dumps(committed))
    recording.write(committed, book.path)
    again = notebooks.Notebook(book.name, book.path)
    assert notebooks.execute(again, output, {}) is None
    assert recording.settle(json.loads(output.read_text())) == committed


def test_what_a_cell_prints_is_one_piece():
    def piece(text: list[str], name: str = "stdout") -> dict:
        return {"output_type": "stream", "name": name, "text": text}

    shown = [piece(["a\n", "b"]), piece(["c\n"]), piece(["d\n"], "stderr"), piece(["e\n"])]
    cell = {"cell_type": "code", "metadata": {}, "outputs": shown, "source": [], "execution_count": 5}
    (made,) = recording.settle({"metadata": {}, "cells": [cell]})["cells"]
    assert made["outputs"] == [piece(["a\n", "bc\n"]), piece(["d\n"], "stderr"), piece(["e\n"])]


def test_failing_cell_is_told_not_raised_and_what_a_kernel_logs_is_not_printed(made, tmp_path, capfd):
    book = made("a/b", ["get_ipython().kernel.log.error('KeyboardInterrupt caught in kernel')\n1 / 0"])
    assert notebooks.execute(book, tmp_path / "out.ipynb", {}) == "cell 1: ZeroDivisionError: division by zero"
    assert "KeyboardInterrupt" not in capfd.readouterr().err


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_execution_that_does_not_end_leaves_what_was_there(made, tmp_path, monkeypatch, error):
    def half(source, output, **settings):
        Path(output).write_text('{"cells"')
        raise error

    output = tmp_path / "out/b.ipynb"
    output.parent.mkdir()
    output.write_text("before")
    monkeypatch.setattr(papermill, "execute_notebook", half)
    with contextlib.suppress(KeyboardInterrupt):
        assert "No space left" in notebooks.execute(made("a/b", ["1"]), output, {})
    assert [path.read_text() for path in output.parent.iterdir()] == ["before"]


def checks_nothing(book) -> bool:
    """nbval would check nothing of a stripped notebook."""
    tagged = [cell for cell in book.content["cells"] if CHECKED in cell["metadata"].get("tags", [])]
    return not any(cell["outputs"] for cell in tagged)


def kind(value) -> str:
    """The annotation of a parameter: "list[int]" of [0, 1]."""
    if isinstance(value, list):
        return f"list[{kind(value[0])}]"
    if isinstance(value, dict):
        (of,) = {kind(entry) for entry in value.values()}
        return f"dict[str, {of}]"
    return type(value).__name__


def has_other_parameters_for_papermill(book) -> bool:
    """It reads the cell with a regular expression, and drops what it cannot parse."""
    ours, seen = notebooks.parameters(book), papermill.inspect_notebook(str(book.path))
    found = {name: (eval(each["default"]), each["inferred_type_name"]) for name, each in seen.items()}
    wanted = {name: (value, kind(value)) for name, value in ours.items()}
    return found != wanted or any("=" in each["help"] for each in seen.values())


def checks_its_parameters_late(book) -> bool:
    _, cell = next(pair for pair in pairwise(book.code) if "parameters" in pair[0][2])
    lines = [node for node in ast.parse(cell[1]).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return not re.search(r"fednb\.(notebook\(.*, globals\(\)|check_parameters\(globals\(\))\)", ast.unparse(lines[0]))


def says_too_little(book) -> bool:
    trains = any(re.search(r"(Study\(|page)\S*\.run\(", source) for _, source, _ in book.code)
    parameters = {"PROFILE", "DATA", "DEVICE", "SEEDS", "JOBS"} <= set(notebooks.parameters(book))
    notes = any("results.notes" in source or source == "page.footer()" for _, source, _ in book.code)
    return not {"paper", "result", "claim", "data", "minutes"} <= set(book.about) or trains > (parameters and notes)


def shows(content: dict) -> list:
    """What a notebook says and shows, without what an editor changes: numbers of executions, its own metadata, and the
    empty place where a bar was."""
    shown = [[o for o in cell.get("outputs", []) if o.get("data") != {}] for cell in content["cells"]]
    return [recording.written(content), [[o | {"execution_count": None} for o in of_one] for of_one in shown]]


def is_not_settled_or_names_a_folder(book) -> bool:
    """Then write it by `fednb run --record`."""
    path = re.search(r"/(home|root|tmp|work|Users)/", book.path.read_text())
    return bool(path) or shows(recording.settle(book.content)) != shows(book.content)


WRONG = [checks_nothing, has_other_parameters_for_papermill, checks_its_parameters_late, says_too_little]
WRONG += [is_not_settled_or_names_a_folder]


@pytest.mark.parametrize("wrong", WRONG)
def test_no_committed_notebook(wrong):
    assert [book.name for book in ALL if wrong(book)] == []


def test_committed_figures_are_those_of_the_notebooks(tmp_path):
    committed = notebooks.checkout() / "figures"
    for book in ALL:
        recording.write_figures(tmp_path, book, book.content)
    there = {path.relative_to(committed) for path in committed.rglob("*.png")}
    there = {path for path in there if path.parts[0] != "gallery"}  # thumbnails
    assert there and [name for name in there if (tmp_path / name).read_bytes() != (committed / name).read_bytes()] == []


@pytest.mark.parametrize("place", sorted({book.path.parent for book in ALL}), ids=lambda place: place.name)
def test_committed_notebooks_show_their_recorded_runs(place, tmp_path):
    """nbval executes them again, from results/ alone: without data, and with training forbidden."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax"]
    alone = {"FEDNB_DATA": str(tmp_path / "no-data"), "FEDNB_RUNS": str(tmp_path / "runs"), "FEDNB_TRAIN": "0"}
    done = subprocess.run([*command, str(place)], env=os.environ | alone, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def smoke_runs(tmp_path_factory):
    """One folder for the runs of all notebooks, and of all processes that test them: each recipe is trained once."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "smoke"


@pytest.mark.parametrize("name", SMOKE)
def test_notebook_runs_at_smoke(name, smoke_runs, tmp_path, monkeypatch):
    """Trained afresh, from embedded data, with one seed."""
    (book,) = (each for each in ALL if each.name == name)
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "no-data"))
    monkeypatch.setenv("FEDNB_RUNS", str(smoke_runs))
    monkeypatch.setenv("FEDNB_TRAIN", "1")
    given = {"PROFILE": "smoke", "JOBS": 1, "SEEDS": notebooks.parameters(book)["SEEDS"][:1]}
    assert notebooks.execute(book, tmp_path / "executed.ipynb", given) is None


def test_your_data_may_have_masks(tmp_path, monkeypatch):
    loaders.folders(tmp_path)
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("FEDNB_TRAIN", "1")
    (book,) = notebooks.select("your_data")
    own = {"DATA": str(tmp_path / "masked"), "MASKS": "background, spot", "SIZE": 16}
    assert notebooks.execute(book, tmp_path / "executed.ipynb", own | {"PROFILE": "smoke", "JOBS": 1}) is None
    shown = (tmp_path / "executed.ipynb").read_text()
    assert "Test Dice in per cent" in shown and "east (" in shown
