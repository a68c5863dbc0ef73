"""FedFA: the channel statistics of hidden features are resampled, with variances that know the federation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Client, Message, Method, Server, option
from fednb.methods.augmentations._stages import append, stages_option

EPS = 1e-6  # released code
START = {"mean": 0.0, "std": 1.0}  # Eq. 4
TINY = 1e-12  # below it a variance is zero: the feature is constant


class FeatureAugmentation(nn.Module):
    r"""FedFA's layer: resamples the channel statistics of each image's features, in any network and training loop::

        self.stage1 = nn.Sequential(convolution, nn.ReLU(), nn.MaxPool2d(2), FeatureAugmentation(64))
        layer.mean, layer.std                      # a client sends these two vectors of 64 numbers
        weights(client_sharing_variance(stacked))  # the server makes of all clients' means (Eq. 5, 6) ...
        layer.gamma_mean, layer.gamma_std          # ... what every client receives; likewise of their deviations

    With the mean :math:`\mu` and the standard deviation :math:`\sigma` over height and width of each image and
    channel (Eq. 2), their variances :math:`\Sigma^2` over the batch (Eq. 3) and the server's :math:`\gamma`:

    .. math::
        \hat\Sigma^2 = (\gamma + 1) \odot \Sigma^2 \tag{7}

        \hat X = \hat\sigma \frac{X - \mu}{\sigma} + \hat\mu, \quad
        \hat\mu = \mu + \epsilon_\mu \hat\Sigma_\mu, \quad \hat\sigma = \sigma + \epsilon_\sigma \hat\Sigma_\sigma,
        \quad \epsilon \sim \mathcal N(0, 1) \tag{8, 9}

    with one draw for each image and channel, of the layer's ``generator`` (on the CPU) if it is set, else of torch's
    own. Off in evaluation mode. Gradients flow through all statistics. A feature that is constant within an image is
    normalised to zeros without a gradient (Eq. 8 would divide 0 by 0).

    Args:
        channels: C of the features ``[B, C, H, W]``.
        probability: p of a batch to be augmented, in [0, 1]. momentum: alpha of Eq. 4, in [0, 1]. Both of Algorithm 2.
        fusion: "adaptive" (Eq. 7); "direct", with the server's variances of Eq. 5 in the place of gamma (Sec. 4.4);
            "client", gamma = 0 (FedFA-C, Sec. 4.1); "random", every :math:`\hat\Sigma` = ``scale`` (FedFA-R, Sec. 4.1).
        correction: 0 for population variances, as printed; 1 for sample variances and 1e-6 added to each, as released.

    Buffers ``[C]``, not persistent: ``mean``, ``std`` (Eq. 4), ``gamma_mean`` and ``gamma_std`` (Eq. 6), 1 at first.

    Raises ValueError, in training, for features of another shape or without the variances that it takes.

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
        shape, least = list(features.shape), 1 + self.correction
        if len(shape) != 4 or shape[1] != len(self.mean) or shape[2] * shape[3] == 1 or shape[0] < least:
            raise ValueError(
                f"a layer for {len(self.mean)} channels was given features {shape}; expected [n, {len(self.mean)}, "
                f"height, width], n of at least {least}, and more than one pixel. Take larger images or batches."
            )
        if not float(torch.rand((), generator=self.generator)) < self.probability:
            return features
        centred, error, mean, std = self._centred(features)
        if self.track_running_stats:
            for kept, now in ((self.mean, mean), (self.std, std)):
                kept.mul_(self.momentum).add_(now.detach().mean(0), alpha=1 - self.momentum)  # Eq. 4
        spread_mean, spread_std = self.spread(mean, self.gamma_mean), self.spread(std, self.gamma_std)
        new_mean = mean + self._normal(mean) * spread_mean  # Eq. 9
        new_std = std + self._normal(std) * spread_std
        scale = (new_std / std).where(std > 2 * TINY**0.5, 0)  # constant: 0 / 0, and gradients times 10^6
        return (_plane(scale) * centred + _plane(new_mean - scale * error)).to(features.dtype)  # Eq. 8

    def statistics(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each image and channel, ``[B, C]`` each, at least float32 (Eq. 2)."""
        return self._centred(features)[2:]

    def _centred(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Features less a first mean, its rounding error, and ``statistics``; ``var_mean`` is far slower on CPUs."""
        features = features if features.dtype == torch.float64 else features.float()
        pixels = features.shape[2] * features.shape[3]
        mean = features.sum((2, 3)) / pixels
        centred = features - _plane(mean)
        error = centred.detach().sum((2, 3)) / pixels
        squares = centred.square().sum((2, 3)) - pixels * error.square()
        return centred, error, mean + error, (squares / (pixels - self.correction) + self.eps).clamp_min(TINY).sqrt()

    def spread(self, statistic: Tensor, gamma: Tensor) -> Tensor:
        """The standard deviation of the new statistics, ``[C]``, from those of the batch ``[B, C]`` (Eq. 3, 7)."""
        if self.fusion == "random":
            return torch.full_like(gamma, self.scale)
        variance = statistic.var(0, correction=self.correction) + self.eps  # Eq. 3
        fused = variance if self.fusion == "client" else (gamma + 1) * variance  # Eq. 7
        return fused.clamp_min(TINY).sqrt()

    def _normal(self, like: Tensor) -> Tensor:
        device = self.generator.device if self.generator else like.device
        drawn = torch.randn(like.shape, dtype=like.dtype, device=device, generator=self.generator)
        return drawn.to(like.device, non_blocking=True)


@dataclass(frozen=True)
class FeatureStatistics(Method):
    """A ``FeatureAugmentation`` layer with its ``fusion`` after each of the stages; nothing is exchanged."""

    tasks = EVERY_TASK
    fusion: ClassVar[str]

    stages: tuple[int, ...] | None = stages_option(None)
    probability: float = option(0.5, within="[0, 1]")

    def layer_options(self) -> dict:
        return {}

    def build(self, model: nn.Module) -> nn.Module:
        own = {"probability": self.probability, "fusion": self.fusion} | self.layer_options()
        append(model, self.stages, lambda channels: FeatureAugmentation(channels, **own))
        return model

    def begin(self, client: Client) -> None:
        for layer in layers(client.model):
            layer.generator = client.generator("layers")


@dataclass(frozen=True)
class ExchangedStatistics(FeatureStatistics):
    """Clients keep and send the layers' running statistics, of which, ``[clients, C]``, ``gamma`` makes ``[C]``."""

    first_gamma: ClassVar[float]  # until the first aggregation

    momentum: float = option(0.99, within="[0, 1]")

    def layer_options(self) -> dict:
        return {"momentum": self.momentum}

    def send(self, server: Server, client: str) -> Message:
        return dict(server.memory(self))

    def begin(self, client: Client) -> None:
        super().begin(client)
        known = client.memory(self) | client.inbox(self)  # "1/mean", "1/gamma_std", "2/mean", ... [C]
        start = START | {"gamma_mean": self.first_gamma, "gamma_std": self.first_gamma}
        for number, layer in enumerate(layers(client.model), 1):
            for name, value in start.items():
                getattr(layer, name).copy_(known.get(f"{number}/{name}", torch.tensor(value)))

    def reply(self, client: Client) -> Message:
        found = running_statistics(client)
        client.memory(self).update(found)
        return found

    def aggregate(self, server: Server) -> None:
        found = over_clients(server.replies(self), self.gamma)
        server.memory(self).update({name.replace("/", "/gamma_"): value for name, value in found.items()})


@dataclass(frozen=True)
class FedFA(ExchangedStatistics):
    r"""Federated feature augmentation: a ``FeatureAugmentation`` layer (Eq. 2-4, 7-9) after chosen stages.

    Each client m sends its running statistics of each layer; the server takes their variance over the clients and makes
    of it the weights gamma that all clients receive for the next round:

    .. math::
        \Sigma^2 = \tfrac{1}{M} \sum_m (\bar\mu_m - \mathbb E[\bar\mu])^2  \tag{5}

        \gamma^{(j)} = \frac{C\,(1 + 1/\Sigma^{2,(j)})^{-1}}{\sum_c (1 + 1/\Sigma^{2,(c)})^{-1}}  \tag{6}

    and likewise for the standard deviations: 2 C numbers a layer and round, each way. The server keeps gamma (1 until
    the first aggregation, as released), clients keep their running statistics.

    Args:
        variant: "paper" or "released".
        stages: after which stages of the network, counted from 1; None is all (Sec. 2.3.1; Table 8).
        probability: p, in [0, 1]; 0.5 in Algorithm 2. 0 is plain training.
        momentum: alpha of Eq. 4, in [0, 1]; 0.99 in Algorithm 2.

    Reference: FedFA, Sec. 2.3, Algorithms 1 and 2.

    As printed (``variant="paper"``): Eq. 5 for each channel, over the clients of the round; population variances.
    Running statistics go on over the rounds (Sec. 2.3); Algorithm 1, line 3, resets them, which is left out.

    As released (``variant="released"``):

    1. The server takes one variance of all M x C numbers, so that every gamma is 1: FedFA-C with twice the variance.
    2. Running statistics are replaced by the clients' average in every round.
    3. Sample variances, with 1e-6 added to each, also inside Eq. 6.
    4. Clients also upload the two variances that they received; we leave them out of the bytes.
    """

    fusion, first_gamma = "adaptive", 1.0

    variant: str = option("paper", one_of=("paper", "released"))

    def layer_options(self) -> dict:
        return super().layer_options() | {"correction": int(self.variant == "released")}

    def gamma(self, values: Tensor) -> Tensor:
        if self.variant == "paper":
            return weights(client_sharing_variance(values))
        variance = values.var(correction=min(1, values.numel() - 1))  # as released, 1
        return weights((variance + EPS).expand(values.shape[1]))

    def activity(self, client: Client) -> float:
        """Of all that is drawn (Eq. 7), by how much the federation's variance widens the client's own: the sum of gamma
        times Sigma^2 over that of Sigma^2, a mean over layers and both statistics, times ``probability``."""
        seen, known, own, ratios = {}, client.inbox(self), layers(client.model), []
        hooks = [layer.register_forward_pre_hook(lambda layer, given: seen.update({layer: given[0]})) for layer in own]
        indices = torch.arange(min(256, len(client.site.train)))
        client.forward(client.batch(client.site.train, indices, training=False))
        for hook in hooks:
            hook.remove()
        for number, layer in enumerate(own, 1):
            for name, statistic in zip(START, layer.statistics(seen[layer]), strict=True):
                variance = statistic.var(0, correction=0)
                gamma = known.get(f"{number}/gamma_{name}", torch.ones_like(variance))
                ratios.append((gamma * variance).sum() / variance.sum().clamp(min=TINY))
        return self.probability * float(torch.stack(ratios).mean())

    def reply(self, client: Client) -> Message:
        return super().reply(client) if self.variant == "paper" else running_statistics(client)

    def aggregate(self, server: Server) -> None:
        super().aggregate(server)
        if self.variant == "released":
            server.memory(self).update(over_clients(server.replies(self), lambda values: values.mean(0)))


def client_sharing_variance(statistics: Tensor) -> Tensor:
    """Variance of each channel over the clients, ``[clients, C]`` -> ``[C]`` (Eq. 5)."""
    return statistics.var(0, correction=0)


def weights(variance: Tensor) -> Tensor:
    """Gamma of each channel, ``[C]`` -> ``[C]``, with sum C (Eq. 6); all are 1 where all variances are 0."""
    shares = variance / (1 + variance)  # (1 + 1/v)^-1
    total = shares.sum()
    return torch.where(total > 0, len(shares) * shares / total, torch.ones_like(shares))


def layers(model) -> list[FeatureAugmentation]:
    return [module for module in model.modules() if isinstance(module, FeatureAugmentation)]


def running_statistics(client: Client) -> Message:
    """``"1/mean"``, ``"1/std"``, ``"2/mean"``, ... ``[C]``."""
    found = enumerate(layers(client.model), 1)
    return {f"{number}/{name}": getattr(layer, name).clone() for number, layer in found for name in START}


def over_clients(replies: dict[str, Message], function: Callable[[Tensor], Tensor]) -> Message:
    """``function`` of each entry, stacked over the clients as float64 ``[clients, C]``, back in the entry's type."""
    first = next(iter(replies.values()))
    stacked = {name: torch.stack([reply[name].double() for reply in replies.values()]) for name in first}
    return {name: function(values).to(first[name].dtype) for name, values in stacked.items()}


def _plane(values: Tensor) -> Tensor:
    return values[:, :, None, None]
