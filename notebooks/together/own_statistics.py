"""A network's last weights, tested with the averaged running statistics and with each site's own."""

from pandas import DataFrame

from fednb.report import labels
from fednb.report.plots._axes import as_written, decorate, new_figure
from fednb.report.style import style
from fednb.report.wording import number, signed

AVERAGED, OWN = "averaged", "each site's own"
KINDS = {"test": AVERAGED, "own_statistics": OWN}


def by_site(results) -> DataFrame:
    """Test accuracy in per cent of runs with ``evaluation=["own_statistics"]``, mean over seeds: a row for each run and
    kind of statistics, a column for the average and for each site."""
    rows = []
    for recipe, record in results.found.items():
        for kind, statistics in KINDS.items() if record else ():
            counts = zip(record.clients, record.rounds[-1][kind], record.images["test"], strict=True)
            accuracy = {client: 100 * right / images for client, right, images in counts}
            rows.append({"run": recipe.label, "statistics": statistics} | accuracy)
    found = DataFrame(rows).groupby(["run", "statistics"], sort=False).mean()
    found.insert(0, "average", found.mean(axis=1))
    return found


def sentences(results) -> list[str]:
    """What own statistics give each run, on average."""
    average, lines = by_site(results)["average"], []
    for run in average.index.unique("run"):
        averaged, own = (average[run, kind] for kind in KINDS.values())
        lines.append(
            f"{labels.short(run)}: own statistics give {number(own)} % where it has {number(averaged)} "
            f"({signed(own - averaged)} points)"
        )
    return lines


def figure(results, title: str):
    """A panel for each run: from the accuracy with averaged statistics, hollow, to that with own ones, filled."""
    found = by_site(results)
    runs, sites = found.index.unique("run"), [*found.columns]
    figure, every = new_figure(len(runs), width=4.2 * max(2, len(runs)), height=3, columns=len(runs))
    for number_, (axes, run) in enumerate(zip(every, runs, strict=True)):
        color = style(run)["color"]
        averaged, own = (found.loc[(run, kind)] for kind in KINDS.values())
        axes.hlines(range(len(sites)), averaged, own, color=color, linewidth=2)
        axes.plot(
            averaged, range(len(sites)), "o", color=color, markerfacecolor="white", label=f"{AVERAGED} statistics"
        )
        axes.plot(own, range(len(sites)), "o", color=color, label=OWN)
        decorate(axes, "test accuracy (%)", "", labels.short(run), grid="both")
        axes.set_yticks(range(len(sites)), [labels.site(site) for site in sites])
        axes.set(ylim=(len(sites) - 0.5, -0.5), xlim=(0, 101))
        if not number_:
            axes.legend(frameon=False, fontsize=8, loc="center left")
    figure.suptitle(title, fontsize=11)
    return as_written(figure)
