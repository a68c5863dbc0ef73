"""FedReg: local training may not raise the loss on images that show what the global model knows."""

from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import Batch, Client, Method, classification_only, option

PERTURBED = 0.01  # the perturbed images' step over the pseudo images'


@dataclass(frozen=True)
class FedReg(Method):
    r"""Alleviated forgetting in local training.

    At the start of a round, with the weights w' that came, each client makes two images of each of its own by
    ``iterations`` steps of ascent on the loss of its label,

    .. math:: x \leftarrow \mathrm{clamp}(x + \eta \, \mathrm{sign}\, \nabla_x \ell(f_{w'}(x), y))

    pseudo images with ``eta`` and the labels f_{w'}(x), and perturbed ones with ``eta`` / 100 and the image's own
    label. A step of the optimiser, from w to v, takes its gradient between w and w':

    .. math:: v = w - \mathrm{step}(\nabla F(\gamma w + (1 - \gamma) w'))

    and what it has raised the losses by is taken back, to first order: with the gradients g of the loss on a batch
    of pseudo images and h on their perturbed ones, both at (v + w') / 2,

    .. math::
        d = v - w', \quad a = \frac{(d \cdot g)_+}{\lVert g \rVert^2}, \quad
        b = \frac{((d - a g) \cdot h)_+}{\lVert h \rVert^2}, \quad
        w \leftarrow v - \mathrm{weight} \, (a g + b h)

    Sends nothing; keeps both images of each training image as floats until the end of the round.

    Args:
        weight: at least 0. 0 takes nothing back; 1 as released.
        gamma: in (0, 1]. With weight 0 and gamma 1 it is plain training. 0.5 released for CIFAR-10 (0.4 for MNIST).
        eta: above 0, in units of the images that the network sees. 0.1 released for CIFAR-10, 0.2 for MNIST.
        iterations: at least 1. 10 released, everywhere.

    Reference: Xu et al., *Acceleration of federated learning with alleviated forgetting in local training*,
    ICLR 2022, and its code, github.com/Zoesgithub/FedReg (a395cd7), from which all of this is. FRAug has no setting.

    As released:

    1. The clamp to the values of the batch had no effect; ours has.
    2. A step is plain gradient descent. Ours: the recipe's optimiser, with what other methods add to the gradient.
    3. Pseudo images are of augmented images, g and h in training mode. Ours: all as at test time, statistics of w'.
    4. A second projection hides the labels from the server ("mask"): left out.
    """

    tasks = classification_only("the labels of its pseudo images are what the global model takes whole images for")

    weight: float = option(1.0, at_least=0)
    gamma: float = option(0.5, within="(0, 1]")
    eta: float = option(0.1, above=0)
    iterations: int = option(10, at_least=1)

    def begin(self, client: Client) -> None:
        parameters = list(client.model.parameters())
        scratch = client.scratch(self)
        scratch.update(parameters=parameters, start=[p.detach().clone() for p in parameters])
        scratch["buffers"] = [buffer.clone() for buffer in client.model.buffers()]
        if self.weight:
            order = torch.randperm(len(client.site.train), generator=client.generator("fedreg"))
            client.model.eval()
            scratch["made"] = [self._images(client, some) for some in order.split(client.recipe.batch_size)]
            client.model.train()

    @torch.no_grad()
    def before_step(self, client: Client, batch: Batch) -> None:
        scratch = client.scratch(self)
        scratch["local"] = [p.clone() for p in scratch["parameters"]]
        torch._foreach_lerp_(scratch["parameters"], scratch["start"], 1 - self.gamma)

    @torch.no_grad()
    def after_step(self, client: Client, batch: Batch) -> None:
        scratch = client.scratch(self)
        parameters, start, local = scratch["parameters"], scratch["start"], scratch["local"]
        between = torch._foreach_lerp(local, start, 1 - self.gamma)
        torch._foreach_add_(parameters, torch._foreach_sub(local, between))
        if self.weight:
            self._take_back(client, parameters, start)

    def _images(self, client: Client, indices: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Pseudo images with the global model's probabilities, perturbed ones with labels."""
        seen = client.batch(client.site.train, indices, training=False)
        pseudo, perturbed = (self._ascend(client, seen, eta) for eta in (self.eta, self.eta * PERTURBED))
        with torch.no_grad():
            labels = _logits(client, pseudo).softmax(1)
        return (pseudo, labels), (perturbed, seen.targets)

    def _ascend(self, client: Client, seen: Batch, eta: float) -> Tensor:
        low, high = seen.images.min(), seen.images.max()
        images = seen.images
        for _ in range(self.iterations):
            images = images.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(client.task.loss(_logits(client, images), seen.targets), images)
            images = (images + eta * gradient.sign()).clamp(low, high)
        return images.detach()

    def _take_back(self, client: Client, parameters: list[Tensor], start: list[Tensor]) -> None:
        scratch = client.scratch(self)
        moved = torch._foreach_sub(parameters, start)
        local = [p.clone() for p in parameters]
        torch._foreach_lerp_(parameters, start, 0.5)
        made = scratch["made"][client.steps % len(scratch["made"])]
        with _evaluated(client, scratch["buffers"]):
            found = [_gradients(client, *pair, parameters) for pair in made]
        torch._foreach_copy_(parameters, local)
        for gradients in found:  # a, then b
            factor = (_dot(moved, gradients) / _dot(gradients, gradients).clamp(min=1e-30)).clamp(min=0)
            back = torch._foreach_mul(gradients, factor)
            torch._foreach_sub_(moved, back)
            torch._foreach_sub_(parameters, back, alpha=self.weight)


@contextmanager
def _evaluated(client: Client, buffers: list[Tensor]):
    """Inside, the network is in evaluation mode with these buffers."""
    local = [(buffer, buffer.clone()) for buffer in client.model.buffers()]
    for (buffer, _), value in zip(local, buffers, strict=True):
        buffer.copy_(value)
    client.model.eval()
    yield
    client.model.train()
    for buffer, value in local:
        buffer.copy_(value)


def _logits(client: Client, images: Tensor) -> Tensor:
    seen = Batch(images, None, training=False)
    client.forward(seen)
    return client.logits(seen)


@torch.enable_grad()
def _gradients(client: Client, images: Tensor, labels: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    loss = client.task.loss(_logits(client, images), labels)
    return list(torch.autograd.grad(loss, parameters, materialize_grads=True))


def _dot(left: list[Tensor], right: list[Tensor]) -> Tensor:
    return torch.stack([(a * b).sum() for a, b in zip(left, right, strict=True)]).sum()
