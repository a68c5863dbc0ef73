"""Features in the plane."""

from itertools import cycle, islice

import numpy
import pandas
import seaborn
from matplotlib.lines import Line2D

from fednb.report.plots._axes import as_written, decorate, new_figure, wrapped
from fednb.report.style import CLASSES
from fednb.report.wording import STAND_IN


def embedding(panels: dict, labels, sites, site_names=None, class_names=None, stand_in=False, told=None):
    """Test features in the plane by t-SNE and by UMAP, each twice side by side: coloured by site, and by class (once,
    where each class is at one site of its own).

    panels: ``{title of a row: features [n, d]}``, of the same images under several models. Two columns are drawn as
        they are.
    labels, sites: class and site number of each image, ``[n]``; names are shown where they are given.
    stand_in: whether the features come from a stand-in, which is then written on the figure.
    told: ``{title of a row: what is measured on its features}``, written next to the title.
    """
    frame, looks = pandas.DataFrame(), {}
    for what, numbers, names in (("site", sites, site_names), ("class", labels, class_names)):
        frame[what], order = _names(numbers, names), _names(numpy.unique(numbers), names)
        colours = {"hue": what, "hue_order": order, "palette": seaborn.color_palette("colorblind", len(order))}
        looks[what] = {"s": 18, "linewidth": 0, "snap": True, "legend": "full"} | colours  # whole pixels: small files
    looks["class"] |= {"style": "class", "style_order": order, "markers": [*islice(cycle(CLASSES), len(order))]}
    if len(frame.drop_duplicates()) == frame["site"].nunique() == frame["class"].nunique():
        del looks["site"]  # of one site each: one look tells both
    flat = all(numpy.shape(rows)[1] == 2 for rows in panels.values())
    ways = ("",) if flat else ("t-SNE", "UMAP")
    across = len(looks) if len(looks) > 1 else len(panels) if flat else len(ways)
    count = len(panels) * len(ways) * len(looks)
    size = {"width": 4.2 * across + 1.4, "height": 3.2 * count / across + 0.6}
    figure, every = new_figure(count, **size, columns=across, common=False)
    keys, left = {}, iter(every)
    for name, way, own in [(name, way, own) for name, own in panels.items() for way in ways]:
        frame["x"], frame["y"] = _in_the_plane(numpy.asarray(own), way).T
        for what, look in looks.items():
            axes = next(left)
            seaborn.scatterplot(frame, x="x", y="y", ax=axes, **look)
            keys[what] = axes.get_legend_handles_labels()[0]
            axes.get_legend().remove()
            head = ", ".join(filter(None, (name, way, f"by {what}" if len(looks) > 1 else "")))
            head += f"\n{told[name]}" if told and name in told and what == next(iter(looks)) else ""
            decorate(axes, "", "", head, STAND_IN if stand_in else "")
            axes.set(xticks=[], yticks=[])
            axes.spines[["left", "bottom"]].set_color("0.8")
    key = []
    for what, own in keys.items():
        key += [Line2D([], [], linestyle="none", label=what)] * (len(looks) > 1) + own
    figure.legend(handles=key, loc="outside right upper", frameon=False, fontsize=8)
    return as_written(figure)


def _names(numbers, given) -> list[str]:
    names = [wrapped(given[number]) if given else str(number) for number in numbers]
    return [f" {name}" if name.startswith("_") else name for name in names]  # a legend would leave it out


def _in_the_plane(rows, way: str):
    """By t-SNE or UMAP, the same each time; as it is without a ``way``."""
    if way == "t-SNE":
        from sklearn.manifold import TSNE

        return TSNE(init="pca", perplexity=min(30, (len(rows) - 1) / 3), random_state=0).fit_transform(rows)
    if way == "UMAP":
        from umap import UMAP

        return UMAP(random_state=0, n_jobs=1, n_neighbors=min(15, len(rows) - 1)).fit_transform(rows)
    return rows
