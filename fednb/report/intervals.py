"""95 % intervals: of a test accuracy from its counts, of a mean over clients, over seeds, and of an effect.

All values are per cent. An image is right (1) or wrong (0), or has a Dice coefficient in between: no scores in [0, 1]
vary more than rights and wrongs of the same mean, so for Dice what follows is rather too wide than too narrow. Two
sources of chance are looked at, and the wider of the two intervals is shown:

- The test images: DSLR has 32 of them, one is 3.1 points. For one client: Wilson's interval. For the mean of
  K independent clients, unweighted, with accuracies p and Wilson's bounds l, u:
  ``mean - sqrt(sum (p - l)^2) / K`` to ``mean + sqrt(sum (u - p)^2) / K`` (Zou and Donner 2008: the bounds
  give the variance of each side, so the interval makes sense at 0 and 100 %, where a normal one is empty).
- The seeds, where a setting was run with several: Student's t interval of the mean over seeds. Alone it would
  be too narrow: all seeds are tested on the same images, and three equal values have no spread at all.
"""

from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

Z = 1.959964


class Interval(NamedTuple):
    """A value and its 95 % bounds, in per cent or points."""

    value: float
    low: float
    high: float


def wilson(correct: float, images: int) -> Interval:
    """Wilson's score interval of ``correct`` right answers among ``images`` > 0."""
    p, share = correct / images, Z**2 / images
    centre = (p + share / 2) / (1 + share)
    reach = sqrt(p * (1 - p) * share + share**2 / 4) / (1 + share)
    return Interval(100 * p, 100 * min(p, max(0.0, centre - reach)), 100 * max(p, min(1.0, centre + reach)))


def mean_over_clients(clients: list[Interval]) -> Interval:
    """The unweighted mean of independent clients, from their own intervals."""
    value = mean(client.value for client in clients)
    down = sqrt(sum((client.value - client.low) ** 2 for client in clients)) / len(clients)
    up = sqrt(sum((client.high - client.value) ** 2 for client in clients)) / len(clients)
    return Interval(value, value - down, value + up)


def over_seeds(values: list[float]) -> Interval:
    """Student's t interval of the mean of at least two values, one per seed."""
    from scipy.stats import t

    value = mean(values)
    reach = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Interval(value, value - reach, value + reach)


def wider(counted: Interval, values: list[float]) -> Interval:
    """The interval from the counts, widened to the one over seeds where there are several."""
    if len(values) < 2:
        return counted
    seeds = over_seeds(values)
    return Interval(counted.value, min(counted.low, seeds.low), max(counted.high, seeds.high))


def of_clients(chosen) -> dict[str, Interval]:
    """The interval of each client and of ``"average"``, for the runs of one setting.

    chosen: rows of ``fednb.report.selection.selected`` that differ in seed and client only. Clients without test images
    are left out. Right answers are averaged over seeds; several seeds do not make more test images.
    """
    chosen = chosen[chosen["images"] > 0]
    counted = _counted(chosen)
    values = {client: rows["accuracy"].tolist() for client, rows in chosen.groupby("client", sort=False)}
    counted["average"] = mean_over_clients(list(counted.values()))
    values["average"] = chosen.groupby("seed")["accuracy"].mean().tolist()
    return {client: _bounded(wider(counted[client], values[client])) for client in counted}


def _bounded(interval: Interval) -> Interval:
    return Interval(interval.value, max(0.0, interval.low), min(100.0, interval.high))


def effect(better, worse, client: str = "average") -> Interval:
    """``better`` minus ``worse`` in points, at one client or on average over all.

    From the counts: with a, b the two values and their bounds, ``a - b`` reaches down by
    ``sqrt((a - a_low)^2 + (b_high - b)^2)`` and up likewise (Zou and Donner 2008). Both were tested on the
    same images, which this leaves out, so it is rather too wide than too narrow. With two or more seeds in
    common, widened to the t interval of the differences, seed by seed.

    better, worse: rows of ``fednb.report.selection.selected``, each of one setting.
    """
    sides = [rows[rows["images"] > 0] for rows in (better, worse)]
    if client != "average":
        sides = [rows[rows["client"] == client] for rows in sides]
    a, b = (mean_over_clients(list(_counted(rows).values())) for rows in sides)
    value = a.value - b.value
    down = sqrt((a.value - a.low) ** 2 + (b.high - b.value) ** 2)
    up = sqrt((a.high - a.value) ** 2 + (b.value - b.low) ** 2)
    by_seed = [rows.groupby("seed")["accuracy"].mean() for rows in sides]
    differences = (by_seed[0] - by_seed[1]).dropna().tolist()
    return wider(Interval(value, value - down, value + up), differences)


def _counted(rows) -> dict[str, Interval]:
    by_client = rows.groupby("client", sort=False)
    return {client: wilson(own["correct"].mean(), own["images"].mean()) for client, own in by_client}
