"""DisTrans: Eq. 1 and Algorithm 1 against loops written here, its network, and what becomes of the offsets."""

import math

import numpy as np
import pytest
import torch
from methods import HELD_OUT, SIZES, TINY, prepared, same
from torch import nn

from fednb import models
from fednb.federation import Federation, Site, Split
from fednb.loop.loop import FederatedRun
from fednb.methods import part
from fednb.methods.augmentations._offset_network import Aggregator, Hypernetwork
from fednb.methods.augmentations._two_channels import InputChannels
from fednb.methods.augmentations.distrans import distributional_heterogeneity
from fednb.randomness import generator, seeded


def made(data: Federation | None = None, **options) -> FederatedRun:
    """A prepared run, with plain descent."""
    return prepared([{"name": "distrans", **options}], data, momentum=0.0, weight_decay=0.0)


def at_server(run: FederatedRun, kind: str = "offset") -> dict[str, torch.Tensor]:
    return part(run.server.memories["distrans"], kind)


def disjoint(shared: int = 0) -> Federation:
    """Two clients with classes 0, 1 and 2, 3; of these ``shared`` are at both."""
    sites = []
    for number in range(2):
        targets = torch.tensor([2 * number, 2 * number + 1, *range(shared)] * 2)
        images = torch.randint(0, 256, (len(targets), 3, 8, 8), generator=generator(number), dtype=torch.uint8)
        sites.append(Site(f"client {number}", *[Split(images, targets)] * 3))
    return Federation("disjoint", tuple(sites), ("a", "b", "c", "d"))


# The network


def backbone() -> nn.Module:
    return models.build({"name": "digits_cnn", "channels": 2, "width": 16}, (3, 8, 8), 3)


@pytest.mark.parametrize("projection", [0, 5])
def test_one_backbone_serves_both_channels(projection):
    plain, network = backbone().eval(), InputChannels(backbone(), 2, projection).eval()
    images = torch.rand(4, 6, 8, 8)
    halves = [plain.features(half) for half in (images[:, :3], images[:, 3:])]
    if projection:
        halves = [half @ network.dense.weight.T + network.dense.bias for half in halves]
    features = network.features(images)
    torch.testing.assert_close(features, torch.cat(halves, 1))
    torch.testing.assert_close(network(images), features @ network.head.weight.T + network.head.bias)
    assert features.shape == (4, 2 * (projection or 4))


# Running statistics of each channel

FIRST = "backbone.stage1.1"


def first_activations(state: dict, images: torch.Tensor) -> torch.Tensor:
    """What the first batch normalisation is given, [2, pixels, channels]: the convolution of each blend."""
    halves = images.chunk(2, 1)
    weight, bias = state["backbone.stage1.0.weight"], state["backbone.stage1.0.bias"]
    convolved = [nn.functional.conv2d(half, weight, bias, padding=2) for half in halves]
    return torch.stack([found.movedim(1, 3).flatten(0, 2) for found in convolved])


def test_running_statistics_are_those_of_each_channels_own_activations():
    with seeded("two channels"):
        network = InputChannels(backbone(), 2, 0, own_statistics=True).double()
    mean, variance = torch.zeros(2, 2).double(), torch.ones(2, 2).double()
    for step in range(3):
        images = torch.rand(4, 6, 8, 8, generator=generator(step), dtype=torch.float64)
        images[:, 3:] += 2
        found = first_activations(network.state_dict(), images)
        mean = 0.9 * mean + 0.1 * found.sum(1) / 256
        variance = 0.9 * variance + 0.1 * (found - found.mean(1, keepdim=True)).square().sum(1) / 255
        network(images)
    state = network.state_dict()
    torch.testing.assert_close(state[f"{FIRST}.running_mean"], mean)
    torch.testing.assert_close(state[f"{FIRST}.running_var"], variance)
    assert state[f"{FIRST}.num_batches_tracked"].tolist() == [3, 3]
    assert not torch.allclose(*mean, rtol=0.1)


