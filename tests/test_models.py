"""Networks: their sizes against the papers', their stages and head, and what they start from."""

import pytest
import torch
from torch import nn

from fednb import models
from fednb.errors import RecipeError

SMALL = [
    ("digits_cnn", {"name": "digits_cnn", "channels": 2, "width": 8}, (3, 8, 8)),
    ("alexnet", {"name": "alexnet", "width": 8}, (3, 63, 70)),
]
small = pytest.mark.parametrize(("given", "shape"), [case[1:] for case in SMALL], ids=[case[0] for case in SMALL])


@pytest.mark.parametrize(
    ("given", "shape", "parameters", "buffers"),
    [
        # FedBN's and FedRDN's released network; FedFA, Table 10 (49.5 MB); FRAug, Table 4 (18.15 M).
        ("alexnet", (3, 256, 256), 57_063_498, 18_695),
        ({"name": "alexnet", "width": 1024}, (3, 256, 256), 12_974_154, 6_407),
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


@small
def test_features_then_head_is_the_network(given, shape):
    model = models.build(given, shape, 5).eval()
    images = torch.rand(3, *shape)
    features = model.features(images)
    assert features.ndim == 2 and len(features) == 3
    assert isinstance(model.head, nn.Linear) and model.head.in_features == features.shape[1]
    assert torch.equal(model.head(features), model(images)) and model(images).shape == (3, 5)


@small
def test_stages_are_used_in_order_on_maps(given, shape):
    model, seen = models.build(given, shape, 5).eval(), []
    for name in model.stages:
        getattr(model, name).register_forward_hook(lambda *found, name=name: seen.append((name, found[2].ndim)))
    model(torch.rand(1, *shape))
    assert seen == [(name, 4) for name in model.stages]


@small
def test_the_seed_alone_decides_the_first_weights(given, shape):
    torch.manual_seed(5)
    first = models.build(given, shape, 5, seed=1).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), drawn)  # building draws nothing from the global generator
    second, other = (models.build(given, shape, 5, seed=seed).state_dict() for seed in (1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


@small
def test_one_pixel_less_than_needed_is_refused(given, shape):
    least = min(shape[1:])
    models.build(given, (3, least, least), 5).eval()(torch.rand(1, 3, least, least))
    with pytest.raises(RecipeError, match=f"{given['name']} was given images of {least} x {least - 1}"):
        models.build(given, (3, least, least - 1), 5)


def test_odd_sizes_fit():
    model = models.build({"name": "digits_cnn", "channels": 2, "width": 8}, (1, 9, 15), 4).eval()
    assert model(torch.rand(2, 1, 9, 15)).shape == (2, 4)
