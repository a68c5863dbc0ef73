"""FedMix, FedReg and FAug: losses, steps and images against formulas written out here, and what leaves a client."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from methods import federation, prepared, ready
from torch import nn

from fednb.errors import DataError
from fednb.methods import TASKS
from fednb.methods.augmentations.faug import Discriminator, Generator
from fednb.methods.augmentations.fedmix import FedMix
from fednb.randomness import generator

# FedMix


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


# FedReg

RATE = 0.05


class Linear(nn.Module):
    """Scores x W: its derivatives for images and for weights are one line each."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(192, 3, generator=generator("fedreg test"), dtype=torch.float64) / 5)

    def features(self, images):
        return images.flatten(1)

    def head(self, features):
        return features @ self.weights


def begun(**options):
    """A client that stands before the first batch of round 1, and its method; images in float64."""
    client = ready(prepared([{"name": "fedreg", **options}]))
    client.model, method = Linear(), client.methods[-1]
    method.begin(client)
    return client, method


def probabilities(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    scores = np.exp(x @ w)
    return scores / scores.sum(1, keepdims=True)


def slope(w: np.ndarray, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of mean cross entropy for the weights."""
    return x.T @ (probabilities(w, x) - labels) / len(x)


def ascended(w: np.ndarray, x: np.ndarray, y: np.ndarray, eta: float, iterations: int) -> np.ndarray:
    low, high = x.min(), x.max()
    for _ in range(iterations):
        x = np.clip(x + eta * np.sign((probabilities(w, x) - y) @ w.T), low, high)
    return x


def flat(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().reshape(len(tensor), -1)


def order(client) -> list[np.ndarray]:
    """The batches of 4 that the images are made in."""
    drawn = torch.randperm(12, generator=generator(0, 1, client.name, "fedreg")).numpy()
    return [drawn[:4], drawn[4:8], drawn[8:]]


@pytest.mark.parametrize(("weight", "gamma"), [(1.0, 0.5), (0.5, 1.0), (0.0, 0.4), (1.0, 1.0)])
def test_steps_are_the_formulas(weight, gamma):
    """Five steps of plain descent, written out; the pseudo batches come round again after three."""
    client, method = begun(weight=weight, gamma=gamma, iterations=3)
    parameter = client.model.weights
    start = parameter.detach().numpy().copy()
    w, train, taken = start.copy(), client.site.train, []
    for step in range(5):
        indices = torch.randperm(12, generator=generator("batch", step))[:4]
        batch = client.batch(train, indices, training=True)
        client.steps = step
        method.before_step(client, batch)
        np.testing.assert_allclose(parameter.detach(), gamma * w + (1 - gamma) * start, atol=1e-12)
        parameter.grad = None
        client.objective(batch).backward()
        with torch.no_grad():
            parameter -= RATE * parameter.grad
        method.after_step(client, batch)

        x, y = flat(train.images[indices]) / 255.0, np.eye(3)[train.targets[indices]]
        moved = w - RATE * slope(gamma * w + (1 - gamma) * start, x, y)
        made = order(client)[step % 3]
        x, y = flat(train.images[made]) / 255.0, np.eye(3)[train.targets[made]]
        pseudo, perturbed = (ascended(start, x, y, eta, 3) for eta in (0.1, 0.001))
        middle, d = (moved + start) / 2, moved - start
        g, h = slope(middle, pseudo, probabilities(start, pseudo)), slope(middle, perturbed, y)
        a = max(0.0, (d * g).sum() / (g * g).sum())
        b = max(0.0, ((d - a * g) * h).sum() / (h * h).sum())
        taken.append((a > 0, b > 0))
        w = moved - weight * (a * g + b * h)
        np.testing.assert_allclose(parameter.detach(), w, rtol=1e-9, atol=1e-12)
    assert any(a for a, _ in taken) and not all(b for _, b in taken)  # both sides of the brackets are seen


# FAug

LACKING = (("clinic", 12), ("harbour", 7), ("tower", 5))  # classes: 4, 4, 4; 3, 2, 2; 2, 2, 1


def test_the_generator_has_the_size_that_the_paper_prints():
    """1,493,520 for 28 x 28 digits: its dense layers and batch normalisation with its running statistics."""
    state = Generator(10, (1, 28, 28)).state_dict()
    counters = [name for name in state if name.endswith("num_batches_tracked")]
    counted = sum(value.numel() for name, value in state.items() if name not in ("embedding.weight", *counters))
    assert counted == 1_493_520 and len(counters) == 3
    assert sum(isinstance(layer, torch.nn.Linear) for layer in Discriminator(10, 784).modules()) == 4


def test_up_to_so_many_images_of_each_class_are_sent_as_they_are():
    data = federation(LACKING)
    client = prepared([{"name": "faug", "steps": 2, "seeds": 2}], data).clients["tower"]
    client._generators.clear()
    offer = client.methods[-1].prepare_offer(client)
    assert offer["images"].dtype == offer["labels"].dtype == torch.uint8
    assert offer["labels"].sum(0).tolist() == [2, 2, 1]  # of the third class it has one
    site = data.site("tower").train
    for image, label in zip(offer["images"], offer["labels"].argmax(1), strict=True):
        (found,) = [n for n, own in enumerate(site.images) if torch.equal(image, own)]
        assert site.targets[found] == label


def drawn(client, batches: int) -> np.ndarray:
    """Generated labels over many batches of all the client's images: counts by batch and class."""
    count, found = len(client.site.train), []
    for _ in range(batches):
        batch = client.batch(client.site.train, torch.arange(count), training=True)
        assert len(batch.images) == len(batch.targets)
        assert torch.equal(batch.images[:count], client.site.train.images / 255)
        assert torch.equal(batch.targets[:count], client.site.train.targets)
        found.append(torch.bincount(batch.targets[count:], minlength=3).numpy())
    return np.array(found)


def test_a_client_fills_up_what_it_lacks():
    """harbour has 3, 2, 2 images: two are generated for each pass over them, one of each lacking class on average."""
    client = ready(prepared([{"name": "faug", "steps": 2}], federation(LACKING), precision="fp32"), "harbour")
    client.methods[-1].begin(client)
    found = drawn(client, 400)
    assert (found.sum(1) == 2).all() and not found[:, 0].any()
    assert abs(found[:, 1].sum() - 400) < 57  # binomial(800, 1/2): 4 standard deviations
