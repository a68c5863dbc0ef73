"""AdvProp and noise on features: what is added stays in its bounds and reaches what it is meant for."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from methods import TINY, federation
from test_rivals import a_batch, started, within
from torch import nn

from fednb.errors import RecipeError
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations.advprop import auxiliary_layers
from fednb.methods.augmentations.embedding_noise import UNIT
from fednb.methods.augmentations.image_noise import ImageNoise
from fednb.models import build
from fednb.randomness import generator
from fednb.recipe import Recipe

ADVPROP = {"name": "advprop", "epsilon": 0.1, "step_size": 0.05, "steps": 3}


# AdvProp


def attacked(client, batch) -> torch.Tensor:
    with auxiliary_layers(client.model):
        return client.methods[1].attack(client, batch)


def auxiliary_as_main(model: nn.Module) -> dict[str, torch.Tensor]:
    """The entries of a plain network that has the auxiliary layers in the place of the main ones."""
    known = model.state_dict()
    return {
        name: known.get(".auxiliary.".join(name.rsplit(".", 1)), value).clone()
        for name, value in known.items()
        if ".auxiliary." not in name
    }


def test_the_attack_by_hand():
    """Two pixels, logits (x_1, 2 x_2), no batch normalisation. The slope of the loss of label 0 has the signs (-, +),
    of label 1 (+, -), wherever x is. From any start, steps of 0.2 in a ball of radius 0.1 end in its corner; the pixel
    at 0.95 would leave [0, 1] there.
    """
    client = started({"name": "advprop", "epsilon": 0.1, "step_size": 0.2, "steps": 2})
    matrix = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    client.model = nn.Module()
    client.model.features, client.model.head = nn.Flatten(), nn.Linear(2, 2, bias=False, dtype=torch.float64)
    client.model.head.weight.data = matrix
    batch = SimpleNamespace(images=torch.tensor([[0.5, 0.95], [0.5, 0.5]], dtype=torch.float64)[:, None, None])
    batch = type(a_batch(started()))(batch.images, torch.tensor([0, 1]), training=True, aside={"advprop": 3})
    found = client.methods[1].attack(client, batch).flatten(1)
    assert found.tolist() == [pytest.approx([0.4, 1.0]), pytest.approx([0.6, 0.4])]
    batch.images = batch.images - 0.6  # no longer plain images in [0, 1]: only the ball is left
    found = client.methods[1].attack(client, batch).flatten(1)
    assert found.tolist() == [pytest.approx([-0.2, 0.45]), pytest.approx([0.0, -0.2])]


@pytest.fixture(scope="module")
def trained():
    """A run of two rounds, in the middle of training."""
    recipe = Recipe(**TINY | {"augmentations": [ADVPROP], "flow": (), "precision": "fp64", "local_epochs": 4})
    run = FederatedRun(recipe, federation())
    run.advance(), run.advance()
    return run


def test_the_loss_is_the_sum_of_two_networks_that_share_all_but_batch_normalisation(trained):
    """Each of them built on its own. Main statistics are those of a run without adversarial images."""
    client = trained.clients["clinic"]
    client.receive(trained.server.send("clinic"), 3)
    client.model.train()
    assert not torch.equal(client.model.stage1[1].weight, client.model.stage1[1].auxiliary.weight)
    plain, other = (build(trained.recipe.model, (3, 8, 8), 3).double() for _ in range(2))
    known = client.model.state_dict()
    plain.load_state_dict({name: known[name].clone() for name in plain.state_dict()})
    other.load_state_dict(auxiliary_as_main(client.model))

    batch = a_batch(client)
    found = attacked(client, batch)
    loss = client.objective(batch)
    logits, adversarial = plain(batch.images), other(found)
    torch.testing.assert_close(batch.logits, logits, rtol=1e-12, atol=1e-12)
    wanted = F.cross_entropy(logits, batch.targets) + F.cross_entropy(adversarial, batch.targets)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-12)

    main = {name: value for name, value in client.model.state_dict().items() if ".auxiliary." not in name}
    torch.testing.assert_close(main, dict(plain.state_dict()), rtol=1e-12, atol=1e-12)
    auxiliary = auxiliary_as_main(client.model)
    torch.testing.assert_close(auxiliary, dict(other.state_dict()), rtol=1e-12, atol=1e-12)


# Noise on features


@pytest.mark.parametrize(("name", "kurtosis"), [("gaussian", 3.0), ("laplace", 6.0), ("uniform", 1.8)])
def test_noise_has_the_wanted_deviation_and_shape(name, kurtosis):
    """Of n draws with deviation 1: standard error of the mean 1 / sqrt n, of the variance sqrt((kurtosis - 1) / n). The
    fourth moment, which tells the distributions apart, to 5 %.
    """
    count = 400_000
    drawn = UNIT[name]((count // 100, 100), generator("noise", name)).double().numpy()
    assert drawn.shape == (4000, 100)
    assert within(drawn.mean(), 0, 1 / math.sqrt(count))
    assert within(drawn.var(), 1, math.sqrt((kurtosis - 1) / count))
    assert (drawn**4).mean() == pytest.approx(kurtosis, rel=0.05)
    assert np.isfinite(drawn).all()
    assert name != "uniform" or np.abs(drawn).max() <= math.sqrt(3)


def test_the_second_term_against_numpy_and_it_moves_the_head_only():
    client = started({"name": "embedding_noise", "gamma": 0.3})
    (method,), batch = client.methods[1:], a_batch(client)
    client.forward(batch)
    term = method.loss(client, batch)
    draws = torch.Generator().manual_seed(batch.aside["embedding_noise"])
    noisy = batch.features.detach().numpy() + 0.3 * torch.randn(5, 16, generator=draws).double().numpy()
    weight, bias = (parameter.detach().numpy() for parameter in client.model.head.parameters())
    scores = noisy @ weight.T + bias
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    wanted = -np.mean([logs[i, target] for i, target in enumerate(batch.targets.tolist())])
    assert term.item() == pytest.approx(wanted, rel=1e-6)  # 0.3 times a float32

    term.backward()
    moved = {name for name, parameter in client.model.named_parameters() if parameter.grad is not None}
    assert moved == {"head.weight", "head.bias"}


# Noise on images


def test_images_get_noise_of_the_named_size_in_training_alone():
    client = started({"name": "image_noise", "sigma": 0.3})
    split, everyone = client.site.train, torch.arange(len(client.site.train))
    clean = split.images.double() / 255
    first, second = (client.batch(split, everyone, training=True).images - clean for _ in range(2))
    assert first.std().item() == pytest.approx(0.3, rel=0.1) and abs(first.mean().item()) < 0.03
    assert not torch.equal(first, second)
    assert torch.equal(client.batch(split, everyone, training=False).images, clean)
    with pytest.raises(RecipeError, match="sigma -1; expected at least 0"):
        ImageNoise(sigma=-1)


# Additional embeddings


def test_the_head_alone_learns_from_all_images_for_the_test_and_is_forgotten():
    client = started({"name": "additional_embeddings", "epochs": 2})
    tuner, site, before = client.methods[1], client.site, copied(client.model)
    with torch.no_grad():
        client.model.eval()
        whole = torch.cat([site.train.images, site.spare.images]).double() / 255
        features, targets = client.model.features(whole), torch.cat([site.train.targets, site.spare.targets])
    order, w, b = generator(0, 1, "clinic", "adapt", "additional_embeddings"), *before_head(before)
    velocity = [torch.zeros_like(w), torch.zeros_like(b)]
    for _ in range(2):
        for chosen in torch.randperm(len(targets), generator=order).split(TINY["batch_size"]):
            leaves = [w.clone().requires_grad_(), b.clone().requires_grad_()]
            logits = features[chosen] @ leaves[0].T + leaves[1]
            loss = (logits.logsumexp(1) - logits[torch.arange(len(chosen)), targets[chosen]]).mean()
            for place, slope in enumerate(torch.autograd.grad(loss, leaves)):
                step = slope + TINY["weight_decay"] * (w, b)[place]
                velocity[place] = TINY["momentum"] * velocity[place] + step
            w, b = w - TINY["learning_rate"] * velocity[0], b - TINY["learning_rate"] * velocity[1]
    with client.adapted():
        after = copied(client.model)
    torch.testing.assert_close(after.pop("head.weight"), w, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(after.pop("head.bias"), b, rtol=1e-9, atol=1e-12)
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert tuner.epochs == 2 and not torch.equal(w, before["head.weight"])


def copied(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def before_head(entries: dict) -> tuple[torch.Tensor, torch.Tensor]:
    return entries["head.weight"], entries["head.bias"]


def test_without_spare_images_it_is_refused_by_name():
    sites = tuple(replace(site, spare=None) for site in federation().sites)
    run = FederatedRun(
        Recipe(**TINY | {"augmentations": ["additional_embeddings"]}), replace(federation(), sites=sites)
    )
    with pytest.raises(RecipeError, match='images of clinic that no round trains on.*"spare": True'):
        run.prepare()
    with pytest.raises(RecipeError, match='SGD, and the recipe has optimiser "adam"'):
        Recipe(**TINY | {"augmentations": ["additional_embeddings"], "optimiser": "adam", "momentum": 0.0})
