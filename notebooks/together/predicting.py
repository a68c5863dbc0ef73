"""How well a meter's reading predicts the gain of a method: rank correlations on the shift dial, and a hint."""

from functools import cache

import numpy
import pandas
from pandas import DataFrame
from scipy.stats import rankdata, spearmanr, t

from dial import FACTORS, IMAGES, RUNS, gains, recipes, settings
from dial import recorded as of_others
from federations import base, bases
from fednb import Federation, Study, models
from fednb.report import labels
from fednb.report.wording import signed
from meters import CHECKOUT, FOLDS, METERS, SQUEEZENET, meters

NEAREST, DRAWS = 5, 2000
ROUNDS, SEEDS = 20, [0, 1, 2]  # of the recorded dial
NO_MASKS = "No hint for masks: the shift dial has images with one class each, and segmentation was never run on it."
READINGS = CHECKOUT / "results" / "readings.csv"


@cache
def readings() -> DataFrame:
    """What the meters read, by name of a federation: the file that read_meters.py wrote."""
    return pandas.read_csv(READINGS, index_col="federation", comment="#")


def measured(rows: DataFrame) -> DataFrame:
    """Gains next to the readings of their federations."""
    return rows.join(readings(), on="federation", how="inner")


def correlations(rows: DataFrame) -> DataFrame:
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


