"""Local models on the other sites: what a flow gains over FedAvg, by pair of sites."""

from fednb import report
from fednb.report import labels
from fednb.report.plots._axes import as_written, decorate, new_figure


def gains(results):
    """Points above FedAvg by source and site (rows) and run (columns), the largest first: means
    over the seeds that both have."""
    cross = report.cross_site(results)
    cross = cross[cross["source"] != cross["client"]]
    means = cross.groupby(["source", "client", "seed", "run"])["accuracy"].mean().unstack()
    above = means.sub(means["fedavg"], axis=0).drop(columns="fedavg")
    means = above.groupby(["source", "client"]).mean()
    return means[means.mean().sort_values(ascending=False).index]


def in_words(results) -> list[str]:
    """For each flow its mean gain and in how many pairs it is above FedAvg."""
    above = gains(results)
    return [
        f"{labels.short(run)} {own.mean():+.1f} points over FedAvg on other sites, above it in {(own > 0).sum()} of "
        f"{len(own)} pairs"
        for run, own in above.items()
    ]


def pairs_of_sites(results, printed, title: str):
    """Dots: the gain of each flow in each pair of sites, the mean of the pairs first; diamonds: the printed gain."""
    theirs = printed.assign(run="fedavg" + printed["augmentation"].map(lambda name: f"+{name}" if name else ""))
    theirs = theirs.set_index(["source", "site", "run"])["value"].unstack()
    ours, theirs = gains(results), theirs.sub(theirs["fedavg"], axis=0)
    figure, every = new_figure(len(ours.columns), width=10, height=4.4, columns=len(ours.columns))
    names = ["mean of all pairs", *(f"{labels.site(source)} on {labels.site(site)}" for source, site in ours.index)]
    for number, (axes, (run, own)) in enumerate(zip(every, ours.items(), strict=True)):
        paper = theirs[run].reindex(own.index) if run in theirs else own * float("nan")
        for values, look in ((own, {"marker": "o", "color": "#0072B2"}), (paper, {"marker": "D", "color": "white"})):
            look |= {"markeredgecolor": "k" if values is paper else "#0072B2", "markersize": 6 - (values is paper)}
            axes.plot([values.mean(), *values], range(len(names)), linestyle="none", **look)
        axes.axvline(0, color="0.4", linewidth=1, zorder=1)
        axes.axhline(0.5, color="0.8", linewidth=1, zorder=1)
        decorate(axes, "points above FedAvg" if number == 1 else "", "", labels.short(run), grid="both")
    every[0].set_yticks(range(len(names)), names, fontsize=8)
    every[0].set_ylim(len(names) - 0.5, -0.5)
    figure.suptitle(f"Local models on another site's test images\n{title}; ◇ the paper", fontsize=11)
    return as_written(figure)
