"""Class shares (DisTrans) and Dirichlet shares (FedFA): who gets how much of which class."""

import numpy as np
import pytest

from fednb.datasets._partition import class_shares, deal, dirichlet_shares, sizes, stratified
from fednb.errors import RecipeError

SETTINGS = [(10, 10, 10), (10, 10, 6), (10, 10, 2), (10, 10, 1), (8, 40, 4), (10, 50, 1)]  # classes, clients, u


def heterogeneity(holds: np.ndarray) -> float:
    """DisTrans, Eq. 3 and 4, of a table [clients, classes] that is true where a client has images of a class."""
    clients, classes = holds.shape
    owners = [sum(bool(holds[i, c]) for i in range(clients)) for c in range(classes)]
    return 1 - sum(k if k > 1 else 0 for k in owners) / (classes * clients)


class TestClassShares:
    @pytest.mark.parametrize("classes, clients, u", SETTINGS)
    def test_every_client_has_u_classes_and_every_class_k_clients(self, classes, clients, u):
        table, k = class_shares(classes, clients, u, "key"), u * clients // classes
        assert table.shape == (clients, classes)
        assert ((table > 0).sum(axis=1) == u).all() and ((table > 0).sum(axis=0) == k).all()
        np.testing.assert_allclose(table.sum(axis=0), 1)
        assert heterogeneity(table > 0) == pytest.approx(1 - u / classes if k > 1 else 1)

    def test_bounds_of_a_share(self):
        """Of k = 4 numbers from 0.4 to 0.6, one is 0.4 / (0.4 + 3 * 0.6) to 0.6 / (0.6 + 3 * 0.4) of the sum."""
        shares = np.concatenate([class_shares(10, 10, 4, key) for key in range(100)])
        shares = shares[shares > 0]
        assert 2 / 11 < shares.min() < 0.2 and 0.3 < shares.max() < 1 / 3

    def test_classes_with_most_places_left_come_first(self):
        """With 2 of 4 classes each, the second client has the two that the first has not."""
        for key in range(20):
            held = class_shares(4, 4, 2, key) > 0
            assert (held[1] != held[0]).all() and (held[3] != held[2]).all()

    @pytest.mark.parametrize(
        "clients, u, said",
        [
            *((clients, u, "clients is") for clients, u in ((0, 10), (-1, 10), (2.5, 10), (True, 10))),
            *((10, u, "classes_per_client is") for u in (0, 2.5, "2")),
            (4, 2, r"4 clients with 2 of 10 .* may be 5, 10\."),
            (10, 20, r"may be 1, 2, 3, 4, 5, 6, 7, 8, 9, 10\."),
        ],
    )
    def test_numbers_out_of_range(self, clients, u, said):
        with pytest.raises(RecipeError, match=said):
            class_shares(10, clients, u, "key")


def test_every_image_is_dealt_to_one_client_in_the_shares():
    targets = np.random.RandomState(0).permutation(np.repeat(np.arange(4), [97, 50, 31, 8]))
    table = class_shares(4, 8, 2, "key")
    hands = deal(targets, table, "key")
    assert sorted(np.concatenate(hands)) == list(range(len(targets)))
    dealt = np.array([np.bincount(targets[hand], minlength=4) for hand in hands])
    assert np.abs(dealt - table * [97, 50, 31, 8]).max() < 1 and not dealt[table == 0].any()


