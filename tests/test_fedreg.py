"""FedReg: its images and its steps against formulas written out in numpy, and what it does to forgetting."""

import numpy as np
import pytest
import torch
from methods import TINY, federation, same, train
from torch import nn

from fednb.errors import RecipeError
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations.fedreg import FedReg, _gradients
from fednb.randomness import generator
from fednb.recipe import Recipe

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


def prepared(**options):
    """A client that stands before the first batch of round 1, and its method; images in float64."""
    recipe = Recipe(**TINY | {"augmentations": [{"name": "fedreg", **options}], "flow": (), "precision": "fp64"})
    run = FederatedRun(recipe, federation())
    run.prepare()
    client = run.clients["clinic"]
    client.receive(run.server.send("clinic"), 1)
    client.model.train()
    return client, client.methods[-1]


def begun(**options):
    client, method = prepared(**options)
    client.model = Linear()
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


@pytest.mark.parametrize(("eta", "iterations"), [(0.1, 10), (0.03, 2)])
def test_images_and_labels_are_the_formulas(eta, iterations):
    client, method = begun(eta=eta, iterations=iterations)
    w = client.model.weights.detach().numpy()
    train, made = client.site.train, client.scratch(method)["made"]
    assert len(made) == 3
    for indices, ((pseudo, soft), (perturbed, hard)) in zip(order(client), made, strict=True):
        x, y = flat(train.images[indices]) / 255.0, np.eye(3)[train.targets[indices]]
        wanted = ascended(w, x, y, eta, iterations)
        np.testing.assert_allclose(flat(pseudo), wanted, atol=1e-12)
        np.testing.assert_allclose(soft, probabilities(w, wanted), atol=1e-12)
        np.testing.assert_allclose(flat(perturbed), ascended(w, x, y, eta / 100, iterations), atol=1e-12)
        assert torch.equal(hard, train.targets[indices])
        assert (probabilities(w, wanted) * y).sum() < (probabilities(w, x) * y).sum()  # away from the own class


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


def test_what_raises_the_perturbed_images_loss_is_projected_away():
    """Moved along h by hand: what is left is at right angles to it, both at the middle of the change."""
    client, method = begun(gamma=1.0, iterations=2)
    parameter, start = client.model.weights, client.model.weights.detach().clone()
    _, (perturbed, labels) = client.scratch(method)["made"][0]

    def rise(change):
        return float((change * _gradients(client, perturbed, labels, [parameter])[0]).sum())

    with torch.no_grad():
        change = 0.3 * _gradients(client, perturbed, labels, [parameter])[0]
        parameter.copy_(start + change)
        method.after_step(client, None)
        left = parameter - start
        parameter.copy_(start + change / 2)
        assert rise(change) > 0.1 and rise(left) == pytest.approx(0, abs=1e-12)


def test_at_the_global_weights_nothing_is_to_be_taken_back():
    """The labels are the network's own in evaluation mode, batch normalisation included: the gradient is 0."""
    client, method = prepared(iterations=2)
    method.begin(client)
    client.model.eval()
    for (pseudo, soft), _ in client.scratch(method)["made"]:
        slopes = _gradients(client, pseudo, soft, list(client.model.parameters()))
        assert max(float(g.abs().max()) for g in slopes) < 1e-12


def test_after_steps_have_moved_the_running_statistics_the_global_weights_are_still_left_alone(monkeypatch):
    """At v = w' all gradients on pseudo images are 0 to rounding, whatever the client's own statistics are by then."""
    client, method = prepared(iterations=2, gamma=1.0)
    method.begin(client)
    statistics = dict(client.model.named_buffers())
    came = {name: value.clone() for name, value in statistics.items()}
    start = {name: value.detach().clone() for name, value in client.model.named_parameters()}
    client.model(client.site.train.images.double())  # of another brightness than that of training
    local = {name: value.clone() for name, value in statistics.items()}
    assert not same(local, came)

    found = []

    def spy(client, images, labels, parameters):
        found.append((labels, _gradients(client, images, labels, parameters)))
        return found[-1][1]

    monkeypatch.setattr("fednb.methods.augmentations.fedreg._gradients", spy)
    for client.steps in range(3):
        method.after_step(client, None)
    pseudo = [slopes for labels, slopes in found if labels.is_floating_point()]
    assert len(pseudo) == 3
    assert max(float(g.abs().max()) for slopes in pseudo for g in slopes) < 1e-12
    assert same(dict(client.model.named_parameters()), start)
    assert same(statistics, local)
    assert client.model.training and all(module.training for module in client.model.modules())


def test_making_images_moves_no_running_statistics_and_draws_nothing():
    client, method = prepared(iterations=2)
    before = {name: value.clone() for name, value in client.model.state_dict().items()}
    torch.manual_seed(7)
    method.begin(client)
    drawn = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), drawn)
    assert same(client.model.state_dict(), before)
    assert client.model.training and all(module.training for module in client.model.modules())
    assert all(parameter.grad is None for parameter in client.model.parameters())


def test_it_forgets_less():
    """After local training the network agrees more with the global one on the pseudo images than without."""
    client, method = prepared(iterations=5)
    method.begin(client)
    made = [pair for pair, _ in client.scratch(method)["made"]]
    start = {name: value.clone() for name, value in client.model.state_dict().items()}
    apart = {}
    for weight in (0.0, 1.0):
        client.methods[-1] = FedReg(weight=weight, gamma=1.0, iterations=5)
        client.model.load_state_dict(start)
        client.train()
        client.model.eval()
        with torch.no_grad():
            logs = [(client.model(images).log_softmax(1), labels) for images, labels in made]
        apart[weight] = sum(float(nn.functional.kl_div(*pair, reduction="batchmean")) for pair in logs)
    assert 0 < apart[1.0] < 0.8 * apart[0.0]


def test_nothing_but_the_model_is_sent():
    trained = train({"augmentations": [{"name": "fedreg", "iterations": 1}]}, rounds=1)
    assert set(trained.rounds[0]["up"]) == set(trained.rounds[0]["down"]) == {"model"}
    assert all(not state for client in trained.run.clients.values() for state in client.memories.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight": -0.1}, "weight -0.1; expected at least 0"),
        ({"gamma": 0.0}, r"gamma 0.0; expected a value in \(0, 1\]"),
        ({"gamma": 1.1}, "gamma 1.1"),
        ({"eta": 0.0}, "eta 0.0; expected a value above 0"),
        ({"iterations": 0}, "iterations 0; expected at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, said):
    with pytest.raises(RecipeError, match=f"fedreg has {said}"):
        FedReg(**options)
