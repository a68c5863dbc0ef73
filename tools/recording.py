"""`fednb run --record`: whether recorded runs come from committed code, and what of notebooks is committed."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from fednb.commands import notebooks
from fednb.commands.notebooks import Notebook, written
from fednb.errors import DamagedError
from fednb.files import write_text
from fednb.records.record import Record, parsed
from fednb.records.staleness import changed

GENERATED = ("README.md", "docs/methods.md", "docs/notebooks.md", "results/README.md")  # by fednb report --readme


def dirty(root: Path) -> list[str]:
    """What stands in the way of recording: the changes in the work tree that are not recording's own product.

    Its own products are new files in results/, records in the place of stale ones with their files, anything in
    figures/, the pages with generated tables, and notebooks that say what the committed ones say (outputs differ, and
    what an editor adds): so an interrupted recording goes on. Any other changed record, and a deleted one, is none of
    them. One line for each change. Of a project inside a larger checkout its own folder counts. A copy without git is
    taken at its word where FEDNB_COMMIT is set.
    """
    if not (root / ".git").exists() and not _git(root, "ls-files", "."):
        named = os.environ.get("FEDNB_COMMIT")
        return [] if named else ["no git checkout: set FEDNB_COMMIT to the commit that these files are a copy of"]
    status = _git(root, "status", "--porcelain", "--untracked-files=all", "-z", ".")
    inside = _git(root, "rev-parse", "--show-prefix")  # of a larger checkout, whose paths git gives
    if status is None or inside is None:
        return ["git is not installed or cannot read this checkout; install it, or see `git status`"]
    changes = []
    entries = iter(status.split("\0"))
    for entry in entries:
        if not entry:
            continue
        code, path = entry[:2], entry[3:].removeprefix(inside.strip())
        if "R" in code or "C" in code:
            next(entries)  # the old name
        if not _own(root, code, path):
            changes.append(f"{code} {path}")
    return changes


def _own(root: Path, code: str, path: str) -> bool:
    if path in GENERATED or path.startswith("figures/"):
        return True
    if path.startswith("results/"):
        return code == "??" or (code.strip() == "M" and _renewed(root, path))
    if path.startswith("notebooks/") and path.endswith(".ipynb") and code.strip() == "M":
        texts = _git(root, "show", f"HEAD:./{path}"), (root / path).read_text(encoding="utf-8")
        with suppress(ValueError):  # a conflict's marks
            committed, now = (written(json.loads(text)) for text in texts)
            return committed == now
    return False


def _renewed(root: Path, path: str) -> bool:
    """Whether a changed file in results/ is a new record of a run whose committed one is stale, or lies beside such."""
    record = f"{path.rsplit('.', 2)[0]}.json" if path.endswith(".npz") else path
    committed = _record(_git(root, "show", f"HEAD:./{record}") or "")
    if not committed or not changed(committed):
        return False
    if path != record:
        return True
    now = _record((root / path).read_text(encoding="utf-8"))
    return bool(now) and now.key == committed.key and not changed(now)


def _record(text: str) -> Record | None:
    try:
        return parsed(text)[0]
    except DamagedError:
        return None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commit_outputs(root: Path, report: Path, book: Notebook) -> None:
    """Put the outputs of the executed copy into the notebook itself, and its figures into figures/: all of a project,
    and of the repository those that README.md and docs/ show."""
    content = notebooks.settle(notebooks.Notebook(book.name, notebooks.executed(report, book)).content)
    write(content, book.path)
    pages = [*root.glob("*.md"), *root.glob("docs/*.md")] if (root / "docs").is_dir() else None
    shown = None if pages is None else "".join(page.read_text(encoding="utf-8") for page in pages)
    notebooks.write_figures(root / "figures", book, content, shown)


def write(content: dict, path: Path) -> None:
    """Write a notebook's JSON as Jupyter does, so that a second recording changes nothing but outputs."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
