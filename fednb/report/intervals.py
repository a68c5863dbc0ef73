"""95 % intervals: of a test accuracy or a Dice coefficient, and of the effect between two runs of the same images.

docs/reading.md has the mathematics, under *How an interval is computed*. All values are per cent or points, averages
are means of sites. Test images and runs (seed, order, draws) are two sources of chance; one seed knows images alone.

- ``moderated``: the spread of one run of each method of a setting (Smyth 2004); ``moderated_within_seeds`` where each
  seed has a partition of its own (Grubbs 1948).
- ``crossed``: an effect where every seed is tested on the same images; ``nested`` where each has images of its own.
- ``of_settings``: the number of one setting: of a site Wilson's interval, or Student's of its images' scores, over
  sites as Zou and Donner (2008) do, with what the seeds say.
- ``Measured.at``: of several effects that are tested together; ``Measured.against``: of ours minus a printed number.

``tests/hard/interval_coverage.py`` simulates how often they hold.
"""

from collections.abc import Sequence
from math import inf, log, nan, sqrt
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from fednb.report.scores import image_scores
from fednb.report.selection import selected
from fednb.report.wording import dealt_by_seed, frame_of, setting_of, settings

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import Series

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

    seeds: how many. run: the spread of one run. p: two-sided, of an effect of zero; NaN with one seed, and where the
    images' scores are not recorded. error, freedom: of the t that gives the bounds; NaN where they are from none.
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

    def smallest_told(self, level: float, power: float = 0.8) -> float:
        """The true effect that leaves zero out of ``at(level)`` with this probability, were its error known."""
        return (_quantile(self.freedom, level) + _quantile(self.freedom, 2 * (1 - power))) * self.error

    def against(self, printed: float, runs: int = 1) -> Interval | None:
        """Ours minus a printed number, the mean of so many runs on the same images; None with one seed."""
        if self.seeds < 2:
            return None
        reach = _quantile(self.run.freedom) * sqrt(self.run.variance * (1 / self.seeds + 1 / runs))
        value = self.value - printed
        return Interval(value, value - reach, value + reach)


def crossed(differences: Sequence["ndarray"], runs: Sequence[Spread]) -> Measured:
    """The effect over images and runs; over images alone where there is one seed.

    differences: of each site, points ``[seeds, images]``. runs: the spreads of one run that add up to theirs, of either
    method.
    """
    by_seed = sum(site.mean(1) for site in differences) / len(differences)
    sites, seeds, value = len(differences), len(by_seed), float(by_seed.mean())
    images = [_of_mean(site.mean(0), sites) for site in differences]
    if seeds == 1:
        low, high, _ = _student(value, sum(part.variance for part in images), images)
        return Measured(value, low, high, 1, Spread())
    residual = [_residual(site, sites) for site in differences]
    of_seeds = [Spread(own.variance / seeds, own.freedom) for own in runs]
    of_images, of_runs, of_residual = (sum(part.variance for part in parts) for parts in (images, of_seeds, residual))
    variance = max(of_images + of_runs - of_residual, of_images, of_runs)
    return _measured(value, seeds, variance, [*images, *of_seeds, *residual], runs)


def nested(differences: Sequence[dict[str, "ndarray"]], runs: tuple[Spread, ...]) -> Measured:
    """The effect where each seed has a partition of its own; over images alone where there is one seed.

    differences: of each seed, by site, points ``[images]``. runs: the spreads of one run that add up to their means',
    less what the two sides share.
    """
    import numpy

    seeds = len(differences)
    parts = [{name: site / len(own) for name, site in own.items()} for own in differences]
    by_seed = numpy.array([sum(site.mean() for site in own.values()) for own in parts])
    names = dict.fromkeys(name for own in parts for name in own)
    images = [_of_images([own[name] for own in parts if name in own], seeds) for name in names]
    value, of_images = float(by_seed.mean()), sum(part.variance for part in images)
    if seeds == 1:
        low, high, _ = _student(value, of_images, images)
        return Measured(value, low, high, 1, Spread())
    own = Spread(float(by_seed.var(ddof=1)), seeds - 1)
    if not sum(each.variance for each in runs) > own.variance * (1 + 1e-9):  # of two methods alone they are equal
        runs = (own,)
    of_seeds = [Spread(each.variance / seeds, each.freedom) for each in runs]
    variance = of_images + sum(part.variance for part in of_seeds)
    return _measured(value, seeds, variance, [*images, *of_seeds], runs)


def _of_images(site: Sequence["ndarray"], seeds: int) -> Spread:
    """The variance that the images of one site give to the mean over so many seeds, from those that have the site."""
    each = [_of_mean(own, seeds) for own in site]
    apart = Spread(sum(part.variance for part in each), min(part.freedom for part in each))
    alike = len(site) == seeds and len({len(own) for own in site}) == 1
    return max(apart, _of_mean(sum(site) / seeds, 1)) if alike else apart


