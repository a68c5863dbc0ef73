"""A project of somebody's own: found from inside, worked on without a checkout, written by `fednb new`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fednb import cli, datasets, papers, registry, report
from fednb.commands import notebooks, project, trivial
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.report import gates, judging
from fednb.study import default_store

ROOT = Path(__file__).parents[1]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that is in no project and no checkout, the current one; what commands set is restored afterwards, and
    what is remembered of papers by their names is forgotten before and after."""
    remembered = (papers._printed, papers.printed_federations, papers._frame, papers._rows, papers.toml)
    for each in (*remembered, protocol._whole):
        each.cache_clear()
    monkeypatch.setattr(notebooks, "__file__", str(tmp_path / "site-packages/fednb/commands/notebooks.py"))
    monkeypatch.setattr(notebooks, "_installed", lambda: ())
    for name in (registry.FOLDERS, "FEDNB_RUNS", "FEDNB_STALE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "no-data"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for each in (*remembered, protocol._whole):
        each.cache_clear()


@pytest.fixture
def made(place, monkeypatch, capsys) -> Path:
    """A project as `fednb new` writes it, the current folder."""
    assert cli.main(["new", "paper", "third_way"]) == 0
    capsys.readouterr()
    monkeypatch.chdir(place / "third_way")
    return place / "third_way"


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_it_is_found_from_inside_and_has_its_own_rooms(made, monkeypatch):
    assert papers.names()[-1] == "third_way" and registry.source("papers", "third_way") == "folder third_way"
    for inside in (made / "notebooks/third_way", made / "papers"):
        monkeypatch.chdir(inside)
        assert registry.project() == notebooks.home() == made and registry.searched() == str(made)
        assert [own.name for own in notebooks.select()] == ["third_way/table1"]
        assert notebooks.report_folder(None) == made / "report" and default_store().folders[1] == made / "results"
    monkeypatch.delenv("FEDNB_DATA")
    assert datasets.data_root() == made / "data"
    monkeypatch.setenv(registry.FOLDERS, str(made))  # for processes elsewhere: once, all the same
    assert registry.searched() == str(made) and Recipe(augmentations=["third_way"]).label == "fedavg+third_way"
    monkeypatch.setenv(registry.FOLDERS, "")
    monkeypatch.chdir(made.parent)
    assert registry.project() is None and "third_way" not in papers.names()


def test_a_folder_that_is_no_project_and_one_without_notebooks_are_named(place, monkeypatch, capsys):
    for words in (["list"], ["run"], ["status"], ["report"]):
        assert cli.main(words) == 1
        assert f"{place} is no project: there is no fednb.toml in it or above it" in capsys.readouterr().err
    assert not tree(place)
    (place / "empty").mkdir()
    (place / "empty/fednb.toml").write_text("")
    monkeypatch.chdir(place / "empty")
    assert cli.main(["run"]) == 1
    assert "notebooks has no notebook; `fednb new paper NAME` writes one" in capsys.readouterr().err
    for words, file in ((["bench"], "tools/bench.py"), (["report", "--readme"], "tools/readme.py")):
        assert cli.main(words) == 1
        assert f"{file} is in fednb's repository alone; clone it" in capsys.readouterr().err


def test_it_runs_at_once_and_says_what_is_to_be_filled_in(made, capsys):
    assert cli.main(["run", "--profile", "smoke", "--jobs", "1", "--set", "SEEDS=[0, 1]"]) == 0
    out = capsys.readouterr().out
    assert "1 notebooks executed, 0 failed; 4 runs trained\n" in out
    assert "note: papers/third_way.toml is to be filled in where it says TODO: line 1, 2, " in out
    copy = made / "report/notebooks/third_way/table1.ipynb"
    assert f"executed: {made / 'report/notebooks'}\nnext: jupyter lab {copy}\n" in out
    shown = json.loads(copy.read_text())
    outputs = [o["data"] for cell in shown["cells"] for o in cell.get("outputs", [])]
    text = "".join("".join(data.get("text/plain", "")) for data in outputs)
    assert re.search(r"found +at a smaller setting, ThirdWay - FedAvg \+.* points .*printed \+3\.5: \w+", text)
    assert len(judging.claims(default_store(), ["third_way"])) == 1
    assert cli.main(["status"]) == 0
    out = capsys.readouterr().out
    assert "shifted_digits: 4 runs, " in out and "note: papers/third_way.toml is to be filled in" in out


def test_in_a_checkout_its_records_are_read_too(made, monkeypatch):
    (made.parent / "pyproject.toml").write_text('[project]\nname = "fednb"\n')
    monkeypatch.setattr("fednb.study.__file__", str(made.parent / "fednb/study.py"))
    assert made.parent / "results" in default_store().folders and notebooks.home() == made


def test_what_a_constant_answer_scores_is_added_for_data_of_its_own(made, monkeypatch):
    (made / "datasets").mkdir()
    (made / "datasets/ours.py").write_text(
        "from fednb.datasets import shifted_digits\n"
        "NEEDS, missing = None, lambda root: "
        "None\ndef load(root=None):\n    return shifted_digits.load(size=8)\n"
    )
    for federation in ({"name": "ours"}, {"name": "shifted_digits", "size": 32}):  # the second is known to us
        recipe = made / "results" / federation["name"] / "run.json"
        recipe.parent.mkdir()
        recipe.write_text(json.dumps({"recipe": {"federation": federation, "seed": 0}}))
    (made / "results/ours/damaged.json").write_text("{")
    file = made / "results/trivial.json"
    assert trivial.add(file, [made / "results"]) == ['{"name": "ours"}']
    assert gates._known(made)['{"name": "ours"}']["chance"] == 10.0 and '{"name": "ours"}' not in gates._known(None)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fedrdn", 'there is a paper "fedrdn" already, in fednb/papers; take another name'),
        ("third-way", '"third-way" cannot name a paper; expected a name in Python, in lower case'),
        ("class", '"class" cannot name a paper'),
        ("protocol", '"protocol" cannot name a paper: papers/protocol.toml declares runs'),
        ("taken", "taken is there already, and nothing was written"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_before_anything_is_written(place, capsys, name, said):
    (place / "taken").mkdir()
    (place / "taken/file").write_text("mine")
    before = tree(place)
    assert cli.main(["new", "paper", name]) == 1
    assert said in capsys.readouterr().err and tree(place) == before


def test_a_project_takes_another_paper_and_keeps_its_files(made, capsys):
    (made / "README.md").write_text("mine")
    before = tree(made)
    assert cli.main(["new", "paper", "fourth"]) == 0
    added = {path.relative_to(made).as_posix() for path in tree(made).keys() - before.keys()}
    assert {path: text for path, text in tree(made).items() if path in before} == before
    assert added == {
        "augmentations/fourth.py",
        "notebooks/fourth/table1.ipynb",
        "papers/fourth.toml",
        *(f"papers/fourth/{file}" for file in ("captions.toml", "claims.csv", "fourth_table1.csv")),
    }
    assert papers.names()[-2:] == ["fourth", "third_way"] and len(notebooks.select()) == 2
    (made / "papers/fifth.toml").write_text("mine")
    before = tree(made)
    assert cli.main(["new", "paper", "fifth"]) == 1
    assert "papers/fifth.toml is there already, and nothing was written" in capsys.readouterr().err
    assert tree(made) == before


@pytest.mark.parametrize(
    ("words", "row", "room"),
    [
        (["fourth"], "fedavg,fourth,", "augmentations"),
        (["fourth", "--algorithm"], "fourth,,", "algorithms"),
        (["fedbn"], "fedbn,,", None),  # fednb has the method
        (["mixup", "--algorithm"], "fedavg,mixup,", None),
    ],
)
def test_a_paper_has_any_free_name_and_its_method_is_of_either_room(place, monkeypatch, words, row, room):
    assert cli.main(["new", "paper", *words]) == 0
    name, root = words[0], place / words[0]
    assert [path.parent.name for path in root.glob(f"a*/{name}.py")] == ([room] if room else [])
    assert f"\n{row}" in (root / f"papers/{name}/{name}_table1.csv").read_text()
    monkeypatch.chdir(root)
    project.refuse(root, notebooks.select())  # its claim is of its table
    assert [Recipe(**each).label for each in papers.rows(name, "table1")][1] in papers.claims(name)[0]["better"]


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("notebooks/third_way/table1.ipynb", '"parameters"', '"other"', "no cell tagged parameters"),
        ("papers/third_way/third_way_table1.csv", "shifted_digits", "shifted_digit", 'did you mean "shifted_digits"?'),
        ("papers/third_way/claims.csv", "table1", "table7", 'third_way\'s table "table7" is not known'),
        ("papers/third_way/claims.csv", "_digits,,", "_digits,40 %,", 'table1: the setting "40 %" is not known'),
        ("papers/third_way/claims.csv", "average,fedavg+", "average,moon+", "a claim is of moon+third_way above"),
        ("papers/third_way/third_way_table1.csv", "76.0", "70.0", "the difference that is printed is -2.50"),
        ("papers/third_way/third_way_table1.csv", "site,", "client,", "source, client, value; expected site, too"),
        ("papers/third_way/third_way_table1.csv", "76.0", "76 %", "third_way_table1.csv has a row fedavg, third_way, "),
        ("papers/third_way/claims.csv", "site,", "client,", "client, better, worse, place; expected site, too"),
        ("papers/third_way.toml", "venue", "place", "third_way.toml has title, arxiv, place, "),
        ("fednb.toml", "=", "is", "fednb.toml cannot be read"),
    ],
)
def test_what_nothing_can_come_of_is_refused_before_anything_starts(made, capsys, file, before, after, said):
    change(made / file, before, after)
    assert cli.main(["run", "--profile", "smoke"]) == 1
    assert said in capsys.readouterr().err and not (made / "report").exists()


