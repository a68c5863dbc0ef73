"""Accuracy against cost: which tuned methods no other beats at a lower price."""

from pandas import DataFrame

from fednb.report import labels
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.style import style


def pareto(boards: dict[str, DataFrame], title: str):
    """A panel for each federation: mean accuracy with its 95 % interval against seconds of a round. The line is the
    Pareto front.

    boards: by name, of ``budget_board.board``."""
    figure, every = new_figure(len(boards), WIDEST, 5, columns=len(boards), common=False)
    for axes, (name, board) in zip(every, boards.items(), strict=True):
        for row in board.itertuples():
            look = style(row.Index) | {"linestyle": "none"}
            axes.vlines(row.seconds, row.low, row.high, color=look["color"], linewidth=1)
            axes.plot(row.seconds, row.mean, label=labels.short(row.Index), **look, markersize=6)
        best = front(board, "seconds")
        axes.step(best["seconds"], best["mean"], where="post", color="0.6", linewidth=1, zorder=1)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
        decorate(axes, "seconds a round", "accuracy (%)" if axes is every[0] else "", name)
    named = {name: line for axes in every for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return as_written(figure)


def front(board: DataFrame, cost: str) -> DataFrame:
    """The rows that have a higher mean than every row of a lower or the same cost, the cheapest first."""
    ordered = board.sort_values([cost, "mean"], ascending=[True, False])
    return ordered[ordered["mean"] > ordered["mean"].cummax().shift(fill_value=-1)]
