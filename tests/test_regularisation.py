"""Theorem 1's term against a derivative that is taken without it."""

from unittest.mock import patch

import pytest
import torch

from fednb import models
from fednb.methods.augmentations.fedfa import FeatureAugmentation, FedFA
from fednb.randomness import generator
from regularisation import Experiment


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    model = FedFA().build(models.build({"name": "digits_cnn", "channels": 4, "width": 16}, (3, 16, 16), 3)).double()
    images = torch.rand(6, 3, 16, 16, dtype=torch.float64, generator=generator("regularisation"))
    return Experiment(model, images, torch.arange(6) % 3)


def test_the_first_order_term_is_the_slope_of_the_loss(experiment):
    """A central difference of the true loss, which uses no gradient: error of order h^2."""
    for seed in range(3):
        draws = experiment.draw(generator("draws", seed))
        h = 1e-5
        slope = (experiment.loss(draws, h) - experiment.loss(draws, -h)) / (2 * h)
        assert experiment.first_order(draws) == pytest.approx(slope, rel=1e-5)


def test_the_layer_itself_does_what_is_measured(experiment):
    """With the layers' own draws the loss of the network in training is the loss at t = 1."""
    torch.manual_seed(0)
    draws = experiment.draw(torch.default_generator)
    for layer in experiment.layers:
        layer.train().probability = 1.0
    flat = iter([number for pair in draws for number in pair])
    with patch.object(FeatureAugmentation, "_normal", lambda layer, like: next(flat)), torch.no_grad():
        loss = torch.nn.functional.cross_entropy(experiment.model(experiment.images), experiment.targets)
    experiment.model.eval()
    assert float(loss) == pytest.approx(experiment.loss(draws, 1.0), rel=1e-12)
