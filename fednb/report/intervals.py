"""95 % intervals: of a test accuracy or a Dice coefficient, and of the effect between two runs of the same images.

docs/reading.md has the formulas and their sources, under *How an interval is computed*. Values are per cent or points,
averages are means of sites. Test images and runs are two sources of chance; one seed knows the images alone.
"""

from collections.abc import Sequence
from math import hypot, inf, log, nan, sqrt
from statistics import mean
from typing import NamedTuple

import numpy
import pandas
from numpy import ndarray
from pandas import Series
from scipy.special import polygamma, psi, stdtr, stdtrit

from fednb.report.scores import image_scores
from fednb.report.selection import selected
from fednb.report.wording import dealt_by_seed, frame_of, setting_of, settings

Z = 1.959964


class Interval(NamedTuple):
    """A value and its 95 % bounds, in per cent or points."""

    value: float
    low: float
    high: float


class Spread(NamedTuple):
    """The variance of one run's value, and its degrees of freedom: 0 where a setting has one seed."""

    variance: float = nan
    freedom: float = 0.0


class Measured(NamedTuple):
    """A value with its 95 % bounds, in per cent or points, and what is known of its chance.

    seeds: how many. run: the spread of one run. p: two-sided, of an effect of zero. error, freedom: of the bounds' t.
    These three are NaN with one seed, and where the images' scores are not recorded.
    """

    value: float
    low: float
    high: float
    seeds: int
    run: Spread
    p: float = nan
    error: float = nan
    freedom: float = nan

    def at(self, level: float) -> Interval:
        """The interval that leaves the true value out in this share of cases: 0.05 / m for all of m together."""
        reach = _quantile(self.freedom, level) * self.error
        return Interval(self.value, self.value - reach, self.value + reach)

    def smallest_detectable(self, level: float) -> float:
        """The true effect that leaves zero out of ``at(level)`` in 80 of 100 cases, were its error known."""
        return (_quantile(self.freedom, level) + _quantile(self.freedom, 2 * (1 - 0.8))) * self.error

    def against(self, printed: float, runs: int = 1, level: float = 0.05) -> Interval | None:
        """Ours minus a printed number, the mean of so many runs on the same images; None with one seed."""
        if self.seeds < 2:
            return None
        reach = _quantile(self.run.freedom, level) * sqrt(self.run.variance * (1 / self.seeds + 1 / runs))
        value = self.value - printed
        return Interval(value, value - reach, value + reach)


def crossed(differences: Sequence[ndarray], runs: Sequence[Spread]) -> Measured:
    """An effect where every seed is tested on the same images. differences: of each site, points ``[seeds, images]``.
    runs: the spreads of one run of either method."""
    sites, seeds = len(differences), len(differences[0])
    value = float(sum(site.mean() for site in differences) / sites)
    images = [_of_mean(site.mean(0), sites) for site in differences]
    if seeds == 1:
        return _measured(value, 1, _total(images), images)
    residual = [_residual(site, sites) for site in differences]
    of_seeds = [Spread(own.variance / seeds, own.freedom) for own in runs]
    of_images, of_runs = _total(images), _total(of_seeds)
    variance = max(of_images + of_runs - _total(residual), of_images, of_runs)
    return _measured(value, seeds, variance, [*images, *of_seeds, *residual], runs)


def nested(differences: Sequence[dict[str, ndarray]], runs: tuple[Spread, ...]) -> Measured:
    """An effect where each seed has a partition of its own. differences: of each seed, by site, points ``[images]``.
    runs: the spreads of one run of either method, less what the two share."""
    seeds, sites = len(differences), dict.fromkeys(name for own in differences for name in own)
    by_seed = [sum(site.mean() for site in own.values()) / len(own) for own in differences]
    parts = [[own[name] / len(own) for own in differences if name in own] for name in sites]
    value, images = float(numpy.mean(by_seed)), [_of_images(site, seeds) for site in parts]
    if seeds == 1:
        return _measured(value, 1, _total(images), images)
    own = unmoderated(by_seed)
    if not _total(runs) > own.variance * (1 + 1e-9):  # of two methods alone they are equal
        runs = (own,)
    parts = [*images, *(Spread(each.variance / seeds, each.freedom) for each in runs)]
    return _measured(value, seeds, _total(parts), parts, runs)


def _measured(
    value: float, seeds: int, variance: float, parts: Sequence[Spread], runs: Sequence[Spread] = ()
) -> Measured:
    """parts: of which the variance is made. runs: the spreads of one run, of either method."""
    freedom, error = _freedom(variance, parts), sqrt(variance)
    reach = _quantile(freedom) * error if error else 0.0
    if seeds == 1:
        return Measured(value, value - reach, value + reach, 1, Spread())
    p = 2 * float(stdtr(freedom, -abs(value) / error)) if error else float(value == 0)
    run = Spread(_total(runs), _freedom(_total(runs), runs))
    return Measured(value, value - reach, value + reach, seeds, run, p, error, freedom)