def _measured(value: float, seeds: int, variance: float, parts: Sequence[Spread], runs: Sequence[Spread]) -> Measured:
    low, high, p = _student(value, variance, parts)
    run = Spread(sum(own.variance for own in runs), _freedom(sum(own.variance for own in runs), runs))
    return Measured(value, low, high, seeds, run, p, sqrt(variance), _freedom(variance, parts))


def moderated(values: Sequence["Series"]) -> list[Spread]:
    """The spread of one run of each method of a setting, from its values by seed."""
    return _moderated([unmoderated(own) for own in values])


def unmoderated(values: "Series") -> Spread:
    """A method's own."""
    import numpy

    values = numpy.asarray(values)
    return Spread(float(values.var(ddof=1)), len(values) - 1) if len(values) > 1 else Spread()


def _moderated(alone: Sequence[Spread], most: float = inf) -> list[Spread]:
    """Each method's own spread drawn towards those of all, which have ``most`` degrees of freedom together."""
    import numpy
    from scipy.optimize import brentq
    from scipy.special import polygamma, psi

    several = [own for own in alone if own.freedom]
    if not several:
        return list(alone)
    found, d = numpy.array(several).T
    if len(several) > 1 and found.any():
        logs = numpy.log(numpy.maximum(found, 1e-4 * found.mean())) - psi(d / 2) + numpy.log(d / 2)
        excess = logs.var(ddof=1) - polygamma(1, d / 2).mean()
        half = brentq(lambda x: polygamma(1, x) - excess, 1e-3, 1e6) if excess > 1e-6 else 1e6
        centre, worth = float(numpy.exp(logs.mean() + psi(half) - log(half))), 2 * half
    else:
        centre, worth = 0.0, 0.0
    drawn = (worth * centre + d * found) / (worth + d)
    freedom = numpy.where(found > drawn, d, numpy.minimum(worth + d, min(d.sum(), most)))
    each = zip(numpy.maximum(found, drawn).tolist(), freedom.tolist(), strict=True)
    spreads = (Spread(*own) for own in each)
    return [next(spreads) if own.freedom else own for own in alone]


def moderated_within_seeds(values: Sequence["Series"]) -> list[Spread]:
    """As ``moderated``, less what the methods of a seed share: values by seed.

    A seed that one method alone has says nothing, nor does a method without a second seed that others have.
    """
    import numpy
    import pandas

    table = pandas.concat(list(values), axis=1).to_numpy()
    seeds, methods = numpy.nonzero(~numpy.isnan(table))
    design = numpy.hstack([numpy.eye(table.shape[1])[methods], numpy.eye(table.shape[0])[seeds]])
    hat = design @ numpy.linalg.pinv(design)
    free = 1 - hat.diagonal()
    left = table[seeds, methods] - hat @ table[seeds, methods]
    told = numpy.bincount(methods, free > 1e-9) - 1  # its own degrees of freedom where each seed has many methods
    worth, squares = numpy.bincount(methods, free), numpy.bincount(methods, left**2)
    alone = zip(squares, worth, told, strict=True)
    return _moderated([Spread(s / w, d) if d > 0 else Spread() for s, w, d in alone], worth.sum())


def _of_mean(scores: "ndarray", sites: int) -> Spread:
    """The variance that the images of one site give to the mean over sites."""
    if len(scores) < 2:
        return Spread(inf, 1)
    return Spread(float(scores.var(ddof=1)) / len(scores) / sites**2, len(scores) - 1)


def _residual(site: "ndarray", sites: int) -> Spread:
    seeds, images = site.shape
    left = site - site.mean(0) - site.mean(1, keepdims=True) + site.mean()
    freedom = (images - 1) * (seeds - 1)
    return Spread(float((left**2).sum()) / max(1, freedom) / (images * seeds) / sites**2, max(1, freedom))


def _student(value: float, variance: float, parts: Sequence[Spread]) -> tuple[float, float, float]:
    """Bounds and two-sided p of the value 0."""
    from scipy.special import stdtr

    error = sqrt(variance)
    if error in (0, inf):
        return value - error, value + error, float(value == 0 or error > 0)
    freedom = _freedom(variance, parts)
    reach = _quantile(freedom) * error
    return value - reach, value + reach, 2 * float(stdtr(freedom, -abs(value) / error))


def _freedom(variance: float, parts: Sequence[Spread]) -> float:
    """Satterthwaite's degrees of freedom of a sum of estimated variances."""
    within = sum(part.variance**2 / part.freedom for part in parts)
    return variance**2 / within if 0 < within < inf else 1.0


def _quantile(freedom: float, level: float = 0.05) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - level / 2))


