"""Networks: their sizes against the papers', their stages and head, and what they start from."""

import hashlib

import pytest
import torch
import torch.nn.functional as F
import torchvision
from models import ROWS
from torch import nn

from fednb import models, registry
from fednb.errors import RecipeError
from fednb.methods.augmentations._stages import append
from fednb.models import _bf16_layers as layers
from fednb.randomness import generator, seeded

each = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_network_has_a_row():
    assert list(dict.fromkeys(row.name for row in ROWS)) == list(registry.builtin("models"))


@pytest.mark.parametrize(
    ("given", "shape", "classes", "parameters"),
    [
        ("alexnet", (3, 256, 256), 10, 57_063_498),  # FedBN's and FedRDN's released network
        ({"name": "alexnet", "width": 1024}, (3, 256, 256), 10, 12_974_154),  # FedFA, Table 10 (49.5 MB)
        ({"name": "alexnet", "normalisation": False}, (3, 64, 64), 10, 61_100_840 - 990 * 4097),  # torchvision's
        ("digits_cnn", (3, 32, 32), 10, 18_151_370),  # FRAug, Table 4 (18.15 M)
        ("resnet18", (3, 224, 224), 10, 11_176_512 + 5_130),  # FRAug, Table 4 (11.18 M without the head)
        ("resnet50", (3, 224, 224), 1000, 25_557_032),  # torchvision's
        # LeCun's 60 thousand: 1*25*6+6, 6*25*16+16, 400*120+120, 120*84+84
        ("lenet5", (1, 28, 28), 10, 156 + 2_416 + 48_120 + 10_164 + 850),
        ("lenet5", (1, 32, 32), 62, 156 + 2_416 + 48_120 + 10_164 + 85 * 62),
        ("unet", (3, 384, 384), 2, 7_763_074),  # FedFA's released U-Net: 29.6 MB
    ],
)
def test_numbers_of_parameters_are_the_papers(given, shape, classes, parameters):
    with torch.device("meta"):
        model = models.make("models", given, shape, classes)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


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


@pytest.mark.parametrize("name", ["alexnet", "digits_cnn", "mobilenet_v2", "resnet18", "unet"])
def test_groups_take_the_place_of_all_batch_normalisation(name):
    """Layer by layer; an image's logits are then those it has alone, also in training."""
    [row] = [row for row in ROWS if row.name == name and "groups" in row.options]
    batch, model = models.build(row.given | {"groups": 0}, row.shape, 5), models.build(row.given, row.shape, 5)
    pairs = zip(batch.modules(), model.modules(), strict=True)
    assert {type(other) for layer, other in pairs if type(layer) is not type(other)} == {nn.GroupNorm}
    assert {layer.num_groups for layer in model.modules() if isinstance(layer, nn.GroupNorm)} == {2}
    assert not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in model.modules())
    if name != "mobilenet_v2":  # it has dropout
        images = torch.rand(3, *row.shape)
        torch.testing.assert_close(model.train()(images)[:1], model(images[:1]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "digits_cnn", "groups": 3}, "64 channels do not make 3 groups"),
        ({"name": "unet", "groups": -1}, "32 channels do not make -1 groups"),
        ({"name": "alexnet", "normalisation": False, "groups": 2}, "groups is 2 without normalisation"),
        ({"name": "resnet18", "pretrained": True, "groups": 2}, "resnet18 was given 2 groups and pretrained"),
    ],
)
def test_groups_that_cannot_be_are_refused(given, said):
    with pytest.raises(RecipeError, match=said):
        models.build(given, (3, 64, 64), 5)


@each
def test_features_then_head_is_the_network(row):
    model = models.build(row.given, row.shape, 5).eval()
    images = torch.rand(2, *row.shape)
    features, logits = model.features(images), model(images)
    logits.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert torch.equal(model.head(features), logits)
    assert features.shape[1] == model.head.weight.shape[1]
    where = row.shape[1:] if row.pixels else ()
    assert isinstance(model.head, nn.Conv2d if row.pixels else nn.Linear)
    assert features.shape[2:] == where and logits.shape == (2, 5, *where)


