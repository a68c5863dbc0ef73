"""FAug: clients fill up the classes that they lack with images from a generator that the server has trained."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.methods import DTYPES, Batch, Client, Message, Method, Recipe, Server, classification_only, option, overrides
from fednb.randomness import seeded

LATENT = 100
SIDE = 32  # larger images are made at this height and width, and enlarged
BATCH = 32
RATE = 2e-4


@dataclass(frozen=True)
class FAug(Method):
    r"""Federated augmentation.

    Once, before round 1, each client sends up to ``seeds`` of its training images of each class, and their labels;
    the server trains a conditional generative adversarial network on all of them and every client receives its
    generator G. A client with n_c images of class c, n in all, lacks

    .. math:: l_c = \max_b n_b - n_c

    images of it. Each batch of B images gets B/n sum(l) generated ones more on average, :math:`G(z, c)` with
    :math:`z \sim \mathcal N(0, 1)` and c drawn in proportion to l_c, so that the client sees all of its classes equally
    often ("until reaching an IID training dataset"). **Training images leave the clients**, as the method has it: uint8
    pixels and labels. The generator is kept.

    Args:
        seeds: images of each class that a client sends, at least 1. 5 in Table 1: 15 samples for 3 classes.
        steps: of the server's training, at least 1. Ours; nothing is printed.

    Raises RecipeError after a method that changes a batch's images, such as normalisation.

    Reference: Jeong et al., *Communication-efficient on-device machine learning: federated distillation and
    augmentation under non-IID private data*, 2018 (arXiv 1811.11479), Sec. 3. FRAug prints a row (Table 7), no setting.

    As printed: a client sends seeds of the classes that it lacks, and of others to hide these (ours: of all it has);
    the server adds images from a web search (ours: none). Images above 32 x 32 are made at that size and enlarged.
    """

    tasks = classification_only("its generator makes images of a given class, and no masks")
    own_lengths = ("images", "labels")

    seeds: int = option(5, at_least=1)
    steps: int = option(500, at_least=1)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        changing = [method.name for method in methods[: methods.index(self)] if overrides(method, "inputs")]
        if changing:
            raise RecipeError(
                f"{self.name} comes after {changing[0]}, which would change a batch's own images and not the generated "
                f"ones that are added to it. Name {self.name} first among the augmentations, or leave one of them out."
            )

    def prepare_offer(self, client: Client) -> Message:
        split = client.site.train
        order = torch.randperm(len(split), generator=client.generator("faug seeds")).to(client.device)
        labels = split.targets[order]
        chosen = torch.cat([order[labels == label][: self.seeds] for label in range(client.classes)])
        one_hot = F.one_hot(split.targets[chosen], client.classes)
        return {"images": split.images[chosen], "labels": one_hot.to(torch.uint8)}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        images, labels = (torch.cat([offer[name] for offer in offers.values()]) for name in ("images", "labels"))
        with seeded(server.recipe.seed, "faug", device=images.device):
            settings = labels.shape[1], self.steps, server.generator("faug"), DTYPES[server.recipe.precision]
            generator = trained(images, labels.argmax(1), *settings)
        return generator.state_dict() | {"seeds": labels.sum(0)}

    def begin(self, client: Client) -> None:
        memory = dict(client.memory(self))
        seeds = memory.pop("seeds")
        with torch.device("meta"):  # its weights are those that came: nothing is drawn for it
            generator = Generator(client.classes, tuple(client.site.train.images.shape[1:]))
        generator.load_state_dict(memory, assign=True)
        has = torch.bincount(client.site.train.targets, minlength=client.classes)
        lack = torch.where(seeds > 0, has.max() - has, 0).double().cpu()
        client.scratch(self).update(generator=generator.eval(), lack=lack)

    @torch.no_grad()
    def inputs(self, client: Client, batch: Batch) -> None:
        if not batch.training:
            return
        lack, draws = client.scratch(self)["lack"], client.generator("faug")
        wanted = float(lack.sum()) / len(client.site.train) * len(batch.images)
        count = int(wanted + float(torch.rand((), generator=draws, dtype=torch.float64)))  # rounded by chance
        if count == 0:
            return
        labels = torch.multinomial(lack, count, replacement=True, generator=draws)
        noise = torch.randn(count, LATENT, generator=draws)
        noise, labels = (drawn.to(client.device, non_blocking=True) for drawn in (noise, labels))
        made = client.scratch(self)["generator"].images(noise, labels)
        images = torch.cat([batch.images, made.to(batch.images.dtype)])
        batch.images = images.contiguous(memory_format=torch.channels_last)
        batch.targets = torch.cat([batch.targets, labels])


class Generator(nn.Module):
    """Four dense layers from noise times an embedding of the label to an image; all sizes are Keras-GAN's ``cgan.py``.

    Its numbers are 1,493,520 as Jeong et al. print (running statistics counted, the embedding not).
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
    """Four dense layers from an image times an embedding of its label to a score, above 0 for a real one."""

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
    """A generator trained on uint8 images ``[n, channels, height, width]``; all classes are equally frequent.

    draws: on the CPU. Weights at the start and dropout are drawn from torch's global generator.
    """
    generator = Generator(classes, tuple(images.shape[1:])).to(images.device, dtype)
    discriminator = Discriminator(classes, prod(generator.made)).to(images.device, dtype)
    real = F.interpolate(images.to(dtype) / 127.5 - 1, generator.made[1:], mode="bilinear", antialias=True)
    networks, settings = (generator, discriminator), {"lr": RATE, "betas": (0.5, 0.999), "fused": True}
    optimisers = [torch.optim.Adam(network.parameters(), **settings) for network in networks]
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
