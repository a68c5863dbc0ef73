"""Noise on features: the head also trains on the features of a batch with random noise added."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fednb.methods import Batch, Client, Method, classification_only, option


def laplace(shape: torch.Size, generator: torch.Generator) -> Tensor:
    first, second = torch.empty(2, *shape).exponential_(generator=generator)  # their difference has variance 2
    return (first - second) / math.sqrt(2)


UNIT = {  # mean 0, standard deviation 1
    "gaussian": lambda shape, draws: torch.randn(shape, generator=draws),
    "laplace": laplace,
    "uniform": lambda shape, draws: torch.empty(shape).uniform_(-math.sqrt(3), math.sqrt(3), generator=draws),
}


@dataclass(frozen=True)
class EmbeddingNoise(Method):
    r"""Random noise on the features of real images, one of the methods that FRAug is compared with.

    With u the features of an image and h the head:

    .. math::
        \ell = \mathrm{CE}(h(u), y) + \mathrm{CE}(h(u + \Delta u), y), \qquad
        \mathbb E[\Delta u] = 0, \quad \mathrm{std}(\Delta u) = \gamma

    with one draw for each image and feature. The second term moves the head only. Sends and keeps nothing.

    Args:
        distribution: "gaussian", "laplace" or "uniform".
        gamma: standard deviation of the noise, at least 0. FRAug searched it and prints no value; 0.1 is ours.

    Reference: Chen et al., *FRAug*, ICCV 2023, Sec. 4.3.5 and Table 7. Its code for it is not released.

    As printed: Table 7 names the rows U(-gamma, gamma), Lap(0, gamma) and N(0, gamma); we follow the text, which calls
    gamma "the standard deviation of each distribution". Noise trains "the prediction head h" alone.
    """

    printed = "noise"
    tasks = classification_only("its noise is on the one feature vector of an image")

    distribution: str = option("gaussian", one_of=UNIT)
    gamma: float = option(0.1, at_least=0)

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.gamma > 0:
            batch.aside[self.name] = client.draw_seed(self.name)

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        if self.gamma == 0:
            return None
        draws = torch.Generator().manual_seed(batch.aside[self.name])
        noise = self.gamma * UNIT[self.distribution](batch.features.shape, draws)
        with client.autocast():
            logits = client.model.head(batch.features.detach() + noise.to(batch.features.device, non_blocking=True))
        labels = batch.targets if batch.label_shares is None else batch.label_shares
        return client.task.loss(client.logits(replace(batch, logits=logits)), labels)
