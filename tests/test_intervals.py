from math import exp, inf, isnan, nan, pi, sqrt, tan

import numpy
import pandas
import pytest
from hard.interval_coverage import ONE, trial
from made_results import run

from fednb.report.intervals import (
    Spread,
    crossed,
    mean_over_clients,
    moderated,
    moderated_within_seeds,
    nested,
    of_scores,
    of_settings,
    wilson,
)
from fednb.report.selection import selected

ALMOST = pytest.approx
TWO = {"a": 10, "b": 10}


def chosen(*tests, label="fedavg"):
    runs = [run(label, [right], images=TWO, seed=seed) for seed, right in enumerate(tests)]
    return selected(pandas.concat(runs))


def test_wilson_and_the_mean_over_clients_by_hand():
    # p = 0.8, n = 10, z^2 = 3.841459: centre (0.8 + 0.1920729) / 1.3841459 = 0.7167402,
    # reach sqrt(0.16 * 0.3841459 + 0.3841459^2 / 4) / 1.3841459 = sqrt(0.0983554) / 1.3841459 = 0.2265777.
    assert wilson(8, 10) == ALMOST((80, 49.01625, 94.33179), abs=1e-4)
    # p = 0: upper bound z^2 / (n + z^2) = 3.841459 / 13.841459.
    assert wilson(0, 10) == ALMOST((0, 0, 27.75328), abs=1e-4)
    assert wilson(10, 10) == ALMOST((100, 72.24672, 100), abs=1e-4)
    for n in (1, 32, 225):
        assert all(own.low <= own.value <= own.high for own in (wilson(k, n) for k in range(n + 1)))
    # Clients 8/10 and 0/10: down sqrt(30.98375^2 + 0^2) / 2, up sqrt(14.33179^2 + 27.75328^2) / 2.
    assert mean_over_clients([wilson(8, 10), wilson(0, 10)]) == ALMOST((40, 24.50812, 55.61758), abs=1e-4)


def test_one_seed_and_equal_seeds_are_the_counts_of_the_clients_with_images():
    for seeds in (1, 3):
        (found,) = of_settings([chosen(*[(8, 0)] * seeds)])
        assert found["a"][:4] == ALMOST((*wilson(8, 10), seeds)) and found["b"][:3] == ALMOST(wilson(0, 10))
        assert found["average"][:3] == ALMOST((40, 24.50812, 55.61758), abs=1e-4)
    rows = chosen((8, 0))
    rows.loc[rows["client"] == "b", ["images", "accuracy"]] = [0, nan]
    (found,) = of_settings([rows])
    assert set(found) == {"a", "average"} and found["average"][:3] == ALMOST(wilson(8, 10))


def test_the_spread_of_seeds_is_added():
    # Averages of the seeds: 40, 45 and 35, variance 25 with 2 degrees of freedom, whose quantile is 4.302653. The mean
    # of three seeds: reach 4.302653 * sqrt(25 / 3).
    (found,) = of_settings([chosen((8, 0), (9, 0), (7, 0))])
    assert found["average"].run == ALMOST((25, 2))
    reach = 4.302653 * sqrt(25 / 3)
    value, low, high = mean_over_clients([wilson(8, 10), wilson(0, 10)])
    assert found["average"].low == ALMOST(value - sqrt((value - low) ** 2 + reach**2), abs=1e-4)
    assert found["average"].high == ALMOST(value + sqrt((high - value) ** 2 + reach**2), abs=1e-4)


def test_settings_that_differ_in_more_than_methods_do_not_moderate_each_other():
    loud, quiet = chosen((9, 0), (1, 0)).assign(local_epochs=5), chosen((5, 5), (4, 5)).assign(local_epochs=1)
    assert [own["a"].run for own in of_settings([loud, quiet])] == [ALMOST((3200, 1)), ALMOST((50, 1))]
    together = of_settings([loud.assign(local_epochs=1), quiet])
    assert together[0]["a"].run == ALMOST((3200, 1)) and together[1]["a"].run.variance > 50


def test_methods_that_spread_alike_share_what_they_know():
    """Equal variances: no method has one of its own, and all have the freedom of all. Their common value is Smyth's:
    the mean of log s^2 less its bias, log(d / 2) - digamma(d / 2) for d = 2."""
    centre = 4 * exp(0.5772156649)
    values = [numpy.array([1.0, 3.0, 5.0]) + n for n in range(4)]
    assert moderated(values) == [ALMOST((centre, 8), rel=1e-4)] * 4
    assert moderated([*values, numpy.array([7.0])])[4] == (ALMOST(nan, nan_ok=True), 0)
    assert moderated(values[:1]) == [ALMOST((4, 2))] and moderated([numpy.array([1.0, 1.0])]) == [(0, 1)]


