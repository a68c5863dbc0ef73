"""Dots in rows with their 95 % intervals: runs, effects and claims."""

import textwrap
from math import nan
from typing import NamedTuple

from matplotlib.lines import Line2D

from fednb import papers
from fednb.report import labels, wording
from fednb.report.comparison import tested
from fednb.report.intervals import alike, of_settings
from fednb.report.plots import _axes
from fednb.report.style import style, styles
from fednb.report.verdicts import AT, CLAIM, PRINTED, SMALL, TESTED, VERDICTS

HOLLOW = {"linestyle": "none", "marker": "o", "color": "0.2", "markerfacecolor": "white"}
DIAMOND = {"linestyle": "none", "marker": "D", "color": "k", "markerfacecolor": "white", "markersize": 4.5}
ALONE, TOGETHER = ({"color": "0.2", "linewidth": width} for width in (3, 1))


def claims(rows, paper: str):
    """The claims of a paper tested at its setting, else at a smaller one: dots in rows, primary claims first, then the
    largest printed effect.

    A diamond is the printed effect, a dot is ours in the colour of its verdict; the thick line is its 95 % interval,
    the thin one that of all that are tested together, which decides; an arrow is where an extreme one is cut off. What
    is not tested is counted in the title.

    rows: of ``fednb.report.recorded_board``, or of a page, with ``at``, where each was run; of more than 60 tested the
    first ones.
    """
    rows = rows[rows["of"] == paper]
    tested = rows[rows["verdict"].isin(TESTED)]
    board = PRINTED if tested["setting"].eq(PRINTED).any() else SMALL
    shown = tested[tested["setting"] == board].sort_values(["primary", "paper"], ascending=False).head(60)
    wide = 1.05 * shown[["paper", "ours", "together_low", "together_high"]]
    reach = max(5, 3 * shown[["paper", "ours"]].abs().to_numpy().max(initial=0))
    low, high = max(-reach, min(-5, wide.min().min())), min(reach, max(5, wide.max().max()))
    figure, (axes,) = _axes.new_figure(1, width=_axes.WIDEST, height=1.7 + 0.21 * max(1, len(shown)))
    for place, row in enumerate(shown.itertuples()):
        look = VERDICTS[row.verdict].look
        for span, width in (((row.low, row.high), 3), ((row.together_low, row.together_high), 1)):
            axes.plot(span, [place] * 2, color=look["color"], linewidth=width)
        for end, edge, arrow in ((row.together_low, low, "<"), (row.together_high, high, ">")):
            if not low <= end <= high:
                axes.plot(edge, place, marker=arrow, color=look["color"], markersize=5, clip_on=False)
        axes.plot(row.ours, place, linestyle="none", markersize=6, **look)
        axes.plot(row.paper, place, **DIAMOND)
    told, every = (len(each.drop_duplicates([*CLAIM])) for each in (shown, rows))
    data = shown["federation"].map(labels.federation)
    on = f", on {data.iloc[0]}" if data.nunique() == 1 else ""
    head = f"{told} of {every} claims tested {AT[board]}{on}" if told else "no claim tested yet"
    about = "points: the first of each row minus the second"
    title = "\n".join([f"{labels.printed(paper)}: {head}", *(shown["at"].unique() if "at" in shown else ())])
    _axes.decorate(axes, about, "", title, grid="both")
    axes.axvline(0, color="0.4", linewidth=1, zorder=1)
    several = shown["table"].nunique() > 1, data.nunique() > 1
    parts = shown["table"].str.replace("table", "Table "), data
    told_apart = [part for part, more in zip(parts, several, strict=True) if more]
    where = [f"{', '.join(row)}: " for row in zip(*told_apart, strict=True)] or [""] * len(shown)
    axes.set_yticks(range(len(shown)), where + shown["effect"], fontsize=8)
    axes.set(ylim=(max(1, len(shown)) - 0.5, -0.5), xlim=(low, high))
    words = [word for word in VERDICTS if (shown["verdict"] == word).any()]
    key = {word: {"linestyle": "none", **VERDICTS[word].look} for word in words}
    _legend(figure, key | {_axes.PAPER: DIAMOND, "95 % interval": ALONE, "simultaneous interval": TOGETHER}, ncols=4)
    return _axes.as_written(figure)


