"""FedRDN: each training image is normalised with the channel statistics of a randomly drawn client."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.errors import DataError
from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, Server, flow, option
from fednb.methods.augmentations.normalise import refuse_after
from fednb.recipe import Recipe
from fednb.standalone.transforms import normalise

CHUNK = 256


@dataclass(frozen=True)
class FedRDN(Method):
    r"""Federated random data normalisation.

    Each client k measures its training images once, the server shares all pairs, and

    .. math::
        \mu^k = \tfrac{1}{n_k} \sum_i \mu_i^k, \quad \sigma^k = \tfrac{1}{n_k} \sum_i \sigma_i^k  \tag{4}

        \hat x = (x - \mu^j) / \sigma^j, \quad (\mu^j, \sigma^j) \sim \{(\mu^k, \sigma^k)\}_{k=1}^K
        \quad\text{in training} \tag{6}

        \hat x = (x - \mu^k) / \sigma^k \quad\text{at test time} \tag{7}

    Sends 2 x channels floats per client, once; keeps all clients' pairs. With one client it is normalisation with
    that client's own statistics.

    Args:
        variant: "paper" or "released".

    Raises DataError when a channel is constant in every image of a client, so that its sigma is 0;
    RecipeError after a method that normalises images, or gives them one amplitude.

    Reference: FedRDN, Sec. 3.2, Algorithms 1 and 2.

    As printed (``variant="paper"``):

    1. Eq. 4 and Algorithm 1 print plain sums over the images. Taken literally they make every image almost
       constant, so both variants take the mean.
    2. One pair per image, redrawn every time the image is seen (Eq. 6).
    3. Statistics of the clean images, population standard deviation (Eq. 5).

    As released (``variant="released"``):

    1. The mean over images as well.
    2. One draw per mini-batch, and mean and standard deviation are drawn independently of each other.
    3. Statistics of one pass over augmented images (black corners included), sample standard deviation.
    """

    tasks = EVERY_TASK
    images_become = "normalised"
    ranges = {"mean": (0, 1), "std": (1e-9, 1)}

    variant: str = option("paper", one_of=("paper", "released"))

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        refuse_changed(self, methods)

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


def refuse_changed(method: Method, methods: list[Method]) -> None:
    """RecipeError after a method that changes all images, whose statistics would not be those that were measured."""
    why = "its statistics are measured on images as they come"
    refuse_after(method, methods, ("normalised", "of one amplitude"), why)


def channel_statistics(client: Client, augmented: tuple[str, ...] = (), correction: int = 0) -> tuple[Tensor, Tensor]:
    """Means over a client's training images of each image's channel mean and standard deviation (Eq. 4, 5).

    augmented: the flow that images pass first. correction: 0 for the population, 1 for the sample standard
    deviation. Two float32 tensors ``[channels]``, in units of images in [0, 1].
    """
    images = client.site.train.images
    mean = std = torch.zeros(images.shape[1], dtype=torch.float64, device=images.device)
    for chunk in images.split(CHUNK):
        pixels = flow.apply(chunk.float() / 255, augmented, client.generator("fedrdn statistics"))
        pixels = pixels.double().flatten(2)
        mean = mean + pixels.mean(2).sum(0)
        std = std + pixels.std(2, correction=correction).sum(0)
    mean, std = mean / len(images), std / len(images)
    if not std.all():
        constant = ", ".join(map(str, (std == 0).nonzero().flatten().tolist()))
        raise DataError(
            f"channel {constant} is constant in every training image of {client.name}: its standard deviation is 0 "
            "and normalisation would divide by it. Remove the channel or take another augmentation."
        )
    return mean.float(), std.float()


def gather(offers: dict[str, Message]) -> Message:
    """All clients' pairs in their order: ``mean`` and ``std``, ``[clients, channels]``."""
    return {name: torch.stack([offer[name] for offer in offers.values()]) for name in ("mean", "std")}