def predictions(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The gains of held-out federations next to the mean of ``nearest``'s, and to the dial's mean gain of the run,
    which knows nothing of the federation."""
    plain, parts = rows.groupby("run")["gain"].mean(), []
    for reading, own in others.groupby("site_accuracy", sort=False):
        near = nearest(rows, reading).groupby("run")["gain"].mean()
        parts.append(own.assign(predicted=own["run"].map(near), plain=own["run"].map(plain)))
    return pandas.concat(parts)


def in_words(found: DataFrame, guessed: DataFrame) -> list[str]:
    """Whether held-out gains can be predicted; what the dial would choose; each meter's correlations, all named."""
    excess, errors = excess_error(guessed), [f"{value:.1f}" for value in mean_errors(guessed)]
    verdict = "worse" if excess[1] > 0 else "better" if excess[2] < 0 else "not shown to be better"
    ranked = [_spanned(own) for own in held_out(guessed)]
    apart, (low, high) = guessed["federation"].nunique(), guessed["site_accuracy"].agg(["min", "max"])
    read = readings().loc[[*settings()], "site_accuracy"].between(low, high)
    lines = [
        f"can a user predict the gains? Predictions from a meter are {verdict} than without one. {len(guessed)} gains "
        f"on {apart} held-out federations: mean absolute error {errors[0]} points from the {NEAREST} nearest settings, "
        f"{errors[1]} from the dial's mean gain of each method, which ignores the federation; difference, over "
        f"federations, {signed(excess[0])} ({signed(excess[1])} to {signed(excess[2])}); rank correlations {ranked[0]} "
        f"and {ranked[1]}",
        f"they read {low:.0f} to {high:.0f} %, where the dial has {read.sum()} of its {len(read)} settings",
        choice(guessed),
    ]
    by = found.groupby("meter", sort=False)
    return lines + [f"rank correlation of gains with {METERS[meter]}: {_named(own)}" for meter, own in by] + [blind()]


def excess_error(guessed: DataFrame) -> tuple[float, float, float]:
    """By how many points the mean absolute error of predicted gains exceeds that of the dial's mean gains: the mean
    over federations with its 95 % interval (Student's t)."""
    errors = guessed[["predicted", "plain"]].sub(guessed["gain"], axis=0).abs()
    own = errors["predicted"].sub(errors["plain"]).groupby(guessed["federation"]).mean()
    half = t.ppf(0.975, len(own) - 1) * own.sem()
    return own.mean(), own.mean() - half, own.mean() + half


def choice(guessed: DataFrame) -> str:
    """Which run the dial predicts to be best on held-out federations, on how many it is, and what it lacks there."""
    parts = [own for _, own in guessed.groupby("federation", sort=False)]
    best, chosen, plain = ([own.loc[own[name].idxmax()] for own in parts] for name in ("gain", "predicted", "plain"))
    runs, without = (" or ".join(dict.fromkeys(labels.short(row["run"]) for row in rows)) for rows in (chosen, plain))
    right = sum(mine["run"] == top["run"] for mine, top in zip(chosen, best, strict=True))
    lacking = max(top["gain"] - mine["gain"] for mine, top in zip(chosen, best, strict=True))
    return (
        f"the run that is predicted best there is {runs}, by the dial's mean gain {without}: it is the best on {right} "
        f"of {len(parts)}, and at most {lacking:.1f} points below the best"
    )


def mean_errors(guessed: DataFrame) -> tuple[float, float]:
    """The mean absolute error of predicted gains, and of the dial's mean gains, in points."""
    near, plain = ((guessed[name] - guessed["gain"]).abs().mean() for name in ("predicted", "plain"))
    return near, plain


def held_out(guessed: DataFrame) -> numpy.ndarray:
    """Spearman's rank correlation with recorded gains on held-out federations, and its 95 % interval, which resamples
    federations as wholes: a row for predicted gains, and for the dial's mean gains."""
    parts = [own[["predicted", "plain", "gain"]].to_numpy() for _, own in guessed.groupby("federation", sort=False)]
    draws = numpy.random.default_rng(0).integers(len(parts), size=(DRAWS, len(parts)))
    samples = [parts, *([parts[number] for number in each] for each in draws)]
    ranked = numpy.array([spearmanr(numpy.concatenate(each)).statistic[2, :2] for each in samples]).T
    return numpy.array([[own[0], *numpy.nanquantile(own[1:], [0.025, 0.975])] for own in ranked])


def _spanned(values) -> str:
    return "{:+.2f} ({:+.2f} to {:+.2f})".format(*values)


def _named(rows: DataFrame) -> str:
    """Rank correlations of all runs, those first whose interval, by itself, is without zero."""
    clear, lines = rows["low"] * rows["high"] > 0, []
    for words, own in (("", rows[clear]), ("not significant: ", rows[~clear])):
        ordered = own.sort_values("correlation", ascending=False).itertuples()
        named = [f"{labels.short(row.run)} {_spanned((row.correlation, row.low, row.high))}" for row in ordered]
        lines += [words + ", ".join(named)] if named else []
    return "; ".join(lines)


def blind() -> str:
    """What site accuracy from the channels' statistics reads at level 4 of each factor."""
    read = readings()["site_accuracy"].to_dict()
    of = {factor: [f"{read[f'{kind}, {factor} 4']:.0f}" for kind in IMAGES] for factor in FACTORS}
    at = [f"{factor} {' and '.join(own)}" for factor, own in of.items()]
    return f"{METERS['site_accuracy']} at level 4, {' and '.join(IMAGES.values())}: {', '.join(at)} %"


def of_federation(federation: Federation) -> list[str]:
    """What the meters read on a federation, in sentences, and what the recorded dial says of such a site accuracy."""
    if len(federation.sites) < 2 or min(len(site.train) for site in federation.sites) < FOLDS:
        return [f"The meters need two sites of {FOLDS} training images."]
    found = meters(federation)
    lacking = models.lacks(SQUEEZENET, CHECKOUT / "data")
    features = f"{found['of_features']:.0f} %" if "of_features" in found else f"not read. {lacking}"
    return [
        f"Site accuracy, from mean and deviation of the channels: {found['site_accuracy']:.0f} % (0 is chance, 100 "
        f"perfect); from SqueezeNet's features: {features}.",
        f"Between sites these statistics vary {found['distance']:.2g} times as much as between images of a site.",
        *(hint(found["site_accuracy"]) if federation.task == "classification" else [NO_MASKS]),
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
        ends = f"{signed(own['gain'].min())} to {signed(own['gain'].max())}"
        above = f"95 % interval above zero at {(own['low'] > 0).sum()} of {len(own)}"
        mean = signed(rows.loc[rows["run"] == run, "gain"].mean())
        lines.append(f"{labels.short(run)} {signed(own['gain'].mean())} (range {ends}; {above}; whole dial {mean})")
    correlated, errors = correlations(rows).query("meter == 'site_accuracy'"), mean_errors(predictions(rows, others()))
    low, high = near["site_accuracy"].min(), near["site_accuracy"].max()
    factors = near["federation"].unique()
    counted = [(sum(factor in name for name in factors), factor) for factor in FACTORS]
    kinds = ", ".join(f"{count} of {factor}" for count, factor in sorted(counted, reverse=True) if count)
    return [
        f"The dial's {len(factors)} nearest settings ({kinds}; readings {low:.0f} to {high:.0f} %), points over "
        f"FedAvg: {', '.join(lines)}.",
        f"Rank correlation of site accuracy with the gain, over the dial: {_named(correlated)}.",
        f"On held-out federations the mean absolute error of such hints is {errors[0]:.1f} points, that of the dial's "
        f"mean gain {errors[1]:.1f}.",
        *(["Near 100 % it cannot tell a weak shift from a strong one."] if high > 99 else []),
        "This is a hint from small images in a small network, not a result.",
    ]