def scores(chosen, x: str = "client", printed=None, title: str = "", results=None):
    """Test accuracy or Dice with 95 % intervals: dots in rows, one for each method, a panel for each value of ``x``.

    chosen: rows of ``fednb.report.selection.selected``.
    x: ``"client"`` for a panel of the average and one of each site; or a varied field, for example
        ``"local_epochs"`` as in FedRDN's Fig. 2: panels show the average over clients.
    printed: rows of ``fednb.papers.printed``: the paper's numbers as white diamonds, under the settings that the values
        of ``x`` make. A stand-in and other data are never drawn next to them, nor averages over other sites. Where the
        runs of ``results`` are at another setting than the paper's, the legend says so.
    results: of the study whose runs these are. All that is recorded of their settings moderates the intervals, as in
        tables, and the images' scores give Dice its own; without it the drawn rows alone do, and Dice's are too wide.
    """
    of_images, known = None, None
    if results is not None:
        of_images, known = wording.scored(chosen, results), alike(results, chosen["rule"].iloc[0])[1]
    if x == "client":
        parts = {(x, label): rows for label, rows in wording.with_seeds(chosen).items()}
    else:
        parts = {(at, label): rows for at, part in chosen.groupby(x) for label, rows in wording.settings(part)}
    values, runs = {}, {}  # values: of a group (a site, or a value of x), the number of each label
    for ((at, label), rows), found in zip(parts.items(), of_settings(parts.values(), of_images, known), strict=True):
        runs[label] = rows["run"].iloc[0]
        for group, own in found.items() if x == "client" else [(at, found["average"])]:
            values.setdefault(group, {})[label] = own[:3]
    order = (lambda group: group != "average") if x == "client" else None
    groups, marked, theirs = sorted(values, key=order, reverse=x in wording.DOWNWARDS), wording.mark(chosen), {}
    if printed is not None and not marked:
        same = printed["federation"].isin(chosen["federation"]) & printed["sites"].isin(["", tested(chosen)])
        theirs = {label: _axes.printed_values(printed[same], run, x, groups) for label, run in runs.items()}
    panels = {}
    for group in groups:
        name = f"{wording.spaced(x)} {group}"
        if x in ("client", "federation"):
            name = labels.site(labels.federation(group))
        panels[name] = {
            label: Dot(run, *values[group][label], printed=theirs.get(label, {}).get(group))
            for label, run in runs.items()
            if label in values[group]
        }
    what = f"test {wording.measure(chosen)} (%)"
    if x != "client":
        seeds = sorted({rows["seed"].nunique() for rows in parts.values()})
        what += ", mean over clients" + (f", {seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else "")
    return rows_of_dots(panels, what, title, marked, theirs=_axes.of_paper(results))


def effects(tables, title: str = "", printed=None, results=None, turned=False):
    """What one run scores more than another, in points: dots in rows around zero, with their intervals.

    The thick line is the 95 % interval, the thin one that of all that are tested together. A dot is filled where the
    table tells its effect from none. A table of several values of a field has a panel for each.

    tables: of ``fednb.report.effects``, or ``{title of a panel: table}``.
    printed: rows of ``fednb.papers.printed`` for the federation of the runs: the printed difference of the averages as
        a white diamond; with several panels these rows by the panel's title. A stand-in and other data are never drawn
        next to it.
    results: of the runs, needed next to ``printed``: the legend says where the paper's numbers are of another setting.
    turned: whether each pair has a panel, and each value of the field a row.
    """
    tables = tables if isinstance(tables, dict) else {"": tables}
    against = {run for table in tables.values() for run in table.frame["worse"]}
    panels = {}
    for name, table in tables.items():
        by, theirs = table.frame.columns[2], printed.get(name) if isinstance(printed, dict) else printed
        for row in table.frame.to_dict("records"):
            panel = ", ".join(filter(None, (name, f"{wording.spaced(by)} {row[by]}" if by != "by" else "")))
            better, worse = (labels.short(row[side]) for side in ("better", "worse"))
            place = better if len(against) == 1 else wording.minus(better, worse)
            panel, place = (place, panel) if turned else (panel, place)
            panels.setdefault(panel, {})[place] = Dot(
                *(row[column] for column in ("better", "ours", "low", "high", "together_low", "together_high")),
                filled=row["direction"] in ("above", "below"),
                printed=None if theirs is None or table.mark else _printed_difference(theirs, row, by),
            )
    marked = next((table.mark for table in tables.values() if table.mark), "")
    what = f"points above {labels.short(against.pop())}" if len(against) == 1 else "points"
    figure = rows_of_dots(panels or {"": {}}, what, title, marked, 3, True, _axes.of_paper(results), turned)
    for axes in figure.axes:
        axes.axvline(0, color="0.4", linewidth=1, zorder=1)
    return _axes.as_written(figure)


def _printed_difference(printed, row: dict, by: str) -> float | None:
    """None where a side is not printed there, or both stand next to one printed row."""
    x, at = ("client", "average") if by == "by" else (by, row[by])
    runs, theirs = (row["better"], row["worse"]), papers.labels_of(printed)
    better, worse = (_axes.printed_values(printed, run, x, [at]).get(at) for run in runs)
    one_row = len({labels.printed_for(run, theirs) for run in runs}) == 1
    return None if None in (better, worse) or one_row else better - worse


class Dot(NamedTuple):
    """A number with its 95 % interval, that of all tested together, and the paper's."""

    run: str
    value: float
    low: float
    high: float
    together_low: float = nan
    together_high: float = nan
    filled: bool = True
    printed: float | None = None


def rows_of_dots(
    panels: dict,
    x: str,
    title: str,
    marked: str,
    across: int = 5,
    common: bool = False,
    theirs: str = _axes.PAPER,
    by_run: bool = False,
):
    """One panel for each ``{title: {row: Dot}}``, rows alike in all.

    across: panels next to each other at most. common: whether all have one axis. theirs: what the diamonds are.
    by_run: whether looks are those of the dots' runs; rows with one run have shades else.
    """
    rows = {row: dot.run for found in panels.values() for row, dot in found.items()}
    dots = [dot for found in panels.values() for dot in found.values()]
    looks = {dot.run: style(dot.run) for dot in dots} if by_run else styles(rows)
    places, alone = {row: number for number, row in enumerate(rows)}, "" in panels
    across = min(max(1, len(panels)), across)
    down = -(-len(panels) // across)
    size = {"width": min(3.4 + 2.2 * max(2, across), _axes.WIDEST), "height": 1.2 + down * (0.9 + 0.3 * len(rows))}
    figure, every = _axes.new_figure(len(panels), **size, columns=across, common=common)
    for number, (axes, (name, found)) in enumerate(zip(every, panels.items(), strict=True)):
        for row, dot in found.items():
            look, place = looks[dot.run if by_run else row], places[row]
            fill = {"color": look["color"], "markerfacecolor": look["color"] if dot.filled else "white"}
            axes.plot([dot.together_low, dot.together_high], [place] * 2, color=look["color"], linewidth=1)
            axes.plot([dot.low, dot.high], [place] * 2, color=look["color"], linewidth=3)
            axes.plot(dot.value, place, marker=look["marker"], markersize=7, linestyle="none", label=row, **fill)
            if dot.printed is not None:
                axes.scatter(dot.printed, place, marker="D", s=20, color="white", edgecolors="k", zorder=3)
        head = _axes.wrapped(name) if name else title
        _axes.decorate(axes, x if alone else "", "", head, marked if alone else "", grid="both")
        axes.set_yticks(range(len(rows)), [textwrap.fill(row, 40) for row in rows])
        axes.tick_params(labelleft=number % across == 0, labelbottom=number + across >= len(panels) or not common)
        axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    if not alone:
        text, colour = _axes.titled(title, marked)
        figure.suptitle(text, fontsize=11, color=colour)
    key = {"95 % interval": ALONE}
    key |= {"simultaneous interval": TOGETHER} if any(dot.together_low == dot.together_low for dot in dots) else {}
    hollow = [dot for dot in dots if not dot.filled]
    verdict = any(dot.together_low == dot.together_low for dot in hollow)
    key |= {"inconclusive or not testable" if verdict else "no verdict": HOLLOW} if hollow else {}
    key |= {theirs: DIAMOND} if any(dot.printed is not None for dot in dots) else {}
    _legend(figure, key, ncols=len(key), title="" if alone else x)
    return _axes.as_written(figure)


def _legend(figure, key: dict[str, dict], **look) -> None:
    """Below the figure: what lines and markers of each look are."""
    shown = [Line2D([], [], label=label, **own) for label, own in key.items()]
    figure.legend(handles=shown, loc="outside lower center", frameon=False, fontsize=8, **look)