def test_the_prior_of_variances_is_found_again():
    """Variances drawn from Smyth's prior with d_0 = 6 and s_0^2 = 2, two seeds: what is drawn towards it says so."""
    random = numpy.random.default_rng(5)
    true = 6 * 2 / random.chisquare(6, 4000)
    values = [random.normal(0, sqrt(own), 3) for own in true]
    drawn = [(own.var(ddof=1), spread) for own, spread in zip(values, moderated(values), strict=True)]
    lifted = [(s, spread.variance) for s, spread in drawn if spread.variance > 1.0001 * s]
    slope = numpy.polyfit(*numpy.array(lifted).T, 1)  # (6 * 2 + 2 s) / (6 + 2)
    assert slope == ALMOST([0.25, 1.5], rel=0.1)


def test_the_interval_of_scores_is_students():
    """Two values 0 and 2: mean 1, standard error 1, the quantile of one degree of freedom is tan(0.475 pi)."""
    assert of_scores(numpy.array([40.0, 42.0])).high - 41 == ALMOST(tan(0.475 * pi), rel=1e-9)
    many = numpy.arange(400) % 2 * 1.0  # nearly normal
    assert of_scores(many).high - 0.5 == ALMOST(1.96 * 0.5 / 20, rel=0.01)


def cell(*sites, runs=(9, 9), freedom=1):
    spreads = tuple(Spread(own, freedom) for own in runs)
    return [numpy.array(site, dtype=float) for site in sites], spreads


def test_one_seed_knows_the_images_alone():
    found = crossed(*cell([[0, 2]], [[1, 1, 1]]))
    # Mean (1 + 1) / 2; variance (2 / 2 + 0) / 4; Satterthwaite's freedom is that of the first site, 1.
    assert found[:2] == ALMOST((1, 1 - tan(0.475 * pi) * 0.5))
    assert found.seeds == 1 and isnan(found.p) and found.against(5.0) is None
    alone = nested(in_seeds({"a": [0, 2], "b": [1, 1, 1]}), ())
    assert alone[:4] == ALMOST(found[:4]) and isnan(alone.p)


def test_an_effect_by_hand():
    """One site, two images, two seeds: d = [[0, 4], [4, 12]], rows are seeds; either method's runs have variance 9."""
    found = crossed(*cell([[0, 4], [4, 12]]))
    # Over seeds the images have 2 and 8: variance 18 / 2 = 9. The runs (9 + 9) / 2 = 9. What is left of each cell is 1
    # or -1: 4 / 1 / (2 * 2) = 1. Together 9 + 9 - 1 = 17, freedom 17^2 / (81 + 2 * 4.5^2 + 1).
    assert found.value == 5 and found.run == ALMOST((18, 2)) and found.seeds == 2
    from scipy.stats import t

    freedom = 289 / 122.5
    assert found.high - 5 == ALMOST(t.ppf(0.975, freedom) * sqrt(17))
    assert found.p == ALMOST(2 * t.sf(5 / sqrt(17), freedom))
    assert found.at(0.01).low == ALMOST(5 - t.ppf(0.995, freedom) * sqrt(17))
    assert found.smallest_detectable(0.01) == ALMOST((t.ppf(0.995, freedom) + t.ppf(0.8, freedom)) * sqrt(17))
    # Against a printed number 1: 4, with the spread of the mean of two runs and of one more; freedom 2.
    assert found.against(1.0) == ALMOST((4, 4 - 4.302653 * sqrt(27), 4 + 4.302653 * sqrt(27)), rel=1e-6)
    # Or of the mean of two runs and that of three: 18 (1 / 2 + 1 / 3).
    assert found.against(1.0, 3) == ALMOST((4, 4 - 4.302653 * sqrt(15), 4 + 4.302653 * sqrt(15)), rel=1e-6)


def test_the_variance_is_never_below_that_of_images_or_of_runs():
    # Both images have the same mean, and all is residual: V(images) = V(runs) = 0.
    found = crossed(*cell([[1, -1], [-1, 1]], runs=(0, 0)))
    assert (found.low, found.value, found.high) == (0, 0, 0) and found.p == 1
    assert crossed(*cell([[1, -1], [-1, 1]], runs=(3, 1))).error == ALMOST(sqrt(2))
    found = crossed(*cell([[1], [2]], [[1, 2], [2, 1]]))  # a single image leaves everything open
    assert (found.low, found.high, found.p) == (-inf, inf, 1)


