"""DisTrans' toy problems (notebooks/distrans/toy_offsets) against closed forms, hand numbers and independent loops."""

import numpy as np
import pytest
import torch

from toy_offsets import data as made
from toy_offsets import training

COSINE = {"true_weights": [1.0, 2.0], "spread": 0.5, "noise": 0.1}
LINEAR = {"true_weights": [[1.0, 1.0], [2.0, 1.5]], "spread": 0.5, "noise": 0.1}


def clients_of(data, centre, points=80, seed=0):
    return made.make_clients(data["true_weights"], points, centre, data["spread"], data["noise"], seed)


def test_zero_offset_is_the_plain_loss():
    weights = torch.linspace(-3, 3, 13, dtype=made.REAL)
    client = clients_of(COSINE, -1.0)[0]
    plain = ((torch.cos(weights[:, None] * client.x) - client.y) ** 2).mean(1)
    assert torch.equal(training.cosine_loss(client, weights, 0.0, 0.0), plain)
    client = clients_of(LINEAR, -1.0)[0]
    weight = torch.tensor([0.5, -2.0], dtype=made.REAL)
    zero = torch.zeros(2, dtype=made.REAL)
    assert torch.equal(training.linear_loss(client, weight, zero, zero), ((client.x @ weight - client.y) ** 2).mean())


@pytest.mark.parametrize("centre", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("aim", training.AIMS)
def test_brute_force_finds_the_best_pair(aim, centre):
    """A plain double loop in numpy: exactly the best pair of the grid, and little to gain on a finer grid."""
    clients = clients_of(COSINE, centre, points=40)
    weights = np.linspace(0, 4, 41)

    def curve(client, q):
        x, y = client.x.numpy(), client.y.numpy()
        return np.array([np.mean((np.cos(w * (x + q)) - y) ** 2) for w in weights])

    def scores(grid):
        first, second = ([curve(c, q) for q in grid] for c in clients)
        pairs = [((i, j), a, b) for i, a in enumerate(first) for j, b in enumerate(second)]
        if aim == "gap":
            return {pair: np.sqrt(np.mean((a - b) ** 2)) for pair, a, b in pairs}
        return {pair: np.min((a + b) / 2) for pair, a, b in pairs}

    grid = np.linspace(-3, 3, 61)
    coarse, fine = scores(grid), scores(np.linspace(-3, 3, 181))
    best = min(coarse, key=coarse.get)
    found = training.search_shifts(clients, torch.from_numpy(weights), 0.0, torch.from_numpy(grid), aim)
    assert found == pytest.approx((grid[best[0]], grid[best[1]]), abs=1e-12)
    result = training.cosine_curves(clients, torch.from_numpy(weights), 0.0, found).numbers
    name = "gap" if aim == "gap" else "lowest shared loss"
    plain = training.cosine_curves(clients, torch.from_numpy(weights)).numbers[name]
    assert result[name] == pytest.approx(coarse[best], rel=1e-9)
    assert result[name] - min(fine.values()) < 0.02 * plain


@pytest.mark.parametrize("centre", [0.0, 2.0, -1.0])
def test_lowest_loss_solves_the_normal_equations(centre):
    """A shift is a private bias for each client: two columns of zeros and ones in the design matrix."""
    clients = clients_of(LINEAR, centre)
    x = np.concatenate([c.x.numpy() for c in clients])
    y = np.concatenate([c.y.numpy() for c in clients])
    mine = np.repeat(np.eye(2), len(x) // 2, axis=0)  # [n, 2], which client a row belongs to
    alone = np.concatenate([mine[:, [k]] * np.column_stack([x, np.ones(len(x))]) for k in (0, 1)], axis=1)
    for learn, design in (((), x), (("q",), np.column_stack([x, mine])), (("p", "q"), alone)):
        solution = np.linalg.solve(design.T @ design, design.T @ y)
        assert training.lowest_loss(clients, learn) == pytest.approx(np.mean((design @ solution - y) ** 2), rel=1e-9)


@pytest.mark.parametrize("learn", [("q",), ("p", "q"), ()])
def test_federated_run_is_the_loop_by_hand(learn):
    """Whole batches, so that their order does not matter. Loss mean(r^2) with r = w.(x + p x + q) - y has the
    gradients 2 w mean(r) in q, 2 w mean(r x) in p and 2 mean(r x') in w; the offset steps first."""
    clients, rate, p0 = clients_of(LINEAR, 2.0, points=30), 0.01, -0.2
    data = [(c.x.numpy(), c.y.numpy()) for c in clients]
    w, p, q = np.zeros(2), np.full((2, 2), p0), np.zeros((2, 2))
    path, losses = [], []
    for _ in range(5):
        path.append(w)
        losses.append(np.mean([np.mean(((x + p[k] * x + q[k]) @ w - y) ** 2) for k, (x, y) in enumerate(data)]))
        replies = []
        for k, (x, y) in enumerate(data):
            r = (x + p[k] * x + q[k]) @ w - y
            step_q, step_p = 2 * w * r.mean(), 2 * w * (r[:, None] * x).mean(0)
            q[k] -= rate * step_q * ("q" in learn)
            p[k] -= rate * step_p * ("p" in learn)
            moved = x + p[k] * x + q[k]
            replies.append(w - rate * 2 * ((moved @ w - y)[:, None] * moved).mean(0))
        w = np.mean(replies, axis=0)
    run = training.federate(clients, 4, p0, learn, rate, steps=1)
    assert np.allclose(run.weights, path, rtol=1e-10)
    assert np.allclose(run.losses, losses, rtol=1e-10)
