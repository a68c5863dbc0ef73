"""How well a meter's reading foretells the gain of a method: rank correlations on the shift dial, and a hint."""

from functools import cache
from pathlib import Path

import numpy
import pandas
from pandas import DataFrame
from scipy.stats import rankdata, spearmanr

from dial import RUNS, gains, recipes, settings
from dial import recorded as of_others
from federations import base, bases
from fednb import Federation, Study
from fednb.report import labels
from fednb.report.wording import signed
from meters import FOLDS, METERS, meters

NEAREST, DRAWS = 5, 2000
ROUNDS, SEEDS = 20, [0, 1, 2]  # of the recorded dial
READINGS = Path(__file__).parents[2] / "results" / "readings.csv"


@cache
def readings() -> DataFrame:
    """What the meters read, by name of a federation: the file that read_meters.py wrote."""
    return pandas.read_csv(READINGS, index_col="federation", comment="#")


def measured(rows: DataFrame) -> DataFrame:
    """Gains next to the readings of their federations."""
    return rows.join(readings(), on="federation", how="inner")


def foretells(rows: DataFrame) -> DataFrame:
    """Spearman's rank correlation of each meter with the gain of each run over the settings of the dial.

    The 95 % interval resamples pairs of images and factor as wholes (``DRAWS`` draws, percentiles): levels of a factor
    are alike. Settings without shift are in every draw."""
    table = rows.pivot(index="federation", columns="run", values="gain")[RUNS].join(readings()[[*METERS]]).dropna()
    pair = table.index.str.rpartition(" ").get_level_values(0)
    parts = {name: numpy.flatnonzero(pair == name) for name in pair.unique()}
    plain = [own for name, own in parts.items() if name.endswith(",")]
    turned = [own for name, own in parts.items() if not name.endswith(",")]
    draws = numpy.random.default_rng(0).integers(len(turned), size=(DRAWS, len(turned)))
    chosen = [numpy.concatenate([*plain, *(turned[number] for number in each)]) for each in draws]
    drawn = numpy.stack([_ranked(table.to_numpy()[each]) for each in chosen])
    low, high = numpy.nanquantile(drawn, [0.025, 0.975], axis=0)
    frames = {"correlation": _ranked(table.to_numpy()), "low": low, "high": high}
    made = {name: DataFrame(values, RUNS, [*METERS]).stack() for name, values in frames.items()}
    return DataFrame(made).rename_axis(["run", "meter"]).reset_index()


def _ranked(values: numpy.ndarray) -> numpy.ndarray:
    """Rank correlations of the runs' gains, a row each, with the meters, a column each."""
    return numpy.corrcoef(rankdata(values, axis=0), rowvar=False)[: len(RUNS), len(RUNS) :]


def nearest(rows: DataFrame, reading: float) -> DataFrame:
    """The gains at the ``NEAREST`` settings of the dial in site accuracy, and at all that are as near as the last."""
    away = (rows["site_accuracy"] - reading).abs()
    last = away.groupby(rows["federation"]).first().nsmallest(NEAREST).max()
    return rows[away <= last]


def others() -> DataFrame:
    """The recorded gains of the federations that are held out, next to their readings: not of shifted digits, whose
    images are those of the dial."""
    found = {name: of_others(recipe) for name, recipe in bases("quick", 40).items() if name != "Shifted digits"}
    return measured(gains({name: results for name, results in found.items() if results.records}))


