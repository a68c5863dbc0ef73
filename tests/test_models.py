"""Networks: their sizes against the papers', their stages and head, and what they start from."""

import pytest
import torch
import torchvision
from models import ROWS
from torch import nn

from fednb import models, registry
from fednb.errors import RecipeError
from fednb.methods.augmentations._stages import append
from fednb.randomness import seeded

each = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_network_has_a_row():
    assert list(dict.fromkeys(row.name for row in ROWS)) == list(registry.builtin("models"))


@pytest.mark.parametrize(
    ("given", "shape", "parameters", "buffers"),
    [
        # FedBN's and FedRDN's released network; FedFA, Table 10 (49.5 MB); FRAug, Table 4 (18.15 M).
        ("alexnet", (3, 256, 256), 57_063_498, 18_695),
        ({"name": "alexnet", "width": 1024}, (3, 256, 256), 12_974_154, 6_407),
        (
            {"name": "alexnet", "normalisation": False},
            (3, 64, 64),
            61_100_840 - 990 * 4097,
            0,
        ),  # DisTrans: torchvision's
        ("digits_cnn", (3, 32, 32), 18_151_370, None),
    ],
)
def test_numbers_of_parameters_are_the_papers(given, shape, parameters, buffers):
    with torch.device("meta"):
        model = models.make("models", given, shape, 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert buffers is None or sum(buffer.numel() for buffer in model.buffers()) == buffers


def test_alexnet_has_the_output_sizes_of_fedfas_table():
    with torch.device("meta"):
        model = models.make("models", "alexnet", (3, 256, 256), 10).eval()
        images, sides = torch.empty(1, 3, 256, 256), []
        for stage in model.stages:
            images = getattr(model, stage)(images)
            sides.append((images.shape[1], images.shape[-1]))
    assert sides == [(64, 31), (192, 15), (384, 15), (256, 15), (256, 7)]


@pytest.mark.parametrize("training", [False, True])
def test_alexnet_without_normalisation_is_torchvisions(training):
    """The same logits from the same weights, and in training with the same draws of dropout."""
    ours = models.build({"name": "alexnet", "normalisation": False}, (3, 64, 64), 5)
    theirs = torchvision.models.alexnet(num_classes=5)
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))
    images, found = torch.rand(2, 3, 64, 64), []
    for model in (ours, theirs):
        with seeded("draws"):
            found.append(model.train(training)(images))
    assert torch.equal(*found)
    assert torch.equal(found[0], ours(images)) != training


@each
def test_features_then_head_is_the_network(row):
    model = models.build(row.given, row.shape, 5).eval()
    images = torch.rand(2, *row.shape)
    features, logits = model.features(images), model(images)
    assert torch.equal(model.head(features), logits)
    assert features.shape[1] == model.head.weight.shape[1]
    where = row.shape[1:] if row.pixels else ()
    assert isinstance(model.head, nn.Conv2d if row.pixels else nn.Linear)
    assert features.shape[2:] == where and logits.shape == (2, 5, *where)


@each
def test_a_layer_after_a_stage_sees_its_channels_in_order_and_renames_nothing(row):
    model = models.build(row.given, row.shape, 5).eval()
    names, seen = list(model.state_dict()), []
    layers = append(model, None, lambda channels: nn.Identity())
    for number, layer in enumerate(layers):
        layer.register_forward_hook(
            lambda *found, number=number: seen.append((number, *found[2].shape[1:2], found[2].ndim))
        )
    model(torch.rand(2, *row.shape))
    assert seen == [(number, channels, 4) for number, channels in enumerate(model.stage_channels)]
    assert len(seen) == len(model.stages)
    assert list(model.state_dict()) == names


@each
def test_every_parameter_gets_a_gradient(row):
    model = models.build(row.given, row.shape, 5)
    model(torch.rand(4, *row.shape)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@each
def test_the_seed_alone_decides_the_first_weights(row):
    torch.manual_seed(5)
    first = models.build(row.given, row.shape, 5, seed=1).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), drawn)  # building draws nothing from the global generator
    second, other = (models.build(row.given, row.shape, 5, seed=seed).state_dict() for seed in (1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


@each
def test_one_pixel_less_than_needed_is_refused(row):
    models.build(row.given, (3, row.least, row.least), 5).eval()(torch.rand(1, 3, row.least, row.least))
    with pytest.raises(RecipeError, match=f"{row.name} was given images of {row.least} x {row.least - 1}"):
        models.build(row.given, (3, row.least, row.least - 1), 5)


def test_odd_sizes_fit():
    model = models.build({"name": "digits_cnn", "channels": 2, "width": 8}, (1, 9, 15), 4).eval()
    assert model(torch.rand(2, 1, 9, 15)).shape == (2, 4)
