"""The lists of dependencies agree with each other, and the commands that README opens with exist."""

import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import check
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from fednb import papers
from fednb.loop.cluster import ENGINES

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = dict(PROJECT["optional-dependencies"])
FLOWER = EXTRAS.pop("flower")  # has an environment of its own
ASKED = [Requirement(line) for line in sum(EXTRAS.values(), PROJECT["dependencies"])]
for extra in (*ENGINES, "export"):  # installed by those who have a cluster, or these tools
    del EXTRAS[extra]
VERSIONS = ("3.11", "3.12", "3.13")
FILES = ("constraints.txt", "constraints-flower.txt")


def pins(file: str) -> dict[str, str]:
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


PINS = pins("constraints.txt")


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_each_dependency_is_pinned_inside_its_range(asked):
    pinned = PINS.get(canonicalize_name(asked.name))
    assert pinned, f"constraints.txt does not pin {asked.name}"
    assert asked.specifier.contains(pinned), f"{asked} but {pinned} is pinned"


def test_flowers_own_pins_fit_its_range_and_ours():
    own = pins("constraints-flower.txt")
    for asked in (Requirement(line) for line in (*FLOWER, *PROJECT["dependencies"])):
        version = own[canonicalize_name(asked.name)]
        assert asked.specifier.contains(version), f"{asked} but {version} is pinned"
    assert {name for name in own.keys() & PINS.keys() if own[name] != PINS[name]} == {"packaging"}


@pytest.mark.parametrize("name", PINS)
def test_each_pin_accepts_the_first_python_that_we_name(name):
    """Debian's Python 3.11 is 3.11.2: a pin for later ones only would stop `make run` there."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not needed on this machine")
    if installed.version.partition("+")[0] == PINS[name]:
        accepted = SpecifierSet(installed.metadata.get("Requires-Python") or "")
        assert all(accepted.contains(f"{version}.0") for version in VERSIONS), accepted


def test_constraints_name_versions_only():
    for line in "".join((ROOT / name).read_text() for name in FILES).splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_environment_leaves_all_but_python_to_pip():
    lines = [line.strip() for line in (ROOT / "environment.yml").read_text().splitlines()]
    wanted = lines[lines.index("dependencies:") + 1 :]
    python, *rest = (line.removeprefix("- ") for line in wanted)
    assert rest == ["pip", "pip:", "-c constraints.txt", f"-e .[{','.join(EXTRAS)}]"]
    assert python.removeprefix("python=") in VERSIONS and PROJECT["requires-python"] == ">=3.11"


def test_make_installs_what_the_lists_say():
    assert f'-c constraints.txt -e ".[{",".join(EXTRAS)}]"' in (ROOT / "Makefile").read_text()


def test_the_same_pythons_are_named_everywhere():
    first, last = VERSIONS[0], VERSIONS[-1]
    makefile = (ROOT / "Makefile").read_text()
    assert f"({first.replace('.', ', ')}) <= sys.version_info < (3, {int(last[2:]) + 1})" in makefile
    assert " ".join(f"python{version}" for version in VERSIONS) in makefile
    assert f"Needed: Python {', '.join(VERSIONS[:-1])} or {last} and make." in (ROOT / "README.md").read_text()
    assert f"python: {json.dumps(VERSIONS)}" in (ROOT / ".github/workflows/test.yml").read_text()


@pytest.fixture
def make(tmp_path):
    """``make(PYTHON)`` installs in a folder of its own; a Python there is a script that does as well as it ``fits``."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name, fits in (("right", 0), ("wrong", 1)):
        does = f'case "$1$2" in -c*) exit {fits};; -mvenv) mkdir -p .venv/bin && cp "$0" .venv/bin/python;; esac'
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    return lambda python: subprocess.run(
        ["make", ".venv/installed", f"PYTHON=./{python}"], cwd=tmp_path, capture_output=True, text=True
    )


def test_make_refuses_a_wrong_python_before_it_makes_anything(make, tmp_path):
    refused = make("wrong")
    assert refused.returncode and "./wrong is no Python 3.11, 3.12 or 3.13; install one" in refused.stdout
    assert not (tmp_path / ".venv").exists()


def test_make_makes_an_environment_of_a_wrong_python_again(make, tmp_path):
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "wrong", python)
    assert make("right").returncode == 0
    assert python.read_text() == (tmp_path / "right").read_text() and (tmp_path / ".venv/installed").exists()


def test_the_citation_is_of_this_version():
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\nlicense: {PROJECT['license']}\n" in cited
    arxiv = [papers.settings(name)["arxiv"] for name in papers.names()]
    assert sorted(re.findall(r"arxiv\.org/abs/(.+)", cited)) == sorted(arxiv)


def test_ruff_before_a_commit_is_ours():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"ruff==([\d.]+)", hooks)) == {PINS["ruff"]}


def test_first_commands_of_readme_are_targets():
    block = re.search(r"```(?:sh|bash|console)?\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    words = re.findall(r"^make (\w+)", block[1], re.MULTILINE)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert words == ["run", "test"] and set(words) <= set(targets)


def test_files_that_the_package_reads_are_installed_with_it():
    house = ROOT / "fednb"
    listed = {
        path for pattern in PYPROJECT["tool"]["setuptools"]["package-data"]["fednb"] for path in house.glob(pattern)
    }
    assert {path for path in house.rglob("*.*") if path.is_file() and path.suffix not in (".py", ".pyc")} == listed


def test_the_conformance_tests_are_installed_with_all_that_they_import():
    shipped = {
        path.stem: path
        for folder, patterns in PYPROJECT["tool"]["setuptools"]["data-files"].items()
        for pattern in patterns
        for path in ROOT.glob(pattern)
        if folder == "share/fednb/tests"
    }
    assert {Path(test).stem for test in check.TESTS} | {"conftest"} <= shipped.keys()
    beside = {path.stem for path in (ROOT / "tests").glob("*.py")}
    imported = re.findall(r"^(?:from|import) (\w+)", "\n".join(path.read_text() for path in shipped.values()), re.M)
    assert beside & {*imported} <= shipped.keys()
