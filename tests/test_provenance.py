"""A record names the code that made it."""

import subprocess
from pathlib import Path

import pytest

from fednb.records import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout with a package; the file of ``provenance`` seems to lie in it."""
    (tmp_path / "fednb" / "records").mkdir(parents=True)
    for name in ("fednb/records/provenance.py", "README.md", "pyproject.toml"):
        (tmp_path / name).write_text("one")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "fednb" / "records" / "provenance.py"))
    return tmp_path


def git(root, *words) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True, text=True).stdout


def version() -> str:
    provenance.code_version.cache_clear()
    return provenance.code_version()


@pytest.fixture(autouse=True)
def afterwards():
    yield
    provenance.code_version.cache_clear(), provenance.source_hash.cache_clear()


def head(root) -> str:
    return git(root, "rev-parse", "--short=12", "HEAD").strip()


def commit(root, name) -> str:
    (root / name).write_text("two")
    git(root, "add", "-A")
    git(root, "commit", "-qm", name)
    return head(root)


def test_it_is_the_last_commit_that_changed_the_package(checkout):
    (checkout / "results").mkdir()
    assert version() == (first := head(checkout))
    commit(checkout, "results/run.json")
    assert version() == first
    second = commit(checkout, "fednb/new.py")
    commit(checkout, "README.md")
    assert version() == second


def test_the_git_of_another_checkout_is_not_asked(checkout, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))  # as in a hook
    found = version()
    monkeypatch.delenv("GIT_DIR")
    assert found == head(checkout)


def test_a_package_that_was_never_committed_has_no_commit(checkout, monkeypatch):
    git(checkout, "rm", "-rq", "--cached", "fednb", "pyproject.toml")
    git(checkout, "commit", "-q", "--amend", "-m", "without the package")
    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    assert version() == "0123456789ab"


def test_only_what_can_change_a_number_makes_it_dirty(checkout):
    (checkout / "README.md").write_text("two")
    assert not version().endswith("-dirty")
    (checkout / "fednb" / "new.py").write_text("an untracked method")
    assert version().endswith("-dirty")


def test_a_copy_without_git_is_told_its_commit(checkout, monkeypatch):
    (checkout / ".git").rename(checkout / "not git")
    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    assert version() == "0123456789ab"


def test_a_copy_with_the_git_of_another_commit_is_told_its_own(checkout, monkeypatch):
    (checkout / "fednb" / "new.py").write_text("of the commit that was copied")
    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    assert version() == "0123456789ab"


def test_two_changed_copies_of_one_version_have_two_sources(checkout, monkeypatch):
    def source() -> str:
        provenance.source_hash.cache_clear()
        return provenance.source_hash()

    monkeypatch.setenv("FEDNB_COMMIT", "0123456789ab")
    first = source()
    (checkout / "fednb" / "one.py").write_text("1")
    changed, told = source(), version()
    (checkout / "fednb" / "one.py").write_text("2")
    assert version() == told and len({first, changed, source()}) == 3
    (checkout / "fednb" / "one.py").write_text("1")
    (checkout / "fednb" / "notes.txt").write_text("no code")
    assert source() == changed
    (checkout / "fednb" / "one.py").rename(checkout / "fednb" / "two.py")
    assert source() != changed


def test_every_artefact_lies_beside_its_record():
    results = Path(__file__).parents[1] / "results"
    named = "".join(path.read_text() for path in results.rglob("*.json"))
    shared = set(results.rglob("shared/*.npz"))
    assert shared and not [path for path in shared if f'_shared": "{path.stem}"' not in named]
    artefacts = set(results.rglob("*.npz")) - shared
    assert artefacts and not [path for path in artefacts if not path.with_suffix("").with_suffix(".json").is_file()]


def test_the_processor_is_named_with_the_instructions_that_it_has(monkeypatch, tmp_path):
    told = "processor\t: 0\nmodel name\t: Some Processor\nflags\t\t: fpu avx2 avx512f avx512_bf16 sse\n"
    read, there = Path.read_text, Path.is_file
    monkeypatch.setattr(Path, "read_text", lambda path, *a: told if str(path) == "/proc/cpuinfo" else read(path, *a))
    provenance.processor.cache_clear()
    try:
        found = provenance.processor()
        assert found["processor"] == "Some Processor" and found["instructions"].endswith(": avx2 avx512f avx512_bf16")
        monkeypatch.setattr(Path, "is_file", lambda path: str(path) != "/proc/cpuinfo" and there(path))
        provenance.processor.cache_clear()
        assert provenance.processor()["processor"] and ":" not in provenance.processor()["instructions"]
    finally:
        provenance.processor.cache_clear()
