"""FedFA's Lemma 1 and Theorem 1, measured: what its noise does to a loss, to first order and in truth."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.methods.augmentations.fedfa import FeatureAugmentation

Draw = list[tuple[Tensor, Tensor]]


class Experiment:
    r"""A network with layers after its stages, one batch, and noise of any size.

    With the noise e of Lemma 1 multiplied by t, at every layer z at once,

    .. math:: \ell(t) = \ell(0) + t \sum_z \nabla_{h^z} \ell^\top e^z + O(t^2)  \tag{13}

    where e is taken at the undisturbed features. The sum is Theorem 1's regularisation term: the loss's gradient at
    the last stage times the Jacobians of Proposition 1 is the gradient at stage z.

    Args:
        model: a network whose stages end in ``FeatureAugmentation`` layers; otherwise as at test time.
        images: ``[n, channels, height, width]``. targets: ``[n]`` class numbers.

    Reference: FedFA, Sec. 3 and Appendix B.
    """

    def __init__(self, model: nn.Module, images: Tensor, targets: Tensor):
        self.model, self.images, self.targets = model.eval(), images, targets
        self.layers = [module for module in model.modules() if isinstance(module, FeatureAugmentation)]
        self.clean = [feature.detach() for feature in self._features()]

    def draw(self, generator: torch.Generator) -> Draw:
        """Standard normal numbers for the means and the standard deviations of each layer, ``[n, C]`` each."""
        like = {"dtype": self.images.dtype, "generator": generator}
        return [tuple(torch.randn(feature.shape[:2], **like) for _ in range(2)) for feature in self.clean]

    @torch.no_grad()
    def loss(self, draws: Draw, t: float) -> float:
        """The loss with all noise multiplied by t; each layer sees what the layers before it have disturbed."""
        with self._hooked(lambda number, features: features + t * noise(self.layers[number], features, draws[number])):
            return float(F.cross_entropy(self.model(self.images), self.targets))

    def first_order(self, draws: Draw) -> float:
        """Theorem 1's term (Eq. 13) for these draws, at t = 1."""
        seen = self._features()
        loss = F.cross_entropy(self.model.head(self.model.hidden(seen[-1])), self.targets)
        gradients = torch.autograd.grad(loss, seen)
        noises = [noise(*each) for each in zip(self.layers, self.clean, draws, strict=True)]
        return sum(float((g * e).sum()) for g, e in zip(gradients, noises, strict=True))

    def _features(self) -> list[Tensor]:
        """What each layer is given, from the first on, with the graph that leads to it."""
        seen = []

        def keep(_number: int, features: Tensor) -> Tensor:
            seen.append(features if features.requires_grad else features.requires_grad_())
            return seen[-1]

        with self._hooked(keep):
            self.model.features(self.images)
        return seen

    @contextmanager
    def _hooked(self, change) -> Iterator[None]:
        """Inside, layer number i returns ``change(i, features)`` in the place of its own output."""
        handles = [
            layer.register_forward_hook(lambda _layer, given, _out, number=number: change(number, given[0]))
            for number, layer in enumerate(self.layers)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def noise(layer: FeatureAugmentation, features: Tensor, draws: tuple[Tensor, Tensor]) -> Tensor:
    """e of Lemma 1 (Eq. 10) at one layer, ``[n, C, H, W]``, from its draws for means and standard deviations."""
    mean, std = layer.statistics(features)
    spread_mean, spread_std = layer.spread(mean, layer.gamma_mean), layer.spread(std, layer.gamma_std)
    normalised = (features - mean[:, :, None, None]) / std[:, :, None, None]
    return (draws[1] * spread_std)[:, :, None, None] * normalised + (draws[0] * spread_mean)[:, :, None, None]
