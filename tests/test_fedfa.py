"""FedFA between clients and server: what is sent, what is kept, and where the released code parts."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from methods import SIZES, TINY, federation, train
from torch import nn

from fednb import models, randomness
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations.fedfa import (
    FeatureAugmentation,
    client_sharing_variance,
    gamma_of_channels,
    gamma_of_one_variance,
    weights,
)
from fednb.models._staged import Staged


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


def augmented_by_hand(x: np.ndarray, gamma_mean, gamma_std, eps_mean, eps_std, factor, sample=False) -> np.ndarray:
    """Algorithm 2, image by image and channel by channel. factor(gamma) multiplies the variance of Eq. 3."""
    count, channels, height, width = x.shape
    mean, std = np.zeros((count, channels)), np.zeros((count, channels))
    for b in range(count):
        for c in range(channels):
            pixels = x[b, c].ravel()
            mean[b, c] = pixels.sum() / pixels.size
            squares = ((pixels - mean[b, c]) ** 2).sum()
            std[b, c] = np.sqrt(squares / (pixels.size - 1) + 1e-6 if sample else squares / pixels.size)
    out = np.zeros_like(x)
    for c in range(channels):
        spread = []
        for values, gamma in ((mean[:, c], gamma_mean[c]), (std[:, c], gamma_std[c])):
            squares = ((values - values.sum() / count) ** 2).sum()
            variance = squares / (count - 1) + 1e-6 if sample else squares / count
            spread.append(np.sqrt(factor(gamma) * variance))
        for b in range(count):
            new_mean = mean[b, c] + eps_mean[b, c] * spread[0]
            new_std = std[b, c] + eps_std[b, c] * spread[1]
            out[b, c] = new_std * (x[b, c] - mean[b, c]) / std[b, c] + new_mean
    return out


def same_draws(seed: int, x: torch.Tensor, dtype=torch.float64) -> list[torch.Tensor]:
    """What the layer draws after this seed: its gate, then one number for each image and channel, twice."""
    torch.manual_seed(seed)
    torch.rand(())
    return [torch.randn(x.shape[:2], dtype=dtype) for _ in range(2)]


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize(
    ("fusion", "factor"), [("adaptive", lambda g: g + 1), ("direct", lambda g: g + 1), ("client", lambda g: 1)]
)
def test_the_output_is_that_of_algorithm_2(fusion, factor, sample):
    x, made = features(), a_layer(fusion=fusion, correction=int(sample))
    expected = augmented_by_hand(
        x.numpy(),
        made.gamma_mean.tolist(),
        made.gamma_std.tolist(),
        *(d.numpy() for d in same_draws(3, x)),
        factor,
        sample,
    )
    torch.manual_seed(3)
    np.testing.assert_allclose(made(x).numpy(), expected, rtol=1e-12, atol=1e-12)


def test_fedfa_r_moves_every_statistic_by_the_same_standard_deviation():
    x, made = features(), a_layer(fusion="random", scale=0.7)
    eps_mean, eps_std = same_draws(4, x)
    torch.manual_seed(4)
    out = made(x)
    torch.testing.assert_close(out.mean((2, 3)), x.mean((2, 3)) + 0.7 * eps_mean)
    std = x.std((2, 3), correction=0)
    torch.testing.assert_close(out.std((2, 3), correction=0), (std + 0.7 * eps_std).abs())


def test_running_statistics_follow_eq_4():
    """Two batches at alpha = 0.9 from 0 and 1: 0.9 (0.1 m1) + 0.1 m2 and 0.9 (0.9 + 0.1 s1) + 0.1 s2."""
    made = a_layer(momentum=0.9)
    means, stds = [], []
    for seed in (0, 1):
        x = features(seed=seed)
        made(x)
        means.append(x.mean((0, 2, 3)))
        stds.append(x.std((2, 3), correction=0).mean(0))
    torch.testing.assert_close(made.mean, 0.09 * means[0] + 0.1 * means[1])
    torch.testing.assert_close(made.std, 0.81 + 0.09 * stds[0] + 0.1 * stds[1])
    made.track_running_stats = False
    before = made.mean.clone()
    made(features(seed=2))
    assert torch.equal(made.mean, before)


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
