"""Every claim of the papers, judged as the notebooks of their tables judge it, from recorded runs alone."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from fednb import outside, papers
from fednb.commands import notebooks
from fednb.errors import NotebookError
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.report.claims import COLUMNS as OF_CLAIMS
from fednb.report.claims import NOT_RUN, judged
from fednb.report.curves import AS_PRINTED, OTHERWISE
from fednb.report.curves import COLUMNS as CURVE_COLUMNS
from fednb.report.curves import curves as of_curves
from fednb.report.effects import SPARE
from fednb.report.verdicts import PRINTED, SMALL, TESTED
from fednb.results import Results
from fednb.study import Study, default_store

if TYPE_CHECKING:
    from pandas import DataFrame

PROFILES = ("paper", "quick")
COLUMNS = ("of", *OF_CLAIMS, "federation", "notebook")


def claims(store: Store | None = None) -> "DataFrame":
    """A row for each claim of all papers on each board, with the paper (``of``) and the notebook
    beside ``fednb.report.claims.COLUMNS``.

    The runs are those that the notebooks of a claim's table ask for; they are found and never trained. A claim that ran
    at the paper's setting has a row for it, one that ran at a smaller one a row for that, of several the first that is
    tested and differs least from the paper's setting; one that did not run has one.

    store: where records are; ``default_store()`` unless given.
    """

    def judge(results: Results, paper: str, table: str) -> "DataFrame":
        return judged(results, paper, claims=[claim for claim in papers.claims(paper) if claim["table"] == table])

    return _everywhere(store, papers.claims, "table", judge, COLUMNS)


def curves(store: Store | None = None) -> "DataFrame":
    """The same for claims on orders and curves, with ``fednb.report.curves.COLUMNS``."""
    return _everywhere(store, papers.curves, "figure", of_curves, CURVE_COLUMNS)


def _everywhere(store: Store | None, claimed: Callable, place: str, judge: Callable, columns) -> "DataFrame":
    """place: the field of a claim that its notebook is found by."""
    import pandas

    store = store or default_store()
    recorded = {path.parent.name for folder in store.folders for path in folder.glob("*/*.json")}
    books = defaultdict(list)
    homes = notebooks.homes()
    for book in (book for home in homes for book in notebooks.inside(home)):
        for each in tables_of(book):
            books[book.about.get("paper"), each].append(book)
    rows = []
    for paper in papers.names():
        if homes == [outside.project()] and not papers.source(paper):
            continue  # of ours there is nothing to show
        every = claimed(paper)
        for shown in dict.fromkeys(claim[place] for claim in every):
            own, shows = [claim for claim in every if claim[place] == shown], books[paper, shown]
            on = {claim["federation"] for claim in own} & recorded if shows else set()
            found = {
                name: [
                    _judged(book, name, each, shown, store, judge).assign(notebook=book.name)
                    for book in shows
                    for each in PROFILES
                ]
                for name in on
            }
            nothing = [judge(Results({}), paper, shown).assign(notebook=shows[0].name if shows else "")]
            for number, claim in enumerate(own):
                each = [frame.iloc[number].to_dict() for frame in found.get(claim["federation"], nothing)]
                about = {"of": paper, "federation": claim["federation"]}
                boards = [[row for row in each if row["setting"] == board] for board in (PRINTED, SMALL)]
                rows += [min(board, key=_rank) | about for board in boards if board] or [min(each, key=_rank) | about]
    more = [name for name in SPARE if any(name in row for row in rows)]
    return pandas.DataFrame(rows, columns=[*columns, *more])


def tables_of(book) -> list[str]:
    """``["fig2", "table16"]`` of a notebook whose result is "Figure 2, Table 16"."""
    numbered = re.findall(r"\b(Table|Figure) (\d+)", book.about.get("result", ""))
    return [{"Table": "table", "Figure": "fig"}[kind] + number for kind, number in numbered]


def _judged(book, federation: str, profile: str, shown: str, store: Store, judge: Callable) -> "DataFrame":
    """The claims of a table or figure by the runs of its notebook on a federation, under one profile."""
    named = {"FEDERATION": federation} if "FEDERATION" in notebooks.parameters(book) else {}
    try:
        recipes = _of_claims(notebooks.plan(book, PROFILE=profile, **named))
    except NotebookError:  # a command that executes it says so
        recipes = []
    paper = book.about["paper"]
    return judge(Study(recipes, paper=paper, store=store).recorded(), paper, shown)


def _of_claims(recipes: list[Recipe]) -> list[Recipe]:
    """Without those that stand beside: of a released variant, that keep something more than the first, and again in
    another precision than the first on their data.
    """
    kept = [own for own in recipes if own.evaluation == recipes[0].evaluation and "released" not in own.label]
    first = {}
    for own in kept:
        first.setdefault(repr(own.federation), own.precision)
    return [own for own in kept if own.precision == first[repr(own.federation)]]


def _rank(row: dict) -> tuple[int, int]:
    """First 0 where a claim is tested, 1 where it has a number, 2 where it was run and has none, 3 where it was not
    run; then in how much its runs differ from the paper's setting. The first of equals is taken.
    """
    if row["verdict"] in (*TESTED, AS_PRINTED, OTHERWISE):
        there = 0
    else:
        there = 1 if row["setting"] else 2 + (row["verdict"] == NOT_RUN)
    return there, row["deviations"].count("; ")
