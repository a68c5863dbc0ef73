"""Figure 3: the classes of each client, and the index DH that the paper computes of them."""

from fednb.datasets._partition import class_shares
from fednb.methods.augmentations.distrans import distributional_heterogeneity


def dealt(levels, seed: int, count: int = 10) -> tuple[dict, dict]:
    """By the number of classes at each client the shares of all classes' images, [client, class], and DH in per cent;
    as many clients as classes."""
    shares = {classes: class_shares(count, count, classes, "figure 3", seed) for classes in levels}
    return shares, {classes: 100 * distributional_heterogeneity(table) for classes, table in shares.items()}


def figure(shares: dict, index: dict, every: dict):
    """DH by the number of classes a client, ``every`` one and those of the paper; below, the paper's shares."""
    import numpy
    from matplotlib import pyplot
    from matplotlib.colors import LogNorm

    fig = pyplot.figure(figsize=(10, 5.6), layout="constrained")
    grid = fig.add_gridspec(2, len(shares), height_ratios=(1, 1.15))
    top, below = fig.add_subplot(grid[0, :]), [fig.add_subplot(grid[1, n]) for n in range(len(shares))]
    top.plot(list(every), list(every.values()), "o-", color="0.6", markersize=4, label="every number of classes")
    top.plot(list(index), list(index.values()), "D", color="#0072B2", markersize=8, label="the paper's five")
    for classes, value in index.items():
        top.annotate(f"{value:.0f} %", (classes, value), (8, 6), textcoords="offset points")
    top.set(
        xlabel="classes at each of ten clients", ylabel="DH (%)", ylim=(-8, 120), xlim=(0.5, 10.7), xticks=list(every)
    )
    top.set_title("DH grows as clients have fewer classes, and jumps from two classes to one", loc="left", fontsize=11)
    top.grid(color="0.92")
    top.spines[["top", "right"]].set_visible(False)
    top.legend(frameon=False, loc="upper right")
    for axes, (classes, table) in zip(below, shares.items(), strict=True):
        seen = numpy.ma.masked_equal(table.T, 0)
        drawn = axes.imshow(seen, cmap="viridis_r", norm=LogNorm(0.08, 1))
        axes.set_title(f"{classes} class{'es' * (classes > 1)}: DH {index[classes]:.0f} %", fontsize=10)
        axes.set(xlabel="client", xticks=[0, 9], yticks=[0, 9], facecolor="0.94")
    below[0].set_ylabel("class")
    bar = fig.colorbar(drawn, ax=below, ticks=[0.1, 0.25, 0.5, 1], format="%g", shrink=0.85, aspect=15)
    bar.set_label("share of a class's images")
    bar.minorticks_off()
    pyplot.close(fig)
    return fig
