"""FedRDN: each training image is normalised with the channel statistics of a randomly drawn client."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.errors import DataError
from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, Recipe, Server, flow, option
from fednb.methods.augmentations.normalise import refuse_after

CHUNK = 256


class OfClients(Method):
    """A method that normalises images by what clients measure of theirs: ``mean`` and ``std``, ``[channels]``."""

    tasks = EVERY_TASK
    images_become = "normalised"
    ranges = {"mean": (0, 1), "std": (1e-9, 1)}

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        refuse_after(self, methods, ("normalised", "of one amplitude"), "its statistics are of images as they come")


@dataclass(frozen=True)
class FedRDN(OfClients):
    r"""Federated random data normalisation.

    Each client k measures its training images once, the server shares all pairs, and

    .. math::
        \mu^k = \tfrac{1}{n_k} \sum_i \mu_i^k, \quad \sigma^k = \tfrac{1}{n_k} \sum_i \sigma_i^k  \tag{4}

        \hat x = (x - \mu^j) / \sigma^j, \quad (\mu^j, \sigma^j) \sim \{(\mu^k, \sigma^k)\}_{k=1}^K
        \quad\text{in training} \tag{6}

        \hat x = (x - \mu^k) / \sigma^k \quad\text{at test time} \tag{7}

    Sends 2 x channels floats per client, once; keeps all clients' pairs.

    Args:
        variant: "paper" or "released".

    Raises DataError for a channel that is constant in each image of a client; RecipeError after another normalisation.

    Reference: FedRDN, Sec. 3.2, Algorithms 1 and 2.

    As printed (``variant="paper"``):

    1. Eq. 4 and Algorithm 1 print sums over the images, which make every image almost constant: both take the mean.
    2. One pair per image, redrawn every time the image is seen (Eq. 6).
    3. Statistics of the clean images, population standard deviation (Eq. 5).

    As released (``variant="released"``): one draw per mini-batch, mean and standard deviation independently of each
    other. Statistics of one pass over augmented images (black corners included), sample standard deviation.
    """

    variant: str = option("paper", one_of=("paper", "released"))

    def prepare_offer(self, client: Client) -> Message:
        augmented = client.recipe.flow if self.variant == "released" else ()
        mean, std = channel_statistics(client, augmented, correction=int(self.variant == "released"))
        client.memory(self).update(own_mean=mean[None], own_std=std[None])
        return {"mean": mean, "std": std}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        return gather(offers)

    def inputs(self, client: Client, batch: Batch) -> None:
        known, count = client.memory(self), len(batch.images)
        if not batch.training:  # Eq. 7
            first = torch.zeros(count, dtype=torch.int64)
            batch.images = normalise(batch.images, known["own_mean"], known["own_std"], first, first)
            return
        clients, draw = len(known["mean"]), client.generator("fedrdn")
        if self.variant == "paper":  # Eq. 6
            mean_of = std_of = torch.randint(clients, (count,), generator=draw)
        else:
            mean_of, std_of = torch.randint(clients, (2, 1), generator=draw).expand(2, count)
        batch.images = normalise(batch.images, known["mean"], known["std"], mean_of, std_of)

    def activity(self, client: Client) -> float:
        """How far clients' means lie from its own, in its standard deviations: the mean over clients and channels."""
        mean, own_mean, own_std = (client.memory(self)[name] for name in ("mean", "own_mean", "own_std"))
        return float(((mean - own_mean) / own_std).abs().mean())


def channel_statistics(client: Client, augmented: tuple[str, ...] = (), correction: int = 0) -> tuple[Tensor, Tensor]:
    """``statistics`` of a client's training images after the flow ``augmented``; correction 1: sample deviations."""
    images, draws = client.site.train.images, client.generator("fedrdn statistics")
    batches = (flow.apply(chunk.float() / 255, augmented, draws) for chunk in images.split(CHUNK))
    return _means(batches, correction, client.name)


def gather(offers: dict[str, Message]) -> Message:
    """All clients' pairs in their order: ``mean`` and ``std``, ``[clients, channels]``."""
    return {name: torch.stack([offer[name] for offer in offers.values()]) for name in ("mean", "std")}


class RandomDataNormalise(nn.Module):
    """FedRDN without the loop: the last transform of any pipeline of images (Eq. 6; in evaluation mode Eq. 7). ::

        mean, std = statistics(client_images)                       # at each client, once: images in [0, 1]
        normalise = RandomDataNormalise(means, stds, own=2)          # at client 2, from all clients' [K, channels]
        training = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalise])
        test = RandomDataNormalise(means, stds, own=2).eval()        # ``v2.Compose`` does not hand ``eval()`` on

    One draw for each image, anew every time it is seen, from torch's global generator.
    """

    def __init__(self, means: Tensor, stds: Tensor, own: int):
        super().__init__()
        self.register_buffer("means", means)
        self.register_buffer("stds", stds)
        self.own = own

    def forward(self, images: Tensor, *others):
        """Floats ``[channels, height, width]``, or a batch of them -> the same shape; labels next to them stay."""
        batch = _floats(images) if images.ndim == 4 else _floats(images)[None]
        if batch.shape[1] != self.means.shape[1]:
            expected = f"{self.means.shape[1]} channels, as the statistics have"
            raise DataError(f"images are {list(images.shape)}; expected {expected}. Convert the images first.")
        if self.training:
            chosen = torch.randint(len(self.means), (len(batch),))  # Eq. 6
        else:
            chosen = torch.full((len(batch),), self.own)  # Eq. 7
        normalised = normalise(batch, self.means, self.stds, chosen, chosen).reshape(images.shape)
        return (normalised, *others) if others else normalised


def normalise(images: Tensor, means: Tensor, stds: Tensor, mean_of: Tensor, std_of: Tensor) -> Tensor:
    """Image i with the mean of client ``mean_of[i]`` and the standard deviation of client ``std_of[i]``."""
    mean, std = (
        values.to(images.dtype)[chosen.to(values.device, non_blocking=True)][:, :, None, None]
        for values, chosen in ((means, mean_of), (stds, std_of))
    )
    return (images - mean) / std


def statistics(images: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """A client's pair: the means over its images of each image's channel mean and standard deviation (Eq. 4, 5).

    images: floats ``[channels, height, width]`` of any sizes, before random augmentation. Two tensors ``[channels]``.
    """
    return _means((_floats(image)[None] for image in images), 0, "the client")


def _means(batches: Iterable[Tensor], correction: int, client: str) -> tuple[Tensor, Tensor]:
    mean, std, count = 0, 0, 0
    for batch in batches:  # [n, channels, height, width]
        pixels = batch.double().flatten(2)
        mean, std = mean + pixels.mean(2).sum(0), std + pixels.std(2, correction=correction).sum(0)
        count += len(batch)
    mean, std = mean / count, std / count
    if not std.all():
        constant = ", ".join(map(str, (std == 0).nonzero().flatten().tolist()))
        raise DataError(
            f"channel {constant} is constant in every training image of {client}, and normalisation would divide by 0. "
            "Remove the channel or take another augmentation."
        )
    return mean.float(), std.float()


def _floats(images: Tensor) -> Tensor:
    if not images.is_floating_point():
        expected = "expected floats in [0, 1]. Put v2.ToDtype(torch.float32, scale=True) before"
        raise DataError(f"images are {images.dtype}; {expected}.")
    return images
