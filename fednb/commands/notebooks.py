"""The notebooks of a project or a checkout: found, read, executed by papermill. Listing them needs Python alone."""

import ast
import contextlib
import fnmatch
import importlib
import json
import os
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
from fednb.files import PART, environment
from fednb.parameters import COPY, kind_of, misfit

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# The notebook's folder comes last: what lies next to a notebook is imported, and takes the place of no other file.
FOLDER_LAST = "--IPKernelApp.exec_lines=import sys; sys.path.append('')"


@dataclass(frozen=True)
class Notebook:
    """One notebook; `name` is its path below `notebooks/` without ending, such as "fedrdn/table1_main"."""

    name: str
    path: Path

    @cached_property
    def content(self) -> dict:
        """The notebook's JSON. NotebookError if the file cannot be read as JSON."""
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotebookError(f"{self.name}: {self.path} is not a notebook ({error!r}); restore the file.") from error

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


def home() -> Path:
    """The folder that commands work on: the project that the current one is in, else the checkout."""
    return registry.project() or checkout()


def checkout(part: str = "notebooks/") -> Path:
    """The folder of fednb's pyproject.toml with this part: the current one or one above it, else the one next to the
    package; else what an installed package has of it. NotebookError where there is none."""
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
        f"{here} is no project: there is no {registry.PROJECT} in it or above it, and it is in no clone of fednb. Go "
        "to either, or make a project by `fednb new paper NAME`."
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


def select(only: str | None = None) -> list[Notebook]:
    """The notebooks of ``home``; `only` is a part of their names or a pattern such as "fedrdn/fig*"."""
    folder = home() / "notebooks"
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*.ipynb")))
    shown = (path for path in paths if not any(part.startswith(".") for part in path.parts))
    notebooks = [Notebook(path.with_suffix("").as_posix(), folder / path) for path in shown]
    if not only:
        return notebooks
    chosen = [each for each in notebooks if only in each.name or fnmatch.fnmatchcase(each.name, only)]
    if not chosen:
        raise NotebookError(f'no notebook matches "{only}": {nearest(only, [each.name for each in notebooks])}')
    return chosen


def report_folder(named: str | None) -> Path:
    """The folder of the report: the named one, else report/ in ``home``."""
    return Path(named).absolute() if named else home() / "report"


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
                why = f'"{ast.unparse(line)}" is no parameter; write NAME = plain value, and compute in a cell below'
                raise NotebookError(f"{notebook.name}, cell {number}: {why}.") from error
    return values


def check(notebook: Notebook, given: dict) -> None:
    """NotebookError if `given` names a parameter that the notebook does not define, or has another type."""
    defaults = parameters(notebook)
    for name, value in given.items():
        if name not in defaults:
            raise NotebookError(f'{notebook.name} has no parameter "{name}": {nearest(name, defaults)}')
        if found := misfit(name, value, kind_of(defaults[name])):
            raise NotebookError(f"{notebook.name}: {found}.")


def execute(notebook: Notebook, output: Path, given: dict) -> str | None:
    """Execute by papermill into the file `output`; returns what went wrong, or None.

    The kernel starts in the notebook's own folder, as JupyterLab's does. A dead kernel or a full disk leaves what was
    there.
    """
    import papermill

    check(notebook, given)
    part = output.with_name(f".{output.stem}{PART}.ipynb")
    # Of the kernel: it has the notebook's folder behind Python's own files then, and knows the package that is meant.
    apart = environment(PYTHONSAFEPATH="1", **{COPY: str(Path(__file__).parents[1])})
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with apart:
            papermill.execute_notebook(
                str(notebook.path),
                str(part),
                parameters=given,
                cwd=str(notebook.path.parent),
                kernel_name=KERNEL["name"],
                language=KERNEL["language"],
                progress_bar=False,
                # a kernel that is interrupted would tell that as an error; figures have two pixels for one of the page
                extra_arguments=["--log-level=CRITICAL", "--InlineBackend.figure_formats={'retina'}", FOLDER_LAST],
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
