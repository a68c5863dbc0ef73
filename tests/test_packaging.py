"""The lists of dependencies agree with each other, and what is installed is all that commands need."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import check
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from fednb import papers

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = dict(PROJECT["optional-dependencies"])
VERSIONS = ("3.11", "3.12", "3.13")


def pins(file: str) -> dict[str, str]:
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_each_dependency_is_pinned_inside_its_range():
    ours, flowers = pins("constraints.txt"), pins("constraints-flower.txt")
    others = sum((asked for extra, asked in EXTRAS.items() if extra != "flower"), [])
    for own, lines in ((ours, others), (flowers, EXTRAS["flower"])):  # Flower has an environment of its own
        asked = [Requirement(line) for line in (*PROJECT["dependencies"], *lines)]
        pinned = {str(each): own.get(canonicalize_name(each.name)) for each in asked}
        wrong = [each for each in asked if not pinned[str(each)] or not each.specifier.contains(pinned[str(each)])]
        assert wrong == []
    assert {name for name in flowers.keys() & ours.keys() if flowers[name] != ours[name]} == {"packaging"}


def test_each_pin_accepts_every_python_that_we_name():
    """Debian's Python 3.11 is 3.11.2: a pin for later ones only would stop `make run` there."""
    wrong = []
    for name, version in pins("constraints.txt").items():
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # not needed on this machine
            continue
        accepted = SpecifierSet(installed.metadata.get("Requires-Python") or "")
        same = installed.version.partition("+")[0] == version
        if same and not all(accepted.contains(f"{python}.0") for python in VERSIONS):
            wrong.append(name)
    assert wrong == []


def test_pythons_and_extras_are_the_same_everywhere():
    texts = {name: (ROOT / name).read_text() for name in ("Makefile", "environment.yml", "README.md", "CITATION.cff")}
    extras = ",".join(extra for extra in EXTRAS if extra not in ("flower", "ray"))
    assert f'-c constraints.txt -e ".[{extras}]"' in texts["Makefile"]
    assert f"- -c constraints.txt\n      - -e .[{extras}]\n" in texts["environment.yml"]
    first, last = VERSIONS[0], VERSIONS[-1]
    assert f"({first.replace('.', ', ')}) <= sys.version_info < (3, {int(last[2:]) + 1})" in texts["Makefile"]
    assert f"Needed: Python {', '.join(VERSIONS[:-1])} or {last} and make." in texts["README.md"]
    assert PROJECT["requires-python"] == f">={first}" and f"- python={first}\n" in texts["environment.yml"]
    assert f"\nversion: {PROJECT['version']}\nlicense: {PROJECT['license']}\n" in texts["CITATION.cff"]
    arxiv = [papers.settings(name)["arxiv"] for name in papers.own()]
    assert sorted(re.findall(r"arxiv\.org/abs/(.+)", texts["CITATION.cff"])) == sorted(arxiv)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"ruff==([\d.]+)", hooks)) == {pins("constraints.txt")["ruff"]}


def test_make_refuses_a_wrong_python_and_makes_an_environment_of_one_again(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name, fits in (("right", 0), ("wrong", 1)):  # a script that does as well as a Python that fits or does not
        does = f'case "$1$2" in -c*) exit {fits};; -mvenv) mkdir -p .venv/bin && cp "$0" .venv/bin/python;; esac'
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)

    def make(python: str):
        command = ["make", ".venv/installed", f"PYTHON=./{python}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    refused = make("wrong")
    assert refused.returncode and "./wrong is no Python 3.11, 3.12 or 3.13; install one" in refused.stdout
    assert not (tmp_path / ".venv").exists()
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "wrong", python)
    assert make("right").returncode == 0 and python.read_text() == (tmp_path / "right").read_text()


def test_files_that_the_package_reads_are_installed_with_it():
    house = ROOT / "fednb"
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["fednb"]
    listed = {path for pattern in patterns for path in house.glob(pattern)}
    assert {path for path in house.rglob("*.*") if path.is_file() and path.suffix not in (".py", ".pyc")} == listed


def test_the_conformance_tests_are_installed_with_all_that_they_import():
    patterns = PYPROJECT["tool"]["setuptools"]["data-files"]["share/fednb/tests"]
    shipped = {path.stem: path.read_text() for pattern in patterns for path in ROOT.glob(pattern)}
    assert {Path(test).stem for test in check.TESTS} | {"conftest"} <= shipped.keys()
    imported = re.findall(r"^(?:from|import) (\w+)", "\n".join(shipped.values()), re.MULTILINE)
    assert {path.stem for path in (ROOT / "tests").glob("*.py")} & {*imported} <= shipped.keys()


def test_an_editable_install_goes_before_a_folder_of_that_name(tmp_path):
    """A clone called fednb in the working directory would be an empty package otherwise."""
    for path in ("pyproject.toml", "README.md", "LICENSE", "fednb/__init__.py"):
        (tmp_path / "clone" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / "clone" / path)
    code = f"from setuptools.build_meta import build_editable as b; b({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "clone", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (line,) = (files.read(name).decode() for name in files.namelist() if name.endswith(".pth"))
    assert line.strip() == str(tmp_path / "clone")


def test_line_endings_are_fixed_for_every_text():
    """Hashes of source and records are of bytes; ``core.autocrlf`` must not change them."""
    asked = ["git", "check-attr", "eol", "--", "fednb/recipe.py", "results/board.csv", "notebooks/README.ipynb"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    if said.returncode == 0:
        assert [line.rpartition(" ")[2] for line in said.stdout.splitlines()] == ["lf"] * 3
