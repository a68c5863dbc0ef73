"""How much features give away the site that an image comes from."""

from statistics import mean

import numpy
import pandas
import seaborn
from matplotlib.lines import Line2D

from fednb.datasets import office_caltech10
from fednb.report import labels
from fednb.report.plots._axes import decorate, new_figure
from fednb.report.sentences import paired_difference
from fednb.report.style import CLASSES
from fednb.report.wording import STAND_IN


def site_accuracy(features, sites) -> float:
    """How well sites can be told from features, in per cent: 100 / sites is guessing, 100 is always.

    features: ``[n, d]``; sites: site number of each image, ``[n]``. 5-fold accuracy, balanced over the sites, of
    a logistic regression on standardised features.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(max_iter=1000, class_weight="balanced")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), regression)
    return 100 * float(cross_val_score(model, features, sites, cv=folds, scoring="balanced_accuracy").mean())


def between_sites(features, labels, sites) -> float:
    """The share of the variance within classes that lies between the sites' means of a class, in per cent.

    features: ``[n, d]``; labels, sites: ``[n]``. 0 where a class has the same mean at every site.
    """
    features, labels, sites = (numpy.asarray(values) for values in (features, labels, sites))
    between = within = 0.0
    for label in numpy.unique(labels):
        chosen = labels == label
        centre = features[chosen].mean(0)
        within += float(((features[chosen] - centre) ** 2).sum())
        for site in numpy.unique(sites[chosen]):
            here = features[chosen & (sites == site)]
            between += len(here) * float(((here.mean(0) - centre) ** 2).sum())
    return 100 * between / within


def of_site(results) -> dict[tuple[str, int], float]:
    """``site_accuracy`` of each recorded run's test features: ``{(run, seed): per cent}``."""
    found = {(recipe.label, recipe.seed): record for recipe, record in results.found.items() if record}
    kept = {key: record.artefact("features") for key, record in found.items()}
    return {key: site_accuracy(each["features"].astype("float32"), each["sites"]) for key, each in kept.items()}


def lower(by_run: dict, run: str, plain: str, rounds: int) -> list[str]:
    """Means over seeds, and their difference with an interval over seeds; no line where a run is not recorded."""
    seeds = [seed for label, seed in by_run if label == run and (plain, seed) in by_run]
    if not seeds:
        return []
    ours, others = ([by_run[label, seed] for seed in seeds] for label in (run, plain))
    means = [f"{labels.short(label)} {mean(each):.0f} %" for label, each in ((run, ours), (plain, others))]
    less = sum(one < other for one, other in zip(ours, others, strict=True))
    return [
        f"{rounds} rounds, site predicted from features: {', '.join(means)}; {paired_difference(ours, others)}; "
        f"lower in {less} of {len(seeds)} seeds"
    ]


def variance_between(results) -> str:
    """``between_sites`` by run, a mean over the recorded seeds."""
    found = {(recipe.label, recipe.seed): record for recipe, record in results.found.items() if record}
    shares: dict[str, list[float]] = {}
    for (run, _), record in found.items():
        kept = record.artefact("features")
        shares.setdefault(run, []).append(between_sites(kept["features"], kept["labels"], kept["sites"]))
    texts = [f"{labels.short(run)} {mean(own):.0f} %" for run, own in shares.items()]
    return f"variance between the sites within a class: {', '.join(texts)}"


def in_the_plane(results, seed: int, by_run: dict, title: str):
    """t-SNE of the test features of one seed's runs: by site on the left, by class on the right."""
    from sklearn.manifold import TSNE

    found = {recipe.label: record for recipe, record in results.found.items() if record and recipe.seed == seed}
    kept = {run: record.artefact("features") for run, record in found.items()}
    every, record = next(iter(kept.values())), next(iter(found.values()))
    classes = range(10) if results.stand_in else [name.replace("_", " ") for name in office_caltech10.CLASSES]
    frame, looks = pandas.DataFrame(), {}
    for what, numbers, names in (
        ("site", every["sites"], [*map(labels.site, record.clients)]),
        ("class", every["labels"], [*map(str, classes)]),
    ):
        frame[what], order = [names[number] for number in numbers], [names[number] for number in numpy.unique(numbers)]
        colours = {"hue": what, "hue_order": order, "palette": seaborn.color_palette("colorblind", len(order))}
        looks[what] = {"s": 18, "linewidth": 0, "snap": True, "legend": "full"} | colours  # whole pixels: small files
    looks["class"] |= {"style": "class", "style_order": order, "markers": [*CLASSES[: len(order)]]}
    figure, axes = new_figure(2 * len(kept), width=9.8, height=3.2 * len(kept) + 0.6, columns=2, common=False)
    keys, left = {}, iter(axes)
    for run, own in kept.items():
        features = own["features"].astype("float32")
        frame["x"], frame["y"] = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(features).T
        for what, look in looks.items():
            place = next(left)
            seaborn.scatterplot(frame, x="x", y="y", ax=place, **look)
            keys[what] = place.get_legend_handles_labels()[0]
            place.get_legend().remove()
            told = f"\nsite predicted in {by_run[run, seed]:.0f} %" if what == "site" else ""
            decorate(place, "", "", f"{labels.short(run)}, by {what}{told}", STAND_IN if results.stand_in else "")
            place.set(xticks=[], yticks=[])
            place.spines[["left", "bottom"]].set_color("0.8")
    key = []
    for what, own in keys.items():
        key += [Line2D([], [], linestyle="none", label=what), *own]
    figure.legend(handles=key, loc="outside right upper", frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure
