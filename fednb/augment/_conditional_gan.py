"""FAug's conditional generative adversarial network: makes small images of a wanted class from few examples."""

from itertools import pairwise
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LATENT = 100
SIDE = 32  # larger images are made at this height and width, and enlarged
BATCH = 32
RATE = 2e-4


class Generator(nn.Module):
    """Four dense layers from noise times an embedding of the label to an image.

    For 28 x 28 grey images and 10 classes it has the 1,493,520 numbers that Jeong et al. print (batch normalisation's
    running statistics counted, the embedding not), which are those of the widely used Keras-GAN, ``cgan.py``; all
    sizes here are from there.
    """

    def __init__(self, classes: int, image_shape: tuple[int, int, int]):
        super().__init__()
        channels, *sides = image_shape
        self.size = sides
        self.made = (channels, *(min(side, SIDE) for side in sides))
        self.embedding = nn.Embedding(classes, LATENT)
        layers = []
        for before, after in pairwise((LATENT, 256, 512, 1024)):
            layers += [nn.Linear(before, after), nn.LeakyReLU(0.2), nn.BatchNorm1d(after, momentum=0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(1024, prod(self.made)), nn.Tanh())

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """[n, 100] and int64 [n] -> small images in [-1, 1]."""
        return self.layers(noise * self.embedding(labels)).unflatten(1, self.made)

    def images(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Likewise, images in [0, 1] of the full height and width."""
        return F.interpolate((self(noise, labels) + 1) / 2, self.size, mode="bilinear")


class Discriminator(nn.Module):
    """Four dense layers from an image times an embedding of its label to one score: above 0 for a real one."""

    def __init__(self, classes: int, pixels: int):
        super().__init__()
        self.embedding = nn.Embedding(classes, pixels)
        layers = [nn.Linear(pixels, 512), nn.LeakyReLU(0.2)]
        for _ in range(2):
            layers += [nn.Linear(512, 512), nn.LeakyReLU(0.2), nn.Dropout(0.4)]
        self.layers = nn.Sequential(*layers, nn.Linear(512, 1))

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.layers(images.flatten(1) * self.embedding(labels)).flatten()


def trained(
    images: Tensor, labels: Tensor, classes: int, steps: int, draws: torch.Generator, dtype: torch.dtype = torch.float32
) -> Generator:
    """A generator of this type trained on few images; the classes that have some appear equally often.

    images: uint8 ``[n, channels, height, width]``; labels: int64 ``[n]``; draws: on the CPU. Weights at the start and
    dropout are drawn from torch's global generator.
    """
    generator = Generator(classes, tuple(images.shape[1:])).to(images.device, dtype)
    discriminator = Discriminator(classes, prod(generator.made)).to(images.device, dtype)
    real = F.interpolate(images.to(dtype) / 127.5 - 1, generator.made[1:], mode="bilinear", antialias=True)
    optimisers = [
        torch.optim.Adam(net.parameters(), RATE, betas=(0.5, 0.999), fused=True) for net in (generator, discriminator)
    ]
    rarity = (1 / labels.bincount()[labels]).cpu()  # every class is drawn with one probability

    def drawn() -> tuple[Tensor, Tensor]:
        chosen = torch.multinomial(rarity, BATCH, replacement=True, generator=draws)
        return chosen.to(images.device), torch.randn(BATCH, LATENT, generator=draws).to(images.device)

    for _ in range(steps):
        chosen, noise = drawn()
        with torch.no_grad():
            fake = generator(noise, labels[chosen])
        logits = [discriminator(pictures, labels[chosen]) for pictures in (real[chosen], fake)]
        _descend(optimisers[1], (F.softplus(-logits[0]).mean() + F.softplus(logits[1]).mean()) / 2)
        chosen, noise = drawn()
        score = discriminator(generator(noise, labels[chosen]), labels[chosen])
        _descend(optimisers[0], F.softplus(-score).mean())
    return generator


def _descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
