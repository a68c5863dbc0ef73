"""A table that shows itself: HTML in a notebook or a page, plain text where it is printed or checked, CSV and LaTeX."""

import hashlib
import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

STYLE = [
    {"selector": "caption", "props": "caption-side: top; text-align: left; padding-bottom: .5em"},
    {"selector": "th, td", "props": "text-align: right; padding: .15em .5em; white-space: nowrap"},
    {"selector": "th.row_heading, th.blank", "props": "text-align: left"},
]


@dataclass(frozen=True, repr=False)
class Table:
    """Numbers and how they are shown.

    frame: the numbers, long and unrounded, for whoever goes on from them.
    caption: one line per statement, the most important first, which is bold and red where there is a ``mark``.
    cells: the plain-text form, texts only. wide: the HTML form, texts only; ``cells`` where it is None.
    colours: CSS for each cell of the HTML form, or None.
    mark: what the data are where they are not the paper's, as ``fednb.report.words.mark``.
    """

    frame: "DataFrame"
    caption: tuple[str, ...]
    cells: "DataFrame"
    wide: "DataFrame | None" = None
    colours: "DataFrame | None" = None
    mark: str = ""

    def text(self) -> str:
        """The caption and the rounded numbers: what a checked cell prints."""
        lines = self.cells.to_string().split("\n")
        return "\n".join((*self.caption, "", *(line.rstrip() for line in lines)))

    def html(self) -> str:
        """The caption and the table; the same numbers always give the same text."""
        lines = [html.escape(line) for line in self.caption]
        if self.mark:
            lines[0] = f'<strong style="color: #a40000">{lines[0]}</strong>'
        shown = self.cells if self.wide is None else self.wide
        styler = shown.style.format(escape="html").format_index(escape="html")
        styler = styler.format_index(escape="html", axis=1)
        styler = styler.set_uuid(hashlib.sha256(self.text().encode()).hexdigest()[:8])
        styler = styler.set_caption("<br>".join(lines)).set_table_styles(STYLE)
        if self.colours is not None:
            styler = styler.apply(lambda _: self.colours, axis=None)
        return styler.to_html()

    def csv(self) -> str:
        """The numbers, to six digits."""
        return self.frame.to_csv(index=False, float_format="%.6g")

    def latex(self) -> str:
        """The rounded numbers, for a paper that loads booktabs."""
        rows = self.cells.style.format(escape="latex").format_index(escape="latex")
        rows = rows.format_index(escape="latex", axis=1)
        return rows.to_latex(column_format="l" + "r" * self.cells.shape[1], hrules=True)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_latex_(self) -> str:
        return self.latex()

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/csv": self.csv()}  # the site's pages offer it; Jupyter adds the other forms
