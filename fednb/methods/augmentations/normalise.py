"""Conventional normalisation: fixed channel statistics, in training and at test time."""

from dataclasses import dataclass

import torch

from fednb.errors import RecipeError
from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, Recipe

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Normalise(Method):
    r"""Subtracts a mean and divides by a standard deviation, channel by channel.

    .. math:: \hat x = (x - \mu) / \sigma

    Sends and keeps nothing.

    Args:
        mean, std: per channel, in units of images in [0, 1]. FedRDN prints none; ImageNet's, as in its released code.

    Raises RecipeError for images of another number of channels, and after a method that normalises them already.

    Reference: FedRDN, Eq. 3 ("norm." in its tables).
    """

    printed = "norm."
    tasks = EVERY_TASK
    images_become = "normalised"

    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        refuse_after(self, methods, ("normalised",), "its mean and deviation are of images in [0, 1]")

    def prepare_offer(self, client: Client) -> Message:
        channels = client.site.train.images.shape[1]
        if not len(self.mean) == len(self.std) == channels:
            raise RecipeError(
                f"{self.name} has {len(self.mean)} means and {len(self.std)} standard deviations, and the images of "
                f"{client.name} have {channels} channels; expected one of each a channel. Name mean and std."
            )
        return {}

    def inputs(self, client: Client, batch: Batch) -> None:
        values = torch.tensor([self.mean, self.std], dtype=batch.images.dtype)
        mean, std = values.to(batch.images.device, non_blocking=True)[:, :, None, None]
        batch.images = (batch.images - mean) / std


def refuse_after(method: Method, methods: list[Method], kinds: tuple[str, ...], why: str) -> None:
    for other in methods[: methods.index(method)]:
        if other.images_become in kinds:
            raise RecipeError(
                f"{method.name} comes after {other.name}, by which images become {other.images_become}: {why}. "
                "Leave one of them out."
            )