# Algorithm 1


class Flat(nn.Module):
    """No layer but the head: its logits and gradients are written out in ``by_hand``."""

    stages = stage_channels = ()

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(192, 3)

    def features(self, images):
        return images.flatten(1)


STEPS = {"clinic": (4, 4, 4), "harbour": (4, 3), "tower": (5,)}
RATE, OFFSET_RATE, ALPHA = TINY["learning_rate"], 2.0, 0.3


def by_hand(run: FederatedRun, variant: str, aggregation: str, channels: int, rounds: int):
    """Algorithm 1 in numpy, from the run's first offsets and weights: offsets, weights, right answers."""
    weight, bias = (run.server.model[f"head.{name}"].numpy().copy() for name in ("weight", "bias"))
    offsets = {name: value.numpy().reshape(-1) for name, value in at_server(run).items()}
    pixels = {name: run.clients[name].site.train.images.numpy().reshape(size, -1) / 255 for name, size in SIZES.items()}
    labels = {name: run.clients[name].site.train.targets.numpy() for name in SIZES}

    def inputs(x, t):
        both = (1 - ALPHA) * x + ALPHA * t, (1 + ALPHA) * x - ALPHA * t
        return np.concatenate(both[:channels], 1)

    def slopes(w, b, x, t, y):
        """d CE / dW, db and dt: the logits' slope is (p - y) / n; t enters the first half by alpha, the second by
        -alpha.
        """
        z = inputs(x, t)
        scores = z @ w.T + b
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        s = (p - np.eye(3)[y]) / len(y)
        along = (s @ w).sum(0)
        return s.T @ z, s.sum(0), ALPHA * (along[:192] - (along[192:] if channels == 2 else 0))

    for number in range(1, rounds + 1):
        total_w, total_b = 0, 0
        for name, size in SIZES.items():
            w, b, t = weight.copy(), bias.copy(), offsets[name]
            order = torch.randperm(size, generator=generator(0, number, name, "order")).numpy()
            for chosen in np.split(order, np.cumsum(STEPS[name])[:-1]):
                x, y = pixels[name][chosen], labels[name][chosen]
                dw, db, dt = slopes(w, b, x, t, y)
                t = t - OFFSET_RATE * dt
                if variant == "paper":  # the model's step is at the new offset
                    dw, db, _ = slopes(w, b, x, t, y)
                w, b = w - RATE * dw, b - RATE * db
            offsets[name] = t
            total_w, total_b = total_w + size / 24 * w, total_b + size / 24 * b
        weight, bias = total_w, total_b
        if aggregation == "mean":
            offsets = dict.fromkeys(SIZES, np.mean(list(offsets.values()), 0))
    right = []
    for name in SIZES:
        test = run.clients[name].site.test
        scores = inputs(test.images.numpy().reshape(HELD_OUT, -1) / 255, offsets[name]) @ weight.T + bias
        right.append(int((scores.argmax(1) == test.targets.numpy()).sum()))
    return offsets, weight, bias, right


