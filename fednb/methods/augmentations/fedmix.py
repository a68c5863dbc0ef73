"""FedMix: mixup with images that other clients have averaged, to first order."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fednb.errors import DataError, RecipeError
from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, Recipe, Server, option, overrides


@dataclass(frozen=True)
class FedMix(Method):
    r"""Mixup under mean-augmented federated learning, its loss expanded to first order in the mixing ratio.

    With one averaged image and label (x_g, y_g) for a batch, drawn from all clients',

    .. math::
        \ell_1 = (1-\lambda)\,\ell(f((1-\lambda)x), y), \quad
        \ell_2 = \lambda\,\ell(f((1-\lambda)x), y_g), \quad
        \ell_3 = \lambda\,\frac{\partial \ell_1}{\partial x} \cdot x_g

    and the loss is their sum. Each client sends averages of ``mean_batch`` training images and of their one-hot
    labels, in segmentation of every known pixel's, once, as float32; the server shares them all, clients keep them.

    Args:
        ratio: lambda in [0, 1). FedRDN prints no value; 0.05 is FedMix's for CIFAR-10.
        mean_batch: images in one average. 5 in FedRDN, Sec. 4.3. A last single image joins the average before.

    Raises DataError for a client with one training image, RecipeError with a method that changes a batch's images.

    Reference: Yoon et al., *FedMix: approximation of mixup under mean augmented federated learning*, ICLR 2021, Alg. 2.
    """

    tasks = EVERY_TASK
    own_lengths = ("images", "labels")
    ranges = {"images": (0, 1), "labels": (0, 1)}

    ratio: float = option(0.05, within="[0, 1)")
    mean_batch: int = option(5, at_least=1)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        others = [method.name for method in methods if method is not self and overrides(method, "inputs")]
        if others:
            why = "it mixes images in [0, 1] with averages of such images. Leave one of them out"
            raise RecipeError(f"{self.name} cannot be combined with {', '.join(others)}: {why}.")

    def prepare_offer(self, client: Client) -> Message:
        split = client.site.train
        order = torch.randperm(len(split), generator=client.generator("fedmix averages"))
        labels = client.task.shares(split.targets, client.classes)
        groups = list(order.to(client.device).split(self.mean_batch))
        if len(groups) > 1 and len(groups[-1]) == 1 < self.mean_batch:  # no single image leaves the client
            groups[-2:] = [torch.cat(groups[-2:])]
        if len(split) == 1 and not client.unseen:
            raise DataError(
                f"{client.name} has one training image, and {self.name} would send it as its average. Add images or "
                "leave the site out."
            )
        return {
            "images": torch.stack([split.images[group].float().mean(0) / 255 for group in groups]),
            "labels": torch.stack([labels[group].mean(0) for group in groups]),
        }

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        return {name: torch.cat([offer[name] for offer in offers.values()]) for name in ("images", "labels")}

    def inputs(self, client: Client, batch: Batch) -> None:
        if batch.training:
            count = len(client.memory(self)["images"])
            batch.aside["fedmix"] = int(torch.randint(count, (), generator=client.generator("fedmix")))

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        if self.ratio == 0:
            return super().criterion(client, batch)
        averages = client.memory(self)
        drawn = batch.aside["fedmix"]
        x_g, y_g = averages["images"][drawn].to(batch.images.dtype), averages["labels"][drawn]
        shrunk = replace(batch, images=((1 - self.ratio) * batch.images).requires_grad_())
        client.forward(shrunk)
        batch.features, batch.logits = shrunk.features, shrunk.logits
        logits = client.logits(batch)
        own = (1 - self.ratio) * client.task.loss(logits, batch.targets)
        other = self.ratio * client.task.loss(logits, y_g.to(logits.dtype).expand_as(logits))
        (gradient,) = torch.autograd.grad(own, shrunk.images, create_graph=True)
        return own + other + self.ratio * (gradient * x_g).sum()
