"""Noise on images: each client trains on its images with random noise added."""

from dataclasses import dataclass

import torch

from fednb.methods import EVERY_TASK, Batch, Client, Method, Recipe, option
from fednb.methods.augmentations.normalise import refuse_after


@dataclass(frozen=True)
class ImageNoise(Method):
    r"""Gaussian noise on training images, under which FRAug compares methods.

    .. math:: \hat x = x + \delta, \qquad \delta \sim \mathcal N(0, \sigma^2 I)

    with one draw for each pixel and channel, anew in every step. Sends and keeps nothing.

    Args:
        sigma: at least 0, in units of images in [0, 1]. FRAug takes 0.01 ("weak"), 0.1 ("medium") and 1 ("strong").

    Raises RecipeError after a method that normalises images.

    Reference: Chen et al., *FRAug*, ICCV 2023, Sec. 4.3.4 and Table 6. Its code for it is not released.

    As printed: noise is for training images alone. Units, draws in every step, and that nothing is cut, are ours.
    """

    printed = "noise on images"
    tasks = EVERY_TASK

    sigma: float = option(0.1, at_least=0)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        refuse_after(self, methods, ("normalised",), "sigma is in units of images in [0, 1]")

    def inputs(self, client: Client, batch: Batch) -> None:
        if batch.training and self.sigma > 0:
            noise = torch.randn(batch.images.shape, generator=client.generator(self.name), dtype=batch.images.dtype)
            batch.images = batch.images + self.sigma * noise.to(batch.images.device, non_blocking=True)
