"""FedFA between clients and server: what is sent, what is kept, and where the released code parts."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from methods import SIZES, TINY, federation, train
from torch import nn

from fednb import models, randomness
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations._feature_statistics import layers
from fednb.methods.augmentations.fedfa import gamma_of_channels, gamma_of_one_variance
from fednb.models._staged import Staged
from fednb.recipe import Recipe


def run(rounds: int = 2, **options) -> FederatedRun:
    name = options.pop("name", "fedfa")
    chosen = {"name": name, "probability": 1.0, **options}
    return train({"augmentations": [chosen], "rounds": rounds, "precision": "fp64"}).run


def test_paper_and_released_part_in_the_smallest_case():
    """Two clients, two channels. Means (0, 1) and (2, 1): Eq. 5 gives variances 1 and 0, Eq. 6 the shares 1/2 and 0, so
    gamma = (2, 0). The released code takes the variance of the four numbers 0, 1, 2, 1 at once: gamma = (1, 1)."""
    statistics = torch.tensor([[0.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    assert gamma_of_channels(statistics).tolist() == [2.0, 0.0]
    assert gamma_of_one_variance(statistics).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["fedfa", "fedfa_direct"])
def test_the_server_sends_what_eq_5_and_6_make_of_the_replies(name):
    made = run(rounds=1, name=name) if name == "fedfa_direct" else run(rounds=1)
    server = made.server
    sent = server.memories[name]
    kept = {client: made.clients[client].memories[name] for client in made.clients}
    for entry in kept["clinic"]:
        stacked = torch.stack([kept[client][entry] for client in sorted(kept)])
        variance = ((stacked - stacked.mean(0)) ** 2).mean(0)  # Eq. 5
        shares = 1 / (1 + 1 / variance)
        expected = variance if name == "fedfa_direct" else len(shares) * shares / shares.sum()  # Eq. 6
        torch.testing.assert_close(sent[entry.replace("/", "/gamma_")], expected)
    message = server.send("clinic")
    assert {key for key in message if key.startswith(name)} == {f"{name}/{entry}" for entry in sent}


def entered(made: FederatedRun, client: str):
    """The layers of a client that has begun the next round."""
    client = made.clients[client]
    client.receive(made.server.send(client.name), 2)
    for method in client.methods:
        method.begin(client)
    return layers(client.model)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_gamma_of_what_clients_told_is_in_every_clients_layer(variant):
    """Of two clients' means (0, 1, 0, 1) and (2, 1, 2, 1) Eq. 5 makes 1, 0, 1, 0 and Eq. 6 gamma (2, 0, 2, 0); of their
    deviations, which differ in the other channels, (0, 2, 0, 2). As released all are 1."""
    made = run(rounds=1, variant=variant, stages=[1])
    told = {
        "one": {"1/mean": torch.tensor([0.0, 1, 0, 1]), "1/std": torch.tensor([1.0, 1, 1, 1])},
        "other": {"1/mean": torch.tensor([2.0, 1, 2, 1]), "1/std": torch.tensor([1.0, 3, 1, 3])},
    }
    made.server.methods[-1].aggregate(SimpleNamespace(replies=lambda method: told, memory=made.server.memory))
    for name in made.clients:
        (layer,) = entered(made, name)
        gamma = layer.gamma_mean.tolist(), layer.gamma_std.tolist()
        assert gamma == (([2, 0, 2, 0], [0, 2, 0, 2]) if variant == "paper" else ([1, 1, 1, 1], [1, 1, 1, 1]))


def test_a_round_costs_four_numbers_a_channel():
    """FedFA, Appendix D: 4 x sum of C_k numbers a client and round, two up and two down, in float32."""
    made = FederatedRun(Recipe(**TINY | {"augmentations": ["fedfa"]}), federation())
    made.train_round()
    counted = made.train_round()  # in round 1 the server has nothing to send
    channels = sum(made.model.stage_channels)
    assert counted["up"]["fedfa"] == counted["down"]["fedfa"] == 3 * 2 * 4 * channels
    assert 4 * 4 * (64 + 192 + 384 + 256 + 256) == 18 * 1024  # AlexNet
    assert 4 * 4 * (32 + 64 + 128 + 256 + 512) == 15.5 * 1024  # U-Net


class Small(Staged):
    """Two convolutions on 8 x 8 images, without batch normalisation."""

    stages, stage_channels = ("stage1", "stage2"), (3, 4)

    def __init__(self):
        super().__init__()
        with randomness.seeded("small"):
            self.stage1 = nn.Sequential(nn.Conv2d(3, 3, 3, stride=2), nn.Tanh())
            self.stage2 = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Tanh())
            self.hidden = nn.Flatten()
            self.head = nn.Linear(16, 3)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_three_rounds_are_algorithm_1_and_2(variant, monkeypatch):
    """In plain float64, from the draws alone: what is trained, what clients keep and what the server makes of it."""
    monkeypatch.setattr(models, "build", lambda *given: Small())
    settings = {"flow": (), "momentum": 0.0, "weight_decay": 0.0, "precision": "fp64"}
    fedfa = {"name": "fedfa", "variant": variant, "momentum": 0.5}
    found = train(settings | {"augmentations": [fedfa]}).run
    model, statistics, gammas = by_hand(variant)
    torch.testing.assert_close(found.server.model, model, rtol=1e-9, atol=1e-12)
    for number, gamma in enumerate(gammas, 1):
        for kind, values in zip(("mean", "std"), gamma, strict=True):
            told = found.server.memories["fedfa"][f"{number}/gamma_{kind}"]
            torch.testing.assert_close(told, values, rtol=1e-8, atol=1e-12)
    if variant == "paper":
        assert all((gamma - 1).abs().max() > 1e-3 for pair in gammas for gamma in pair)
        for name, pairs in statistics.items():
            for number, pair in enumerate(pairs, 1):
                kept = found.clients[name].memories["fedfa"]
                torch.testing.assert_close((kept[f"{number}/mean"], kept[f"{number}/std"]), pair, rtol=1e-9, atol=1e-12)


def by_hand(variant: str):
    """Three rounds with probability 0.5 and momentum 0.5: weights, each client's statistics, gammas."""
    correction, eps = {"paper": (0, 0.0), "released": (1, 1e-6)}[variant]
    weights = {name: value.double() for name, value in Small().state_dict().items()}
    statistics = {name: [(torch.zeros(c).double(), torch.ones(c).double()) for c in (3, 4)] for name in SIZES}
    gammas = [(torch.ones(c).double(), torch.ones(c).double()) for c in (3, 4)]
    data = {site.name: (site.train.images.double() / 255, site.train.targets) for site in federation().sites}

    def resampled(x, draw, layer, name):
        if float(torch.rand((), generator=draw)) >= 0.5:
            return x
        count, pixels = len(x), x[0, 0].numel()
        mean = x.sum((2, 3)) / pixels
        centred = x - mean[:, :, None, None]
        std = ((centred**2).sum((2, 3)) / (pixels - correction) + eps).sqrt()  # Eq. 2
        now = mean.detach().sum(0) / count, std.detach().sum(0) / count
        statistics[name][layer] = tuple((a + b) / 2 for a, b in zip(statistics[name][layer], now, strict=True))  # Eq. 4
        new = []
        for value, gamma in zip((mean, std), gammas[layer], strict=True):
            variance = ((value - value.sum(0) / count) ** 2).sum(0) / (count - correction) + eps  # Eq. 3
            spread = ((1 + gamma) * variance).sqrt()  # Eq. 7
            new.append(value + torch.randn(value.shape, dtype=torch.float64, generator=draw) * spread)  # Eq. 9
        return new[1][:, :, None, None] * centred / std[:, :, None, None] + new[0][:, :, None, None]  # Eq. 8

    for number in (1, 2, 3):
        total = {name: torch.zeros_like(value) for name, value in weights.items()}
        for name, size in SIZES.items():
            own = {key: value.clone().requires_grad_() for key, value in weights.items()}
            draw = randomness.generator(0, number, name, "layers")
            order = torch.randperm(size, generator=randomness.generator(0, number, name, "order"))
            for chosen in order.split({12: [4, 4, 4], 7: [4, 3], 5: [5]}[size]):
                x = torch.tanh(F.conv2d(data[name][0][chosen], own["stage1.0.weight"], own["stage1.0.bias"], stride=2))
                x = resampled(x, draw, 0, name)
                x = torch.tanh(F.conv2d(x, own["stage2.0.weight"], own["stage2.0.bias"]))
                x = resampled(x, draw, 1, name).flatten(1)
                loss = F.cross_entropy(x @ own["head.weight"].T + own["head.bias"], data[name][1][chosen])
                slopes = torch.autograd.grad(loss, list(own.values()))
                with torch.no_grad():
                    for value, slope in zip(own.values(), slopes, strict=True):
                        value -= TINY["learning_rate"] * slope
            for key, value in own.items():
                total[key] += size / sum(SIZES.values()) * value.detach()
        weights = total
        for layer in (0, 1):
            stacked = [torch.stack([statistics[name][layer][kind] for name in SIZES]) for kind in (0, 1)]
            if variant == "released":
                for name in SIZES:
                    statistics[name][layer] = tuple(values.sum(0) / len(SIZES) for values in stacked)
                continue  # one variance for all channels: gamma stays 1
            variances = [((values - values.sum(0) / 3) ** 2).sum(0) / 3 for values in stacked]  # Eq. 5
            shares = [1 / (1 + 1 / variance) for variance in variances]
            gammas[layer] = tuple(len(share) * share / share.sum() for share in shares)  # Eq. 6
    return weights, statistics, gammas
