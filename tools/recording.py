"""`fednb run --record`: whether recorded runs come from committed code, and what of executed notebooks is committed."""

import base64
import glob
import io
import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from fednb.commands.notebooks import KERNEL, Notebook, executed
from fednb.errors import DamagedError
from fednb.files import write_text, write_together
from fednb.records.record import Record, parsed
from fednb.records.staleness import changed

SCRIPT = "injectModule("  # of what itables loads into a notebook
WIDGET = "application/vnd.jupyter.widget-view+json"  # nothing without its kernel
DRAWN = 20_000  # colours that a drawing has at most; in a photograph there are more
LARGEST = 220_000  # bytes of a photograph whose colours stay
GENERATED = (  # by fednb report --readme
    *("README.md", "docs/methods.md", "notebooks/README.md"),
    *("results/README.md", "results/board.csv", "results/curves.csv"),
)


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
        return parsed(text)
    except DamagedError:
        return None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commit_outputs(root: Path, report: Path, notebook: Notebook) -> None:
    """Put the outputs of the executed copy into the notebook itself, and its figures into figures/: all of a project,
    and of the repository those that README.md and docs/ show."""
    content = settle(Notebook(notebook.name, executed(report, notebook)).content)
    write(content, notebook.path)
    pages = [*root.glob("*.md"), *root.glob("docs/*.md")] if (root / "docs").is_dir() else None
    shown = None if pages is None else "".join(page.read_text(encoding="utf-8") for page in pages)
    write_figures(root / "figures", notebook, content, shown)


def write(content: dict, path: Path) -> None:
    """Write a notebook's JSON as Jupyter does, so that a second recording changes nothing but outputs."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def written(content: dict) -> list:
    """What a person wrote in a notebook: what it says about itself, then kind, text and tags of each cell.

    An editor that saves it fills in language and kernel, and changes none of this.
    """
    cells = content["cells"]
    told = [[cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", [])] for cell in cells]
    return [content["metadata"].get("fednb", {}), *told]


def settle(content: dict) -> dict:
    """An executed notebook as it is committed: without times, durations, papermill's own cells, and what an
    editor knows of the language and the kernel. What a cell prints is one piece, wherever the kernel cut it.
    """
    metadata = {key: value for key, value in content["metadata"].items() if key == "fednb"}
    metadata |= {"kernelspec": KERNEL, "language_info": {"name": KERNEL["language"]}}
    cells, count = [], 0
    for cell in content["cells"]:
        tags = [tag for tag in cell["metadata"].get("tags", []) if not tag.startswith("papermill-")]
        if "injected-parameters" in tags:
            continue
        cell = {**cell, "metadata": {"tags": tags} if tags else {}}
        if cell["cell_type"] == "code":
            count += 1
            numbered = {"execution_count": count}
            outputs = [{**o, **numbered} if "execution_count" in o else o for o in _joined(cell["outputs"])]
            cell |= {**numbered, "outputs": [_light(output) for output in outputs]}
        cells.append(cell)
    return {**content, "metadata": metadata, "cells": cells}


def _joined(outputs: list[dict]) -> list[dict]:
    joined = []
    for output in outputs:
        script = SCRIPT in "".join(output.get("data", {}).get("text/html", ""))  # 800 kB; the site has it once
        if script or WIDGET in output.get("data", {}):
            continue
        before = joined[-1] if joined else {}
        if output["output_type"] == before.get("output_type") == "stream" and output["name"] == before["name"]:
            text = "".join([*before["text"], *output["text"]])
            joined[-1] = {**before, "text": text.splitlines(keepends=True)}
        else:
            joined.append(output)
    return joined


def _light(output: dict) -> dict:
    """A drawing with a palette of 80 colours, which is a third of its bytes; a large photograph with one of 256."""
    if "image/png" not in (data := output.get("data", {})):
        return output
    from PIL import Image

    file = base64.b64decode("".join(data["image/png"]))
    picture = Image.open(io.BytesIO(file), formats=["PNG"])
    drawing = picture.mode != "P" and picture.convert("RGB").getcolors(DRAWN) is not None
    if picture.mode == "P" or not (drawing or len(file) > LARGEST):
        return output
    packed = io.BytesIO()
    colours = picture.convert("RGB").quantize(80 if drawing else 256, dither=Image.Dither.NONE)
    colours.save(packed, "PNG", optimize=True)
    small = min(file, packed.getvalue(), key=len)
    return {**output, "data": {**data, "image/png": base64.b64encode(small).decode()}} if small != file else output


def write_figures(folder: Path, notebook: Notebook, content: dict, pages: str | None = None) -> None:
    """The PNGs of an executed notebook as ``NAME.png``, or ``NAME-1.png`` and on where there are several.

    pages: Markdown; figures that it does not show are left out, as the notebook has them itself. All unless given.
    Figures that were there before and are none of these are removed.
    """
    shown = (output.get("data", {}) for cell in content["cells"] for output in cell.get("outputs", []))
    figures = [base64.b64decode("".join(data["image/png"])) for data in shown if "image/png" in data]
    place = folder / notebook.name
    for old in (place.with_suffix(".png"), *place.parent.glob(f"{glob.escape(place.name)}-[0-9]*.png")):
        old.unlink(missing_ok=True)
    for number, figure in enumerate(figures, 1):
        path = place.with_name(f"{place.name}{f'-{number}' * (len(figures) > 1)}.png")
        if pages is None or f"figures/{path.relative_to(folder).as_posix()}" in pages:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_together({path: figure})
