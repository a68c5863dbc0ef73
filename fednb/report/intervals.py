"""95 % intervals: of a test accuracy or a Dice coefficient, and of the effect between two runs of the same images.

All values are per cent or points; averages are the mean of sites. Two sources of chance count: the test images (DSLR
has 32 of them, one is 3.1 points) and the run (seed, order, draws). One seed says nothing about the second, so its
interval knows the images alone and carries no verdict.

**An effect** is the mean over sites k of the mean over images i and seeds s of d, the difference of two methods' scores
of image i in seed s. Images and runs are crossed: every seed is tested on the same images. With n_k images at each of K
sites and S seeds,

- V(images) = sum_k var_i(mean_s d) / n_k / K^2, from the differences averaged over seeds;
- V(runs) = var_s(mean over sites and images of d) / S, from those averaged over images, and pooled over the cells of
  one table that are of one setting (same data, network and training: only methods differ), which have few seeds each;
- V(residual) = sum_k var(d - what images and seeds explain) / (n_k S) / K^2, which is in both;

the variance of the effect is V(images) + V(runs) - V(residual), and not below either of the first two. Student's t
has Satterthwaite's degrees of freedom of all parts: n_k - 1 for the images of a site, S - 1 for the runs of a cell.
Cells that share runs (four methods against one FedAvg) vary together: two that share one side correlate by 1/2, and a
pool has the degrees of freedom of its variance, fewer than their sum.

**A number of one setting** has Wilson's interval for the images of a site (several seeds do not make more); of K
sites, unweighted, ``mean - sqrt(sum (p - l)^2) / K`` to ``mean + sqrt(sum (u - p)^2) / K`` (Zou and Donner 2008: it
makes sense at 0 and 100 %, where a normal one is empty). For Dice it is Student's interval of the images' scores where
these are recorded; else Wilson's, too wide. What the seeds say, pooled over the table as above, is added: it
holds the residual a second time, so the interval is rather too wide than too narrow.

**Sites left out in turn**: the runs of a seed, one for each site, are one run of the formulas above. Sites are those
that were left out, or those that took part, with the mean of the runs that had them. They are taken as they are: an
interval says nothing of a site that nobody has seen.

**A printed number** is one run on the same images, or the mean of as many as its paper says: held against ours it has
the chance of so many runs more, and no images'.
"""

from collections.abc import Hashable, Sequence
from math import inf, nan, sqrt
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from fednb.report.selection import image_scores
from fednb.report.words import setting_of

if TYPE_CHECKING:
    from numpy import ndarray

Z = 1.959964


class Interval(NamedTuple):
    """A value and its 95 % bounds, in per cent or points."""

    value: float
    low: float
    high: float


class Spread(NamedTuple):
    """The variance of one run's value, and its degrees of freedom: 0 where no setting has two seeds."""

    variance: float = nan
    freedom: float = 0.0


class Measured(NamedTuple):
    """A value with its 95 % bounds, in per cent or points, and what is known of its chance.

    seeds: how many. run: the spread of one run. p: two-sided, of an effect of zero; NaN with one seed, and where the
    images' scores are not recorded.
    """

    value: float
    low: float
    high: float
    seeds: int
    run: Spread
    p: float = nan

    def against(self, printed: float, runs: int = 1) -> Interval | None:
        """Ours minus a printed number, the mean of so many runs on the same images; None with one seed."""
        if self.seeds < 2:
            return None
        reach = _quantile(self.run.freedom) * sqrt(self.run.variance * (1 / self.seeds + 1 / runs))
        value = self.value - printed
        return Interval(value, value - reach, value + reach)


class Cell(NamedTuple):
    """The differences behind one effect: of each site, points ``[seeds, images]``; and the two settings compared."""

    differences: Sequence["ndarray"]
    sides: tuple[Hashable, Hashable]

    @property
    def by_seed(self) -> "ndarray":
        """The mean over sites of the mean over images, ``[seeds]``."""
        return sum(site.mean(1) for site in self.differences) / len(self.differences)


def crossed(cells: Sequence[Cell]) -> list[Measured]:
    """The effect of each cell of one table, over images and runs; over images alone where a cell has one seed."""
    run = pooled([cell.by_seed for cell in cells], [cell.sides for cell in cells])
    return [_crossed(cell, run) for cell in cells]


