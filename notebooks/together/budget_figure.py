"""Accuracy against cost: which tuned methods no other beats at a lower price."""

from pandas import DataFrame

from fednb.report import labels
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.style import style


def pareto(boards: dict[str, DataFrame], title: str):
    """A row of panels for each federation: mean accuracy with its 95 % interval against seconds of a round and against
    KB that a client exchanges in it. The line joins the methods that none beats for less.

    boards: by name, of ``budget_board.board``."""
    costs = {"seconds": "seconds a round", "kilobytes": "KB a round, of a client"}
    figure, every = new_figure(2 * len(boards), WIDEST, 1 + 3.1 * len(boards), columns=2, common=False)
    panels = [(name, board, cost) for name, board in boards.items() for cost in costs]
    for axes, (name, board, cost) in zip(every, panels, strict=True):
        for row in board.itertuples():
            look = style(row.Index) | {"linestyle": "none"}
            axes.vlines(getattr(row, cost), row.low, row.high, color=look["color"], linewidth=1)
            axes.plot(getattr(row, cost), row.mean, label=labels.short(row.Index), **look, markersize=6)
        best = front(board, cost)
        axes.step(best[cost], best["mean"], where="post", color="0.6", linewidth=1, zorder=1)
        if cost == "seconds":
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("{x:g}")
        else:
            axes.set_xlim(left=0)
        decorate(axes, costs[cost], "accuracy (%)" if cost == "seconds" else "", name if cost == "seconds" else "")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return as_written(figure)


def front(board: DataFrame, cost: str) -> DataFrame:
    """The rows that have a higher mean than every row of a lower or the same cost, the cheapest first."""
    ordered = board.sort_values([cost, "mean"], ascending=[True, False])
    return ordered[ordered["mean"] > ordered["mean"].cummax().shift(fill_value=-1)]