@each
def test_a_layer_after_a_stage_sees_its_channels_in_order_and_renames_nothing(row):
    model = models.build(row.given, row.shape, 5).eval()
    names, seen = list(model.state_dict()), []
    for layer in append(model, None, lambda channels: nn.Identity()):
        layer.register_forward_hook(lambda *found: seen.append((found[2].shape[1], found[2].ndim)))
    model(torch.rand(2, *row.shape))
    assert seen == [(channels, 4) for channels in model.stage_channels]
    assert len(seen) == len(model.stages)
    assert list(model.state_dict()) == names


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


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_resnets_are_torchvisions(name):
    ours, theirs = models.build(name, (3, 64, 64), 1000).eval(), getattr(torchvision.models, name)().eval()
    names = {"conv1": "stem.0", "bn1": "stem.1", "fc": "head"}
    parts = {key: key.partition(".") for key in theirs.state_dict()}
    ours.load_state_dict({f"{names.get(a, a)}.{b}": theirs.state_dict()[key] for key, (a, _, b) in parts.items()})
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))


def test_lenet_takes_28_pixels_as_32_with_a_black_border():
    """Written out from its weights, on padded images."""
    both, images = [models.build("lenet5", (1, side, side), 10) for side in (28, 32)], torch.rand(3, 1, 28, 28)
    both[1].load_state_dict(both[0].state_dict())
    (w1, b1), (w2, b2), *dense = zip(*[iter(both[0].state_dict().values())] * 2, strict=True)
    padded = F.pad(images, (2, 2, 2, 2))
    maps = F.max_pool2d(F.conv2d(F.max_pool2d(F.conv2d(padded, w1, b1).relu(), 2), w2, b2).relu(), 2)
    (w3, b3), (w4, b4), (w5, b5) = dense
    wanted = ((maps.flatten(1) @ w3.T + b3).relu() @ w4.T + b4).relu() @ w5.T + b5
    for model, seen in zip(both, (images, padded), strict=True):
        torch.testing.assert_close(model(seen), wanted)


