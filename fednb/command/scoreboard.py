"""Every claim of the papers, judged as the notebooks of their tables judge it, from recorded runs alone."""

import re
from typing import TYPE_CHECKING

from fednb import papers
from fednb.command import notebooks
from fednb.errors import NotebookError
from fednb.report import scoreboard
from fednb.report.board import COLUMNS
from fednb.report.claims import NOT_RUN
from fednb.report.effects import SPARE
from fednb.report.sentences import PRINTED, SMALL, TESTED
from fednb.study import Results, Study, default_store

if TYPE_CHECKING:
    from pandas import DataFrame

    from fednb.recipe import Recipe
    from fednb.runs.store import Store

PROFILES = ("paper", "quick")


def claims(store: "Store | None" = None) -> "DataFrame":
    """A row for each claim of all papers on each board, with the columns of ``fednb.report.board.COLUMNS``.

    The runs are those that the notebook of a claim's table asks for; they are found and never trained. A claim that ran
    at the paper's setting has a row for it, one that ran at a smaller one a row for that; one that did not run has one.

    store: where records are; ``default_store()`` unless given.
    """
    import pandas

    store = store or default_store()
    recorded = {path.parent.name for folder in store.folders for path in folder.glob("*/*.json")}
    books = {(book.about.get("paper"), table): book for book in notebooks.found() for table in _tables(book)}
    rows = []
    for paper in papers.names():
        every = papers.claims(paper)
        for table in dict.fromkeys(claim["table"] for claim in every):
            own, book = [claim for claim in every if claim["table"] == table], books.get((paper, table))
            on = {claim["federation"] for claim in own} & recorded if book else set()
            found = {name: [_judged(book, name, profile, table, store) for profile in PROFILES] for name in on}
            nothing = [scoreboard(Results({}), paper, table=table).frame]
            for number, claim in enumerate(own):
                each = [frame.iloc[number].to_dict() for frame in found.get(claim["federation"], nothing)]
                about = {"of": paper, "federation": claim["federation"], "notebook": book.name if book else ""}
                boards = [[row for row in each if row["setting"] == board] for board in (PRINTED, SMALL)]
                rows += [min(board, key=_rank) | about for board in boards if board] or [min(each, key=_rank) | about]
    more = [name for name in SPARE if any(name in row for row in rows)]
    return pandas.DataFrame(rows, columns=[*COLUMNS, *more])


def _tables(book) -> list[str]:
    """``["table16"]`` of a notebook whose result is "Figure 2, Table 16"."""
    return [f"table{number}" for number in re.findall(r"\bTable (\d+)", book.about.get("result", ""))]


def _judged(book, federation: str, profile: str, table: str, store: "Store") -> "DataFrame":
    """The claims of a table by the runs of its notebook on a federation, under one profile."""
    named = {"FEDERATION": federation} if "FEDERATION" in notebooks.parameters(book) else {}
    try:
        recipes = _of_claims(notebooks.plan(book, PROFILE=profile, **named))
    except NotebookError:  # a command that executes it says so
        recipes = []
    paper = book.about["paper"]
    results = Study(recipes, paper=paper, store=store).recorded()
    return scoreboard(results, paper, table=table).frame


def _of_claims(recipes: list["Recipe"]) -> list["Recipe"]:
    """Without those that stand beside: of a released variant, that keep something more than the first, and again in
    another precision than the first on their data.
    """
    kept = [own for own in recipes if own.evaluation == recipes[0].evaluation and "released" not in own.label]
    first = {}
    for own in kept:
        first.setdefault(repr(own.federation), own.precision)
    return [own for own in kept if own.precision == first[repr(own.federation)]]


def _rank(row: dict) -> int:
    """0 where a claim is tested, 1 where it has a number, 2 where it was run and has none, 3 where it was not run; the
    first of equals is taken.
    """
    return 0 if row["verdict"] in TESTED else 1 if row["setting"] else 2 + (row["verdict"] == NOT_RUN)
