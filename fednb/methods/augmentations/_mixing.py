"""Two images in one: which image of a batch is mixed with which, in which shares, and the loss of the mixture."""

import random
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fednb.methods import Batch, Client


@dataclass(frozen=True)
class Mixture:
    """Image i of a batch has ``share``, in [0, 1], in its mixture with image ``partner[i]``: a permutation, ``[n]``."""

    share: float
    partner: Tensor

    def of(self, values: Tensor) -> Tensor:
        """The mixtures of what belongs to the images: ``[n, ...]`` -> the same shape."""
        return self.share * values + (1 - self.share) * values[self.partner]


class MixtureLayer(nn.Module):
    """A layer after a stage that does something to features while it has a mixture, and else nothing."""

    def __init__(self, stage: int):
        super().__init__()
        self.stage = stage
        self.mixture: Mixture | None = None


def draw(client: Client, batch: Batch, purpose: str, alpha: float) -> Mixture:
    """One share ~ Beta(alpha, alpha) for the whole batch, alpha > 0, and a random permutation."""
    share = random.Random(client.draw_seed(purpose)).betavariate(alpha, alpha)
    return Mixture(share, partners(client, batch, purpose))


def partners(client: Client, batch: Batch, purpose: str) -> Tensor:
    order = torch.randperm(len(batch.targets), generator=client.generator(purpose))
    return order.to(client.device, non_blocking=True)


def loss(client: Client, batch: Batch, mixture: Mixture) -> Tensor:
    """The loss of ``batch.logits``, which are of mixtures, for both targets of each in their shares, which other
    methods are told."""
    shares = client.task.shares(batch.targets, client.classes).to(batch.images.dtype)
    batch.label_shares = mixture.of(shares)
    logits, both = client.logits(batch), (batch.targets, batch.targets[mixture.partner])
    own, other = (client.task.loss(logits, targets) for targets in both)
    return mixture.share * own + (1 - mixture.share) * other


def forward_mixed(client: Client, batch: Batch, mixture: Mixture) -> None:
    """``client.forward`` with the mixed images; ``batch.images`` themselves stay as they are."""
    mixed = replace(batch, images=mixture.of(batch.images))
    client.forward(mixed)
    batch.features, batch.logits = mixed.features, mixed.logits


def forward_through(client: Client, batch: Batch, mixture: Mixture, stage: int) -> None:
    """``client.forward`` while the layer after this stage has the mixture."""
    (layer,) = (m for m in client.model.modules() if isinstance(m, MixtureLayer) and m.stage == stage)
    layer.mixture = mixture
    client.forward(batch)
    layer.mixture = None
