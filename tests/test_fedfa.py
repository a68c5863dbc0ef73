"""FedFA between clients and server: what is sent, what is kept, and where the released code parts."""

import pytest
import torch
import torch.nn.functional as F
from methods import SIZES, TINY, federation, train
from torch import nn

from fednb import models, randomness
from fednb.methods.augmentations.fedfa import FeatureAugmentation, client_sharing_variance, weights
from fednb.models._staged import Staged


def test_direct_fusion_sends_the_variance_of_eq_5():
    made = train({"augmentations": [{"name": "fedfa_direct", "probability": 1.0}], "precision": "fp64"}, rounds=1).run
    kept, sent = [client.memories["fedfa_direct"] for client in made.clients.values()], made.server.send("clinic")
    for entry in kept[0]:
        stacked = torch.stack([memory[entry] for memory in kept])
        variance = ((stacked - stacked.mean(0)) ** 2).mean(0)
        torch.testing.assert_close(sent[f"fedfa_direct/{entry.replace('/', '/gamma_')}"], variance)


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


def features(batch=5, channels=3, size=4, seed=0) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    values = torch.randn(batch, channels, size, size, generator=draw, dtype=torch.float64)
    scale = torch.rand(batch, channels, 1, 1, generator=draw, dtype=torch.float64) + 0.5
    return values * scale + torch.randn(batch, channels, 1, 1, generator=draw, dtype=torch.float64)


def a_layer(channels=3, **options) -> FeatureAugmentation:
    made = FeatureAugmentation(channels, **{"probability": 1} | options).double()
    made.gamma_mean.copy_(torch.arange(channels) * 0.8 + 0.1)
    made.gamma_std.copy_(torch.arange(channels) * 0.3 + 0.2)
    return made


def test_fedfa_c_has_the_batchs_own_variance_and_direct_fusion_adds_the_servers():
    """Means 1, 2 and 6 have the variance 14 / 3 (Eq. 3); a gamma of 2 makes it three times as large (Eq. 7)."""
    means, gamma = torch.tensor([[1.0], [2.0], [6.0]]), torch.tensor([2.0])
    for fusion, wanted in (("client", 14 / 3), ("direct", 14), ("adaptive", 14)):
        assert float(FeatureAugmentation(1, fusion=fusion).spread(means, gamma)) == pytest.approx(wanted**0.5)


def test_fedfa_r_moves_every_statistic_by_the_same_standard_deviation():
    x, made = features(), a_layer(fusion="random", scale=0.7)
    torch.manual_seed(4)
    torch.rand(())  # whether there is noise in this batch
    eps_mean, eps_std = (torch.randn(x.shape[:2], dtype=torch.float64) for _ in range(2))
    torch.manual_seed(4)
    out = made(x)
    torch.testing.assert_close(out.mean((2, 3)), x.mean((2, 3)) + 0.7 * eps_mean)
    std = x.std((2, 3), correction=0)
    torch.testing.assert_close(out.std((2, 3), correction=0), (std + 0.7 * eps_std).abs())


def test_gradients_flow_through_all_statistics():
    made = a_layer(channels=2)

    def augmented(x):
        torch.manual_seed(6)
        return made(x)

    x = features(batch=3, channels=2, size=2).requires_grad_()
    assert torch.autograd.gradcheck(augmented, (x,))


def test_constant_features_stay_finite_and_so_do_their_gradients():
    x = features()
    x[:, 1] = 0  # a channel that a ReLU has switched off in every image
    x[0, 2] = 4
    for correction in (0, 1):
        given = x.clone().requires_grad_()
        out = a_layer(correction=correction)(given)
        out.square().sum().backward()
        assert out.isfinite().all() and given.grad.isfinite().all()
        assert correction or out[:, 1].abs().max() < 1e-5  # noise of the size of the smallest variance


def test_eq_5_on_a_case_by_hand():
    """Channel 1: means 1, 2, 6 around 3: (4 + 1 + 9) / 3 = 14/3. Channel 2: equal, 0. Channel 3: -1, 0, 1: 2/3."""
    statistics = torch.tensor([[1.0, 5.0, -1.0], [2.0, 5.0, 0.0], [6.0, 5.0, 1.0]], dtype=torch.float64)
    variance = client_sharing_variance(statistics)
    torch.testing.assert_close(variance, torch.tensor([14 / 3, 0, 2 / 3], dtype=torch.float64))
    # (1 + 1/v)^-1: 14/17, 0, 2/5; their sum is 104/85, and 3 times each over it 105/52, 0, 51/52.
    expected = torch.tensor([105 / 52, 0, 51 / 52], dtype=torch.float64)
    torch.testing.assert_close(weights(variance), expected)