def _crossed(cell: Cell, run: Spread) -> Measured:
    sites, seeds = len(cell.differences), len(cell.by_seed)
    value = float(cell.by_seed.mean())
    images = [_of_mean(site.mean(0), sites) for site in cell.differences]
    if seeds == 1:
        low, high, _ = _student(value, sum(part.variance for part in images), images)
        return Measured(value, low, high, 1, run)
    residual = [_residual(site, sites) for site in cell.differences]
    runs = Spread(run.variance / seeds, run.freedom)
    of_images, of_residual = (sum(part.variance for part in parts) for parts in (images, residual))
    variance = max(of_images + runs.variance - of_residual, of_images, runs.variance)
    low, high, p = _student(value, variance, [*images, runs, *residual])
    return Measured(value, low, high, seeds, run, p)


def pooled(values: Sequence["ndarray"], sides: Sequence[tuple] | None = None) -> Spread:
    """The variance of one run from several settings' values, ``[seeds]`` each; freedom as the head of this file says.

    sides: of each, which two settings it compares; none are shared unless given.
    """
    sides = [(object(), object()) for _ in values] if sides is None else sides
    several = [(own, side) for own, side in zip(values, sides, strict=True) if len(own) > 1]
    if not several:
        return Spread()
    freedom = [len(own) - 1 for own, _ in several]
    total = sum(freedom)
    variance = sum(f * float(own.var(ddof=1)) for f, (own, _) in zip(freedom, several, strict=True)) / total
    together = sum(
        min(f, g) * _correlation(one, other) ** 2
        for f, (_, one) in zip(freedom, several, strict=True)
        for g, (_, other) in zip(freedom, several, strict=True)
    )
    return Spread(variance, total**2 / together)


def _correlation(one: tuple, other: tuple) -> float:
    """Of two differences of independent settings, all of which vary alike."""
    (a, b), (c, d) = one, other
    return ((a == c) - (a == d) - (b == c) + (b == d)) / 2


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


def _student(value: float, variance: float, parts: list[Spread]) -> tuple[float, float, float]:
    """Bounds and two-sided p of the value 0, with Satterthwaite's degrees of freedom."""
    from scipy.special import stdtr

    error = sqrt(variance)
    if error in (0, inf):
        return value - error, value + error, float(value == 0 or error > 0)
    freedom = variance**2 / sum(part.variance**2 / part.freedom for part in parts)
    reach = _quantile(freedom) * error
    return value - reach, value + reach, 2 * float(stdtr(freedom, -abs(value) / error))


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def holm(p: Sequence[float], level: float = 0.05) -> list[bool]:
    """Which hypotheses are rejected when they are tested together, by Holm's steps; NaN is not tested."""
    order = sorted((value, number) for number, value in enumerate(p) if value == value)
    rejected = [False] * len(p)
    for step, (value, number) in enumerate(order):
        if value > level / (len(order) - step):
            break
        rejected[number] = True
    return rejected


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
    """Wilson's interval of each client, from the mean of its right answers over seeds."""
    by_client = rows.groupby("client", sort=False)
    return {client: wilson(own["correct"].mean(), own["images"].mean()) for client, own in by_client}


def of_settings(parts: Sequence, records: dict | None = None) -> list[dict[str, Measured]]:
    """The number of each client and of ``"average"``, for each row of one table.

    parts: rows of ``fednb.report.selection.selected``, of each setting those that differ in seed and client only.
    Clients without test images are left out. records: by key, where scores are no right and wrong answers: those of the
    images.
    """
    parts = [part[part["images"] > 0] for part in parts]
    values = [_by_seed(part) for part in parts]
    pools = {}
    for part, own in zip(parts, values, strict=True):
        for client, by_seed in own.items():
            pools.setdefault((setting_of(part), client), []).append(by_seed)
    run = {key: pooled(pool) for key, pool in pools.items()}
    found = []
    for part, own in zip(parts, values, strict=True):
        images = wilson_of_clients(part) | (_scored(part, records) if records else {})
        images["average"] = mean_over_clients(list(images.values()))
        spread = {client: run[setting_of(part), client] for client in images}
        found.append({client: with_runs(images[client], len(own[client]), spread[client]) for client in images})
    return found


def _by_seed(part) -> dict[str, "ndarray"]:
    """The values of a setting, one for each seed, of each client and on average."""
    table = part.pivot_table("accuracy", "seed", "client")
    return {client: table[client].dropna().to_numpy() for client in table} | {"average": table.mean(axis=1).to_numpy()}


def _scored(part, records: dict) -> dict[str, Interval]:
    return {client: of_scores(sum(own.values()) / len(own)) for client, own in image_scores(part, records).items()}