def wilson(correct: float, images: int) -> Interval:
    """Wilson's score interval of ``correct`` right answers among ``images`` > 0."""
    p, share = correct / images, Z**2 / images
    centre = (p + share / 2) / (1 + share)
    reach = sqrt(p * (1 - p) * share + share**2 / 4) / (1 + share)
    return Interval(100 * p, 100 * min(p, max(0.0, centre - reach)), 100 * max(p, min(1.0, centre + reach)))


def mean_over_clients(clients: Sequence[Interval]) -> Interval:
    """The unweighted mean of independent clients, from their own intervals."""
    value = mean(client.value for client in clients)
    down = sqrt(sum((client.value - client.low) ** 2 for client in clients)) / len(clients)
    up = sqrt(sum((client.high - client.value) ** 2 for client in clients)) / len(clients)
    return Interval(value, value - down, value + up)


def with_runs(images: Interval, seeds: int, run: Spread) -> Measured:
    """A setting's value of so many seeds: what the images leave open, and what the runs do; within 0 and 100."""
    low, high = images.low, images.high
    if seeds > 1:
        reach = _quantile(run.freedom) * sqrt(run.variance / seeds)
        low = images.value - sqrt((images.value - low) ** 2 + reach**2)
        high = images.value + sqrt((high - images.value) ** 2 + reach**2)
    return Measured(images.value, max(0.0, low), min(100.0, high), seeds, run)


def of_scores(scores: "ndarray") -> Interval:
    """Student's interval of the mean of images' scores, per cent, ``[n]``."""
    value = float(scores.mean())
    part = _of_mean(scores, 1)
    low, high, _ = _student(value, part.variance, [part])
    return Interval(value, max(0.0, low), min(100.0, high))


def wilson_of_clients(rows) -> dict[str, Interval]:
    """Wilson's interval of each client, from the mean over seeds of its share of right answers; where each seed has
    images of its own, from as many of them as there are in the mean."""
    found = {}
    for client, own in rows.groupby("client", sort=False):
        images = own["images"].mean()
        found[client] = wilson((own["correct"] * (images / own["images"])).mean(), images)
    return found


def spreads_of(chosen) -> dict[str, dict[str, Spread]]:
    """By key the spread of one run at each client and on ``"average"``: of its method, moderated by its whole setting;
    less what the methods of a seed share where each seed has a partition of its own.

    chosen: rows of ``fednb.report.selection.selected``, of all runs that are known of the settings in question.
    """
    parts = [rows for _, rows in settings(chosen[chosen["images"] > 0])]
    each = zip(parts, _spreads(parts), strict=True)
    return {key: spreads for rows, spreads in each for key in rows["key"].unique()}


def alike(results, rule: str, unseen: bool = False, seeds: Sequence[int] | None = None) -> tuple:
    """The chosen rows of all runs that are known of the settings of some results, and their ``spreads_of``.

    rule, unseen: of ``fednb.report.selection.selected``. seeds: of runs on these alone. Kept with the results, as each
    table of a notebook asks for them.
    """
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
    """The number of each client and of ``"average"``, for each row of one table.

    parts: rows of ``fednb.report.selection.selected``, of each setting those that differ in seed and client only.
    Clients without test images are left out. records: by key, where scores are no right and wrong answers: those of the
    images. known: the spreads, of ``spreads_of``; moderated by the parts themselves unless given.
    """
    parts = [part[part["images"] > 0] for part in parts]
    spreads = _spreads(parts) if known is None else [known[part["key"].iloc[0]] for part in parts]
    found = []
    for part, moderate in zip(parts, spreads, strict=True):
        values, images = by_seed(part), wilson_of_clients(part) | (_scored(part, records) if records else {})
        images["average"] = mean_over_clients(list(images.values()))
        runs = map(unmoderated, values.values()) if dealt_by_seed(part) else map(moderate.get, values)
        runs = dict(zip(values, runs, strict=True))
        found.append({client: with_runs(images[client], len(values[client]), runs[client]) for client in images})
    return found


def by_seed(part) -> dict[str, "Series"]:
    """The values of a setting by seed, of each client and on average."""
    table = part.groupby(["seed", "client"])["accuracy"].mean().unstack()
    return {client: table[client].dropna() for client in table} | {"average": table.mean(axis=1)}


def _scored(part, records: dict) -> dict[str, Interval]:
    """The intervals of the images' scores around the recorded value, as each score is kept to fewer digits than their
    sum."""
    scores, values = image_scores(part, records), by_seed(part)
    if dealt_by_seed(part):
        by_client = {client: map(of_scores, own.values()) for client, own in scores.items()}
        found = {client: Interval(*map(mean, zip(*each, strict=True))) for client, each in by_client.items()}
    else:
        found = {client: of_scores(sum(own.values()) / len(own)) for client, own in scores.items()}
    recorded = {client: float(values[client].mean()) for client in found}
    return {
        client: Interval(recorded[client], *(bound + recorded[client] - each.value for bound in each[1:]))
        for client, each in found.items()
    }
