"""FedFA's layer, for any convolutional network; it needs nothing but torch.

Put one after a convolutional stage, exchange two vectors a round, and leave the rest of the training loop alone::

    self.stage1 = nn.Sequential(convolution, nn.ReLU(), nn.MaxPool2d(2), FeatureAugmentation(64))

    layer.mean, layer.std                      # a client sends these two vectors of 64 numbers
    weights(client_sharing_variance(stacked))  # the server makes of all clients' means (Eq. 5, 6) ...
    layer.gamma_mean, layer.gamma_std          # ... what every client receives; likewise of their standard deviations
"""

import torch
from torch import Tensor, nn

TINY = 1e-12  # below it a variance is zero: the feature is constant
FUSIONS = ("adaptive", "direct", "client", "random")


class FeatureAugmentation(nn.Module):
    r"""Resamples the channel statistics of each image's features.

    With the mean :math:`\mu` and the standard deviation :math:`\sigma` over height and width of each image and
    channel (Eq. 2), their variances :math:`\Sigma^2` over the batch (Eq. 3) and the server's :math:`\gamma`:

    .. math::
        \hat\Sigma^2 = (\gamma + 1) \odot \Sigma^2 \tag{7}

        \hat X = \hat\sigma \frac{X - \mu}{\sigma} + \hat\mu, \quad
        \hat\mu = \mu + \epsilon_\mu \hat\Sigma_\mu, \quad \hat\sigma = \sigma + \epsilon_\sigma \hat\Sigma_\sigma,
        \quad \epsilon \sim \mathcal N(0, 1) \tag{8, 9}

    with one draw for each image and channel. Off in evaluation mode. Gradients flow through all statistics. The draws
    are those of ``generator``, a CPU generator that may be set on the layer, else torch's global ones.

    Args:
        channels: C of the features ``[B, C, H, W]``.
        probability: p of a batch to be augmented, in [0, 1]; 0 is the identity. 0.5 in FedFA, Algorithm 2.
        momentum: alpha of Eq. 4, in [0, 1]; 0.99 in Algorithm 2. 0 keeps the last augmented batch only.
        fusion: "adaptive" (Eq. 7); "direct", with the server's variances of Eq. 5 in the place of gamma (Sec. 4.4);
            "client", gamma = 0 (FedFA-C, Sec. 4.1); "random", every :math:`\hat\Sigma` = ``scale`` (FedFA-R, Sec. 4.1).
        scale: lambda of "random", in units of the features; 0.5 in Sec. 4.1.
        correction: 0 for population variances without eps, as printed; 1 for sample variances, with 1e-6 added to each,
            as in the released code.

    Buffers ``[C]``, float32, none of them persistent: ``mean`` and ``std``, the running statistics of Eq. 4, which a
    client sends; ``gamma_mean`` and ``gamma_std`` (Eq. 6; "direct": the variances of Eq. 5), which it receives; 1 until
    then.

    A feature that is constant within an image is normalised to zeros, and no gradient flows through that (Eq. 8 would
    divide 0 by 0; overlapping pools make such features, and in bf16 their gradients do not cancel). All of it is
    computed in float32 at least, and comes out in the features' own type.

    Raises ValueError, in training, for features of another shape, for features of one pixel, which have no standard
    deviation, and for a batch of one image with ``correction=1``, which has no sample variance.

    Reference: Zhou and Konukoglu, *FedFA: federated feature augmentation*, ICLR 2023, Algorithm 2.
    """

    def __init__(
        self,
        channels: int,
        probability: float = 0.5,
        momentum: float = 0.99,
        fusion: str = "adaptive",
        scale: float = 0.5,
        correction: int = 0,
    ):
        super().__init__()
        if not 0 <= probability <= 1 or not 0 <= momentum <= 1:
            raise ValueError(f"probability is {probability} and momentum {momentum}; expected values in [0, 1].")
        if fusion not in FUSIONS:
            raise ValueError(f'fusion is "{fusion}"; expected one of {", ".join(FUSIONS)}.')
        self.probability, self.momentum = probability, momentum
        self.fusion, self.scale, self.correction = fusion, scale, correction
        self.eps = 1e-6 * correction
        self.track_running_stats = True
        self.generator: torch.Generator | None = None
        for name in ("mean", "std", "gamma_mean", "gamma_std"):
            self.register_buffer(name, torch.ones(channels), persistent=False)
        self.mean.zero_()

    def forward(self, features: Tensor) -> Tensor:
        """Features ``[B, C, H, W]`` -> the same shape."""
        if not self.training or self.probability == 0:
            return features
        self._refuse(features)
        if not float(torch.rand((), generator=self.generator)) < self.probability:
            return features
        centred, error, mean, std = self._centred(features)
        if self.track_running_stats:
            self._update(mean.detach(), std.detach())
        spread_mean, spread_std = self.spread(mean, self.gamma_mean), self.spread(std, self.gamma_std)
        new_mean = mean + self._normal(mean) * spread_mean  # Eq. 9
        new_std = std + self._normal(std) * spread_std
        scale = (new_std / std).where(std > 2 * TINY**0.5, 0)  # constant: 0 / 0, and gradients times 10^6
        return (_plane(scale) * centred + _plane(new_mean - scale * error)).to(features.dtype)  # Eq. 8

    def statistics(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each image and channel, ``[B, C]`` each, at least float32 (Eq. 2)."""
        _, _, mean, std = self._centred(features)
        return mean, std

    def _centred(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Features less a first mean, what that mean was off by through rounding, and ``statistics``.

        On a CPU ``torch.var_mean`` over planes takes many times as long as these two passes, and the gradient of
        ``mean`` is written in another memory layout than that of the features, which that of ``sum`` is not.
        """
        features, pixels = _precise(features), features.shape[2] * features.shape[3]
        mean = features.sum((2, 3)) / pixels
        centred = features - _plane(mean)
        error = centred.detach().sum((2, 3)) / pixels
        squares = centred.square().sum((2, 3)) - pixels * error.square()
        return centred, error, mean + error, _root(squares / (pixels - self.correction) + self.eps)

    def spread(self, statistic: Tensor, gamma: Tensor) -> Tensor:
        """The standard deviation of the new statistics, ``[C]``, from those of the batch ``[B, C]`` (Eq. 3, 7)."""
        if self.fusion == "random":
            return torch.full_like(gamma, self.scale)
        variance = statistic.var(0, correction=self.correction) + self.eps  # Eq. 3
        return _root(variance if self.fusion == "client" else (gamma + 1) * variance)  # Eq. 7

    def _normal(self, like: Tensor) -> Tensor:
        device = self.generator.device if self.generator else like.device
        drawn = torch.randn(like.shape, dtype=like.dtype, device=device, generator=self.generator)
        return drawn.to(like.device, non_blocking=True)

    @torch.no_grad()
    def _update(self, mean: Tensor, std: Tensor) -> None:
        for kept, now in ((self.mean, mean), (self.std, std)):
            kept.mul_(self.momentum).add_(now.mean(0), alpha=1 - self.momentum)  # Eq. 4

    def _refuse(self, features: Tensor) -> None:
        if features.ndim != 4 or features.shape[1] != len(self.mean):
            raise ValueError(
                f"a layer for {len(self.mean)} channels was given features {list(features.shape)}; expected "
                f"[n, {len(self.mean)}, height, width]. Put it after a stage with as many channels."
            )
        count, channels, height, width = features.shape
        if height * width == 1:
            raise ValueError(
                f"the features of a layer for {channels} channels are {height} x {width}: one pixel has no standard "
                "deviation. Take larger images, or leave the layer out after this stage."
            )
        if count == 1 and self.correction:
            raise ValueError(
                f"a layer for {channels} channels was given a batch of one image, which has no sample variance. "
                'Take larger batches, or the printed population variances (correction=0, variant="paper").'
            )


def client_sharing_variance(statistics: Tensor) -> Tensor:
    """Variance of each channel over the clients, ``[clients, C]`` -> ``[C]`` (Eq. 5)."""
    return statistics.var(0, correction=0)


def weights(variance: Tensor) -> Tensor:
    """Gamma of each channel, ``[C]`` -> ``[C]``, with sum C (Eq. 6).

    The printed (1 + 1/v)^-1 is v / (1 + v), which needs no division by a variance of 0. All are 1 where all variances
    are 0, as with one client.
    """
    shares = variance / (1 + variance)
    total = shares.sum()
    return torch.where(total > 0, len(shares) * shares / total, torch.ones_like(shares))


def _root(variance: Tensor) -> Tensor:
    return variance.clamp_min(TINY).sqrt()


def _precise(features: Tensor) -> Tensor:
    return features if features.dtype == torch.float64 else features.float()


def _plane(values: Tensor) -> Tensor:
    return values[:, :, None, None]
