from math import inf, isnan, nan, pi, sqrt, tan

import numpy
import pytest
from made_results import run

from fednb.report.intervals import (
    Cell,
    Measured,
    Spread,
    crossed,
    holm,
    mean_over_clients,
    of_scores,
    of_settings,
    pooled,
    wilson,
)
from fednb.report.selection import selected

ALMOST = pytest.approx
TWO = {"a": 10, "b": 10}


def chosen(*tests, label="fedavg"):
    import pandas

    runs = [run(label, [right], images=TWO, seed=seed) for seed, right in enumerate(tests)]
    return selected(pandas.concat(runs))


def test_wilson_by_hand():
    # p = 0.8, n = 10, z^2 = 3.841459: centre (0.8 + 0.1920729) / 1.3841459 = 0.7167402,
    # reach sqrt(0.16 * 0.3841459 + 0.3841459^2 / 4) / 1.3841459 = sqrt(0.0983554) / 1.3841459 = 0.2265777.
    assert wilson(8, 10) == ALMOST((80, 49.01625, 94.33179), abs=1e-4)


def test_wilson_at_both_ends_has_a_width_and_holds_its_value():
    # p = 0: upper bound z^2 / (n + z^2) = 3.841459 / 13.841459.
    assert wilson(0, 10) == ALMOST((0, 0, 27.75328), abs=1e-4)
    assert wilson(10, 10) == ALMOST((100, 72.24672, 100), abs=1e-4)
    for n in (1, 32, 59, 192, 225):
        for interval in (wilson(k, n) for k in range(n + 1)):
            assert interval.low <= interval.value <= interval.high


def test_one_dslr_image_is_inside_the_interval():
    assert wilson(27, 32).low < 100 * 26 / 32
    assert wilson(27, 32).low > 100 * 15 / 32


def test_mean_over_clients_by_hand():
    # Clients 8/10 and 0/10: down sqrt(30.98375^2 + 0^2) / 2, up sqrt(14.33179^2 + 27.75328^2) / 2.
    assert mean_over_clients([wilson(8, 10), wilson(0, 10)]) == ALMOST((40, 24.50812, 55.61758), abs=1e-4)


def test_one_seed_is_the_counts():
    (found,) = of_settings([chosen((8, 0))])
    assert found["a"][:3] == wilson(8, 10) and found["b"][:3] == wilson(0, 10)
    assert found["average"][:3] == ALMOST((40, 24.50812, 55.61758), abs=1e-4)
    assert found["average"].seeds == 1 and isnan(found["average"].run.variance)


def test_the_spread_of_seeds_is_pooled_over_the_settings_and_added():
    # Averages of the seeds: 45 and 35 (variance 50), 60 and 60 (variance 0): pooled 25 with 2 degrees of freedom, whose
    # quantile is 4.302653. The mean of two seeds: reach 4.302653 * sqrt(25 / 2).
    found = of_settings([chosen((9, 0), (7, 0)), chosen((6, 6), (6, 6))])
    assert found[0]["average"].run == ALMOST((25, 2))
    reach = 4.302653 * sqrt(12.5)
    value, low, high = mean_over_clients([wilson(8, 10), wilson(0, 10)])
    assert found[0]["average"].low == ALMOST(value - sqrt((value - low) ** 2 + reach**2), abs=1e-4)
    assert found[0]["average"].high == ALMOST(value + sqrt((high - value) ** 2 + reach**2), abs=1e-4)
    assert found[1]["average"].high - 60 > reach


def test_settings_that_differ_in_more_than_methods_are_pooled_apart():
    loud, quiet = chosen((9, 0), (1, 0)).assign(local_epochs=5), chosen((5, 5), (5, 5)).assign(local_epochs=1)
    found = of_settings([loud, quiet])
    assert found[0]["a"].run == ALMOST((3200, 1)) and found[1]["a"].run == (0, 1)
    together = of_settings([loud.assign(local_epochs=1), quiet])
    assert together[0]["a"].run == together[1]["a"].run == ALMOST((1600, 2))


def test_equal_seeds_keep_the_interval_of_the_counts():
    once, (three,) = of_settings([chosen((8, 0))])[0], of_settings([chosen((8, 0), (8, 0), (8, 0))])
    assert {name: own[:3] for name, own in three.items()} == {name: ALMOST(own[:3]) for name, own in once.items()}


