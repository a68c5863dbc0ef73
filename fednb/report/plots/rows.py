"""Dots in rows with their 95 % intervals: runs, effects and claims."""

import textwrap

import numpy

from fednb.report import names
from fednb.report.board import CLAIM
from fednb.report.looks import VERDICTS, style
from fednb.report.plots._axes import WIDEST, as_written, decorate, diamonds, new_figure, stacked, titled
from fednb.report.sentences import TESTED


def claims(rows, title: str = ""):
    """The tested claims of all papers: dots in rows with intervals, a panel for each paper, on one axis.

    A diamond is the printed effect, a dot is ours in the colour of its verdict; the thick line is its 95 % interval,
    the thin one that of all that are tested together, which decides. What lies beyond the axis is an arrow
    at its end. What is not tested is counted in the panels' titles.

    rows: of ``fednb.command.scoreboard.claims``; of more than 60 of a paper those with the largest printed effect.
    """
    from matplotlib.lines import Line2D

    tested = rows[rows["verdict"].isin(TESTED)]
    panels = {paper: own.nlargest(60, "paper").sort_values(["table", "paper"]) for paper, own in tested.groupby("of")}
    reach = _reach(tested[["paper", "ours", "together_low", "together_high"]].to_numpy())
    heights = [max(1, len(own)) for own in panels.values()] or [1]
    figure, stack = stacked(heights, width=9.0)
    for axes, (paper, own) in zip(stack, panels.items(), strict=False):
        places = range(len(own))
        for place, row in zip(places, own.itertuples(), strict=True):
            look = VERDICTS[row.verdict]
            for ends, width in (((row.low, row.high), 3), ((row.together_low, row.together_high), 1)):
                axes.plot(numpy.clip(ends, -reach, reach), [place] * 2, color=look["color"], linewidth=width)
            for end in (end for end in (row.together_low, row.together_high) if abs(end) > reach):
                _dot(axes, end, place, reach, color=look["color"], markersize=4)
            _dot(axes, row.ours, place, reach, **look, markersize=6)
            _dot(axes, row.paper, place, reach, marker="D", color="k", markerfacecolor="white", markersize=4.5)
        told, every = (len(each.drop_duplicates([*CLAIM])) for each in (own, rows[rows["of"] == paper]))
        decorate(axes, "", "", f"{names.printed(paper)}: {told} of {every} claims, tested")
        axes.axvline(0, color="0.4", linewidth=1, zorder=0)
        axes.grid(axis="x", color="0.9", linewidth=0.8)
        where = own["table"].str.replace("table", "Table ")
        several = own.groupby("table")["federation"].transform("nunique") > 1
        where = where.mask(several, where + ", " + own["federation"])
        labels = where + ": " + own["effect"]
        axes.set_yticks(places, labels, fontsize=7)
        axes.set(ylim=(len(own) - 0.5, -0.5), xlim=(-1.04 * reach, 1.04 * reach))
    stack[-1].set_xlabel("points: the first of each row minus the second")
    shown = [Line2D([], [], linestyle="none", label=word, **look) for word, look in VERDICTS.items()]
    shown.append(Line2D([], [], linestyle="none", marker="D", color="k", markerfacecolor="white", label="the paper"))
    look = {"title": title if len(tested) else f"{title}: no claim is tested yet", "ncols": 7, "fontsize": 8}
    figure.legend(handles=shown, loc="outside upper center", frameon=False, **look)
    return as_written(figure)


def _reach(values) -> float:
    """Where an axis around zero ends, a multiple of 5: beyond all values, or beyond nine tenths of them where the
    largest is more than twice as far."""
    sizes = numpy.abs(values[~numpy.isnan(values)])
    most, usual = (sizes.max(), numpy.quantile(sizes, 0.9)) if sizes.size else (1, 1)
    return float(5 * numpy.ceil((most if most <= 2 * usual else usual) / 5))


def _dot(axes, value: float, place: float, reach: float, **look) -> None:
    """A marker, or an arrow at the end of the axis that it lies beyond."""
    beyond = abs(value) > reach
    look |= {"marker": ">" if value > 0 else "<"} if beyond else {}
    axes.plot(numpy.clip(value, -reach, reach), place, linestyle="none", clip_on=False, **look)


def effects(tables, title: str = ""):
    """What one run scores more than another, in points: dots in rows around zero, with their 95 % intervals.

    A dot is filled where the table tells its effect from none.

    tables: of ``fednb.report.effects``, or ``{title of a panel: table}``.
    """
    tables = tables if isinstance(tables, dict) else {"": tables}
    panels = {}
    for name, table in tables.items():
        told = table.frame["direction"].isin(["above", "below"])
        rows = zip(table.cells.index, table.frame.itertuples(), told, strict=True)
        panels[name] = {row: (own.better, own.ours, own.low, own.high, full, None) for row, own, full in rows}
    marked = next((table.mark for table in tables.values() if table.mark), "")
    figure = rows_of_dots(panels, "points (filled: told from zero, all tested together)", title, marked)
    for axes in figure.axes:
        axes.axvline(0, color="0.4", linewidth=1, zorder=0)
    return as_written(figure)


def rows_of_dots(panels: dict, x: str, title: str, marked: str):
    """One panel for each ``{title: {row: (run, value, low, high, filled, printed or None)}}``, rows alike in all."""
    rows = list(dict.fromkeys(row for found in panels.values() for row in found))
    texts = [textwrap.fill(row, 40) for row in rows]
    alone = "" in panels
    figure, every = new_figure(
        len(panels), width=min(2.6 + 2.3 * max(2, len(panels)), WIDEST), height=1.4 + 0.3 * len(rows)
    )
    for axes, (name, found) in zip(every, panels.items(), strict=True):
        for row, (run, value, low, high, filled, theirs) in found.items():
            look, place = style(run), rows.index(row)
            fill = {"color": look["color"], "markerfacecolor": look["color"] if filled else "white"}
            axes.plot([low, high], [place, place], color=look["color"], linewidth=1.5)
            axes.plot(value, place, marker=look["marker"], markersize=6, linestyle="none", label=row, **fill)
            diamonds(axes, {row: theirs}, {row: place} if theirs is not None else {})
        decorate(axes, x if axes is every[len(every) // 2] else "", "", name or title, marked if alone else "")
        axes.grid(axis="x", color="0.9", linewidth=0.8)
        axes.set_yticks(range(len(rows)), texts if axes is every[0] else [""] * len(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
    if not alone:
        text, colour = titled(title, marked)
        figure.suptitle(text, fontsize=11, color=colour)
    return as_written(figure)
