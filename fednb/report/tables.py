"""A table that shows itself, in a notebook as HTML and as plain text where it is printed or checked; and two of them:
runs side by side, and how firm their averages are."""

import hashlib
import html
from dataclasses import dataclass

import pandas
from pandas import DataFrame
from pandas.io.formats.style import Styler

from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.intervals import alike, by_seed, of_settings
from fednb.report.selection import selected
from fednb.report.wording import number

NOTHING = "No row: nothing of it is recorded."
MOST_CLIENTS = 20  # with a column each
STYLE = [
    {"selector": "caption", "props": "caption-side: top; text-align: left; min-width: min(40em, 80vw)"},
    {"selector": "th, td", "props": "text-align: right; vertical-align: top; padding: .15em .3em"},
    {"selector": "th", "props": "white-space: normal"},
    {"selector": "th.row_heading, th.blank", "props": "text-align: left; min-width: 7em"},
]


@dataclass(frozen=True, repr=False)
class Table:
    """Numbers and how they are shown.

    frame: the numbers, long and unrounded, for whoever goes on from them.
    caption: what the numbers are; its first line is bold and red where there is a ``mark``.
    cells: what is shown, texts only. An interval is in a cell's text, "71.3 (67.0 to 75.5)".
    setting: how the numbers were made, one line per statement; the HTML form folds it.
    mark: what the data are where they are not the paper's, as ``fednb.report.wording.mark``.
    bold: which of ``cells`` are bold in HTML and LaTeX, booleans; none unless given.
    """

    frame: DataFrame
    caption: tuple[str, ...]
    cells: DataFrame
    setting: tuple[str, ...] = ()
    mark: str = ""
    bold: DataFrame | None = None

    def text(self) -> str:
        """Caption and the rounded numbers: what a checked cell prints."""
        lines = self.cells.to_string().split("\n") if len(self.cells) else [NOTHING]
        return "\n".join((*self.caption, "", *(line.rstrip() for line in lines)))

    def html(self) -> str:
        """The caption and the table; the same numbers always give the same text."""
        lines = [html.escape(line) for line in self.caption]
        if self.mark:
            lines[0] = f'<strong style="color: #a40000">{lines[0]}</strong>'
        caption, text = " ".join(lines), self.text()
        if self.setting:
            made = "<br>".join(html.escape(line) for line in self.setting)
            caption += f"<details><summary>How these numbers were made</summary>{made}</details>"
        if not len(self.cells):
            return f"{caption}<br>{NOTHING}"
        name = hashlib.sha256(f"{caption}{text}".encode()).hexdigest()[:8]
        styler = self._styled(Styler(self.cells, uuid=name, caption=caption, cell_ids=False), "html")
        styler = styler.set_table_styles(STYLE)
        if "$" in text:  # a notebook would read it as a formula
            styler = styler.set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
        return styler.to_html()

    def latex(self) -> str:
        """The table for a paper: a ``table`` environment with rules of the package booktabs."""
        frame = self.cells.rename_axis(None)
        styler = self._styled(frame.style, "latex")
        caption = "".join(f"\\{sign}" if sign in "%&_#$" else sign for sign in self.caption[0])
        return styler.to_latex(hrules=True, caption=caption, convert_css=True)

    def _styled(self, styler: Styler, escape: str) -> Styler:
        styler = styler.format(escape=escape).format_index(escape=escape).format_index(escape=escape, axis=1)
        if self.bold is None:
            return styler
        return styler.apply(lambda _: self.bold.map({True: "font-weight: bold", False: ""}.get), axis=None)

    __repr__, _repr_html_ = text, html


def runs_table(results, rule: str | None = None, deviations: bool = False, bold: bool = False) -> Table:
    """One row per setting, one column for the unweighted mean and one per client: ``92.3 (88.1 to 95.0)``.

    Of more than 20 clients it holds and shows the mean alone. Runs that differ in seed only are one row.

    results: of a study. rule: see ``fednb.report.selection``, the protocol's unless given. deviations: cells are mean ±
    standard deviation over seeds (of n - 1), as most papers print. bold: the highest mean of each column. Its frame
    holds row, run, client, value, low and high (95 %, see ``fednb.report.intervals``), in per cent, and seeds.
    """
    rule = rule or protocol.rules()["selection"]
    chosen = selected(results.frame, rule)
    parts = wording.with_seeds(chosen)
    measured = of_settings(parts.values(), wording.scored(chosen, results), alike(results, rule)[1])
    numbers = pandas.DataFrame(
        own._asdict() | {"row": label, "run": rows["run"].iloc[0], "client": client}
        for (label, rows), found in zip(parts.items(), measured, strict=True)
        for client, own in found.items()
    )[["row", "run", "client", "value", "low", "high", "seeds"]]
    if numbers["client"].nunique() > 1 + MOST_CLIENTS:
        numbers = numbers[numbers["client"] == "average"]
    value, low, high = (numbers[name].map(number) for name in ("value", "low", "high"))
    texts = numbers.assign(text=value + " (" + low + " to " + high + ")")
    if deviations:
        spread = {(label, client): own.std() for label, rows in parts.items() for client, own in by_seed(rows).items()}
        own = (spread[each] for each in zip(numbers["row"], numbers["client"], strict=True))
        texts = numbers.assign(text=value + [f" ± {number(each)}" if each == each else "" for each in own])
    clients = sorted(numbers["client"].unique(), key=lambda name: name != "average")
    cells = texts.pivot(index="row", columns="client", values="text").loc[numbers["row"].unique(), clients].fillna("")
    means = numbers.pivot(index="row", columns="client", values="value").loc[cells.index, clients]
    heads = {
        client: f"{labels.site(client)} ({'/'.join(map(str, sorted(images)))} images)"
        for client, images in chosen.groupby("client")["images"].unique().items()
    }
    seeds = " or ".join(map(str, sorted(numbers["seeds"].unique())))
    alone = " of the test images (one seed)" if (numbers["seeds"] == 1).all() else ""
    shown = "mean and standard deviation over seeds" if deviations else f"with its 95 % interval{alone}"
    about = (
        f"Test {wording.measure(chosen)} in per cent{',' * deviations} {shown}, "
        f"{wording.rule_words(rule, chosen)}, seeds per row: {seeds}."
    )
    made = (f"Setting: {wording.setting(results)}.", *wording.note_lines(results))
    cells, means = (each.rename(columns=heads).rename_axis(index=None, columns=None) for each in (cells, means))
    marked = wording.mark(results.frame)
    caption = (*([wording.stand_in_line(results.frame)] if marked else []), about, wording.AVERAGE)
    return Table(numbers, caption, cells, made, marked, means == means.max() if bold else None)
