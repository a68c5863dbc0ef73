"""FedReg: its images and its steps against formulas written out in numpy, and what it does to forgetting."""

import numpy as np
import pytest
import torch
from methods import prepared, ready
from torch import nn

from fednb.randomness import generator

RATE = 0.05


class Linear(nn.Module):
    """Scores x W: its derivatives for images and for weights are one line each."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(192, 3, generator=generator("fedreg test"), dtype=torch.float64) / 5)

    def features(self, images):
        return images.flatten(1)

    def head(self, features):
        return features @ self.weights


def begun(**options):
    """A client that stands before the first batch of round 1, and its method; images in float64."""
    client = ready(prepared([{"name": "fedreg", **options}]))
    client.model, method = Linear(), client.methods[-1]
    method.begin(client)
    return client, method


def probabilities(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    scores = np.exp(x @ w)
    return scores / scores.sum(1, keepdims=True)


def slope(w: np.ndarray, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of mean cross entropy for the weights."""
    return x.T @ (probabilities(w, x) - labels) / len(x)


def ascended(w: np.ndarray, x: np.ndarray, y: np.ndarray, eta: float, iterations: int) -> np.ndarray:
    low, high = x.min(), x.max()
    for _ in range(iterations):
        x = np.clip(x + eta * np.sign((probabilities(w, x) - y) @ w.T), low, high)
    return x


def flat(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().reshape(len(tensor), -1)


def order(client) -> list[np.ndarray]:
    """The batches of 4 that the images are made in."""
    drawn = torch.randperm(12, generator=generator(0, 1, client.name, "fedreg")).numpy()
    return [drawn[:4], drawn[4:8], drawn[8:]]


@pytest.mark.parametrize(("weight", "gamma"), [(1.0, 0.5), (0.5, 1.0), (0.0, 0.4), (1.0, 1.0)])
def test_steps_are_the_formulas(weight, gamma):
    """Five steps of plain descent, written out; the pseudo batches come round again after three."""
    client, method = begun(weight=weight, gamma=gamma, iterations=3)
    parameter = client.model.weights
    start = parameter.detach().numpy().copy()
    w, train, taken = start.copy(), client.site.train, []
    for step in range(5):
        indices = torch.randperm(12, generator=generator("batch", step))[:4]
        batch = client.batch(train, indices, training=True)
        client.steps = step
        method.before_step(client, batch)
        np.testing.assert_allclose(parameter.detach(), gamma * w + (1 - gamma) * start, atol=1e-12)
        parameter.grad = None
        client.objective(batch).backward()
        with torch.no_grad():
            parameter -= RATE * parameter.grad
        method.after_step(client, batch)

        x, y = flat(train.images[indices]) / 255.0, np.eye(3)[train.targets[indices]]
        moved = w - RATE * slope(gamma * w + (1 - gamma) * start, x, y)
        made = order(client)[step % 3]
        x, y = flat(train.images[made]) / 255.0, np.eye(3)[train.targets[made]]
        pseudo, perturbed = (ascended(start, x, y, eta, 3) for eta in (0.1, 0.001))
        middle, d = (moved + start) / 2, moved - start
        g, h = slope(middle, pseudo, probabilities(start, pseudo)), slope(middle, perturbed, y)
        a = max(0.0, (d * g).sum() / (g * g).sum())
        b = max(0.0, ((d - a * g) * h).sum() / (h * h).sum())
        taken.append((a > 0, b > 0))
        w = moved - weight * (a * g + b * h)
        np.testing.assert_allclose(parameter.detach(), w, rtol=1e-9, atol=1e-12)
    assert any(a for a, _ in taken) and not all(b for _, b in taken)  # both sides of the brackets are seen
