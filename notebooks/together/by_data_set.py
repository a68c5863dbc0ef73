"""Effects of the same methods on several data sets: one figure, and what is significant in sentences."""

import textwrap
from dataclasses import replace

import pandas

from fednb import report
from fednb.report import labels, wording
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.style import style
from fednb.report.verdicts import TESTED

TOLD = ("above", "below")


def pairs(results) -> list[tuple[str, str]]:
    """Every run against FedAvg, and each FRAug against FedBN, which has none of its parts."""
    runs = results.frame.drop_duplicates("run")
    against = [(run, "fedavg") for run in runs["run"] if run != "fedavg"]
    return against + [(run, "fedbn") for run in runs.loc[runs["augmentation"] == "fraug", "run"]]


def figure(tables: dict, as_released: dict, title: str):
    """A panel for each data set, a row for each method against its baseline: as printed, and in grey as released below.
    The thick line is the 95 % interval, the thin one that of all tested together; beyond the axis it is cut off. A dot
    is filled where the effect is significant.

    tables: ``{title: table}`` of ``fednb.report.effects``. as_released: by label of a run, that as printed.
    """
    from matplotlib.lines import Line2D

    rows = list(dict.fromkeys(_row(each, as_released) for table in tables.values() for each in _rows(table)))
    values = pandas.concat([table.frame["ours"] for table in tables.values()])
    reach = 1.35 * values.abs().max()
    figure, every = new_figure(len(tables), width=WIDEST, height=1.4 + 0.5 * len(rows), columns=len(tables))
    for axes, (name, table) in zip(every, tables.items(), strict=True):
        decorate(axes, "", "", textwrap.fill(name, 24), grid="both")
        axes.axvline(0, color="0.4", linewidth=1, zorder=1)
        for each in _rows(table):
            printed = as_released.get(each.better)
            color = "0.55" if printed else style(each.better)["color"]
            place = rows.index(_row(each, as_released)) + (0.3 if printed else 0)
            axes.plot([each.together_low, each.together_high], [place] * 2, color=color, linewidth=1)
            axes.plot([each.low, each.high], [place] * 2, color=color, linewidth=3)
            fill = color if each.direction in TOLD else "white"
            axes.plot(each.ours, place, "s" if printed else "o", color=color, markerfacecolor=fill, markersize=6)
        axes.set_yticks(range(len(rows)), rows)
        axes.set(ylim=(len(rows) - 0.4, -0.4), xlim=(-reach, reach))
    key = {"as printed": ("o", "k", "k"), "as released": ("s", "0.55", "0.55"), "not significant": ("o", "k", "white")}
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=color, markerfacecolor=fill, label=label)
        for label, (marker, color, fill) in key.items()
    ]
    handles += [
        Line2D([], [], color="k", linewidth=width, label=label)
        for label, width in {"95 % interval": 3, "simultaneous interval": 1}.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8, title="points")
    figure.suptitle(title, fontsize=11)
    return as_written(figure)


def counted(tables: dict, as_released: dict) -> list[str]:
    """On how many data sets each method is above or below its baseline, as printed and as released."""
    lines: dict[str, list[str]] = {}
    every = pandas.concat([table.frame for table in tables.values()])
    every = every.assign(released=every["better"].isin(as_released), better=every["better"].replace(as_released))
    for (better, worse, released), rows in every.groupby(["better", "worse", "released"], sort=False):
        above, below = ((rows["direction"] == word).sum() for word in TOLD)
        words = f"as released above on {above}" if released else f"above on {above} of {len(rows)} data sets"
        words += f", below on {below}" * bool(below)
        lines.setdefault(f"{labels.short(better)} against {labels.short(worse)}: ", []).append(words)
    return [pair + "; ".join(words) for pair, words in lines.items()]


def adds(tables: dict, baseline: str = "fedavg") -> list[str]:
    """How many methods are above a baseline in each table, by how much, and which are not judged and why; where nothing
    is, that nothing adds."""
    lines = []
    for name, table in tables.items():
        rows = table.frame[table.frame["worse"] == baseline]
        effects = ", ".join(f"{labels.short(row.better)} {wording.signed(row.ours)}" for row in rows.itertuples())
        words = rows["direction"].value_counts()
        counts = [
            f"{' and '.join(map(labels.short, rows.loc[rows['direction'] == word, 'better']))} {word}"
            for word in words.index
            if word not in TESTED
        ]
        what = (
            "nothing adds to"
            if not counts and "above" not in words
            else f"{words.get('above', 0)} of {len(rows)} above"
        )
        lines.append(f"{name} {what} {', '.join([labels.short(baseline), *counts])} ({effects})")
    return lines


def significant(tables: dict) -> list[str]:
    """A sentence for each significant effect, after the table's name."""
    found = {name: table.frame[table.frame["direction"].isin(TOLD)] for name, table in tables.items()}
    shown = {name: report.sentences(replace(tables[name], frame=frame)) for name, frame in found.items() if len(frame)}
    return [f"{name}: {line}" for name, lines in shown.items() for line in lines.splitlines()]


def _rows(table) -> list:
    return list(table.frame.itertuples())


def _row(effect, as_released: dict) -> str:
    better, worse = (labels.short(run) for run in (as_released.get(effect.better, effect.better), effect.worse))
    return better if effect.worse == "fedavg" else wording.minus(better, worse)