def test_a_paper_may_claim_nothing(made):
    change(made / "papers/third_way/claims.csv", "table1,shifted_digits", "# table1,shifted_digits")
    project.refuse(made, notebooks.select())
    board, _ = report.recorded_board("third_way")
    assert board.empty and report.summary(board)[0].startswith("None of 0 pairwise claims of 0 papers")
    assert "No row: nothing of it is recorded." in repr(report.board(board))


def test_what_is_written_is_as_ruff_wants_it(made):
    for words in (["check", "--select", "E,F,W,I,B,UP"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--line-length", "120", "--isolated", "."]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_example_is_a_whole_project(place, monkeypatch, capsys):
    """Away from this checkout: its notebook runs, claims and declared runs are read, and nothing is left open."""
    ignored = shutil.ignore_patterns("report", "results", "__pycache__")
    shutil.copytree(ROOT / "examples/niid_bench", place / "niid_bench", ignore=ignored)
    monkeypatch.chdir(place / "niid_bench")
    assert cli.main(["run", "--profile", "smoke", "--jobs", "1", "--set", "SEEDS=[0]"]) == 0
    out = capsys.readouterr().out
    assert "1 notebooks executed, 0 failed; 4 runs trained\n" in out and "note:" not in out
    claims, _ = report.recorded_board("niid_bench")
    assert set(claims["of"]) == {"niid_bench"} and claims["paper"].tolist() == pytest.approx([1.2, 0.8, 1.6])
    declared = [run["profile"] for run in protocol.rules()["runs"] if run["paper"] == "niid_bench"]
    assert declared == ["quick", "paper"]


def test_what_the_example_says_of_its_runs_is_what_they_say(place, monkeypatch):
    shutil.copytree(ROOT / "examples/niid_bench", place / "niid_bench")
    monkeypatch.chdir(place / "niid_bench")
    claims, _ = report.recorded_board("niid_bench")
    assert set(claims["seeds"]) == {3}
    for claim in claims.itertuples():
        worse = re.search("above (\\w+) on", claim.claim)[1]
        found = f"{claim.ours:+.1f} ({claim.together_low:+.1f} to {claim.together_high:+.1f})"
        assert f"| {worse} | {claim.paper:+.1f} | {found} | {claim.verdict} |" in Path("README.md").read_text()


@pytest.mark.slow
def test_all_works_from_a_wheel_without_a_checkout(tmp_path):
    """In an environment of its own: the built wheel, and beside it what fednb needs, which is this one's."""
    bare, source = tmp_path / "bare", tmp_path / "source"
    for name in ("fednb", "tools", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    hidden = ("FEDNB_", "PYTHONPATH", "PYTEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}

    def done(place: Path, *words) -> str:
        made = subprocess.run(list(map(str, words)), cwd=place, env=environment, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout

    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = (sys.executable, "-m", "pip", "-q")
    done(tmp_path, *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, source)
    done(tmp_path, sys.executable, "-m", "venv", "--without-pip", bare)
    (wheel,) = tmp_path.glob("fednb-*.whl")
    done(tmp_path, *pip, "--python", bare / "bin/python", "install", "--no-deps", wheel)
    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    shutil.rmtree(source)

    fednb, project = bare / "bin/fednb", tmp_path / "third_way"
    assert str(packages) in done(tmp_path, bare / "bin/python", "-c", "import fednb; print(fednb.__file__)")
    done(tmp_path, fednb, "new", "paper", "third_way")
    run = done(project, fednb, "run", "--profile", "smoke", "--jobs", "1", "--set", "SEEDS=[0]")
    assert "1 notebooks executed, 0 failed; 2 runs trained" in run
    assert "shifted_digits: 2 runs" in done(project, fednb, "status")
    assert "shifted_digits" in done(project, fednb, "data")
    assert "third_way: every conformance test passes" in done(project, fednb, "check", "third_way")
    assert "2 passed, 1 skipped" in done(project, bare / "bin/python", "-m", "pytest", "-q")