def block(state, name: str, maps):
    """Table 15 from the weights alone, in evaluation mode."""
    for conv, norm in ((0, 1), (3, 4)):
        maps = F.conv2d(maps, state[f"{name}.{conv}.weight"], padding=1)
        entries = (state[f"{name}.{norm}.{entry}"] for entry in ("running_mean", "running_var", "weight", "bias"))
        maps = F.batch_norm(maps, *entries).relu()
    return maps


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_unet_is_table_14_with_layers_below_the_skips(value):
    """Written out from the weights: what a layer adds after a pool goes down, and never across."""
    model = models.build({"name": "unet", "channels": 3}, (2, 32, 16), 4).double()
    for _ in range(2):
        model(torch.rand(2, 2, 32, 16, dtype=torch.float64))  # moves the running statistics
    for layer in append(model.eval(), None, lambda channels: nn.Identity()):
        layer.register_forward_hook(lambda layer, given, maps: maps + value)
    images = torch.rand(2, 2, 32, 16, dtype=torch.float64)
    state, skips, maps = model.state_dict(), {}, images
    for level in (1, 2, 3, 4):
        skips[level] = block(state, f"encoder{level}", maps)
        maps = F.max_pool2d(skips[level], 2) + value
    maps = block(state, "bottleneck", maps) + value
    for level in (4, 3, 2, 1):
        maps = F.conv_transpose2d(maps, state[f"up{level}.weight"], state[f"up{level}.bias"], stride=2)
        maps = block(state, f"decoder{level}", torch.cat([maps, skips[level]], 1))
    wanted = F.conv2d(maps, state["head.weight"], state["head.bias"])
    torch.testing.assert_close(model(images), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("counts", [True, False])  # of batches, which torchvision's first file does not have
@pytest.mark.parametrize("place", ["torch/hub/checkpoints", "weights"])
def test_weights_on_disk_are_used_and_the_head_is_the_seeds(tmp_path, monkeypatch, place, counts):
    folder = tmp_path / place
    folder.mkdir(parents=True)
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    known = torchvision.models.resnet18()
    state = {name: entry for name, entry in known.state_dict().items() if counts or "num_batches" not in name}
    torch.save(state, folder / "weights.pth")
    name = f"resnet18-{hashlib.sha256((folder / 'weights.pth').read_bytes()).hexdigest()[:8]}.pth"
    (folder / "weights.pth").rename(folder / name)
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.value
    monkeypatch.setattr(weights, "url", f"https://download.pytorch.org/models/{name}")
    first, again = (models.build({"name": "resnet18", "pretrained": True}, (3, 64, 64), 10) for _ in range(2))
    assert torch.equal(first.stem[0].weight, known.conv1.weight)
    assert torch.equal(first.layer4[1].conv2.weight, known.layer4[1].conv2.weight)
    assert torch.equal(first.head.weight, again.head.weight) and first.head.out_features == 10


SMALL = {"kernel_size": 3, "padding": 1}
STRIDED = {"kernel_size": 11, "stride": 4, "padding": 2}
DEPTHWISE = SMALL | {"stride": 2, "groups": 6, "bias": False}
WEIGHTED = {
    "few pixels": (layers.Convolution, nn.Conv2d, (5, 7), SMALL, (4, 5, 7, 6)),
    "few pixels, one": (layers.Convolution, nn.Conv2d, (5, 7), {"kernel_size": 5, "padding": 2}, (4, 5, 1, 1)),
    "many pixels": (layers.Convolution, nn.Conv2d, (5, 7), SMALL, (4, 5, 9, 9)),
    "strides": (layers.StridedConvolution, nn.Conv2d, (3, 8), STRIDED, (4, 3, 64, 71)),
    "strides, a kernel a channel": (layers.StridedDepthwise, nn.Conv2d, (6, 6), DEPTHWISE, (4, 6, 9, 10)),
    "rows": (layers.Linear, nn.Linear, (33, 7), {}, (6, 33)),
}
CASES = WEIGHTED | {
    "repeats": (layers.AveragePool, nn.AdaptiveAvgPool2d, (6,), {}, (4, 5, 3, 2)),
    "averages": (layers.AveragePool, nn.AdaptiveAvgPool2d, (6,), {}, (4, 5, 7, 4)),
}


def pair(name: str) -> list[nn.Module]:
    """Our layer and torch's, of the same weights."""
    made, (ours, torchs, sizes, options, _) = [], CASES[name]
    for layer in (ours, torchs):
        with seeded("layer"):
            made.append(layer(*sizes, **options).to(memory_format=torch.channels_last))
    return made


def images(name: str) -> torch.Tensor:
    # What bf16 holds exactly, so that only the layers round.
    return torch.randn(CASES[name][-1], generator=generator("images")).bfloat16().float()


def derivatives(layer: nn.Module, name: str) -> list[torch.Tensor]:
    """Output, gradients, and the gradients of a gradient's length: a second derivative."""
    weights = list(layer.parameters())
    seen = images(name).to(weights[0].dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=seen.dtype == torch.float32):
        out = layer(seen)
    first = torch.autograd.grad(out.square().sum(), [seen, *weights], create_graph=True)
    second = torch.autograd.grad(first[0].square().sum(), weights, materialize_grads=True)
    return [out, *first, *second]


@pytest.mark.parametrize("name", WEIGHTED)
def test_in_bf16_they_are_as_near_to_float64_as_torchs(name, monkeypatch):
    monkeypatch.setattr(layers, "_multiplies_bf16", lambda: True)  # what they do elsewhere is looked at below
    mine, plain = pair(name)
    found, usual, exact = derivatives(mine, name), derivatives(plain, name), derivatives(plain.double(), name)
    for own, theirs, true in zip(found, usual, exact, strict=True):
        assert own.dtype == theirs.dtype and own.shape == true.shape
        scale = true.norm() + 1e-30
        assert (own - true).norm() / scale <= 1.5 * (theirs - true).norm() / scale + 0.002


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_other_precisions_they_are_torchs(name, dtype):
    mine, plain = (layer.to(dtype)(images(name).to(dtype)) for layer in pair(name))
    assert torch.equal(mine, plain)


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_processor_without_bf16_rounds_as_one_with_it(name, monkeypatch):
    """Outputs and gradients are rounded once, second derivatives twice as often."""
    monkeypatch.setattr(layers, "_multiplies_bf16", lambda: False)
    mine, plain = pair(name)
    found = derivatives(mine, name)
    plain.load_state_dict({entry: value.bfloat16() for entry, value in mine.state_dict().items()})
    exact = derivatives(plain.double(), name)
    assert found[0].dtype == torch.bfloat16 and {own.dtype for own in found[1:]} == {torch.float32}
    assert (found[0] - exact[0].bfloat16()).norm() <= 3e-4 * exact[0].norm()  # a tie can fall either way
    strays = [(own - true).norm() / (true.norm() + 1e-30) for own, true in zip(found, exact, strict=True)]
    first = 2 + len(list(mine.parameters()))
    assert max(strays[:first]) <= 2**-8 and max(strays) <= 2 * 2**-8
