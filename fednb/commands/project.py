"""What a project lacks: said before anything starts where nothing can come of it, else after what was done."""

import tomllib
from pathlib import Path

from fednb import papers, registry
from fednb.commands.notebooks import Notebook
from fednb.errors import NotebookError, RecipeError, nearest

MARK = "TODO"  # of what a template leaves to its reader
WITH_TEXTS = ("papers", "algorithms", "augmentations", "models", "notebooks", "tests", ".github")


def refuse(project: Path, chosen: list[Notebook]) -> None:
    """NotebookError for a project without notebooks and for one without parameters; RecipeError for a paper that prints
    a federation which nobody has, claims what it does not print, or declares what the protocol refuses."""
    from fednb.report.claims import judged
    from fednb.report.curves import curves
    from fednb.study import Results

    try:
        tomllib.loads((project / registry.PROJECT).read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotebookError(f"{project / registry.PROJECT} cannot be read: {error}.") from error
    if not chosen:
        raise NotebookError(f"{project / 'notebooks'} has no notebook; `fednb new paper NAME` writes one.")
    for notebook in chosen:
        if not any("parameters" in tags for _, _, tags in notebook.code):
            raise NotebookError(
                f"{notebook.name} has no cell tagged parameters, so that no command can tell it what to run. Begin it "
                'with PROFILE: str = "quick"  # smoke, quick or paper.'
            )
    for paper in (paper for paper in papers.names() if papers.folder(paper).is_relative_to(project)):
        printed = {name for table in papers.tables(paper) for name in papers.printed(paper, table)["federation"]}
        if unknown := sorted(printed.difference(registry.names("datasets"))):
            hint = nearest(unknown[0], registry.names("datasets"))
            raise RecipeError(f"a table of {paper} is of the federation {unknown[0]}, which is no data set; {hint}")
        judged(Results({}), paper)  # refuses claims on what is not printed so
        curves(Results({}), paper)


def left_open(project: Path) -> list[str]:
    """What templates left open, a line for each file."""
    folders = (project / each for each in WITH_TEXTS)
    paths = [*project.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    found = []
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if marked := [str(number) for number, line in enumerate(lines, 1) if MARK in line]:
            place = path.relative_to(project).as_posix()
            found.append(f"{place} is to be filled in where it says {MARK}: line {', '.join(marked)}")
    return found
