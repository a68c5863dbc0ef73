"""The boards of a project or the checkout, and the notebooks that show a claim's table or figure."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from fednb import papers, registry
from fednb.commands import notebooks
from fednb.records.store import Store
from fednb.report import judging
from fednb.study import default_store

if TYPE_CHECKING:
    from pandas import DataFrame


def claims(store: Store | None = None) -> "DataFrame":
    """``judging.claims`` from a store, ``default_store()`` unless given, with the first ``notebook`` of each
    claim's table; in a project of its own papers alone."""
    return _with_notebooks(judging.claims, store, "table")


def curves(store: Store | None = None) -> "DataFrame":
    """The same for claims on orders and curves."""
    return _with_notebooks(judging.curves, store, "figure")


def _with_notebooks(judge: Callable, store: Store | None, place: str) -> "DataFrame":
    homes = notebooks.homes()
    alone = homes == [registry.project()]
    named = [paper for paper in papers.names() if papers.source(paper) or not alone]
    frame = judge(store or default_store(), named)
    shown: dict[tuple[str, str], str] = {}
    for book in (book for home in homes for book in notebooks.all_in(home)):
        for each in tables_of(book):
            shown.setdefault((book.about.get("paper"), each), book.name)
    where = zip(frame["of"], (cell.partition(",")[0] for cell in frame[place]), strict=True)
    return frame.assign(notebook=[shown.get(key, "") for key in where])


def tables_of(book) -> list[str]:
    """``["fig2", "table16"]`` of a notebook whose result is "Figure 2, Table 16"."""
    numbered = re.findall(r"\b(Table|Figure) (\d+)", book.about.get("result", ""))
    return [{"Table": "table", "Figure": "fig"}[kind] + number for kind, number in numbered]
