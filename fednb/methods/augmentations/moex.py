"""MoEx: an image's features take the moments of another image's, and a little of its label."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Batch, Client, Method, option
from fednb.methods.augmentations import _mixing
from fednb.methods.augmentations._stages import append

EPS = 1e-5  # released code


@dataclass(frozen=True)
class MoEx(Method):
    r"""Moment exchange at each client, after the network's first stage.

    With the mean :math:`\mu` and the standard deviation :math:`\sigma` over the channels at each position of an
    image's features (positional normalisation, PONO), and image j the partner of image i in a random permutation:

    .. math::
        \tilde h_i = \sigma_j \frac{h_i - \mu_i}{\sigma_i} + \mu_j

        \ell = \lambda\,\mathrm{CE}(f(\tilde h_i), y_i) + (1 - \lambda)\,\mathrm{CE}(f(\tilde h_i), y_j)

    Gradients flow through the moments. Sends and keeps nothing.

    Args:
        probability: of a batch to be exchanged, in [0, 1]. 1 in the authors' scripts for ImageNet.
        share: lambda, in [0, 1]. 0.9 there.

    Reference: Li et al., *On feature normalization and data augmentation*, CVPR 2021, Sec. 3. FedFA: no setting.

    As released: sample variance over channels, with 1e-5 added; after the stem. For CIFAR before its ReLU, with
    probability 0.25 and lambda 0.5.
    """

    tasks = EVERY_TASK
    mixes_labels = True

    probability: float = option(1.0, within="[0, 1]")
    share: float = option(0.9, within="[0, 1]")

    def build(self, model: nn.Module) -> nn.Module:
        append(model, [1], Exchange)
        return model

    def before_step(self, client: Client, batch: Batch) -> None:
        if float(torch.rand((), generator=client.generator(self.name))) < self.probability:
            batch.aside[self.name] = _mixing.Mixture(self.share, _mixing.partners(client, batch, self.name))

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        mixture = batch.aside.get(self.name)
        if mixture is None:
            return super().criterion(client, batch)
        _mixing.forward_through(client, batch, mixture, stage=1)
        return _mixing.loss(client, batch, mixture)


class Exchange(_mixing.MixtureLayer):
    """Gives each image's features the moments of its partner's."""

    def __init__(self, channels: int):
        super().__init__(stage=1)

    def forward(self, features: Tensor) -> Tensor:
        if self.mixture is None:
            return features
        precise = features.to(torch.promote_types(features.dtype, torch.float32))
        variance, mean = torch.var_mean(precise, 1, keepdim=True)
        std = (variance + EPS).sqrt()
        partner = self.mixture.partner
        return ((precise - mean) / std * std[partner] + mean[partner]).to(features.dtype)
