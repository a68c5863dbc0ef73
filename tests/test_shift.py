"""The two numbers beside the picture of features."""

import numpy
import pytest

from fednb.analyses.shift import between_sites, site_accuracy


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
