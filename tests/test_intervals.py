from math import pi, tan

import pytest
from made_results import run

from fednb.report.intervals import effect, mean_over_clients, of_clients, over_seeds, wilson
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


def test_over_seeds_by_hand():
    # 60, 62, 67: mean 63, variance (9 + 1 + 16) / 2 = 13, t(2) = 4.302653: 4.302653 * sqrt(13 / 3) = 8.956647.
    assert over_seeds([60, 62, 67]) == ALMOST((63, 54.043353, 71.956647), abs=1e-4)
    # Two seeds, t(1) = 12.706205; half their distance is the standard error.
    assert over_seeds([60, 62]) == ALMOST((61, 61 - 12.706205, 61 + 12.706205))


def test_twenty_seeds_take_the_quantile_of_nineteen_degrees_of_freedom():
    values = [50.0, 52.0] * 10
    assert over_seeds(values).high == ALMOST(51 + 2.093024 * (20 / 19 / 20) ** 0.5)


def test_of_clients_with_one_seed_is_the_counts():
    found = of_clients(chosen((8, 0)))
    assert found == {"a": wilson(8, 10), "b": wilson(0, 10), "average": found["average"]}
    assert found["average"] == ALMOST((40, 24.50812, 55.61758), abs=1e-4)


def test_equal_seeds_keep_the_interval_of_the_counts():
    assert of_clients(chosen((8, 0), (8, 0), (8, 0))) == of_clients(chosen((8, 0)))


def test_spread_seeds_widen_the_interval_within_0_and_100():
    found = of_clients(chosen((8, 0), (2, 0)))
    # a: 80 and 20, t(1) gives 50 -+ 12.706 * 30, cut off at 0 and 100. Average: 40 and 10, 25 -+ 190.59.
    assert found["a"] == (50, 0, 100)
    assert found["b"] == wilson(0, 10)
    assert found["average"] == (25, 0, 100)


def test_a_client_without_test_images_is_left_out():
    rows = chosen((8, 0))
    rows.loc[rows["client"] == "b", ["images", "accuracy"]] = [0, float("nan")]
    assert of_clients(rows) == {"a": wilson(8, 10), "average": ALMOST(wilson(8, 10))}


def test_effect_by_hand_in_both_directions():
    # 8/10 against 0/10 at both clients: means 80 [80 - 30.98375 / sqrt 2, 80 + 14.33179 / sqrt 2] and
    # 0 [0, 27.75328 / sqrt 2]. Down: sqrt(30.98375^2 + 27.75328^2) / sqrt 2 = 29.41290; up 14.33179 / sqrt 2.
    found = effect(chosen((8, 8)), chosen((0, 0)))
    assert found == ALMOST((80, 80 - 29.41290, 80 + 10.13411), abs=1e-4)
    turned = effect(chosen((0, 0)), chosen((8, 8)))
    assert turned == ALMOST((-80, -90.13411, -50.58710), abs=1e-4)


def test_effect_at_one_client():
    found = effect(chosen((8, 5)), chosen((0, 5)), client="a")
    assert found == ALMOST((80, 80 - (30.98375**2 + 27.75328**2) ** 0.5, 94.33179), abs=1e-4)


def test_effect_with_seeds_looks_at_differences_seed_by_seed():
    # The seeds move both methods together: every difference is 10 points, so only the counts are left.
    better, worse = chosen((9, 9), (3, 3)), chosen((8, 8), (2, 2))
    once = effect(chosen((6, 6)), chosen((5, 5)))
    assert effect(better, worse) == ALMOST(once)
    # Here they move against each other: 70 and -50, so the t interval is far wider than the counts.
    found = effect(chosen((9, 9), (3, 3)), chosen((2, 2), (8, 8)))
    assert found == ALMOST((10, 10 - 12.706205 * 60, 10 + 12.706205 * 60))


def test_the_interval_over_seeds_is_students():
    """Two values 0 and 2: mean 1, standard error 1, the quantile of one degree of freedom is tan(0.475 pi)."""
    assert over_seeds([0.0, 2.0]).high - 1 == pytest.approx(tan(0.475 * pi), rel=1e-9)
    many = [float(k % 2) for k in range(400)]  # nearly normal
    reach = over_seeds(many).high - 0.5
    assert reach == pytest.approx(1.96 * 0.5 / 20, rel=0.01)
