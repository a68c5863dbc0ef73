"""How well classes are separated in the features that the head sees, as a number and in the plane (Figure 7).

    python notebooks/distrans/separation.py RECORD.json ...

writes results/separation.csv, for runs whose features are too large to keep beside them.
"""

import sys
from pathlib import Path

import numpy
import pandas
from pandas import DataFrame, crosstab
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fednb.datasets import cifar10
from fednb.records.record import read
from fednb.records.store import Record
from fednb.report import labels, wording
from fednb.report.page import setting
from fednb.report.style import CLASSES, style

EVERY = 4  # in the plane every fourth image
SHARES = Path(__file__).parents[2] / "results" / "separation.csv"
HEAD = "# Classes predicted from features, in per cent, written by notebooks/distrans/separation.py.\n"


def features(record: Record) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The features of the test images, each seen by the client whose class it has, and their classes.

    What a client is tested on besides its class is left out: each of these images is at another client already.
    """
    held = record.artefact("features")
    own = crosstab(held["sites"], held["labels"]).idxmax(axis=1).to_numpy()
    one_class = record.recipe["federation"].get("classes_per_client") == 1
    shown = (held["labels"] == own[held["sites"]]) | (not one_class)
    return held["features"][shown].astype("float32"), held["labels"][shown]


def predicted(record: Record) -> float:
    """In how many per cent of the images a logistic regression predicts the class from the features, balanced over the
    classes, in five folds."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
    asked = {"cv": StratifiedKFold(5, shuffle=True, random_state=0), "scoring": "balanced_accuracy"}
    return 100 * cross_val_score(model, *features(record), **asked).mean()


def table(results) -> DataFrame:
    """``predicted``, a row for each run, a column for each seed. Runs of SHARES are read there."""
    known = pandas.read_csv(SHARES, comment="#", dtype={"key": str}, index_col="key")["predicted"]
    shares = DataFrame()
    for recipe, record in results.found.items():
        if record:
            shares.loc[recipe.label, recipe.seed] = known[record.key] if record.key in known else predicted(record)
    return shares


def figure(shares: DataFrame, results):
    """On the left the number of every seed, then the first seed's features by UMAP, a panel for each run."""
    from matplotlib import pyplot
    from umap import UMAP

    runs, seed, mark = list(shares.index), shares.columns[0], wording.mark(results.frame)
    shown = {
        recipe.label: features(record) for recipe, record in results.found.items() if record and recipe.seed == seed
    }
    rows, classes = ({run: own[part][::EVERY] for run, own in shown.items()} for part in (0, 1))
    names = cifar10.CLASSES if not mark else [str(number) for number in range(classes[runs[0]].max() + 1)]
    chance = 100 / len(names)
    across = -(-len(runs) // 2)
    fig = pyplot.figure(figsize=(10, 6.4), layout="constrained")
    grid = fig.add_gridspec(2, across + 1, width_ratios=(0.62, *[1] * across))
    axes = fig.add_subplot(grid[:, 0])
    for place, run in enumerate(runs):
        look = style(run)
        values = shares.loc[run].dropna()
        axes.plot([place] * len(values), values, look["marker"], color=look["color"], alpha=0.6)
        axes.plot([place - 0.25, place + 0.25], [values.mean()] * 2, color=look["color"], linewidth=2)
    axes.axhline(chance, color="0.4", linestyle="--", linewidth=1)
    axes.text(-0.4, chance + 1, "guessing", fontsize=8, color="0.3")
    axes.set_title("Each point a seed", loc="left", fontsize=10)
    axes.set_ylabel("class predicted from features (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_xticks(range(len(runs)), map(labels.short, runs), rotation=35, ha="right")
    axes.set(ylim=(0, None), xlim=(-0.5, len(runs) - 0.5))
    palette = pyplot.get_cmap("tab10")
    for number, run in enumerate(runs):
        axes = fig.add_subplot(grid[number // across, 1 + number % across])
        x, y = UMAP(random_state=0, n_jobs=1).fit_transform(rows[run]).T
        for label, name in enumerate(names):
            here = classes[run] == label
            look = {"s": 17, "marker": CLASSES[label], "color": palette(label), "linewidth": 0, "snap": True}
            axes.scatter(x[here], y[here], label=name, **look)
        axes.set_title(f"{labels.short(run)}: predicted in {shares.loc[run, seed]:.0f} %", loc="left", fontsize=10)
        axes.set(xticks=[], yticks=[])
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("0.8")
    look = {"ncols": len(names), "frameon": False, "fontsize": 8, "columnspacing": 1, "handletextpad": 0.2}
    fig.legend(*axes.get_legend_handles_labels(), loc="outside lower center", **look)
    title = f"UMAP of seed {seed}; shares of seeds {', '.join(map(str, shares.columns))}\n{setting(results)}"
    fig.suptitle(f"{title}\n{mark}: not the paper's images" if mark else title, fontsize=11)
    pyplot.close(fig)
    return fig


def write(paths: list[str]) -> None:
    shares = {record.key: predicted(record) for record in map(read, map(Path, paths))}
    frame = DataFrame({"predicted": shares}).rename_axis("key")
    SHARES.write_text(HEAD + frame.to_csv(float_format="%.9g"), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
