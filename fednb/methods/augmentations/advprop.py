"""AdvProp: trains on images and on adversarial ones, which have layers of batch normalisation of their own."""

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Batch, Client, Method, batch_norms, frozen, mixed_with, option


@dataclass(frozen=True)
class AdvProp(Method):
    r"""Adversarial propagation at each client.

    Every layer of batch normalisation gets an auxiliary one. Adversarial images are made by projected gradient
    ascent through the auxiliary layers, from a uniform draw in the ball of radius epsilon around the image x:

    .. math::
        x^a \leftarrow \Pi_{\lVert x^a - x \rVert_\infty \le \epsilon}
        \left( x^a + s \operatorname{sign} \nabla_{x^a} \mathrm{CE}_\text{aux}(x^a, y) \right)

        \ell = \mathrm{CE}_\text{main}(x, y) + \mathrm{CE}_\text{aux}(x^a, y)  \tag{3}

    At test time the main layers are used. Auxiliary entries, ``<layer>.auxiliary.<entry>``, are sent and averaged as
    the layer's own; nothing is kept. Statistics of other layers, such as FedFA's, are those of the clean images. The
    images are attacked last, and epsilon is in their units, such as normalised ones. Where all pixels of a batch are in
    [0, 1], those of x^a are, too.

    Args:
        epsilon: radius, above 0. 4/255, the largest of the paper's 1 to 4.
        step_size: s, above 0. 1/255 in the paper.
        steps: iterations, at least 0. 0 is plain training, without auxiliary layers. 5 in the paper for epsilon 4.

    Reference: Xie et al., *Adversarial examples improve image recognition*, CVPR 2020, Algorithm 1 and Eq. 3. DisTrans,
    Table 2, has no setting.

    As printed: the attack goes against the true label (Eq. 2) through the auxiliary layers (Algorithm 1). A random
    start and running statistics are ours.

    As released (a reimplementation in PyTorch): the attack is in evaluation mode, as here, but towards a random label
    and in part from the image itself; the losses are averaged.
    """

    tasks = EVERY_TASK

    epsilon: float = option(4 / 255, above=0)
    step_size: float = option(1 / 255, above=0)
    steps: int = option(5, at_least=0)

    def build(self, model: nn.Module) -> nn.Module:
        if self.steps > 0:
            for layer in batch_norms(model).values():
                auxiliary = deepcopy(layer)
                layer.__class__ = mixed_with(TwoBatchNorms, type(layer))  # it stays, as the names of its entries do
                layer.auxiliary = auxiliary
        return model

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.steps > 0:
            batch.aside[self.name] = client.draw_seed(self.name)

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        clean = super().criterion(client, batch)
        if self.steps == 0:
            return clean
        with auxiliary_layers(client.model):
            adversarial = replace(batch, images=self.attack(client, batch))
            with frozen(client.model, but=nn.modules.batchnorm._BatchNorm):
                return clean + super().criterion(client, adversarial)  # Eq. 3

    def attack(self, client: Client, batch: Batch) -> Tensor:
        """Adversarial images, through the layers that are in use."""
        lower, upper = self._ball(batch.images.detach())
        noise = torch.rand(lower.shape, generator=torch.Generator().manual_seed(batch.aside[self.name]))
        found = lower + noise.to(lower, non_blocking=True) * (upper - lower)
        client.model.eval()
        for _ in range(self.steps):
            tried = replace(batch, images=found.requires_grad_())
            client.forward(tried)
            (gradient,) = torch.autograd.grad(client.task.loss(client.logits(tried), batch.targets), found)
            found = (found.detach() + self.step_size * gradient.sign()).clamp(lower, upper)
        client.model.train()
        return found

    def _ball(self, images: Tensor) -> tuple[Tensor, Tensor]:
        lower, upper = images - self.epsilon, images + self.epsilon
        smallest, largest = images.aminmax()
        plain = (smallest >= 0) & (largest <= 1)
        return torch.where(plain, lower.clamp(min=0), lower), torch.where(plain, upper.clamp(max=1), upper)


class TwoBatchNorms:
    """A layer of batch normalisation with another one of its kind, ``auxiliary``, and a switch between them."""

    use_auxiliary = False

    def forward(self, features: Tensor) -> Tensor:
        return self.auxiliary(features) if self.use_auxiliary else super().forward(features)


@contextmanager
def auxiliary_layers(model: nn.Module):
    """Inside, the auxiliary layers are used in the place of the main ones."""
    layers = [layer for layer in model.modules() if isinstance(layer, TwoBatchNorms)]
    for layer in layers:
        layer.use_auxiliary = True
    yield
    for layer in layers:
        layer.use_auxiliary = False