def in_seeds(*seeds):
    return [{name: numpy.array(own, dtype=float) for name, own in seed.items()} for seed in seeds]


def test_an_effect_of_seeds_with_images_of_their_own_by_hand():
    """One site: 0 and 4 in one seed, 4, 12 and 8 in the other; either method's runs have variance 10."""
    runs = (Spread(10, 3), Spread(10, 3))
    found = nested(in_seeds({"a": [0, 4]}, {"a": [4, 12, 8]}), runs)
    # The seeds' values 2 and 8 have variance 18: less than 20, and 20 / 2 = 10. The images 8 / 2 / 4 + 16 / 3 / 4.
    assert found.value == 5 and found.seeds == 2 and found.run == ALMOST((20, 6))
    assert found.error == ALMOST(sqrt(10 + 1 + 4 / 3)) and found.freedom == ALMOST(
        (10 + 7 / 3) ** 2 / (2 * 25 / 3 + (7 / 3) ** 2)
    )
    # Runs that are said to be calmer than the pair is: its own variance, with one degree of freedom.
    calm = nested(in_seeds({"a": [0, 4]}, {"a": [4, 12, 8]}), (Spread(1, 9), Spread(1, 9)))
    assert calm.run == (18, 1) and calm.error == ALMOST(sqrt(9 + 7 / 3))
    # As many images in each seed may be the same ones: their means over seeds, 2 and 8, have 18 / 2 = 9, not 1 + 4.
    assert nested(in_seeds({"a": [0, 4]}, {"a": [4, 12]}), runs).error == ALMOST(sqrt(10 + 9))
    # Means that cancel are no sign that images are fewer: 8 / 2 / 4 of each seed remain.
    assert nested(in_seeds({"a": [0, 4]}, {"a": [4, 0]}), runs).error == ALMOST(sqrt(10 + 2))


def test_a_site_without_images_in_a_seed_is_none_of_its_mean():
    found = nested(in_seeds({"a": [0, 4], "b": [10, 10]}, {"a": [4, 12, 8]}), (Spread(100, 3),) * 2)
    assert found.value == ALMOST(((2 + 10) / 2 + 8) / 2)
    assert found.error == ALMOST(sqrt(100 + 8 / 2 / 4 / 4 + 16 / 3 / 4))


def test_what_the_methods_of_a_seed_share_is_none_of_their_spreads():
    values = [pandas.Series(own) for own in ([1.0, 3, 8], [2.0, 7, 1], [5.0, 5, 9], [0.0, 1, 2])]
    found = moderated_within_seeds(values)
    shifted = moderated_within_seeds([own + [0, 50, -20] for own in values])
    assert [own for each in shifted for own in each] == ALMOST([own for each in found for own in each])
    table = numpy.array([own.to_numpy() for own in values])
    left = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    own = (left**2).sum(1) / ((1 - 1 / 4) * 2)
    assert found[own.argmax()] == ALMOST((own.max(), 2))
    assert all(each.freedom <= 6 for each in found)  # (4 - 1) (3 - 1) of all
    # a seed that one method alone has says nothing of it
    few, more = values[:2], [pandas.Series([1.0, 3, 8, 100]), values[1]]
    assert moderated_within_seeds(more) == [ALMOST(own) for own in moderated_within_seeds(few)]
    assert moderated_within_seeds([*few, pandas.Series([4.0], [1])])[2].freedom == 0


def test_a_number_over_partitions_of_their_own_rests_on_its_own_seeds():
    """A partition moves all methods of a seed alike: their variances are one, not several."""
    rows = [chosen((8, 0), (9, 0), (7, 0), label=label).assign(dealt_by_seed=True) for label in ("fedavg", "fedprox")]
    assert [each["average"].run for each in of_settings(rows)] == [ALMOST((25, 2))] * 2
    alike = [each.assign(dealt_by_seed=False) for each in rows]
    assert of_settings(alike)[0]["average"].run.freedom == 4
    uneven = rows[0].copy()
    uneven.loc[(uneven["seed"] == 0) & (uneven["client"] == "a"), ["correct", "images", "accuracy"]] = [80, 100, 80.0]
    [found] = of_settings([uneven])
    assert found["a"].value == ALMOST(80) and found["average"].value == ALMOST(40)


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_covers_the_true_effect_for_calm_and_wild_methods(seeds):
    """300 trials; two standard errors of one method's are 3 points."""
    draws = numpy.random.default_rng(1)
    held = [[own.low <= 0 <= own.high for own in trial(draws, seeds, ONE)] for _ in range(300)]
    each = numpy.mean(held, axis=0)
    assert each.min() >= 0.93 - 0.03 and each.mean() <= 0.99
