"""A table that shows itself, in a notebook as HTML and as plain text where it is printed or checked; and two of them:
runs side by side, and how firm their averages are."""

import hashlib
import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.convergence import late_rise
from fednb.report.intervals import alike, of_settings
from fednb.report.selection import RULES, selected
from fednb.report.wording import number, signed

if TYPE_CHECKING:
    from pandas import DataFrame

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
    """

    frame: "DataFrame"
    caption: tuple[str, ...]
    cells: "DataFrame"
    setting: tuple[str, ...] = ()
    mark: str = ""

    def text(self) -> str:
        """Caption and the rounded numbers: what a checked cell prints."""
        lines = self.cells.to_string().split("\n") if len(self.cells) else [NOTHING]
        return "\n".join((*self.caption, "", *(line.rstrip() for line in lines)))

    def html(self) -> str:
        """The caption and the table; the same numbers always give the same text."""
        from pandas.io.formats.style import Styler

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
        styler = Styler(self.cells, uuid=name, caption=caption, cell_ids=False).set_table_styles(STYLE)
        styler = styler.format(escape="html").format_index(escape="html").format_index(escape="html", axis=1)
        if "$" in text:  # a notebook would read it as a formula
            styler = styler.set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
        return styler.to_html()

    def latex(self) -> str:
        """The table for a paper: a ``table`` environment with rules of the package booktabs."""
        frame = self.cells.rename_axis(None)
        styler = frame.style.format(escape="latex").format_index(escape="latex").format_index(escape="latex", axis=1)
        return styler.to_latex(hrules=True, caption=self.caption[0].replace("%", r"\%"))

    __repr__, _repr_html_ = text, html


def runs_table(results, rule: str | None = None) -> Table:
    """One row per setting, one column for the unweighted mean and one per client: ``92.3 (88.1 to 95.0)``.

    Of more than 20 clients it holds and shows the mean alone. Runs that differ in seed only are one row.

    results: of a study. rule: see ``fednb.report.selection``, the protocol's unless given. Its frame holds row, run,
    client, value, low and high (95 %, see ``fednb.report.intervals``), in per cent, and seeds.
    """
    import pandas

    rule = rule or protocol.rules()["selection"]
    chosen = selected(results.frame, rule)
    parts = wording.with_seeds(chosen)
    measured = of_settings(parts.values(), wording.scored(chosen, results), alike(results, rule)[1])
    numbers = pandas.DataFrame(
        {"row": label, "run": rows["run"].iloc[0], "client": client, **own._asdict()}
        for (label, rows), found in zip(parts.items(), measured, strict=True)
        for client, own in found.items()
    )[["row", "run", "client", "value", "low", "high", "seeds"]]
    if numbers["client"].nunique() > 1 + MOST_CLIENTS:
        numbers = numbers[numbers["client"] == "average"]
    value, low, high = (numbers[name].map(number) for name in ("value", "low", "high"))
    texts = numbers.assign(text=value + " (" + low + " to " + high + ")")
    clients = sorted(numbers["client"].unique(), key=lambda name: name != "average")
    cells = texts.pivot(index="row", columns="client", values="text").loc[numbers["row"].unique(), clients].fillna("")
    heads = {
        client: f"{labels.site(client)} ({'/'.join(map(str, sorted(images)))} images)"
        for client, images in chosen.groupby("client")["images"].unique().items()
    }
    seeds = " or ".join(map(str, sorted(numbers["seeds"].unique())))
    alone = " of the test images (one seed)" if (numbers["seeds"] == 1).all() else ""
    about = (
        f"Test {wording.measure(chosen)} in per cent with its 95 % interval{alone}, "
        f"{wording.rule_words(rule, chosen)}, seeds per row: {seeds}."
    )
    made = (f"Setting: {wording.setting(results)}.", *wording.note_lines(results))
    cells = cells.rename(columns=heads).rename_axis(index=None, columns=None)
    return _on_data(results.frame, numbers, (about, wording.AVERAGE), cells, made)


def rules_table(results, title: str = "") -> Table:
    """How firm the average test accuracy (or Dice) is: under each selection rule, at the end of its curve, over seeds.

    For the runs where the rules differ. Rounds of the runs in the order of their seeds; once where all take the same.
    Its frame holds row, rule, ours (per cent), rounds and, of the row, rise and spread in points, as the table's
    setting says; NaN where there are too few rounds or seeds.
    """
    import pandas

    frame = wording.frame_of(results)
    images = frame["images"].where(frame["split"] == "validation", 0)
    validated = images.groupby(frame["key"]).sum().gt(0).all()
    rules = [rule for rule in RULES if validated or rule != "best_validation"]
    numbers = []
    for rule in rules:
        parts = wording.with_seeds(selected(frame, rule))
        for (label, rows), found in zip(parts.items(), of_settings(parts.values()), strict=True):
            spans = list(map(_span, rows.groupby(["seed", "key"])["rounds_taken"].first()))
            rounds = "/".join(spans if len(set(spans)) > 1 else spans[:1])
            numbers.append({"row": label, "rule": rule, "ours": found["average"].value, "rounds": rounds})
    numbers = pandas.DataFrame(numbers, columns=["row", "rule", "ours", "rounds"])
    ends = wording.with_seeds(selected(frame, "last"))
    rise = {row: late_rise(frame[frame["key"].isin(end["key"])]).mean() for row, end in ends.items()}
    spread = {row: end.groupby("seed")["accuracy"].mean().std() for row, end in ends.items()}
    numbers = numbers.assign(rise=numbers["row"].map(rise), spread=numbers["row"].map(spread))
    values = numbers["ours"].map(number)
    differ = list(dict.fromkeys(numbers.loc[values.groupby(numbers["row"]).transform("nunique") > 1, "row"]))
    texts = numbers.assign(text=values + " (round " + numbers["rounds"] + ")").set_index("row")
    shown = {wording.spaced(rule): texts.loc[texts["rule"] == rule, "text"].reindex(differ) for rule in rules}
    firm = numbers.drop_duplicates("row").set_index("row").loc[differ]
    shown |= {"still rising": firm["rise"].map(signed), "spread of seeds": firm["spread"].map(number)}
    shown = {f"{name} {wording.mark(frame)}".strip(): column for name, column in shown.items()}
    count = numbers["row"].nunique()
    caption = (
        *([f"{title.rstrip('.')}."] if title else []),
        f"Average test {wording.measure(frame)} in per cent under each selection rule. {wording.AVERAGE}",
        *([f"The rules agree in {count - len(differ)} of {count} rows, which are left out."] * (len(differ) < count)),
    )
    made = (
        *(f"{wording.spaced(rule)}: {wording.rule_words(rule, frame)}." for rule in rules),
        "still rising: points by which the mean of the last quarter of the rounds is above that of the quarter before; "
        "where it is large, the rounds do not show where the curve ends.",
        "spread of seeds: standard deviation of the last round, in points, over the row's own seeds; verdicts moderate "
        "it by that of the setting's other methods.",
        *([] if validated else ["best validation is not shown: some runs have no validation images."]),
        *wording.setting_lines(results, intervals=False),
    )
    return _on_data(frame, numbers, caption, wording.grid(shown, differ), made)


def _span(rounds: tuple[int, ...]) -> str:
    return str(rounds[-1]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"


def _on_data(runs, numbers, caption: tuple[str, ...], cells, made: tuple[str, ...]) -> Table:
    """A table whose caption begins with what the runs were trained on, where that is not the paper's data."""
    marked = wording.mark(runs)
    first = (wording.stand_in_line(runs),) if marked else ()
    return Table(numbers, (*first, *caption), cells, made, mark=marked)
