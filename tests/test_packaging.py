"""The lists of dependencies agree with each other, and what is installed is all that commands need."""

import re
import subprocess
import tomllib
from pathlib import Path

import check
from packaging.requirements import Requirement
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


def test_pythons_and_extras_are_the_same_everywhere():
    texts = {name: (ROOT / name).read_text() for name in ("Makefile", "environment.yml", "README.md", "CITATION.cff")}
    extras = ",".join(extra for extra in EXTRAS if extra != "flower")
    assert f'-c constraints.txt -e ".[{extras}]"' in texts["Makefile"]
    assert f"- -c constraints.txt\n      - -e .[{extras}]\n" in texts["environment.yml"]
    first, last = VERSIONS[0], VERSIONS[-1]
    assert f"({first.replace('.', ', ')}) <= sys.version_info < (3, {int(last[2:]) + 1})" in texts["Makefile"]
    assert f"make and Python {', '.join(VERSIONS[:-1])} or {last}, and" in texts["README.md"]
    assert PROJECT["requires-python"] == f">={first}" and f"- python={first}\n" in texts["environment.yml"]
    assert f"\nversion: {PROJECT['version']}\nlicense: {PROJECT['license']}\n" in texts["CITATION.cff"]
    arxiv = [papers.settings(name)["arxiv"] for name in papers.own()]
    assert sorted(re.findall(r"arxiv\.org/abs/(.+)", texts["CITATION.cff"])) == sorted(arxiv)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"ruff==([\d.]+)", hooks)) == {pins("constraints.txt")["ruff"]}


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


def test_line_endings_are_fixed_for_every_text():
    """Hashes of source and records are of bytes; ``core.autocrlf`` must not change them."""
    asked = ["git", "check-attr", "eol", "--", "fednb/recipe.py", "results/board.csv", "notebooks/README.ipynb"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    if said.returncode == 0:
        assert [line.rpartition(" ")[2] for line in said.stdout.splitlines()] == ["lf"] * 3
