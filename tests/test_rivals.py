"""Mixup, manifold mixup, MoEx, MixStyle, AdvProp, noise and additional embeddings against numpy and numbers by hand."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from methods import TINY, prepared, ready
from torch import nn

from fednb.methods.augmentations._mixing import Mixture
from fednb.methods.augmentations.advprop import auxiliary_layers
from fednb.methods.augmentations.embedding_noise import UNIT
from fednb.methods.augmentations.manifold_mixup import Mix
from fednb.methods.augmentations.mixstyle import MixStatistics
from fednb.methods.augmentations.moex import Exchange
from fednb.models import build
from fednb.randomness import generator


def started(*augmentations):
    """The client "clinic" of a run in float64 without the flow, ready to train; it has 12 images."""
    return ready(prepared(augmentations))


def a_batch(client, size: int = 5):
    """The first images of a client, after the hooks before the step."""
    batch = client.batch(client.site.train, torch.arange(size), training=True)
    for method in client.methods:
        method.before_step(client, batch)
    return batch


def test_the_loss_of_mixup_against_numpy():
    """Logits of a linear network by hand, so that images and labels are seen to be mixed alike."""
    client = started({"name": "mixup", "alpha": 0.7})
    weights = torch.randn(192, 3, generator=generator("linear"), dtype=torch.float64) / 5
    client.model = SimpleNamespace(features=lambda images: images.flatten(1), head=lambda features: features @ weights)
    batch = a_batch(client)
    mixture = batch.aside["mixup"]
    share, partner = mixture.share, mixture.partner.numpy()
    images, targets = batch.images.numpy(), batch.targets.numpy()
    mixed = np.stack([share * images[i] + (1 - share) * images[partner[i]] for i in range(5)])
    scores = mixed.reshape(5, -1) @ weights.numpy()
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    wanted = [-share * logs[i, targets[i]] - (1 - share) * logs[i, targets[partner[i]]] for i in range(5)]
    assert client.objective(batch).item() == pytest.approx(np.mean(wanted), rel=1e-12)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_manifold_mixup_mixes_after_one_stage_only(stage):
    client = started({"name": "manifold_mixup", "stages": [0, 1, 2, 3]})
    model, batch = copy.deepcopy(client.model), a_batch(client)
    mixture = Mixture(0.3, torch.tensor([1, 2, 0, 4, 3]))
    batch.aside["manifold_mixup"] = stage, mixture
    loss = client.objective(batch)

    features = batch.images
    for number in range(4):
        if number:
            features = getattr(model, f"stage{number}")(features)
        if number == stage:
            features = 0.3 * features + 0.7 * features[[1, 2, 0, 4, 3]]
    logits = model.head(model.hidden(features))
    assert torch.equal(batch.logits, logits)
    both = batch.targets, batch.targets[[1, 2, 0, 4, 3]]
    own, other = (F.cross_entropy(logits, targets) for targets in both)
    assert loss.item() == pytest.approx((0.3 * own + 0.7 * other).item(), rel=1e-14)
    assert all(layer.mixture is None for layer in client.model.modules() if isinstance(layer, Mix))


def test_moment_exchange_by_hand():
    """One position, three channels. Image 0: (1, 3, 2), mean 2, sample variance 1, normalised (-1, 1, 0). Image 1:
    (10, 10, 16), mean 12, variance (4 + 4 + 16) / 2 = 12, normalised (-2, -2, 4) / sqrt 12. With 1e-5 left out,
    image 0 becomes 12 + sqrt 12 (-1, 1, 0) and image 1 becomes 2 + (-2, -2, 4) / sqrt 12.
    """
    layer = Exchange(3)
    layer.mixture = Mixture(0.9, torch.tensor([1, 0]))
    found = layer(torch.tensor([[1, 3, 2], [10, 10, 16]], dtype=torch.float64)[:, :, None, None])[:, :, 0, 0]
    root = math.sqrt(12)
    assert found[0].tolist() == pytest.approx([12 - root, 12 + root, 12], abs=1e-4)
    assert found[1].tolist() == pytest.approx([2 - 2 / root, 2 - 2 / root, 2 + 4 / root], abs=1e-4)


def test_mixstyle_by_hand(monkeypatch):
    """Two pixels, one channel. Image 0: (0, 2), mean 1, sample variance 2. Image 1: (10, 14), mean 12, variance 8.
    With lambda = 1/4 image 0 has mean 1/4 + 36/4 = 9.25 and deviation sqrt 2 / 4 + 3 sqrt 8 / 4 = 1.75 sqrt 2; its
    normalised pixels are -+ 1 / sqrt 2, so it becomes (7.5, 11). With lambda = 1 image 1 stays.
    """
    layer = MixStatistics(probability=1.0, alpha=0.1)
    shares = torch.tensor([0.25, 1.0], dtype=torch.float64)[:, None, None, None]
    layer.shares = SimpleNamespace(sample=lambda shape: shares)
    monkeypatch.setattr(torch, "randperm", lambda count: torch.tensor([1, 0]))
    found = layer(torch.tensor([[0.0, 2.0], [10.0, 14.0]], dtype=torch.float64)[:, None, None]).flatten(1)
    assert found[0].tolist() == pytest.approx([7.5, 11], abs=1e-5)
    assert found[1].tolist() == pytest.approx([10, 14], abs=1e-5)


ADVPROP = {"name": "advprop", "epsilon": 0.1, "step_size": 0.05, "steps": 3}


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


def test_the_loss_is_the_sum_of_two_networks_that_share_all_but_batch_normalisation():
    """Each of them built on its own. Main statistics are those of a run without adversarial images."""
    run = prepared([ADVPROP], local_epochs=4)
    run.advance()
    client = ready(run, round=2)
    assert not torch.equal(client.model.stage1[1].weight, client.model.stage1[1].auxiliary.weight)
    plain, other = (build(run.recipe.model, (3, 8, 8), 3).double() for _ in range(2))
    known = client.model.state_dict()
    plain.load_state_dict({name: known[name].clone() for name in plain.state_dict()})
    other.load_state_dict(auxiliary_as_main(client.model))

    batch = a_batch(client)
    with auxiliary_layers(client.model):
        found = client.methods[1].attack(client, batch)
    loss = client.objective(batch)
    logits, adversarial = plain(batch.images), other(found)
    torch.testing.assert_close(batch.logits, logits, rtol=1e-12, atol=1e-12)
    wanted = F.cross_entropy(logits, batch.targets) + F.cross_entropy(adversarial, batch.targets)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-12)

    main = {name: value for name, value in client.model.state_dict().items() if ".auxiliary." not in name}
    torch.testing.assert_close(main, dict(plain.state_dict()), rtol=1e-12, atol=1e-12)
    auxiliary = auxiliary_as_main(client.model)
    torch.testing.assert_close(auxiliary, dict(other.state_dict()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "kurtosis"), [("gaussian", 3.0), ("laplace", 6.0), ("uniform", 1.8)])
def test_noise_has_the_wanted_deviation_and_shape(name, kurtosis):
    """Of n draws with deviation 1: standard error of the mean 1 / sqrt n, of the variance sqrt((kurtosis - 1) / n). The
    fourth moment tells the distributions apart."""
    drawn = UNIT[name]((4000, 100), generator("noise", name)).double().numpy()
    assert abs(drawn.mean()) < 4 / math.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 4 * math.sqrt((kurtosis - 1) / drawn.size)
    assert (drawn**4).mean() == pytest.approx(kurtosis, rel=0.05)
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


def test_images_get_noise_of_the_named_size_in_training_alone():
    client = started({"name": "image_noise", "sigma": 0.3})
    split, everyone = client.site.train, torch.arange(len(client.site.train))
    clean = split.images.double() / 255
    first, second = (client.batch(split, everyone, training=True).images - clean for _ in range(2))
    assert first.std().item() == pytest.approx(0.3, rel=0.1) and abs(first.mean().item()) < 0.03
    assert not torch.equal(first, second)
    assert torch.equal(client.batch(split, everyone, training=False).images, clean)


def test_the_head_alone_learns_from_all_images_for_the_test_and_is_forgotten():
    client = started({"name": "additional_embeddings", "epochs": 2})
    tuner, site, before = client.methods[1], client.site, copied(client.model)
    with torch.no_grad():
        client.model.eval()
        whole = torch.cat([site.train.images, site.spare.images]).double() / 255
        features, targets = client.model.features(whole), torch.cat([site.train.targets, site.spare.targets])
    order = generator(0, 1, "clinic", "adapt", "additional_embeddings")
    w, b = before["head.weight"], before["head.bias"]
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