def test_intervals_end_at_0_and_100():
    (found,) = of_settings([chosen((8, 0), (2, 0))])
    assert found["a"][:3] == (50, 0, 100) and found["average"][:3] == (25, 0, 100)


def test_a_client_without_test_images_is_left_out():
    rows = chosen((8, 0))
    rows.loc[rows["client"] == "b", ["images", "accuracy"]] = [0, float("nan")]
    (found,) = of_settings([rows])
    assert set(found) == {"a", "average"} and found["average"][:3] == ALMOST(wilson(8, 10))


def test_the_interval_of_scores_is_students():
    """Two values 0 and 2: mean 1, standard error 1, the quantile of one degree of freedom is tan(0.475 pi)."""
    assert of_scores(numpy.array([40.0, 42.0])).high - 41 == ALMOST(tan(0.475 * pi), rel=1e-9)
    many = numpy.arange(400) % 2 * 1.0  # nearly normal
    assert of_scores(many).high - 0.5 == ALMOST(1.96 * 0.5 / 20, rel=0.01)


def cell(*sites, sides=("one", "other")):
    return Cell([numpy.array(site, dtype=float) for site in sites], sides)


def test_one_seed_knows_the_images_alone():
    (found,) = crossed([cell([[0, 2]], [[1, 1, 1]])])
    # Mean (1 + 1) / 2; variance (2 / 2 + 0) / 4; Satterthwaite's freedom is that of the first site, 1.
    assert found[:2] == ALMOST((1, 1 - tan(0.475 * pi) * 0.5))
    assert found.seeds == 1 and isnan(found.p) and found.against(5.0) is None


def test_an_effect_by_hand():
    """One site, two images, two seeds: d = [[0, 4], [4, 12]], rows are seeds."""
    (found,) = crossed([cell([[0, 4], [4, 12]])])
    # Over seeds the images have 2 and 8: variance 18 / 2 = 9. Over images the seeds have 2 and 8: 18, halved 9.
    # What is left of each cell is 1 or -1: 4 / 1 / (2 * 2) = 1. Together 9 + 9 - 1 = 17, freedom 17^2 / (81 + 81 + 1).
    assert found.value == 5 and found.run == (18, 1) and found.seeds == 2
    from scipy.stats import t

    freedom = 289 / 163
    assert found.high - 5 == ALMOST(t.ppf(0.975, freedom) * sqrt(17))
    assert found.p == ALMOST(2 * t.sf(5 / sqrt(17), freedom))
    # Against a printed number 1: 4, with the spread of the mean of two runs and of one more.
    assert found.against(1.0) == ALMOST((4, 4 - 12.706205 * sqrt(27), 4 + 12.706205 * sqrt(27)), rel=1e-6)
    # Or of the mean of two runs and that of three: 18 (1 / 2 + 1 / 3).
    assert found.against(1.0, 3) == ALMOST((4, 4 - 12.706205 * sqrt(15), 4 + 12.706205 * sqrt(15)), rel=1e-6)


def test_the_variance_is_never_below_that_of_images_or_of_runs():
    # Both images and both seeds have the same mean, and all is residual: V(images) = V(runs) = 0.
    (found,) = crossed([cell([[1, -1], [-1, 1]])])
    assert (found.low, found.value, found.high) == (0, 0, 0) and found.p == 1


def test_a_single_image_leaves_everything_open():
    (found,) = crossed([cell([[1], [2]], [[1, 2], [2, 1]])])
    assert (found.low, found.high, found.p) == (-inf, inf, 1)


def test_cells_that_share_runs_have_fewer_degrees_of_freedom():
    values = [numpy.array([1.0, 3.0])] * 3
    assert pooled(values) == (2, 3)
    assert pooled(values, [("a", "x"), ("b", "x"), ("c", "x")]) == ALMOST((2, 9 / (3 + 6 / 4)))
    assert pooled(values, [("a", "x"), ("a", "x"), ("x", "a")]) == (2, 1)
    assert pooled([numpy.array([1.0])]) == (ALMOST(nan, nan_ok=True), 0)


