"""The two numbers beside the picture of features."""

import numpy
import pytest

from fednb.analyses.shift import between_sites, site_accuracy, told_apart


@pytest.fixture
def drawn():
    draw = numpy.random.default_rng(0)
    return draw.normal(size=(240, 4)), numpy.arange(240) % 3, numpy.arange(240) // 3 % 4


def test_features_without_shift_do_not_give_the_site_away(drawn):
    features, labels, sites = drawn
    assert 15 < site_accuracy(features, sites) < 35  # guessing among four sites gives 25
    assert between_sites(features, labels, sites) < 10


def test_shifted_features_give_the_site_away(drawn):
    features, labels, sites = drawn
    shifted = features + 20 * numpy.eye(4)[sites]
    assert site_accuracy(shifted, sites) > 99
    assert between_sites(shifted, labels, sites) > 90


def test_the_share_between_sites_by_hand():
    # One class: site 0 at 0 and 2, site 1 at 4 and 6. The centre is 3, the squares add up to 9 + 1 + 1 + 9 = 20; the
    # sites' means are 1 and 5, twice two images at a distance of 2: 2 * (4 + 4) = 16.
    share = between_sites([[0.0], [2.0], [4.0], [6.0]], [0, 0, 0, 0], [0, 0, 1, 1])
    assert share == pytest.approx(100 * 16 / 20)


def test_a_difference_between_classes_is_no_shift():
    assert between_sites([[0.0], [1.0], [10.0], [11.0]] * 2, [0, 0, 1, 1] * 2, [0] * 4 + [1] * 4) == 0


def test_a_difference_is_told_where_its_interval_over_seeds_leaves_zero_out():
    # differences -9, -5, -13: deviation 4, t(0.975, 2) = 4.3027, so that the reach is 4.3027 * 4 / sqrt(3) = 9.94
    assert told_apart([61, 63, 60], [70, 68, 73]) == "-9.0 points (-18.9 to +0.9), not told"
    assert told_apart([61, 63, 62], [70, 71, 72]) == "-9.0 points (-11.5 to -6.5), below"
    assert told_apart([70, 71, 72], [61, 63, 62], together=3) == "+9.0 points (+4.6 to +13.4), above"
    assert told_apart([61], [70]) == "-9.0 points"