def _total(parts: Sequence[Spread]) -> float:
    return sum(part.variance for part in parts)


def _of_images(site: Sequence[ndarray], seeds: int) -> Spread:
    """The variance that the images of one site give to the mean over so many seeds, from those that have the site."""
    each = [_of_mean(own, seeds) for own in site]
    apart = Spread(_total(each), min(part.freedom for part in each))
    alike = len(site) == seeds and len({len(own) for own in site}) == 1
    return max(apart, _of_mean(sum(site) / seeds, 1)) if alike else apart


def _of_mean(scores: ndarray, parts: int) -> Spread:
    """The variance that the images of one site give to the mean over so many parts, sites or seeds."""
    if len(scores) < 2:
        return Spread(inf, 1)
    return Spread(float(scores.var(ddof=1)) / len(scores) / parts**2, len(scores) - 1)


def _residual(site: ndarray, sites: int) -> Spread:
    seeds, images = site.shape
    left = site - site.mean(0) - site.mean(1, keepdims=True) + site.mean()
    freedom = max(1, (images - 1) * (seeds - 1))
    return Spread(float((left**2).sum()) / freedom / (images * seeds) / sites**2, freedom)


def _freedom(variance: float, parts: Sequence[Spread]) -> float:
    """Satterthwaite's degrees of freedom of a sum of estimated variances."""
    within = sum(part.variance**2 / part.freedom for part in parts)
    return variance**2 / within if 0 < within < inf else 1.0


def _quantile(freedom: float, level: float = 0.05) -> float:
    return float(stdtrit(freedom, 1 - level / 2))


def moderated(values: Sequence[Series]) -> list[Spread]:
    """The spread of one run of each method of a setting, from its values by seed (Smyth 2004)."""
    return _moderated([unmoderated(own) for own in values])


def unmoderated(values: Series) -> Spread:
    """A method's own."""
    values = numpy.asarray(values)
    return Spread(float(values.var(ddof=1)), len(values) - 1) if len(values) > 1 else Spread()


def _moderated(alone: Sequence[Spread], most: float = inf) -> list[Spread]:
    """Each method's own spread drawn towards those of all, which have ``most`` degrees of freedom together."""
    from scipy.optimize import brentq

    several = [own for own in alone if own.freedom]
    if not several:
        return list(alone)
    found, d = numpy.array(several).T
    centre, worth = 0.0, 0.0
    if len(several) > 1 and found.any():
        logs = numpy.log(numpy.maximum(found, 1e-4 * found.mean())) - psi(d / 2) + numpy.log(d / 2)
        excess = logs.var(ddof=1) - polygamma(1, d / 2).mean()
        half = brentq(lambda x: polygamma(1, x) - excess, 1e-3, 1e6) if excess > 1e-6 else 1e6
        centre, worth = float(numpy.exp(logs.mean() + psi(half) - log(half))), 2 * half
    drawn = (worth * centre + d * found) / (worth + d)
    freedom = numpy.where(found > drawn, d, numpy.minimum(worth + d, min(d.sum(), most)))
    spreads = map(Spread, numpy.maximum(found, drawn).tolist(), freedom.tolist())
    return [next(spreads) if own.freedom else own for own in alone]


def moderated_within_seeds(values: Sequence[Series]) -> list[Spread]:
    """As ``moderated``, less what the methods of a seed share (Grubbs 1948); of a method without a second seed that
    others have, nothing."""
    table = pandas.concat(list(values), axis=1).to_numpy()
    seeds, methods = numpy.nonzero(~numpy.isnan(table))
    design = numpy.hstack([numpy.eye(table.shape[1])[methods], numpy.eye(table.shape[0])[seeds]])
    hat = design @ numpy.linalg.pinv(design)
    free = 1 - hat.diagonal()
    left = table[seeds, methods] - hat @ table[seeds, methods]
    freedom = numpy.bincount(methods, free > 1e-9) - 1  # a method's own where each seed has many methods
    worth, squares = numpy.bincount(methods, free), numpy.bincount(methods, left**2)
    alone = zip(squares, worth, freedom, strict=True)
    return _moderated([Spread(s / w, d) if d > 0 else Spread() for s, w, d in alone], worth.sum())


def wilson(correct: float, images: int) -> Interval:
    """Wilson's score interval of ``correct`` right answers among ``images`` > 0."""
    p, share = correct / images, Z**2 / images
    centre = (p + share / 2) / (1 + share)
    reach = sqrt(p * (1 - p) * share + share**2 / 4) / (1 + share)
    return Interval(100 * p, 100 * min(p, max(0.0, centre - reach)), 100 * max(p, min(1.0, centre + reach)))


def mean_over_clients(clients: Sequence[Interval]) -> Interval:
    """The unweighted mean of independent clients, from their own intervals (Zou and Donner 2008)."""
    value = mean(client.value for client in clients)
    down = hypot(*(client.value - client.low for client in clients)) / len(clients)
    up = hypot(*(client.high - client.value for client in clients)) / len(clients)
    return Interval(value, value - down, value + up)


