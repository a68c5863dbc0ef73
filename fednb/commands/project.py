"""What a project lacks: said before anything starts where nothing can come of it, else beside what was done."""

import contextlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from fednb import catalogue, outside, papers
from fednb.commands import notebooks
from fednb.commands.notebooks import Notebook
from fednb.commands.scoreboard import tables_of
from fednb.errors import NotebookError, RecipeError, nearest
from fednb.report.claims import judged
from fednb.report.curves import curves
from fednb.report.labels import printed_for
from fednb.results import Results

MARK = "TODO"  # of what a template leaves to its reader
WITH_TEXTS = ("papers", "algorithms", "augmentations", "models", "notebooks", "tests", ".github")


def name(project: Path) -> str:
    """What a project calls itself in its ``fednb.toml``, else its folder's name.

    NotebookError where that is no TOML.
    """
    file = project / outside.PROJECT
    try:
        return str(tomllib.loads(file.read_text(encoding="utf-8")).get("name", project.name))
    except ValueError as error:
        raise NotebookError(f'{file} cannot be read: {error}. Expected TOML, such as name = "mine".') from error


def own_papers(project: Path) -> list[str]:
    """The papers that lie in the project."""
    return [paper for paper in papers.names() if papers.folder(paper).is_relative_to(project)]


def refuse(project: Path, books: list[Notebook]) -> None:
    """NotebookError for a project without notebooks and for one without parameters; RecipeError for a paper that prints
    a federation which nobody has, claims what it does not print, or declares what the protocol refuses."""
    name(project)
    if not books:
        raise NotebookError(f"{project / 'notebooks'} has no notebook; `fednb new paper NAME` writes one.")
    for book in books:
        if not any("parameters" in tags for _, _, tags in book.code):
            raise NotebookError(
                f"{book.name} has no cell tagged parameters, so that no command can tell it what to run. Begin it with "
                'PROFILE: str = "quick"  # smoke, quick or paper.'
            )
    for paper in own_papers(project):
        for table in papers.tables(paper):
            for federation in papers.printed(paper, table)["federation"].unique():
                if federation not in catalogue.names("datasets"):
                    raise RecipeError(
                        f"{paper}_{table}.csv is of the federation {federation}, which is in no room data; "
                        f"{nearest(federation, catalogue.names('datasets'))}"
                    )
        judged(Results({}), paper)  # refuses claims on what is not printed so
        curves(Results({}), paper)


def lacking(project: Path, folders: Iterable[Path] = ()) -> list[str]:
    """What is still to be done, a line each: claims on runs that no notebook makes, printed sites that no run has which
    is recorded in these folders, and what templates left open."""
    return [*_not_made(project), *_not_there(project, folders), *_left_open(project)]


def _not_made(project: Path) -> list[str]:
    made, found = {}, []
    for paper in own_papers(project):
        for claim in papers.claims(paper):
            place = paper, claim["table"], claim["federation"]
            if place not in made:
                made[place] = _labels(project, *place)
            found += [
                f"{paper}/claims.csv: no notebook makes {side} for {claim['table']} on {claim['federation']}"
                for side in (claim["better"], claim["worse"])
                if not any(printed_for(label, [side]) for label in made[place])
            ]
    return list(dict.fromkeys(found))


def _labels(project: Path, paper: str, table: str, federation: str) -> set[str]:
    """The runs that the notebooks of a printed table ask for on a federation, at the paper's setting."""
    recipes = []
    for book in notebooks.inside(project):
        if book.about.get("paper") == paper and table in tables_of(book):
            known = notebooks.parameters(book)
            given = {"PROFILE": "paper", "FEDERATION": federation}
            with contextlib.suppress(NotebookError):  # it is told where the notebook is planned
                recipes += notebooks.plan(book, **{name: given[name] for name in given if name in known})
    return {recipe.label for recipe in recipes if recipe.full["federation"]["name"] == federation}


def _not_there(project: Path, folders: Iterable[Path]) -> list[str]:
    found = []
    for paper in own_papers(project):
        means = papers.settings(paper).get("means_of_clients", ())
        for federation in sorted(papers.printed_federations(paper).difference(means)):
            there = set()
            for path in (path for folder in folders for path in (folder / federation).glob("*.json")):
                with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged, which others tell
                    there.update(json.loads(path.read_text(encoding="utf-8"))["clients"])
            found += [
                f"papers/{paper}: no run on {federation} has the printed site {site}; {nearest(site, sorted(there))}"
                for site in papers.sites(paper, federation)
                if there and site not in there
            ]
    return found


def _left_open(project: Path) -> list[str]:
    folders = (project / each for each in WITH_TEXTS)
    paths = [*project.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    found = []
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if marked := [str(number) for number, line in enumerate(lines, 1) if MARK in line]:
            place = path.relative_to(project).as_posix()
            found.append(f"{place} is to be filled in where it says {MARK}: line {', '.join(marked)}")
    return found
