"""FedMix: its loss against formulas written out here, its averages, and what they cost to send."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from methods import federation, prepared
from torch import nn

from fednb.errors import DataError
from fednb.methods import TASKS
from fednb.methods.augmentations.fedmix import FedMix
from fednb.randomness import generator


class Smooth(nn.Module):
    """A small network without batch normalisation, whose derivatives can be written by hand: W tanh(V x)."""

    def __init__(self):
        super().__init__()
        draws = generator("smooth")
        self.hidden = nn.Parameter(torch.randn(192, 6, generator=draws, dtype=torch.float64) / 5)
        self.last = nn.Parameter(torch.randn(6, 3, generator=draws, dtype=torch.float64))

    def features(self, images):
        return (images.flatten(1) @ self.hidden).tanh()

    def head(self, features):
        return features @ self.last

    def forward(self, images):
        return self.head(self.features(images))


def fedmix_client(ratio: float):
    """A client with a smooth network, and one batch with its drawn average."""
    client = prepared([{"name": "fedmix", "ratio": ratio}]).clients["clinic"]
    client.model = Smooth()
    batch = client.batch(client.site.train, torch.arange(5), training=True)
    method = client.methods[-1]
    drawn, known = batch.aside["fedmix"], client.memory(method)
    return client, method, batch, known["images"][drawn].double(), known["labels"][drawn].double()


def by_hand(model: Smooth, images, targets, x_g, y_g, ratio) -> float:
    """The three terms in numpy, with the derivative of cross entropy for the input written out:
    (p - y) W' diag(1 - tanh^2) V' for each image, and the mean over images.
    """
    v, w = (parameter.detach().numpy() for parameter in (model.hidden, model.last))
    x = (1 - ratio) * images.reshape(len(images), -1)
    h = np.tanh(x @ v)
    scores = h @ w
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    y = np.eye(3)[targets]
    own = -(y * logs).sum(1)
    other = -(y_g * logs).sum(1)
    slope = ((np.exp(logs) - y) @ w.T * (1 - h**2)) @ v.T
    first = slope @ x_g.reshape(-1)
    return float(np.mean((1 - ratio) * own + ratio * other + ratio * (1 - ratio) * first))


@pytest.mark.parametrize("ratio", [0.05, 0.3])
def test_the_loss_is_the_formula_and_its_gradient_is_the_formulas(ratio):
    """Central differences of the formula in numpy, in random directions of the weights."""
    client, method, batch, x_g, y_g = fedmix_client(ratio)
    loss = method.criterion(client, batch)
    loss.backward()
    inputs = (batch.images.numpy(), batch.targets.numpy(), x_g.numpy(), y_g.numpy(), ratio)
    assert float(loss.detach()) == pytest.approx(by_hand(client.model, *inputs), rel=1e-12)
    for parameter in client.model.parameters():
        for seed in range(3):
            direction = torch.randn(parameter.shape, generator=generator(seed), dtype=torch.float64)
            values = []
            for step in (1e-5, -1e-5):
                with torch.no_grad():
                    parameter += step * direction
                    values.append(by_hand(client.model, *inputs))
                    parameter -= step * direction
            numeric = (values[0] - values[1]) / 2e-5
            assert float((parameter.grad * direction).sum()) == pytest.approx(numeric, rel=1e-6, abs=1e-9)


def offer(client, method) -> tuple[np.ndarray, np.ndarray]:
    client._generators.clear()
    told = method.prepare_offer(client)
    return told["images"].numpy(), told["labels"].numpy()


def test_averages_are_of_five_images_each_used_once():
    client = prepared(["fedmix"]).clients["clinic"]  # 12 images: 5, 5 and 2
    images, labels = offer(client, FedMix(mean_batch=5))
    pixels = client.site.train.images.numpy() / 255
    order = torch.randperm(12, generator=generator(0, 0, "clinic", "fedmix averages")).numpy()
    for number, members in enumerate((order[:5], order[5:10], order[10:])):
        np.testing.assert_allclose(images[number], pixels[members].mean(0), rtol=1e-5)
        one_hot = np.eye(3)[client.site.train.targets.numpy()[members]]
        np.testing.assert_allclose(labels[number], one_hot.mean(0), rtol=1e-6)
    assert len(images) == len(labels) == 3


def test_a_single_image_never_leaves_its_site():
    """Its average would be the image itself. An unseen one sends nothing, and is not refused."""
    site = federation((("clinic", 1), ("tower", 5))).site("clinic")
    client = SimpleNamespace(
        name="clinic", site=site, unseen=False, classes=3, task=TASKS["classification"], device=torch.device("cpu")
    )
    client.generator = generator
    with pytest.raises(DataError, match="clinic has one training image.*fedmix would send it"):
        FedMix().prepare_offer(client)
    client.unseen = True
    assert FedMix().prepare_offer(client)["images"].shape == (1, 3, 8, 8)
