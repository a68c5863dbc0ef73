"""The notebooks of a project or a checkout: found, read, executed by papermill, settled into what is committed.

Importing this file needs nothing but Python; papermill and Pillow are imported by the functions that use them.
"""

import ast
import base64
import contextlib
import fnmatch
import glob
import importlib
import io
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from itertools import chain
from pathlib import Path
from types import ModuleType

from fednb import registry
from fednb.errors import NotebookError, nearest
from fednb.files import PART, write_atomically
from fednb.parameters import kind_of, misfit, sampled
from fednb.records.progress import MARK

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
SCRIPT = "injectModule("  # of what itables loads into a notebook
DRAWN = 20_000  # colours that a drawing has at most; in a photograph there are more
LARGEST = 220_000  # bytes of a photograph whose colours stay


@dataclass(frozen=True)
class Notebook:
    """One notebook; `name` is its path below `notebooks/` without ending, such as "fedrdn/table1_main"."""

    name: str
    path: Path

    @cached_property
    def content(self) -> dict:
        """The notebook's JSON. NotebookError if the file cannot be read as a notebook."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            content["cells"], content["metadata"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotebookError(f"{self.name}: {self.path} is not a notebook ({error!r}); restore the file.") from error
        return content

    @property
    def about(self) -> dict:
        """What the notebook says about itself: paper, result, claim, data, minutes for each profile."""
        return self.content["metadata"].get("fednb", {})

    @property
    def code(self) -> list[tuple[int, str, list[str]]]:
        """(number of the cell counted from 1, its source, its tags) of every code cell."""
        return [
            (number, "".join(cell["source"]), cell["metadata"].get("tags", []))
            for number, cell in enumerate(self.content["cells"], 1)
            if cell["cell_type"] == "code"
        ]

    @property
    def trains(self) -> bool:
        """Whether the notebook declares a study, so that it has runs to plan."""
        return any(".run(" in source for _, source, _ in self.code)


def home() -> Path:
    """The folder that commands work on: the project that the current one is in, else the checkout.

    NotebookError if there is neither.
    """
    return registry.project() or checkout()


def homes() -> list[Path]:
    """What the board shows: ``home``, and the checkout around it where that is a project inside of one."""
    own = home()
    with contextlib.suppress(NotebookError):
        around = checkout()
        return [own] if own == around or not own.is_relative_to(around) else [own, around]
    return [own]


def checkout(part: str = "notebooks/") -> Path:
    """The folder of fednb's pyproject.toml: the current one or one above it, else the one beside the package; else what
    an installed package has of it, the conformance tests and recording.

    part: what is needed of it. NotebookError if there is none: notebooks are in the repository.
    """
    here = Path.cwd()
    for folder in chain((here, *here.parents, Path(__file__).resolve().parents[2]), _installed()):
        project = folder / "pyproject.toml"
        if not (folder / part).exists() or not project.is_file():
            continue
        with contextlib.suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("name") == "fednb":
                return folder
    if part != "notebooks/":
        raise NotebookError(f"{part} is in fednb's repository alone; clone it and run the command inside it.")
    raise NotebookError(
        f"{here} is no project: there is no {registry.PROJECT} in it or above it, and no {part} beside fednb's "
        "pyproject.toml. Go to your project, make one by `fednb new paper NAME`, or clone the repository and run the "
        "command inside it."
    )


def _installed() -> Iterator[Path]:
    """Where an installed package keeps what it has of the checkout, see ``data-files`` in pyproject.toml."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        files = metadata.files("fednb") or ()
        yield from (Path(file.locate()).resolve().parent for file in files if file.match("share/fednb/pyproject.toml"))


def tool(name: str) -> ModuleType:
    """A file of the checkout's ``tools/``; NotebookError as ``checkout``."""
    folder = str(checkout(f"tools/{name}.py") / "tools")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def found(only: str | None = None) -> list[Notebook]:
    """The notebooks of ``home``; `only` is a part of their names or a pattern such as "fedrdn/fig*"."""
    notebooks = inside(home())
    if not only:
        return notebooks
    chosen = [book for book in notebooks if only in book.name or fnmatch.fnmatchcase(book.name, only)]
    if not chosen:
        raise NotebookError(f'no notebook matches "{only}": {nearest(only, [book.name for book in notebooks])}')
    return chosen


def inside(home: Path) -> list[Notebook]:
    """All notebooks of a project or a checkout."""
    folder = home / "notebooks"
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*.ipynb")))
    shown = (path for path in paths if not any(part.startswith(".") for part in path.parts))
    return [Notebook(path.with_suffix("").as_posix(), folder / path) for path in shown]


def report_folder(named: str | None) -> Path:
    """The folder of the report: the named one, else report/ in ``home``. NotebookError where it is a file."""
    report = Path(named).absolute() if named else home() / "report"
    if report.is_file():
        raise NotebookError(f"{report} is a file; name a folder for the report with --report.")
    return report


def executed(report: Path, notebook: Notebook) -> Path:
    """Where the executed copy of a notebook lies in a report."""
    return report / "notebooks" / f"{notebook.name}.ipynb"


