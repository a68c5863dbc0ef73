"""DH and class fractions: hand-worked matrices, the paper's own settings, and a loop written here."""

import pytest
import torch

from fednb.errors import DataError
from fednb.standalone.heterogeneity import class_fractions, distributional_heterogeneity


def in_turn(clients: int, classes: int, each: int) -> torch.Tensor:
    """Each client has ``each`` classes in a row, one image of each; the rows start evenly around a circle, so that
    every class is at ``each * clients / classes`` clients.
    """
    counts = torch.zeros(clients, classes, dtype=torch.int64)
    for client in range(clients):
        counts[client, [(client * classes // clients + number) % classes for number in range(each)]] = 1
    return counts


@pytest.mark.parametrize(
    ("clients", "classes", "each", "expected"),
    [
        *((10, 10, each, dh) for each, dh in ((10, 0), (6, 0.4), (4, 0.6), (2, 0.8), (1, 1))),  # CIFAR-10
        *((8, 8, each, dh) for each, dh in ((8, 0), (6, 0.25), (4, 0.5), (2, 0.75), (1, 1))),  # CH-MNIST
        *((10, 100, each, dh) for each, dh in ((100, 0), (60, 0.4), (40, 0.6), (20, 0.8), (10, 1))),  # CIFAR-100
        (50, 100, 10, 0.9),  # Table 6
    ],
)
def test_the_papers_settings(clients, classes, each, expected):
    counts = in_turn(clients, classes, each)
    assert set(counts.sum(0).tolist()) == {each * clients // classes} and set(counts.sum(1).tolist()) == {each}
    assert distributional_heterogeneity(counts) == expected  # no rounding: 0.5 must not pass as "smaller than 50 %"


def test_a_hand_worked_matrix():
    """Classes at 3, 2, 1 and 0 of 3 clients: c = 3, 2, 0, 0 and DH = 1 - 5 / (4 x 3) = 7 / 12."""
    counts = [[9, 0, 0, 0], [1, 4, 0, 0], [1, 1, 7, 0]]
    assert distributional_heterogeneity(counts) == pytest.approx(7 / 12, abs=1e-15)


def test_it_jumps_where_the_last_shared_class_is_no_longer_shared():
    """One class, two of five clients: 1 - 2/5; one of five: 1, not 1 - 1/5. A client alone shares nothing."""
    assert distributional_heterogeneity([[3], [2], [0], [0], [0]]) == 0.6
    assert distributional_heterogeneity([[5], [0], [0], [0], [0]]) == 1
    assert distributional_heterogeneity([[5, 2]]) == 1


def test_fractions_are_of_a_class_not_of_a_client():
    """Class 0 has 8 images, 6 at the first client; class 1 has 2, both at the second; nobody has class 2."""
    fractions = class_fractions([[6, 0, 0], [2, 2, 0]])
    assert fractions.tolist() == [[0.75, 0, 0], [0.25, 1, 0]] and fractions.dtype == torch.float64


@pytest.mark.parametrize("counts", [[1, 2, 3], torch.zeros(0, 3), torch.zeros(2, 2, 2)])
def test_what_is_no_matrix_is_refused(counts):
    for function in (distributional_heterogeneity, class_fractions):
        with pytest.raises(DataError, match=r"expected \[clients, classes\]"):
            function(counts)