def _with_runs(images: Interval, seeds: int, run: Spread) -> Measured:
    """A setting's value of so many seeds: what the images leave open, and what the runs do; within 0 and 100."""
    reach = _quantile(run.freedom) * sqrt(run.variance / seeds) if seeds > 1 else 0.0
    low = images.value - hypot(images.value - images.low, reach)
    high = images.value + hypot(images.high - images.value, reach)
    return Measured(images.value, max(0.0, low), min(100.0, high), seeds, run)


def of_scores(scores: ndarray) -> Interval:
    """Student's interval of the mean of images' scores, per cent, ``[n]``."""
    value, part = float(scores.mean()), _of_mean(scores, 1)
    reach = _quantile(part.freedom) * sqrt(part.variance)
    return Interval(value, max(0.0, value - reach), min(100.0, value + reach))


def wilson_of_clients(rows) -> dict[str, Interval]:
    """Wilson's interval of each client, from the mean over seeds of its share of right answers; where each seed has
    images of its own, from as many of them as there are in the mean."""
    found = {}
    for client, own in rows.groupby("client", sort=False):
        images = own["images"].mean()
        found[client] = wilson((own["correct"] * (images / own["images"])).mean(), images)
    return found


def spreads_of(chosen) -> dict[str, dict[str, Spread]]:
    """By key the spread of one run at each client and on ``"average"``, moderated by all runs of its setting.

    chosen: rows of ``fednb.report.selection.selected``, of all runs that are known of the settings in question.
    """
    parts = [rows for _, rows in settings(chosen[chosen["images"] > 0])]
    each = zip(parts, _spreads(parts), strict=True)
    return {key: spreads for rows, spreads in each for key in rows["key"].unique()}


def alike(results, rule: str, unseen: bool = False, seeds: Sequence[int] | None = None) -> tuple:
    """The rows that ``selected`` takes of all runs that are known of the settings of some results, on these seeds, and
    their ``spreads_of``; kept with the results, as each table of a notebook asks for them."""
    kept, key = vars(results.alike).setdefault("spreads", {}), (rule, unseen, seeds and tuple(seeds))
    if key not in kept:
        frame = frame_of(results.alike)
        chosen = selected(frame if seeds is None else frame[frame["seed"].isin(seeds)], rule, unseen)
        kept[key] = chosen, spreads_of(chosen)
    return kept[key]


def _spreads(parts: Sequence) -> list[dict[str, Spread]]:
    """Of each method and client, moderated by the others of its setting."""
    values, found, pools = [by_seed(part) for part in parts], [{} for _ in parts], {}
    for place, part in enumerate(parts):
        for client in values[place]:
            pools.setdefault((dealt_by_seed(part), setting_of(part), client), []).append(place)
    for (own_partitions, _, client), places in pools.items():
        estimated = moderated_within_seeds if own_partitions else moderated
        for place, spread in zip(places, estimated([values[place][client] for place in places]), strict=True):
            found[place][client] = spread
    return found


def of_settings(parts: Sequence, records: dict | None = None, known: dict | None = None) -> list[dict[str, Measured]]:
    """The number of each client that has test images and of ``"average"``, for each row of one table.

    parts: rows of ``selected``, of each setting those that differ in seed and client only. records: by key, where
    scores are no right and wrong answers. known: ``spreads_of``; moderated by the parts themselves unless given.
    """
    parts = [part[part["images"] > 0] for part in parts]
    spreads = _spreads(parts) if known is None else [known[part["key"].iloc[0]] for part in parts]
    found = []
    for part, runs in zip(parts, spreads, strict=True):
        values, images = by_seed(part), wilson_of_clients(part) | (_scored(part, records) if records else {})
        images["average"] = mean_over_clients(list(images.values()))
        if dealt_by_seed(part):
            runs = {client: unmoderated(own) for client, own in values.items()}
        found.append({client: _with_runs(own, len(values[client]), runs[client]) for client, own in images.items()})
    return found


def by_seed(part) -> dict[str, Series]:
    """The values of a setting by seed, of each client and on average."""
    table = part.groupby(["seed", "client"])["accuracy"].mean().unstack()
    return {client: table[client].dropna() for client in table} | {"average": table.mean(axis=1)}


def _scored(part, records: dict) -> dict[str, Interval]:
    """The intervals of the images' scores around the recorded value, as each score is kept to fewer digits than their
    sum."""
    scores, values, found = image_scores(part, records), by_seed(part), {}
    for client, own in scores.items():
        each = own.values() if dealt_by_seed(part) else [sum(own.values()) / len(own)]
        value, low, high = map(mean, zip(*map(of_scores, each), strict=True))
        recorded = float(values[client].mean())
        found[client] = Interval(recorded, low + recorded - value, high + recorded - value)
    return found
