"""A record names the code that made it."""

import subprocess
from pathlib import Path

import pytest

import fednb
from fednb.records import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout with a package; the file of ``provenance`` seems to lie in it."""
    (tmp_path / "fednb" / "records").mkdir(parents=True)
    for name in ("fednb/records/provenance.py", "README.md", "pyproject.toml"):
        (tmp_path / name).write_text("one")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "README.md")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "fednb" / "records" / "provenance.py"))
    yield tmp_path
    provenance.code_version.cache_clear(), provenance.source_hash.cache_clear()


def git(root, *words) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True, text=True).stdout


def commit(root, name=None) -> str:
    """Commits all changes, and a new file of this name."""
    if name:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("two")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a change")
    return git(root, "rev-parse", "--short=12", "HEAD").strip()


def version() -> str:
    provenance.code_version.cache_clear()
    return provenance.code_version()


def test_it_is_the_last_commit_that_changed_the_package(checkout):
    first = version()
    commit(checkout, "results/run.json")
    assert version() == first
    second = commit(checkout, "fednb/new.py")
    commit(checkout, "notes.md")
    assert version() == second


def test_only_what_can_change_a_number_makes_it_dirty(checkout):
    (checkout / "README.md").write_text("three")
    assert not version().endswith("-dirty")
    (checkout / "fednb" / "new.py").write_text("an untracked method")
    assert version().endswith("-dirty")


def test_a_copy_is_given_the_name_of_its_commit(checkout, monkeypatch):
    """Whatever git it has: none, or that of another commit."""
    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    assert version() == "0123456789ab"
    (checkout / ".git").rename(checkout / "not git")
    assert version() == "0123456789ab"
    monkeypatch.delenv("FEDNB_COMMIT")
    assert version() == fednb.__version__


def test_two_changed_copies_of_one_version_have_two_sources(checkout):
    def source() -> str:
        provenance.source_hash.cache_clear()
        return provenance.source_hash()

    first = source()
    (checkout / "fednb" / "one.py").write_text("1")
    changed = source()
    (checkout / "fednb" / "notes.txt").write_text("no code")
    assert source() == changed != first
    (checkout / "fednb" / "one.py").rename(checkout / "fednb" / "two.py")
    assert source() not in (first, changed)


def test_every_artefact_lies_beside_its_record():
    results = Path(__file__).parents[1] / "results"
    named = "".join(path.read_text() for path in results.rglob("*.json"))
    shared = set(results.rglob("shared/*.npz"))
    assert shared and not [path for path in shared if f'_shared": "{path.stem}"' not in named]
    artefacts = set(results.rglob("*.npz")) - shared
    assert artefacts and not [path for path in artefacts if not path.with_suffix("").with_suffix(".json").is_file()]
