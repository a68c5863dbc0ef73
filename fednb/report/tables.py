"""A table that shows itself: HTML in a notebook or a page, plain text where it is printed or checked, CSV and LaTeX."""

import hashlib
import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 6  # sites beside each other; more unfold
STYLE = [
    {"selector": "caption", "props": "caption-side: top; text-align: left; min-width: min(40em, 80vw)"},
    {"selector": "th, td", "props": "text-align: right; vertical-align: top; padding: .15em .3em"},
    {"selector": "th", "props": "white-space: normal"},
    {"selector": "td", "props": "white-space: nowrap"},
    {"selector": "th.row_heading, th.blank", "props": "text-align: left; min-width: 7em"},
    {"selector": "th[colspan]", "props": "text-align: center"},
    {"selector": "small", "props": "display: block; white-space: pre; font-size: 80%"},
]


@dataclass(frozen=True, repr=False)
class Table:
    """Numbers and how they are shown.

    frame: the numbers, long and unrounded, for whoever goes on from them.
    caption: what the numbers are; its first line is bold and red where there is a ``mark``.
    cells: the plain-text form, texts only.
    setting: how the numbers were made, one line per statement; the HTML form folds it.
    wide: the HTML form, texts only, what follows the first line of a text in small letters; ``cells`` where it is None.
        Where its first column is the average, sites beyond six are folded.
    colours: CSS for each cell of the HTML form, or None.
    mark: what the data are where they are not the paper's, as ``fednb.report.wording.mark``.
    records: for each row the keys of its runs' records, to which the site links it.
    """

    frame: "DataFrame"
    caption: tuple[str, ...]
    cells: "DataFrame"
    setting: tuple[str, ...] = ()
    wide: "DataFrame | None" = None
    colours: "DataFrame | None" = None
    mark: str = ""
    records: dict[str, list[str]] = field(default_factory=dict)

    def text(self) -> str:
        """Caption, setting and the rounded numbers: what a checked cell prints."""
        lines = self.cells.to_string().split("\n")
        return "\n".join((*self.caption, *self.setting, "", *(line.rstrip() for line in lines)))

    def html(self) -> str:
        """The caption and the table; the same numbers always give the same text."""
        shown = self.cells if self.wide is None else self.wide
        first, *sites = dict.fromkeys(shown.columns.get_level_values(0)) or [""]
        if not first.startswith("average") or len(sites) <= MOST:
            return self._html(shown, self._caption())
        folded = self._html(shown[sites], "")
        return f"{self._html(shown[[first]], self._caption())}{_folded(f'Each of the {len(sites)} sites', folded)}"

    def _html(self, shown: "DataFrame", caption: str) -> str:
        from pandas.io.formats.style import Styler

        name = hashlib.sha256(f"{caption}{self.text()}".encode()).hexdigest()[:8]
        styler = Styler(shown, uuid=name, caption=caption, cell_ids=False).set_table_styles(STYLE)
        styler = styler.format(_cell).format_index(escape="html").format_index(escape="html", axis=1)
        if "$" in self.text():  # a notebook would read it as a formula
            styler = styler.set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
        if self.colours is not None:
            styler = styler.apply(lambda _: self.colours[shown.columns], axis=None)
        return styler.to_html()

    def _caption(self) -> str:
        lines = [html.escape(line) for line in self.caption]
        if self.mark:
            lines[0] = f'<strong style="color: #a40000">{lines[0]}</strong>'
        made = "<br>".join(html.escape(line) for line in self.setting)
        return " ".join(lines) + (_folded("How these numbers were made", made) if made else "")

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

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict[str, str], dict]:
        """What the site's pages offer and link to; Jupyter adds the other forms."""
        return {"text/csv": self.csv()}, {"fednb": {"records": self.records}} if self.records else {}


def keys_of(parts: dict) -> dict[str, list[str]]:
    """``Table.records`` of ``{row: its runs' rows of a frame}``."""
    return {label: [*rows["key"].unique()] for label, rows in parts.items()}


def _cell(text: str) -> str:
    line, _, small = html.escape(text).partition("\n")
    return f"{line}<small>{small}</small>" if small else line


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>{text}</details>"
