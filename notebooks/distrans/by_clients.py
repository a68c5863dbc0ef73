"""Accuracy by the number of clients: ours and the paper's, and how far each method falls."""

import numpy

from fednb import papers, report
from fednb.report import labels
from fednb.report.page import setting
from fednb.report.style import style


def averages(results, x: str, rule: str | None = None):
    """The average accuracy of each run, seed and value of ``x``, a column of ``Results.frame``; the federation's name
    in its place where all runs are on one setting."""
    chosen = report.selected(results.frame, rule or papers.protocol.rules()["selection"])
    column = x if x in chosen else "federation"
    rows = chosen.groupby(["run", column, "seed"], as_index=False, sort=False)["accuracy"].mean()
    return rows.rename(columns={column: x})


def grid(results, x: str, rule: str | None = None):
    """The means of ``averages`` over seeds: a row for each run, a column for each value of ``x``."""
    table = averages(results, x, rule).pivot_table("accuracy", "run", x, sort=False)
    return table.rename(index=labels.pretty).rename_axis(None).round(1)


def printed(paper: str, place: str):
    """The paper's, as ``averages``."""
    theirs = papers.numbers(paper, place)
    run = theirs["algorithm"].str.cat(theirs["augmentation"], sep="+").str.strip("+")
    clients = theirs["setting"].str.removesuffix(" clients").astype(int)
    return theirs.assign(run=run, clients=clients, seed=0, accuracy=theirs["value"])


def falls(rows):
    """By run the points by which the mean over seeds falls from the fewest to the most clients."""
    means = rows.pivot_table("accuracy", "run", "clients", sort=False).sort_index(axis="columns")
    return (means.iloc[:, 0] - means.iloc[:, -1]).rename(labels.short)


def fell(ours, theirs, rests_on: str = "no test") -> list[str]:
    """How far each falls, here and in the paper, and which falls least, with what that rests on: two lines."""
    here, there, counts = falls(ours), falls(theirs), ours["clients"]
    points = [f"{run} {fall:.1f}" + (f" ({there[run]:.1f})" if run in there else "") for run, fall in here.items()]
    return [
        f"points lost from {counts.min()} to {counts.max()} clients (the paper's): {', '.join(points)}",
        f"{here.idxmin()} falls least; in the paper {there.idxmin()} ({rests_on})",
    ]


def figure(ours, theirs, results, data: str):
    """Ours on the left, the paper's on its own data (``data``) on the right, on one axis: how far does each fall?"""
    parts = {f"Ours: {setting(results)}": ours, f"The paper: {data}": theirs}
    title = "How far does the accuracy fall with more clients? Small points: seeds"
    return means_and_seeds(parts, "clients", "best test accuracy (%), mean over clients", title)


def means_and_seeds(parts: dict, x: str, y: str, title: str):
    """A panel for each ``{title: rows}``, on one axis of accuracy: a line for the mean over seeds of each run, a small
    point for each seed, in equal steps over the values of the column ``x``."""
    from matplotlib import pyplot

    fig, (panels,) = pyplot.subplots(1, len(parts), figsize=(4 + 3 * len(parts), 4.6), sharey=True, squeeze=False)
    fig.set_layout_engine("constrained")
    for axes, (name, rows) in zip(panels, parts.items(), strict=True):
        order = sorted(rows[x].unique())
        for number, run in enumerate(rows["run"].unique()):
            own = rows[rows["run"] == run]
            look, aside = style(run), 0.06 * (number - (rows["run"].nunique() - 1) / 2)
            means = own.groupby(x)["accuracy"].mean()
            at = numpy.array([order.index(value) for value in means.index]) + aside
            axes.plot(at, means, label=labels.short(run), **look)
            places = own[x].map(order.index) + aside
            axes.plot(places, own["accuracy"], "o", color=look["color"], markersize=3, alpha=0.5)
        axes.set_xticks(range(len(order)), order)
        axes.set_xlabel(x.replace("_", " "))
        axes.set_title("\n".join(name.split(": ", 1)), fontsize=10, loc="left")
        axes.grid(axis="y", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(y)
    handles = {name: h for axes in panels for h, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=5, frameon=False)
    fig.suptitle(title, fontsize=11)
    pyplot.close(fig)
    return fig


def highest(rows, x: str, run: str) -> str:
    """At which value of ``x`` a run of ``averages`` is highest, with all its means, in words."""
    means = rows[rows["run"] == run].groupby(x)["accuracy"].mean()
    values = ", ".join(f"{value}: {mean:.1f} %" for value, mean in means.items())
    return f"{labels.short(run)} is highest at {x.replace('_', ' ')} {means.idxmax()} ({values})"
