"""FedFA's layer against its equations, in float64 and written apart from the code."""

import numpy as np
import pytest
import torch

from fednb.standalone.feature_augmentation import FeatureAugmentation, client_sharing_variance, weights


def features(batch=5, channels=3, size=4, seed=0) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    values = torch.randn(batch, channels, size, size, generator=draw, dtype=torch.float64)
    scale = torch.rand(batch, channels, 1, 1, generator=draw, dtype=torch.float64) + 0.5
    return values * scale + torch.randn(batch, channels, 1, 1, generator=draw, dtype=torch.float64)


def layer(channels=3, **options) -> FeatureAugmentation:
    made = FeatureAugmentation(channels, **{"probability": 1} | options).double()
    made.gamma_mean.copy_(torch.arange(channels) * 0.8 + 0.1)
    made.gamma_std.copy_(torch.arange(channels) * 0.3 + 0.2)
    return made


def by_hand(x: np.ndarray, gamma_mean, gamma_std, eps_mean, eps_std, factor, sample=False) -> np.ndarray:
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
    x, made = features(), layer(fusion=fusion, correction=int(sample))
    expected = by_hand(
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
    x, made = features(), layer(fusion="random", scale=0.7)
    eps_mean, eps_std = same_draws(4, x)
    torch.manual_seed(4)
    out = made(x)
    torch.testing.assert_close(out.mean((2, 3)), x.mean((2, 3)) + 0.7 * eps_mean)
    std = x.std((2, 3), correction=0)
    torch.testing.assert_close(out.std((2, 3), correction=0), (std + 0.7 * eps_std).abs())


def test_running_statistics_follow_eq_4():
    """Two batches at alpha = 0.9 from 0 and 1: 0.9 (0.1 m1) + 0.1 m2 and 0.9 (0.9 + 0.1 s1) + 0.1 s2."""
    made = layer(momentum=0.9)
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
    made = layer(channels=2)

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
        out = layer(correction=correction)(given)
        out.square().sum().backward()
        assert out.isfinite().all() and given.grad.isfinite().all()
        assert correction or out[:, 1].abs().max() < 1e-5  # noise of the size of the smallest variance


@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_low_precision_costs_one_rounding(dtype, allowed):
    """Against float64 on the same values with the same draws; bfloat16 has 8 bits: 1/256 of values up to about 7."""
    x = features(batch=8, size=8).to(dtype)
    x[:, 1] = 3.3  # a constant feature comes out constant: the new mean
    made = FeatureAugmentation(3, probability=1)
    torch.manual_seed(7)
    low = made(x)
    draws = [d.double() for d in same_draws(7, x, torch.float32)]
    mean, std = x.double().mean((2, 3)), x.double().std((2, 3), correction=0).clamp_min(1e-6)
    new_mean = mean + draws[0] * (2 * mean.var(0, correction=0)).clamp_min(1e-12).sqrt()
    new_std = std + draws[1] * (2 * std.var(0, correction=0)).clamp_min(1e-12).sqrt()
    plane = (slice(None), slice(None), None, None)
    expected = new_std[plane] * (x.double() - mean[plane]) / std[plane] + new_mean[plane]
    assert low.dtype == dtype
    assert (low.double() - expected).abs().max() < allowed


@pytest.mark.parametrize("value", [131.13, 4e4 / 3])
def test_a_constant_feature_has_no_deviation_where_its_mean_is_rounded(value):
    """The sum of 49 equal numbers is rounded in float32."""
    x = features(batch=8, size=7).float()
    x[:, 1] = value
    made = FeatureAugmentation(3, probability=1)
    out = made(x)
    assert (out[:, 1].amax((1, 2)) == out[:, 1].amin((1, 2))).all()
    assert made.statistics(x)[1][:, 1].max() < 2e-6


def test_eq_5_on_a_case_by_hand():
    """Channel 1: means 1, 2, 6 around 3: (4 + 1 + 9) / 3 = 14/3. Channel 2: equal, 0. Channel 3: -1, 0, 1: 2/3."""
    statistics = torch.tensor([[1.0, 5.0, -1.0], [2.0, 5.0, 0.0], [6.0, 5.0, 1.0]], dtype=torch.float64)
    variance = client_sharing_variance(statistics)
    torch.testing.assert_close(variance, torch.tensor([14 / 3, 0, 2 / 3], dtype=torch.float64))
    # (1 + 1/v)^-1: 14/17, 0, 2/5; their sum is 104/85, and 3 times each over it 105/52, 0, 51/52.
    expected = torch.tensor([105 / 52, 0, 51 / 52], dtype=torch.float64)
    torch.testing.assert_close(weights(variance), expected)


def test_a_strangers_network_takes_it_with_its_names_unchanged():
    stage = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    names = list(stage.state_dict())
    stage.append(FeatureAugmentation(8, probability=1))
    assert list(stage.state_dict()) == names
    images = torch.rand(4, 3, 8, 8)
    out = stage(images)
    assert out.shape == (4, 8, 6, 6) and out.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert stage(images).dtype == torch.bfloat16


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="1 x 1: one pixel has no standard deviation. Take larger images"):
        layer()(features(size=1))
    with pytest.raises(ValueError, match="batch of one image, which has no sample variance"):
        layer(correction=1)(features(batch=1))
    assert layer()(features(batch=1)).shape == (1, 3, 4, 4)
    with pytest.raises(ValueError, match=r"for 3 channels was given features \[5, 2, 4, 4\]; expected \[n, 3, height"):
        layer()(features(channels=2))
    with pytest.raises(ValueError, match="one pixel"):  # whatever the gate draws
        layer(probability=1e-9)(features(size=1))
    for options in ({"probability": 1.1}, {"momentum": -0.1}, {"fusion": "sum"}):
        with pytest.raises(ValueError, match="expected"):
            FeatureAugmentation(3, **options)