def parameters(notebook: Notebook) -> dict:
    """Names and defaults in the cell tagged `parameters`, read from its syntax; empty without such a cell."""
    values = {}
    for number, source, tags in notebook.code:
        if "parameters" not in tags:
            continue
        for line in ast.parse(source).body:
            target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
            try:
                values[target.id] = ast.literal_eval(line.value)
            except (AttributeError, ValueError) as error:
                raise NotebookError(
                    f'{notebook.name}, cell {number}: "{ast.unparse(line)}" is no parameter; '
                    "write NAME = plain value, and compute in a cell below."
                ) from error
    return values


def check(notebook: Notebook, given: dict) -> None:
    """NotebookError if `given` names a parameter that the notebook does not define, or has another type."""
    defaults = parameters(notebook)
    for name, value in given.items():
        if name not in defaults:
            raise NotebookError(f'{notebook.name} has no parameter "{name}": {nearest(name, defaults)}')
        kind = kind_of(defaults[name])
        if told := misfit(name, value, kind):
            raise NotebookError(f"{notebook.name}: {told}, such as --set '{name}={sampled(value, kind)}'.")


def plan(notebook: Notebook, **given) -> list:
    """The recipes that the notebook's first study asks for with these parameters; nothing is trained.

    The code cells are executed in order, without Jupyter, up to the study's `run()`. A notebook that never
    calls `run` is not executed at all. NotebookError names the cell if one fails.
    """
    check(notebook, given)
    if not notebook.trains:
        return []
    from fednb.study import Planned, planning

    space = {"__name__": "__main__"}
    with planning() as recipes, contextlib.redirect_stdout(io.StringIO()), _importing_from(notebook.path.parent):
        idle = _only_shown(notebook)
        for number, source, tags in notebook.code:
            try:
                cell = _parsed(source)
                cell.body = [line for line in cell.body if not idle or ast.unparse(line) not in idle]
                exec(compile(cell, f"<{notebook.name}, cell {number}>", "exec"), space)
            except Planned:
                break
            except Exception as error:
                raise NotebookError(
                    f"{notebook.name}, cell {number}: {type(error).__name__}: {error}. "
                    "The cells above the study cannot be executed, so its runs are not known."
                ) from error
            if "parameters" in tags:
                space.update(given)
    return list(recipes)


@contextlib.contextmanager
def _importing_from(folder: Path):
    """Inside, what lies in the folder can be imported, as in a kernel that starts there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _only_shown(notebook: Notebook) -> set[str]:
    """The pictures that end a cell, and each line that loads a federation of which cells do no more than show something
    in their last line, with those lines: loading and drawing take seconds, and no run rests on them."""
    loading, shown, others = {}, {}, set()
    shows = any(word in source for word in ("fednb.load(", "pictures.") for _, source, _ in notebook.code)
    for _, source, _ in notebook.code if shows else ():
        with contextlib.suppress(SyntaxError):
            *lines, last = _parsed(source).body or [ast.Pass()]
            for line in (*lines, last):
                text, named = ast.unparse(line), {each.id for each in ast.walk(line) if isinstance(each, ast.Name)}
                if re.fullmatch(r"(\w+) = fednb\.load\(.*\)", text):
                    loading[text.split(" ")[0]] = text
                elif line is last and isinstance(line, ast.Expr) and named <= {*loading, "pictures"}:
                    shown[text] = named
                else:
                    others |= named
    idle = loading.keys() - others
    return {loading[name] for name in idle} | {text for text, named in shown.items() if named & {*idle, "pictures"}}


def _parsed(source: str) -> ast.Module:
    """A cell's Python, without IPython's own lines."""
    return ast.parse("\n".join(line for line in source.splitlines() if not line.startswith(("%", "!"))))


def execute(notebook: Notebook, output: Path, given: dict) -> str | None:
    """Execute by papermill into the file `output`; returns what went wrong, or None.

    The kernel starts in the notebook's own folder, as JupyterLab's does. The output takes its place when papermill
    has finished, also when a cell fails; a dead kernel or a full disk leaves what was there.
    """
    import papermill

    check(notebook, given)
    part = output.with_name(f".{output.stem}{PART}.ipynb")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        papermill.execute_notebook(
            str(notebook.path),
            str(part),
            parameters=given,
            cwd=str(notebook.path.parent),
            kernel_name=KERNEL["name"],
            language=KERNEL["language"],
            progress_bar=False,
            # a kernel that is interrupted would tell that as an error; figures have two pixels for one of the page
            extra_arguments=["--log-level=CRITICAL", "--InlineBackend.figure_formats={'retina'}"],
        )
        os.replace(part, output)
    except papermill.PapermillExecutionError as error:
        os.replace(part, output)
        return f"cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
    except Exception as error:  # a dead kernel, a full disk: told in the summary, the other notebooks go on
        return f"{type(error).__name__}: {error}"
    finally:
        part.unlink(missing_ok=True)
    return None


def written(content: dict) -> list:
    """What a person wrote in a notebook: what it says about itself, then kind, text and tags of each cell.

    An editor that saves it fills in language and kernel, and changes none of this.
    """
    cells = content["cells"]
    told = [[cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", [])] for cell in cells]
    return [content["metadata"].get("fednb", {}), *told]


def settle(content: dict) -> dict:
    """An executed notebook as it is committed: without times, durations, papermill's own cells, progress, and what an
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
        if output.get("metadata") == MARK or script:
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
            write_atomically(path, lambda file, figure=figure: file.write(figure))