@pytest.mark.parametrize("channels", [2, 1])
@pytest.mark.parametrize("aggregation", ["none", "mean"])
@pytest.mark.parametrize("variant", ["paper", "released"])
def test_two_rounds_are_algorithm_1(variant, aggregation, channels, monkeypatch):
    monkeypatch.setattr(models, "build", lambda *given: Flat())
    run = made(variant=variant, aggregation=aggregation, channels=channels, offset_rate=OFFSET_RATE)
    offsets, weight, bias, right = by_hand(run, variant, aggregation, channels, rounds=2)
    run.advance()
    assert run.advance()["test"] == right
    np.testing.assert_allclose(run.server.model["head.weight"].numpy(), weight, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(run.server.model["head.bias"].numpy(), bias, rtol=1e-10, atol=1e-13)
    for name, offset in at_server(run).items():
        np.testing.assert_allclose(offset.numpy().reshape(-1), offsets[name], rtol=1e-10, atol=1e-13)


# The offsets at the server


def test_first_offsets_are_uniform_and_each_clients_own():
    paper, released = at_server(made()), at_server(made(variant="released", aggregation="none"))
    values = torch.stack(list(paper.values()))
    assert 0 <= values.min() < 0.02 and 0.98 < values.max() < 1
    assert float(values.mean()) == pytest.approx(0.5, abs=4 / math.sqrt(12 * values.numel()))
    assert not torch.allclose(values[0], values[1], atol=0.1)
    for name, offset in paper.items():
        torch.testing.assert_close(released[name][0], (offset[0] - 0.485) / 0.229, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shared", "used"), [(0, False), (2, False), (3, True)])
def test_by_default_the_network_is_used_below_half_heterogeneity(shared, used):
    """Of 4 classes at two clients, all at their own: the first ``shared`` are at both as well. DH = 1 - shared / 4."""
    run = made(data=disjoint(shared))
    assert float(run.server.memories["distrans"]["heterogeneity"]) == 1 - shared / 4
    assert bool(at_server(run, "network")) == used
    assert not at_server(made(data=disjoint(shared), threshold=0.0), "network")


# The aggregation network as printed


def test_it_is_trained_on_what_it_last_put_out():
    """Its first step is on (t_1, t_0) of each client."""
    run, none = (made(offset_rate=10.0, aggregation=way) for way in ("network", "none"))
    first = at_server(run)
    network = Aggregator(3, (3, 8, 8)).double()
    network.load_state_dict(at_server(run, "network"))
    for each in (run, none):
        each.train_round()
    fractions, seen, now = (
        torch.stack([found[name] for name in SIZES]) for found in (at_server(run, "fractions"), first, at_server(none))
    )
    assert torch.equal(network(fractions, now), now)  # it starts as the identity
    network.learn(fractions, seen, now, 0.01)
    assert same(dict(network.state_dict()), at_server(run, "network"))
    torch.testing.assert_close(torch.stack([at_server(run)[name] for name in SIZES]), network(fractions, now))
    torch.testing.assert_close(at_server(run, "seen"), at_server(none))


# The aggregation network as released


def test_it_has_the_released_number_of_parameters_and_images():
    network = Hypernetwork(10, (3, 64, 64))
    assert sum(parameter.numel() for parameter in network.parameters()) == 3_598_004
    with torch.no_grad():
        images = network(torch.full((2, 10), 0.1), torch.zeros(2, 3, 64, 64))
    assert images.shape == (2, 3, 64, 64) and images.abs().max() <= 1 and images.std() > 0.1


def test_it_learns_client_after_client_from_the_mean_squared_error():
    torch.manual_seed(0)
    network, other = Hypernetwork(2, (3, 64, 64)), Hypernetwork(2, (3, 64, 64))
    other.load_state_dict(network.state_dict())
    fractions, offsets = torch.tensor([[0.2, 0.9], [0.8, 0.1]]), torch.rand(2, 3, 64, 64)
    network.learn(fractions, torch.zeros(0), offsets, rate=0.5)
    for client in (0, 1):
        image = other(fractions[client : client + 1], torch.zeros(0))[0]
        loss = ((image - offsets[client]) ** 2).sum() / 12_288
        slopes = torch.autograd.grad(loss, list(other.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(other.parameters(), slopes, strict=True):
                parameter -= 0.5 * slope
    torch.testing.assert_close(dict(network.state_dict()), dict(other.state_dict()), rtol=1e-4, atol=1e-6)


# What is sent, and what is refused


def test_a_hand_worked_matrix():
    """Classes at 3, 2, 1 and 0 of 3 clients: c = 3, 2, 0, 0 and DH = 1 - 5 / (4 x 3) = 7 / 12."""
    counts = [[9, 0, 0, 0], [1, 4, 0, 0], [1, 1, 7, 0]]
    assert distributional_heterogeneity(counts) == pytest.approx(7 / 12, abs=1e-15)