def predicted(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The gains of held-out federations next to the mean of ``nearest``'s, and to the dial's mean gain of the run,
    which knows nothing of the federation."""
    plain, parts = rows.groupby("run")["gain"].mean(), []
    for reading, own in others.groupby("site_accuracy", sort=False):
        near = nearest(rows, reading).groupby("run")["gain"].mean()
        parts.append(own.assign(foretold=own["run"].map(near), plain=own["run"].map(plain)))
    return pandas.concat(parts)


def in_words(foretold: DataFrame, guessed: DataFrame) -> list[str]:
    """The methods whose gain each meter foretells, by rank correlation; then by how much held-out gains were missed."""
    lines = [
        f"{METERS[meter]} foretells the gain of {_certain(own)}" for meter, own in foretold.groupby("meter", sort=False)
    ]
    off, plain = missed(guessed)
    near, dial = (
        f"rank correlation {found:+.2f} ({low:+.2f} to {high:+.2f})"
        for found, low, high in (held_out(guessed, by) for by in ("foretold", "plain"))
    )
    lines.append(
        f"{len(guessed)} gains on {guessed['federation'].nunique()} federations that were held out, foretold from the "
        f"{NEAREST} nearest settings: {near}, missed by {off:.1f} points on average; from the dial's mean gain of each "
        f"method, which knows nothing of the federation: {dial}, missed by {plain:.1f}"
    )
    return lines


def missed(guessed: DataFrame) -> tuple[float, float]:
    """By how many points foretold gains are off on average, and the dial's mean gains."""
    off, plain = ((guessed[name] - guessed["gain"]).abs().mean() for name in ("foretold", "plain"))
    return off, plain


def held_out(guessed: DataFrame, by: str = "foretold") -> tuple[float, float, float]:
    """Spearman's rank correlation of foretold and recorded gains on held-out federations, and its 95 % interval, which
    resamples federations as wholes. by: "foretold", or "plain", the dial's mean gains."""
    parts = [own[[by, "gain"]].to_numpy() for _, own in guessed.groupby("federation", sort=False)]
    draws = numpy.random.default_rng(0).integers(len(parts), size=(DRAWS, len(parts)))
    ranked = [spearmanr(numpy.concatenate([parts[number] for number in each])).statistic for each in draws]
    return spearmanr(numpy.concatenate(parts)).statistic, *numpy.nanquantile(ranked, [0.025, 0.975])


def _certain(rows: DataFrame) -> str:
    """The runs whose rank correlation has an interval without zero, the strongest first."""
    found = rows[rows["low"] * rows["high"] > 0].sort_values("correlation", ascending=False)
    named = [f"{labels.short(r.run)} {r.correlation:+.2f} ({r.low:+.2f} to {r.high:+.2f})" for r in found.itertuples()]
    return ", ".join(named) or "no method significantly"


def of_federation(federation: Federation) -> list[str]:
    """What the meters read on a federation, in sentences, and what the recorded dial says of such a site accuracy."""
    if len(federation.sites) < 2 or min(len(site.train) for site in federation.sites) < FOLDS:
        return [f"The meters need two sites of {FOLDS} training images."]
    found = meters(federation)
    features = f"{found['of_features']:.0f} %" if "of_features" in found else "not read, as its weights are missing"
    return [
        f"Site accuracy, from mean and deviation of the channels: {found['site_accuracy']:.0f} % (0 is chance, 100 "
        f"perfect); from SqueezeNet's features: {features}.",
        f"Between sites these statistics vary {found['distance']:.2g} times as much as between images of a site.",
        *(hint(found["site_accuracy"]) if federation.task == "classification" else []),
    ]


def hint(reading: float) -> list[str]:
    """Which methods were of use on the recorded dial where site accuracy was about this."""
    at = {name: base(ROUNDS).with_(federation=own) for name, own in settings().items()}
    found = {name: Study(recipes(own, SEEDS)).recorded() for name, own in at.items()}
    recorded = {name: results for name, results in found.items() if results.records}
    if not recorded:
        return ["No hint: no run on the shift dial is recorded here."]
    rows = measured(gains(recorded))
    near, lines = nearest(rows, reading), []
    for run, own in near.groupby("run", sort=False):
        ends = f"least {signed(own['gain'].min())}, most {signed(own['gain'].max())}"
        above = f"above zero at {(own['low'] > 0).sum()} of {len(own)} settings"
        lines.append(f"{labels.short(run)} {signed(own['gain'].mean())} ({ends}; {above})")
    foretold, off = foretells(rows).query("meter == 'site_accuracy'"), missed(predicted(rows, others()))
    low, high = near["site_accuracy"].min(), near["site_accuracy"].max()
    return [
        f"Points over FedAvg on the shift dial at such readings ({low:.0f} to {high:.0f} %): {', '.join(lines)}.",
        f"Site accuracy foretells the gain there, by rank correlation, of {_certain(foretold)}.",
        f"On federations that were held out such hints were off by {off[0]:.1f} points on average, the dial's mean "
        f"gain by {off[1]:.1f}.",
        *(["Near 100 % it cannot tell a weak shift from a strong one."] if high > 99 else []),
        "This is a hint from small images in a small network, and no result.",
    ]
