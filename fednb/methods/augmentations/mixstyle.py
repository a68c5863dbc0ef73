"""MixStyle: mixes the channel statistics of the features of two images, and leaves the labels alone."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Client, Method, option
from fednb.methods.augmentations._stages import append, stages_option
from fednb.randomness import drawn_from

EPS = 1e-6  # the paper's


@dataclass(frozen=True)
class MixStyle(Method):
    r"""MixStyle at each client, after chosen stages.

    With the mean :math:`\mu` and the standard deviation :math:`\sigma` over height and width of each image and
    channel, and image j the partner of image i in a random permutation of the batch:

    .. math::
        \gamma = \lambda \sigma_i + (1 - \lambda) \sigma_j, \qquad \beta = \lambda \mu_i + (1 - \lambda) \mu_j,
        \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

        \tilde h_i = \gamma \frac{h_i - \mu_i}{\sigma_i} + \beta

    with one lambda for each image. Each layer draws for itself. No gradient flows through the statistics. Sends and
    keeps nothing.

    Args:
        probability: of a batch to be mixed in a layer, in [0, 1]. 0.5 in the paper.
        alpha: above 0. 0.1 in the paper.
        stages: after which stages of the network, counted from 1, but not the last; None is all. (1, 2) in the
            authors' scripts for Office-Home, (1, 2, 3) in those for PACS, both with ResNet-18.

    Reference: Zhou et al., *Domain generalization with MixStyle*, ICLR 2021, Sec. 2. FedFA, Table 6, has no setting.

    As printed: random mixing, as a client has one domain. As released: sample variances, with 1e-6 added to each.
    """

    tasks = EVERY_TASK

    probability: float = option(0.5, within="[0, 1]")
    alpha: float = option(0.1, above=0)
    stages: tuple[int, ...] | None = stages_option((1, 2))

    def build(self, model: nn.Module) -> nn.Module:
        if self.probability > 0:
            append(model, self.stages, lambda channels: MixStatistics(self.probability, self.alpha))
        return model

    def begin(self, client: Client) -> None:
        for layer in client.model.modules():
            if isinstance(layer, MixStatistics):
                layer.generator = client.generator("layers")


class MixStatistics(nn.Module):
    """Mixes the statistics of a batch's images; draws of ``generator`` (on the CPU) if it is set, else global ones."""

    def __init__(self, probability: float, alpha: float):
        super().__init__()
        self.probability = probability
        self.generator: torch.Generator | None = None
        self.shares = torch.distributions.Beta(alpha, alpha)

    def forward(self, features: Tensor) -> Tensor:
        if not self.training:
            return features
        with drawn_from(self.generator):
            return self._mixed(features) if float(torch.rand(())) < self.probability else features

    def _mixed(self, features: Tensor) -> Tensor:
        count = len(features)
        precise = features.to(torch.promote_types(features.dtype, torch.float32))
        share = self.shares.sample((count, 1, 1, 1)).to(precise, non_blocking=True)
        partner = torch.randperm(count).to(features.device, non_blocking=True)
        variance, mean = torch.var_mean(precise.detach(), (2, 3), keepdim=True)
        std = (variance + EPS).sqrt()
        new_mean, new_std = (share * own + (1 - share) * own[partner] for own in (mean, std))
        return ((precise - mean) / std * new_std + new_mean).to(features.dtype)