class TestDirichlet:
    @pytest.mark.parametrize("concentration", [0.3, 0.6, 5.0])
    def test_mean_and_variance_of_the_first_class(self, concentration):
        """Nobody is full yet, so it is Dir(a, ..., a): mean 1/C, variance (1/C)(1 - 1/C) / (C a + 1)."""
        clients, draws = 5, 600
        tables = [dirichlet_shares([1000] * 3, clients, concentration, key, minimum=0) for key in range(draws)]
        shares = np.array(tables)[:, :, 0]
        variance = (1 / clients) * (1 - 1 / clients) / (clients * concentration + 1)
        assert np.abs(shares.mean(axis=0) - 1 / clients).max() < 4 * np.sqrt(variance / draws)
        assert shares.var() == pytest.approx(variance, rel=0.1)

    def test_a_client_with_its_equal_part_gets_no_further_class(self):
        counts, full = [60, 30, 90], 0  # 60 for each of three clients
        targets = np.repeat(np.arange(3), counts)
        for key in range(30):
            table = dirichlet_shares(counts, 3, 0.3, key, minimum=0)
            dealt = np.array([np.bincount(targets[hand], minlength=3) for hand in deal(targets, table, key)])
            held = dealt.cumsum(axis=1) >= 60
            assert not table[:, 1:][held[:, :-1]].any()
            full += held[:, :-1].sum()
        assert full > 10

    def test_each_client_has_the_minimum(self):
        """Dir(0.3) over 40 clients with 25 images each on average: the first draw of these keys leaves one too few."""
        counts, targets = [100] * 10, np.repeat(np.arange(10), 100)
        for key in range(4):
            tables = [dirichlet_shares(counts, 40, 0.3, key, minimum=minimum) for minimum in (0, 10)]
            fewest = [min(map(len, deal(targets, table, key))) for table in tables]
            assert fewest[0] < 10 <= fewest[1]

    def test_the_last_client_that_is_not_full_takes_the_rest(self):
        """With these keys its own gamma is too small for a float, and the other client is full."""
        for key in (1293, 1469, 1615):
            table = dirichlet_shares([500, 500], 2, 0.01, key, minimum=0)
            assert sorted(table[:, 1]) == [0, 1] and table[:, 0] @ table[:, 1] < 1e-3

    def test_too_few_images_or_too_small_a_concentration(self):
        assert dirichlet_shares([50, 49], 10, 0.6, "key") is dirichlet_shares([200, 200], 10, 0.01, "key") is None
        for concentration in (0, 0.001, -0.6, float("inf"), float("nan")):
            with pytest.raises(RecipeError, match="concentration is"):
                dirichlet_shares([100, 100], 2, concentration, "key")
        with pytest.raises(RecipeError, match="clients is 0"):
            dirichlet_shares([100, 100], 0, 0.6, "key")


def test_the_key_decides_and_the_draw_is_frozen():
    """What these draws gave when they were written; a change would give recorded runs other images."""
    shares = [[0.521997, 0.524875, 0.0], [0.478003, 0.0, 0.47253], [0.0, 0.475125, 0.52747]]
    drawn = [[0.508215, 0.100306], [0.491785, 0.899694]]
    for draw, arguments, frozen in ((class_shares, (3, 3, 2), shares), (dirichlet_shares, ([50, 50], 2, 0.6), drawn)):
        first, again, other = (draw(*arguments, "frozen", key) for key in (0, 0, 1))
        assert (first == again).all() and (first != other).any() and first.round(6).tolist() == frozen


class TestStratified:
    def test_parts_are_disjoint_of_the_sizes_and_have_all_classes_in_proportion(self):
        targets = np.repeat([0, 1, 2], [50, 30, 20])
        parts = stratified(targets, [60, 15, 25], "key")
        assert [len(part) for part in parts] == [60, 15, 25] and sorted(np.concatenate(parts)) == list(range(100))
        for part in parts:
            assert np.abs(np.bincount(targets[part]) - len(part) * np.array([0.5, 0.3, 0.2])).max() < 2
        assert set(stratified(targets, [10], "key")[0]) <= set(stratified(targets, [30], "key")[0])
        first, again, other = (stratified(targets, [50], key)[0].tolist() for key in ("a", "a", "b"))
        assert first == again != other

    def test_sizes_sum_to_the_total(self):
        assert sum(sizes(1797, [0.25] * 4)) == 1797
        assert sizes(10, (0.6, 0.15, 0.25)) == [6, 2, 2] and sizes(1, (0.6, 0.15, 0.25)) == [1, 0, 0]
