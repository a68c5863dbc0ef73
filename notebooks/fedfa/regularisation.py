"""FedFA's Lemma 1 and Theorem 1, measured: what its noise does to a loss, to first order and in truth."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fednb
from fednb.methods.augmentations.fedfa import FeatureAugmentation
from fednb.randomness import generator

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


def trained(recipe: fednb.Recipe, images: int = 32) -> Experiment:
    """An experiment on the network that the recipe trains, and on the first training images of its first site."""
    run = fednb.FederatedRun(recipe, fednb.load(recipe.full["federation"]["name"]))
    for _ in range(recipe.rounds):
        run.advance()
    train = run.federation.sites[0].train
    return Experiment(run.model, train.images[:images].double() / 255, train.targets[:images])


def without_kinks(experiment: Experiment) -> Experiment:
    """The same weights with softplus and average pooling in the place of ReLU and max pooling."""
    smooth = copy.deepcopy(experiment.model)
    for part in list(smooth.modules()):
        for name, layer in part.named_children():
            if isinstance(layer, nn.ReLU):
                setattr(part, name, nn.Softplus())
            elif isinstance(layer, nn.MaxPool2d):
                setattr(part, name, nn.AvgPool2d(3, 2, padding=1))
    return Experiment(smooth, experiment.images, experiment.targets)


def lemma_1_leaves(experiment: Experiment) -> float:
    """The largest difference between the noise that the first layer adds and Eq. 10, with the same draws."""
    layer, features = copy.deepcopy(experiment.layers[0]).train(), experiment.clean[0]
    layer.probability, layer.generator = 1.0, None
    torch.manual_seed(0)
    added = layer(features) - features
    torch.manual_seed(0)
    torch.rand(())
    same = tuple(torch.randn(features.shape[:2], dtype=features.dtype) for _ in range(2))
    return float((added - noise(layer, features, same)).abs().max())


def draws_of(experiment: Experiment, count: int, seed: int) -> list[Draw]:
    return [experiment.draw(generator("noise", seed, number)) for number in range(count)]


def remainders(experiment: Experiment, draws: list[Draw], sizes: list[float]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """By t the true change of the loss and what Eq. 13 leaves of it: means over the draws of absolute values."""
    clean = experiment.loss(draws[0], 0.0)
    true = numpy.array([[experiment.loss(draw, t) - clean for t in sizes] for draw in draws])
    first = numpy.array([experiment.first_order(draw) for draw in draws])
    return numpy.abs(true).mean(0), numpy.abs(true - first[:, None] * sizes).mean(0)


def slope(sizes: list[float], values: numpy.ndarray) -> float:
    """The power of t by which values fall over its four smallest sizes."""
    return float(numpy.polyfit(numpy.log(sizes[-4:]), numpy.log(values[-4:]), 1)[0])


def over_draws(experiment: Experiment, draws: list[Draw]) -> dict[str, tuple[float, float]]:
    """Signed means over the draws at t = 1, and their standard errors: of Eq. 13's term and of the true change."""
    clean = experiment.loss(draws[0], 0.0)
    values = {
        "Eq. 13's term": numpy.array([experiment.first_order(draw) for draw in draws]),
        "the true change": numpy.array([experiment.loss(draw, 1.0) - clean for draw in draws]),
    }
    return {name: (own.mean(), own.std(ddof=1) / len(own) ** 0.5) for name, own in values.items()}
