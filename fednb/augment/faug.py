"""FAug: clients fill up the classes that they lack with images from a generator that the server has trained."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fednb.augment._conditional_gan import LATENT, Generator, trained
from fednb.doors import DTYPES, Batch, Client, Message, Method, Server, classification_only, option, overrides
from fednb.errors import RecipeError
from fednb.randomness import seeded
from fednb.recipe import Recipe


@dataclass(frozen=True)
class FAug(Method):
    r"""Federated augmentation.

    Once, before round 1, each client sends up to ``seeds`` of its training images of each class, and their labels;
    the server trains a conditional generative adversarial network on all of them and every client receives its
    generator G. A client with n_c images of class c, n in all, lacks

    .. math:: l_c = \max_b n_b - n_c

    images of it. Each batch of B images gets B share/n sum(l) generated ones more on average, :math:`G(z, c)`
    with :math:`z \sim \mathcal N(0, 1)` and c drawn in proportion to l_c, so that with share 1 the client sees all of
    its classes equally often.

    **Training images leave the clients**, as the method has it: uint8 pixels and one-hot labels. The generator comes
    down in the precision of the weights and is kept.

    Args:
        share: of the lacking images that is generated, in [0, 1]. 0 is plain training, and nothing is sent. 1 is the
            paper, "until reaching an IID training dataset".
        seeds: images of each class that a client sends, at least 1. 5 in Table 1 of the paper: 15 samples for 3
            classes.
        steps: of the server's training, at least 1. Ours; nothing is printed.

    Raises RecipeError after a method that changes a batch's images, such as normalisation: name faug before it, and
    leave out an algorithm that does.

    Reference: Jeong et al., *Communication-efficient on-device machine learning: federated distillation and
    augmentation under non-IID private data*, 2018 (arXiv 1811.11479), Sec. 3. FRAug names it and prints a row
    (Table 7), neither its settings nor code.

    As printed:

    1. A conditional network of four layers each, 1,493,520 numbers in the generator for 28 x 28 digits.
    2. A client sends seeds of the classes that it lacks, and of others to hide which these are ("redundant labels").
       Here of all that it has, which hides most.

    Ours:

    1. The paper's server adds images from a web search to the seeds; here the seeds are all that it has.
    2. A class of which no client has an image is not generated.
    3. Images above 32 x 32 are generated at that size and enlarged. Generated images do not pass the flow.
    """

    tasks = classification_only("its generator makes images of a given class, and no masks")
    own_lengths = ("images", "labels")

    share: float = option(1.0, within="[0, 1]")
    seeds: int = option(5, at_least=1)
    steps: int = option(500, at_least=1)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        earlier = methods[: methods.index(self)] if self.share > 0 else ()
        changing = [method.name for method in earlier if overrides(method, "inputs")]
        if changing:
            movable = changing[0] != methods[0].name  # an algorithm comes before all augmentations
            raise RecipeError(
                f"{self.name} comes after {changing[0]}, which would change a batch's own images and not the generated "
                f"ones that are added to it. {f'Name {self.name} before it.' if movable else 'Leave one of them out.'}"
            )

    def prepare_offer(self, client: Client) -> Message:
        if self.share == 0:
            return {}
        split = client.site.train
        order = torch.randperm(len(split), generator=client.generator("faug seeds")).to(client.device)
        labels = split.targets[order]
        chosen = torch.cat([order[labels == label][: self.seeds] for label in range(client.classes)])
        one_hot = F.one_hot(split.targets[chosen], client.classes)
        return {"images": split.images[chosen], "labels": one_hot.to(torch.uint8)}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        if self.share == 0:
            return {}
        images, labels = (torch.cat([offer[name] for offer in offers.values()]) for name in ("images", "labels"))
        with seeded(server.recipe.seed, "faug", device=images.device):
            settings = labels.shape[1], self.steps, server.generator("faug"), DTYPES[server.recipe.precision]
            generator = trained(images, labels.argmax(1), *settings)
        return generator.state_dict() | {"seeds": labels.sum(0)}

    def begin(self, client: Client) -> None:
        if self.share == 0:
            return
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
        if self.share == 0 or not batch.training:
            return
        labels = self._labels(client, len(batch.images))
        if len(labels) == 0:
            return
        noise = torch.randn(len(labels), LATENT, generator=client.generator("faug"))
        noise, labels = (drawn.to(client.device, non_blocking=True) for drawn in (noise, labels))
        made = client.scratch(self)["generator"].images(noise, labels)
        images = torch.cat([batch.images, made.to(batch.images.dtype)])
        batch.images = images.contiguous(memory_format=torch.channels_last)
        batch.targets = torch.cat([batch.targets, labels])

    def _labels(self, client: Client, size: int) -> Tensor:
        """Of the images to generate for a batch: as many as its part of the lack, up or down by chance."""
        lack, draws = client.scratch(self)["lack"], client.generator("faug")
        wanted = self.share * float(lack.sum()) / len(client.site.train) * size
        count = int(wanted + float(torch.rand((), generator=draws, dtype=torch.float64)))
        if count == 0:
            return torch.zeros(0, dtype=torch.int64)
        return torch.multinomial(lack, count, replacement=True, generator=draws)
