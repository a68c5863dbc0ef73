"""The gains on the shift dial: against its level, and against what a meter reads."""

from pandas import DataFrame

from dial import FACTORS, IMAGES, LEVELS, RUNS
from fednb.report import labels
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.style import style


def by_level(rows: DataFrame, title: str):
    """A panel for each factor, a row of panels for each kind of images: the gain of each run by level, with its 95 %
    interval. Each panel has its own scale."""
    kinds = [kind for kind in IMAGES if rows["federation"].str.startswith(kind).any()]
    factors = [name for name in FACTORS if rows["federation"].str.contains(name).any()]
    figure, every = new_figure(
        len(kinds) * len(factors), WIDEST, 1.2 + 2.3 * len(kinds), columns=len(factors), common=False
    )
    panels = [(kind, factor) for kind in kinds for factor in factors]
    for axes, (kind, factor) in zip(every, panels, strict=True):
        levels = {f"{kind}, {factor} {level}": level for level in LEVELS} | {f"{kind}, 0": 0}
        here = rows.assign(level=rows["federation"].map(levels)).dropna(subset="level").sort_values("level")
        axes.axhline(0, color="0.4", linewidth=1, zorder=1)
        for number, (run, own) in enumerate(here.groupby("run", sort=False)):
            place, look = own["level"] + 0.1 * (number - 2.5), style(run)
            axes.vlines(place, own["low"], own["high"], color=look["color"], linewidth=1)
            axes.plot(place, own["gain"], label=labels.short(run), **look, markersize=4)
        decorate(
            axes,
            "level" if kind == kinds[-1] else "",
            f"{IMAGES[kind]}, points" if factor == factors[0] else "",
            factor,
        )
        axes.set_xticks(LEVELS)
    figure.legend(
        *every[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(RUNS), frameon=False, fontsize=9
    )
    figure.suptitle(title, fontsize=11)
    return as_written(figure)


def by_reading(rows: DataFrame, others: DataFrame, title: str):
    """A panel for each run: its gain against site accuracy, on the dial (hollow: digits, filled: CIFAR-10) and, in
    black, on the federations that are held out."""
    shown, names = [run for run in RUNS if run in set(rows["run"])], others["federation"].unique()
    marks = dict(zip(names, "DsP^Xv", strict=False))
    figure, every = new_figure(len(shown), WIDEST, 5.6, columns=3)
    for number, (axes, run) in enumerate(zip(every, shown, strict=True)):
        axes.axhline(0, color="0.4", linewidth=1, zorder=1)
        for kind, fill in zip(IMAGES, ("none", "full"), strict=True):
            own = rows[(rows["run"] == run) & rows["federation"].str.startswith(kind)]
            axes.plot("site_accuracy", "gain", "o", data=own, color=style(run)["color"], fillstyle=fill, markersize=4)
        for each in others[others["run"] == run].itertuples():
            axes.plot(each.site_accuracy, each.gain, marks[each.federation], color="k", markersize=6)
        below, first = number >= len(shown) - 3, number % 3 == 0
        decorate(axes, "site accuracy (%)" if below else "", "points" if first else "", labels.short(run))
    handles = [every[0].plot([], [], mark, color="k", label=name)[0] for name, mark in marks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(marks), frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=11)
    return as_written(figure)
