"""The same weights, tested with the averaged running statistics and with each site's own."""

from pandas import DataFrame

from fednb import report
from fednb.papers import protocol
from fednb.report import labels
from fednb.report.plots._axes import as_written, decorate, new_figure
from fednb.report.style import style

OWN = "own_statistics"
KINDS = ("averaged", "each site's own")


def without(recipe):
    """The same recipe with averaged statistics."""
    return recipe.with_(augmentations=[each for each in recipe.full["augmentations"] if each["name"] != OWN])


def by_site(results) -> DataFrame:
    """Test accuracy in per cent, mean over seeds: a row for each run and kind of statistics, a column for the average
    and for each site."""
    scores = report.selected(results.frame, protocol.rules()["selection"])
    plain = {recipe.label: without(recipe).label for recipe in results.found}
    kinds = scores["run"].map(lambda run: KINDS[plain[run] != run])
    scores = scores.assign(run=scores["run"].map(plain), statistics=kinds)
    found = scores.pivot_table("accuracy", ["run", "statistics"], "client", sort=False)
    found.insert(0, "average", found.mean(axis=1))
    return found


def figure(results, title: str):
    """A panel for each run: from the accuracy with averaged statistics, hollow, to that with own ones, filled."""
    found = by_site(results)
    runs, sites = found.index.unique("run"), [*found.columns]
    figure, every = new_figure(len(runs), width=4.2 * max(2, len(runs)), height=3, columns=len(runs))
    for number, (axes, run) in enumerate(zip(every, runs, strict=True)):
        color = style(run)["color"]
        averaged, own = (found.loc[(run, kind)] for kind in KINDS)
        axes.hlines(range(len(sites)), averaged, own, color=color, linewidth=2)
        axes.plot(
            averaged, range(len(sites)), "o", color=color, markerfacecolor="white", label=f"{KINDS[0]} statistics"
        )
        axes.plot(own, range(len(sites)), "o", color=color, label=KINDS[1])
        decorate(axes, "test accuracy (%)", "", labels.short(run), grid="both")
        axes.set_yticks(range(len(sites)), [labels.site(site) for site in sites])
        axes.set(ylim=(len(sites) - 0.5, -0.5), xlim=(0, 101))
        if not number:
            axes.legend(frameon=False, fontsize=8, loc="center left")
    figure.suptitle(title, fontsize=11)
    return as_written(figure)