def made(random, seeds, images, runs, residual, sizes=(192, 225, 32, 59), number=0):
    """A cell without an effect: standard deviations of an image, a run and their residual, in points."""
    of_run = random.normal(0, runs, seeds)[:, None]
    sites = [of_run + random.normal(0, images, n) + random.normal(0, residual, (seeds, n)) for n in sizes]
    return Cell(sites, (number, -1 - number))


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize(
    ("images", "runs", "residual"),
    [(50, 0, 30), (0, 3, 30), (50, 3, 30)],
)
def test_the_interval_covers_the_true_effect_in_95_of_100_trials(seeds, images, runs, residual):
    """2,000 trials of 12 pooled cells; two standard errors of 2,000 are one point."""
    random = numpy.random.default_rng(1)
    held, alone = [], []
    for _ in range(2000):
        cells = [made(random, seeds, images, runs, residual, number=number) for number in range(12)]
        held += [own.low <= 0 <= own.high for own in crossed(cells)]
        paired = crossed([Cell([site.mean(0)[None] for site in cells[0].differences], ("a", "b"))])[0]
        alone.append(paired.low <= 0 <= paired.high)
    assert 0.94 <= numpy.mean(held) <= 0.96
    assert (numpy.mean(alone) < 0.94) == (runs > 0)  # the images alone know nothing of runs


def test_cells_against_one_baseline_are_covered_too():
    random = numpy.random.default_rng(2)
    held = []
    for _ in range(2000):
        shared = made(random, 3, 30, 4, 20)
        cells = []
        for number in range(4):
            own = made(random, 3, 30, 4, 20)
            pairs = zip(own.differences, shared.differences, strict=True)
            cells.append(Cell([one - other for one, other in pairs], (number, "fedavg")))
        held += [found.low <= 0 <= found.high for found in crossed(cells)]
    assert 0.94 <= numpy.mean(held) <= 0.96


def test_holm_by_hand():
    # 0.01 <= 0.05 / 4, 0.016 <= 0.05 / 3, 0.03 > 0.05 / 2: the first two; 0.04 is not looked at any more.
    assert holm([0.03, 0.01, 0.04, 0.016]) == [False, True, False, True]
    assert holm([nan, 0.04, nan]) == [False, True, False]
    assert holm([]) == []


def test_a_table_without_effects_has_a_false_one_in_at_most_5_of_100_trials():
    random = numpy.random.default_rng(3)
    false, tested_alone = [], []
    for _ in range(2000):
        found = crossed([made(random, 3, 40, 3, 30, sizes=(60, 32), number=number) for number in range(6)])
        false.append(any(holm([own.p for own in found])))
        tested_alone.append(any(own.p < 0.05 for own in found))
    assert numpy.mean(false) <= 0.05 + 2 * sqrt(0.05 * 0.95 / 2000)
    assert numpy.mean(tested_alone) > 0.15


def test_a_printed_number_has_the_chance_of_one_run_more():
    """Two effects of the same law, ours of three runs and a printed one of one, differ by as much as `against` says."""
    random = numpy.random.default_rng(4)
    held = []
    for _ in range(2000):
        sites = [random.normal(0, 40, n) for n in (60, 32)]  # the same images for all
        cells = [
            Cell([site + row for site, row in zip(sites, _runs(random, 4), strict=True)], side)
            for side in ((n, -1 - n) for n in range(8))
        ]
        ours = crossed([Cell([site[:3] for site in own.differences], own.sides) for own in cells])
        for own, all_four in zip(ours, cells, strict=True):
            difference = own.against(float(all_four.by_seed[3]))
            held.append(difference.low <= 0 <= difference.high)
    assert 0.94 <= numpy.mean(held) <= 0.96


def _runs(random, seeds):
    """What a run gives to the images of two sites, ``[seeds, n]`` each."""
    of_run = random.normal(0, 3, seeds)[:, None]
    return [of_run + random.normal(0, 20, (seeds, n)) for n in (60, 32)]


def test_what_is_measured_is_told_apart_from_a_printed_number_by_its_runs():
    own = Measured(10, 8, 12, 4, Spread(4, 10), 0.01)
    assert own.against(10).low < 0 < own.against(10).high
    assert own.against(0).low == ALMOST(10 - 2.228139 * sqrt(5))
