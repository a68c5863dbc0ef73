"""Runs on the shift dial and on the federations that are held out: the gain of each method over FedAvg."""

import numpy
import pandas
from pandas import DataFrame, Series

import fednb
from federations import methods
from fednb import report
from fednb.report import labels, wording
from fednb.study import Results

FACTORS, LEVELS = ("colour", "contrast", "blur", "noise", "rotation"), (0, 1, 2, 3, 4)
IMAGES = {"digits": "digits", "cifar10": "CIFAR-10"}
METHODS = ["fedrdn", "fedfa", "fraug", "distrans", "own_statistics"]
RUNS = [*(f"fedavg+{name}" for name in METHODS), "fedbn"]


def settings(images=IMAGES, factors=FACTORS, levels=LEVELS) -> dict[str, dict]:
    """The federations of the dial by name, such as ``"digits, blur 2"``; level 0, of no factor, is ``"digits, 0"``."""
    found = {}
    for kind in images:
        plain = {"name": "shift_dial", "images": kind, "level": 0}
        found |= {f"{kind}, 0": plain} if 0 in levels else {}
        turned = [(factor, level) for level in levels if level for factor in factors]
        found |= {f"{kind}, {factor} {level}": plain | {"factor": factor, "level": level} for factor, level in turned}
    return found


def recipes(base: fednb.Recipe, seeds: list[int]) -> list[fednb.Recipe]:
    runs = [[], *methods(METHODS, base)]
    return base.vary(augmentations=runs, seed=seeds) + base.vary(algorithm=["fedbn"], seed=seeds)


def recorded(recipe: fednb.Recipe) -> Results:
    """What is recorded of the methods on the federation of this recipe, seeds 0 to 4."""
    return fednb.Study(recipes(recipe, [*range(5)])).recorded()


def gains(found: dict[str, Results]) -> DataFrame:
    """What each run scores more than FedAvg, in points, a row for each federation and run; runs of a federation are
    tested together. found: results by name of the federation."""
    frames, names = [], {labels.method(run): run for run in RUNS}
    for name, results in found.items():
        runs = {run: names.get(labels.method(run)) for run in results.frame["run"].unique()}
        rows = report.effects(results, [(run, "fedavg") for run, own in runs.items() if own], claims=False).frame
        rows = rows.assign(federation=name, better=rows["better"].map(runs))
        frames.append(rows[["better", "ours", "low", "high", "direction", "federation"]])
    return pandas.concat(frames, ignore_index=True).rename(columns={"better": "run", "ours": "gain"})


def counted(rows: DataFrame) -> list[str]:
    """At how many settings the 95 % interval of each run's gain is above zero or below, and its largest gain."""
    lines = []
    for run, own in rows.groupby("run", sort=False):
        most, above, below = own.loc[own["gain"].idxmax()], (own["low"] > 0).sum(), (own["high"] < 0).sum()
        largest = f"at most {wording.signed(most['gain'])} ({most['federation']})"
        counts = f"above zero at {above} of {len(own)} settings, below at {below}"
        lines.append(f"{labels.short(run)}: 95 % interval {counts}; {largest}.")
    return lines


def grows(rows: DataFrame) -> list[str]:
    """For each factor the runs whose gain at the strongest shift is significantly above that without a shift, each by
    itself, with the difference: both intervals are added as of separate runs."""
    found, lines = rows.set_index(["federation", "run"]), []
    strongest = rows["federation"].str[-1].max()
    for factor in [factor for factor in FACTORS if rows["federation"].str.contains(factor).any()]:
        named = []
        for kind in IMAGES:
            names = f"{kind}, {factor} {strongest}", f"{kind}, 0"
            for run in [run for run in RUNS if all((name, run) in found.index for name in names)]:
                end, plain = (found.loc[(name, run)] for name in names)
                more, half = (
                    end["gain"] - plain["gain"],
                    numpy.hypot(*(each["high"] - each["gain"] for each in (end, plain))),
                )
                if more > half:
                    each = Series({"gain": more, "low": more - half, "high": more + half})
                    named.append(f"{labels.short(run)} {_spanned(each)} on {IMAGES[kind]}")
        lines.append(
            f"gains that grow from level 0 to {strongest} of {factor}: {', '.join(named) or 'none significantly'}"
        )
    return lines


def without_shift(rows: DataFrame) -> str:
    """The gains at level 0 whose 95 % interval, by itself, is without zero."""
    plain = rows[rows["federation"].str.endswith(", 0") & (rows["low"] * rows["high"] > 0)]
    named = [
        f"{labels.short(each.run)} {_spanned(each)} on {IMAGES[each.federation[:-3]]}" for each in plain.itertuples()
    ]
    return f"without a shift (level 0 of the shift dial, each by itself): {', '.join(named) or 'none significantly'}"


def ends(rows: DataFrame) -> DataFrame:
    """The gain of each run with its 95 % interval, without a shift and at the strongest by each factor."""
    level = rows["federation"].str[-1]
    rows = rows[level.isin(["0", level.max()])]
    spanned = rows.assign(gain=[_spanned(each) for each in rows.itertuples()])
    table = spanned.pivot(index="federation", columns="run", values="gain").loc[rows["federation"].unique()]
    return table[rows["run"].unique()].rename(columns=labels.short).rename_axis(columns=None)


def _spanned(row) -> str:
    return f"{wording.signed(row.gain)} ({wording.signed(row.low)} to {wording.signed(row.high)})"
