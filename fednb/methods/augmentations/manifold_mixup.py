"""Manifold mixup: mixup of the images or of the features after a stage, which of them is drawn for each batch."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Batch, Client, Method, option
from fednb.methods.augmentations import _mixing
from fednb.methods.augmentations._stages import append, are_numbers


@dataclass(frozen=True)
class ManifoldMixup(Method):
    r"""Manifold mixup at each client.

    With :math:`g_k` the network up to stage k and :math:`f_k` what follows, k drawn from S for each batch and g_0
    the identity:

    .. math::
        \tilde h = \lambda\, g_k(x_i) + (1 - \lambda)\, g_k(x_j), \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

        \ell = \lambda\,\mathrm{CE}(f_k(\tilde h), y_i) + (1 - \lambda)\,\mathrm{CE}(f_k(\tilde h), y_j)

    with partners and one lambda for a batch as in mixup. Sends and keeps nothing.

    Args:
        alpha: at least 0. 0 is plain training. 2 in the paper's CIFAR experiments and the authors' command for them.
        stages: S. 0 is the input, others count the network's stages from 1. (0, 1, 2) as printed and released.

    Reference: Verma et al., *Manifold mixup: better representations by interpolating hidden states*, ICML 2019,
    Sec. 2. FedFA, Table 6, has no setting.

    As printed: cross entropy for mixed labels. As released: binary cross entropy of the softmax, class by class.
    """

    printed = "manifold mixup"
    tasks = EVERY_TASK
    mixes_labels = True

    alpha: float = option(2.0, at_least=0)
    stages: tuple[int, ...] = option(
        (0, 1, 2),
        allowed=lambda given: are_numbers(given) and min(given) >= 0,
        expected="a list such as [0, 1, 2]",
    )

    def build(self, model: nn.Module) -> nn.Module:
        for stage in sorted(set(self.stages) - {0}):
            append(model, [stage], lambda channels, stage=stage: Mix(stage))
        return model

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.alpha > 0:
            stages = sorted(set(self.stages))
            drawn = stages[int(torch.randint(len(stages), (), generator=client.generator(self.name)))]
            batch.aside[self.name] = drawn, _mixing.draw(client, batch, self.name, self.alpha)

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        if self.alpha == 0:
            return super().criterion(client, batch)
        stage, mixture = batch.aside[self.name]
        if stage == 0:
            _mixing.forward_mixed(client, batch, mixture)
        else:
            _mixing.forward_through(client, batch, mixture, stage)
        return _mixing.loss(client, batch, mixture)


class Mix(_mixing.MixtureLayer):
    def forward(self, features: Tensor) -> Tensor:
        return features if self.mixture is None else self.mixture.of(features)
