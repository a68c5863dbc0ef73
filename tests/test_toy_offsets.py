"""DisTrans' toy problems (notebooks/distrans/toy_offsets) against closed forms, hand numbers and independent loops."""

import numpy as np
import pytest

from toy_offsets import data as made
from toy_offsets import training

COSINE = {"true_weights": [1.0, 2.0], "spread": 0.5, "noise": 0.1}
LINEAR = {"true_weights": [[1.0, 1.0], [2.0, 1.5]], "spread": 0.5, "noise": 0.1}


def clients_of(data, centre, points=80, seed=0):
    return made.make_clients(data["true_weights"], points, centre, data["spread"], data["noise"], seed)


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
