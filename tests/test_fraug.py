"""FRAug and MMD against Eq. 1 to 6 written out in numpy, and what may move, stay and be sent."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from methods import prepared, ready, same

from fednb.methods.augmentations._fraug_steps import Printed
from fednb.methods.augmentations.fraug import FRAug

VARIANTS = ("paper", "released")


def begun(**options):
    """A client in the middle of round 2 of 3, and its method: all networks away from where they started."""
    run = prepared([{"name": "fraug", **options}])
    run.train_round()
    client = ready(run, round=2)
    client.optimiser = client._make_optimiser()
    client.optimiser.zero_grad()
    method = client.methods[-1]
    method.begin(client)
    return client, method


def one_batch(client, method, count=5):
    batch = client.batch(client.site.train, torch.arange(count), training=True)
    method.before_step(client, batch)
    return batch


def numbers(values: dict) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy().copy() for name, value in values.items()}


# Eq. 1 to 6 in numpy


def two_layers(p: dict, x, labels=None, classes=3, training=False, positive=False):
    if labels is not None:
        x = np.concatenate([x, np.eye(classes)[labels]], 1)
    for linear, norm in (("0", "1"), ("3", "4")):
        x = x @ p[f"{linear}.weight"].T + p[f"{linear}.bias"]
        mean, var = (x.mean(0), x.var(0)) if training else (p[f"{norm}.running_mean"], p[f"{norm}.running_var"])
        x = (x - mean) / np.sqrt(var + 1e-5) * p[f"{norm}.weight"] + p[f"{norm}.bias"]
        if linear == "0" or positive:
            x = np.maximum(x, 0)
    return x


def log_softmax(x):
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def cross_entropy(scores, labels):
    return -log_softmax(scores)[np.arange(len(labels)), labels].mean()


def entropy(scores):
    logs = log_softmax(scores)
    return -(np.exp(logs) * logs).sum(1).mean()


def mean_distance(rows) -> float:
    count = len(rows)
    return sum(((a - b) ** 2).sum() for a in rows for b in rows) / (count * (count - 1))


def double_loop(x, y, scale=None) -> float:
    scale = mean_distance(np.concatenate([x, y])) if scale is None else scale

    def kernel(a, b):
        return sum(math.exp(-((a - b) ** 2).sum() / (width * scale)) for width in (0.25, 0.5, 1, 2, 4))

    def mean(one, other):
        return sum(kernel(a, b) for a in one for b in other) / (len(one) * len(other))

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)


class ByHand:
    """The losses of one step of ``client``, with the networks as they are now."""

    def __init__(self, client, method):
        self.g, self.m = (numbers(client.scratch(method)[name].values) for name in ("generator", "rtnet"))
        self.w, self.b = client.model.head.weight.detach().numpy(), client.model.head.bias.detach().numpy()
        self.labelled = method.variant == "released"

    def head(self, x):
        return x @ self.w.T + self.b

    def made(self, base, z, y, weight, training=False):
        v = two_layers(self.g, z, y, positive=True)
        return base + weight * two_layers(self.m, v, y if self.labelled else None, training=training)


def at(round, rounds):
    memory = {"prototypes": torch.tensor([[1.0], [2.0], [6.0]])}
    kept = {"memory": lambda _: memory, "scratch": lambda _: {}}
    return SimpleNamespace(round=round, recipe=SimpleNamespace(rounds=rounds), classes=3, **kept)


@pytest.mark.parametrize(
    ("variant", "round", "rounds", "wanted"),
    [
        *(("paper", 1, 300, math.exp(-5)), ("paper", 41, 300, math.exp(-1.25)), ("paper", 5, 30, math.exp(-1.25))),
        *(("paper", 81, 300, 1), ("paper", 300, 300, 1), ("released", 1, 300, 1), ("released", 300, 300, 1)),
    ],
)
def test_lambda_c_by_hand(variant, round, rounds, wanted):
    """0.3 exp(-5 (1 - t)^2): t is 0 in round 1, a half after 40 of 300 rounds, 1 after 80 of them."""
    method = FRAug(variant=variant)
    found = method.reading(method, at(round, rounds)).lambda_c(torch.ones(1, 1))
    assert float(found) == pytest.approx(0.3 * wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_prototypes_by_hand(variant, monkeypatch):
    """Features 2 and 4 of class 0 and 8 of class 1, prototypes 1, 2 and 6, lambda_c = 0.5: class 0 goes to
    (1 + 3) / 2, class 1 to (2 + 8) / 2; class 2 is absent, so paper halves it and released leaves it.
    """
    monkeypatch.setattr("fednb.methods.augmentations._fraug_steps.LAMBDA_C", 0.5)
    method = FRAug(variant=variant)
    reading = method.reading(method, at(300, 300))
    moved = reading.moved_prototypes(torch.tensor([[2.0], [8.0], [4.0]]), torch.tensor([0, 1, 0]))
    assert moved.flatten().tolist() == [2, 5, 3 if variant == "paper" else 6]


# The losses


@pytest.mark.parametrize("ema", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loss_of_the_head(variant, ema):
    """Paper: real + synthetic + a term a class; released: the mean of real and synthetic, classes in turn."""
    client, method = begun(variant=variant, ema=ema, growth=0.002)
    if variant == "released":
        client.memory(method)["turn"].fill_(2)
    batch = one_batch(client, method)
    whole = float(client.objective(batch).detach())
    hand, aside = ByHand(client, method), batch.aside["fraug"]
    weight = math.exp(0.6 * (1 / 3 - 1))
    (z, y), u = aside["draws"][0], batch.features.detach().numpy()
    real = cross_entropy(batch.logits.detach().numpy(), y.numpy())
    terms = [cross_entropy(hand.head(hand.made(u, z.numpy(), y.numpy(), weight)), y.numpy())]
    if ema:
        z, y_c = aside["draws"][1]
        assert y_c.tolist() == ([2, 0, 1, 2, 0] if variant == "released" else [0, 1, 2])
        made = hand.made(aside["prototypes"].numpy()[y_c], z.numpy(), y_c.numpy(), weight)
        terms.append(cross_entropy(hand.head(made), y_c.numpy()) * (1 if variant == "released" else 3))  # Eq. 2
    assert weight > 0.5  # so a, as released, is 0.5
    wanted = 0.5 * real + 0.5 * np.mean(terms) if variant == "released" else real + sum(terms)
    assert whole == pytest.approx(wanted, rel=1e-10)


def captured(client, method, monkeypatch) -> dict:
    """What g and m minimise in one ``after_step``: the losses, and g as it was when m was trained."""
    found = {}
    for name in ("generator", "rtnet"):
        learner = client.scratch(method)[name]

        def descend(loss, learner=learner, name=name, original=learner.descend):
            found[name] = float(loss.detach())
            found["before", name] = numbers(learner.values), numbers(learner.momenta)
            original(loss)
            found["after", name] = numbers(learner.values), numbers(learner.momenta)

        monkeypatch.setattr(learner, "descend", descend)
    drawn, original = found.setdefault("draws", []), Printed.draw

    def draw(self, labels):
        drawn.append(original(self, labels))
        return drawn[-1]

    monkeypatch.setattr(Printed, "draw", draw)
    return found


def stepped(client, method, monkeypatch):
    """One whole step; returns the features encoded anew, as at test time, and what was captured."""
    batch = one_batch(client, method)
    client.owner["step"].step(client, batch)
    state = {name: value.clone() for name, value in client.model.state_dict().items()}
    client.model.eval()
    real = client.model.features(batch.images).detach().numpy()
    client.model.train()
    found = captured(client, method, monkeypatch)
    method.after_step(client, batch)
    assert same(client.model.state_dict(), state)
    return batch, real, found


@pytest.mark.parametrize("distance", ["mmd", "mse"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_generators_loss_is_eq_5(variant, distance, monkeypatch):
    client, method = begun(variant=variant, alpha=0.7, generator_distance=distance)
    hand = ByHand(client, method)
    batch, real, found = stepped(client, method, monkeypatch)
    if variant == "paper":
        (z, y), fresh = batch.aside["fraug"]["draws"][0], 0
    else:
        (z, y), fresh = found["draws"][0], 3
    assert len(found["draws"]) == fresh  # paper: one z and one z' for all of a step
    hand.w, hand.b = client.model.head.weight.detach().numpy(), client.model.head.bias.detach().numpy()

    def loss(values, scale=None):
        v = two_layers(values, z.numpy(), y.numpy(), training=True, positive=True)
        prototypes = client.memory(method)["prototypes"].numpy()[y]
        far = double_loop(v, real, scale) if distance == "mmd" else ((v - prototypes) ** 2).mean()
        return cross_entropy(hand.head(v), y.numpy()) - 0.7 * far, v

    value, v = loss(hand.g)
    assert found["generator"] == pytest.approx(value, rel=1e-9)
    scale = mean_distance(np.concatenate([v, real]))
    check_descent(
        found, "generator", lambda values: loss(values, scale)[0], rate=0.05 / 3 if variant == "paper" else 0.05
    )


@pytest.mark.parametrize("distance", ["mmd", "mse"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_rtnets_loss_is_eq_6(variant, distance, monkeypatch):
    """With the generator after its own step. Paper: lambda_syn, sums over the classes, one scale for all kernels;
    released: the full residual, the mean of two halves, each with its own scale.
    """
    client, method = begun(variant=variant, beta=0.7, rtnet_distance=distance)
    hand = ByHand(client, method)
    batch, real, found = stepped(client, method, monkeypatch)
    hand.g = found["before", "generator"][0] | found["after", "generator"][0]
    hand.w, hand.b = client.model.head.weight.detach().numpy(), client.model.head.bias.detach().numpy()
    draws = batch.aside["fraug"]["draws"] if variant == "paper" else found["draws"][1:]
    (z, y), (z_c, y_c) = [(noise.numpy(), labels.numpy()) for noise, labels in draws]
    prototypes = client.memory(method)["prototypes"].numpy()[y_c]
    weight = math.exp(-2) if variant == "paper" else 1.0

    def loss(values, scales=(None, None)):
        hand.m = values
        made, made_c = hand.made(real, z, y, weight, True), hand.made(prototypes, z_c, y_c, weight, True)
        own = mean_distance(np.concatenate([made, real])), mean_distance(np.concatenate([made_c, prototypes]))
        one, two = [scale or known for scale, known in zip(scales, own, strict=True)]
        h, h_c = entropy(hand.head(made)), entropy(hand.head(made_c))

        def far(x, y, scale):
            return double_loop(x, y, scale) if distance == "mmd" else ((x - y) ** 2).mean()

        if variant == "released":
            return (-h - h_c + 0.7 * (far(made, real, one) + far(made_c, prototypes, two))) / 2, own
        classes = sum(far(made_c[[c]], prototypes[[c]], one) for c in range(3))
        return -h - 3 * h_c + 0.7 * (far(made, real, one) + classes), own

    value, scales = loss(found["before", "rtnet"][0])
    assert found["rtnet"] == pytest.approx(value, rel=1e-9)
    rate = 0.025 / 3 if variant == "paper" else 0.025  # per class of Eq. 6's sums
    check_descent(found, "rtnet", lambda values: loss(values, scales)[0], rate)


def check_descent(found, name, loss, rate):
    """b <- 0.5 b + gradient, w <- w - rate b, with the gradient by central differences in random directions."""
    (before, momenta), (after, later) = found["before", name], found["after", name]
    assert any(momentum.any() for momentum in momenta.values())  # kept from the round before
    draws = np.random.RandomState(0)
    for parameter, momentum in momenta.items():
        np.testing.assert_allclose(after[parameter], before[parameter] - rate * later[parameter], rtol=0, atol=1e-15)
        way = draws.randn(*momentum.shape)
        ends = [loss(before | {parameter: before[parameter] + sign * 1e-6 * way}) for sign in (1, -1)]
        slope = ((later[parameter] - 0.5 * momentum) * way).sum()
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-7)
