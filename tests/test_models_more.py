"""ResNets, LeNet-5 and U-Net: their sizes against the papers', what their stages see, and ImageNet weights."""

import hashlib
import os
from pathlib import Path
from urllib.error import URLError

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from fednb import models
from fednb.errors import RecipeError, RunError
from fednb.methods.augmentations._stages import append


@pytest.fixture(autouse=True)
def nothing_is_downloaded(monkeypatch, tmp_path):
    """torch's cache is an empty folder, and whoever opens an address learns that there is no network."""

    def refuse(*arguments, **options):
        raise URLError("no network in tests")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("torch.hub.urlopen", refuse)


def count(module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("given", "shape", "classes", "body", "head"),
    [
        # FRAug, Table 4 (11.18 M without the head); torchvision's counts with 1000 classes, less their last layer's
        ("resnet18", (3, 224, 224), 10, 11_176_512, 5_130),
        ("resnet50", (3, 224, 224), 1000, 25_557_032 - 2_049_000, 2_049_000),
        # 1*25*6+6, 6*25*16+16, 400*120+120, 120*84+84: LeCun's 60 thousand; 62 classes for EMNIST
        ("lenet5", (1, 28, 28), 10, 156 + 2_416 + 48_120 + 10_164, 850),
        ("lenet5", (1, 32, 32), 62, 156 + 2_416 + 48_120 + 10_164, 85 * 62),
        # FedFA's released U-Net: 7,763,074 with its head, 29.6 MB
        ("unet", (3, 384, 384), 2, 7_763_074 - 66, 66),
    ],
)
def test_numbers_of_parameters(given, shape, classes, body, head):
    with torch.device("meta"):
        model = models.make("models", given, shape, classes)
    assert (count(model) - count(model.head), count(model.head)) == (body, head)


def test_unet_has_the_bytes_that_fedfa_prints():
    with torch.device("meta"):
        model = models.make("models", "unet", (3, 384, 384), 2)
    assert round(count(model) * 4 / 2**20, 1) == 29.6
    assert sum(buffer.numel() for buffer in model.buffers()) == 5_906
    assert 4 * sum(model.stage_channels) * 4 / 1024 == 15.5  # Eq. 25


@pytest.mark.parametrize("side", [8, 24, 40])
def test_unet_refuses_what_its_pools_would_cut(side):
    with pytest.raises(RecipeError, match=f"unet was given images of 32 x {side}.*divisible by 16"):
        models.build("unet", (3, 32, side), 2)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_resnets_are_torchvisions(name):
    ours, theirs = models.build(name, (3, 64, 64), 1000).eval(), getattr(torchvision.models, name)().eval()
    names = {"conv1": "stem.0", "bn1": "stem.1", "fc": "head"}
    state = {".".join([names.get((path := key.split("."))[0], path[0]), *path[1:]]): value
             for key, value in theirs.state_dict().items()}  # fmt: skip
    ours.load_state_dict(state)
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))


def test_lenet_takes_28_pixels_as_32_with_a_black_border():
    """Written out from its weights, on padded images."""
    model = models.build("lenet5", (1, 28, 28), 10)
    images = torch.rand(3, 1, 28, 28)
    (w1, b1), (w2, b2), (w3, b3), (w4, b4), (w5, b5) = zip(*[iter(model.state_dict().values())] * 2, strict=True)
    maps = F.max_pool2d(F.conv2d(F.pad(images, (2, 2, 2, 2)), w1, b1).relu(), 2)
    assert maps.shape == (3, 6, 14, 14)
    maps = F.max_pool2d(F.conv2d(maps, w2, b2).relu(), 2)
    assert maps.shape == (3, 16, 5, 5)
    features = ((maps.flatten(1) @ w3.T + b3).relu() @ w4.T + b4).relu()
    torch.testing.assert_close(model(images), features @ w5.T + b5)
    large = models.build("lenet5", (1, 32, 32), 10)
    large.load_state_dict(model.state_dict())
    torch.testing.assert_close(large(F.pad(images, (2, 2, 2, 2))), model(images))


def block(state, name: str, maps):
    """Table 15 from the weights alone, in evaluation mode."""
    for conv, norm in ((0, 1), (3, 4)):
        maps = F.conv2d(maps, state[f"{name}.{conv}.weight"], padding=1)
        mean, variance, scale, shift = (
            state[f"{name}.{norm}.{entry}"][:, None, None]
            for entry in ("running_mean", "running_var", "weight", "bias")
        )
        maps = ((maps - mean) / (variance + 1e-5).sqrt() * scale + shift).relu()
    return maps


class Plus(nn.Module):
    def __init__(self, value: float):
        super().__init__()
        self.value = value

    def forward(self, maps):
        return maps + self.value


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_unet_is_table_14_with_layers_below_the_skips(value):
    """Written out from the weights: what a layer adds after a pool goes down, and never across."""
    model = models.build({"name": "unet", "channels": 3}, (2, 32, 16), 4).double()
    for _ in range(2):
        model(torch.rand(2, 2, 32, 16, dtype=torch.float64))  # moves the running statistics
    append(model.eval(), None, lambda channels: Plus(value))
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


@pytest.fixture
def weights(tmp_path) -> Path:
    """Where torch keeps ResNet-18's."""
    file = tmp_path / "torch" / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    file.parent.mkdir(parents=True)
    return file


def test_other_weights_under_the_name_are_refused(weights):
    torch.save(torchvision.models.resnet18().state_dict(), weights)
    with pytest.raises(RunError, match=r"its SHA-256 begins with \w{8}, torchvision's with f37072fd") as caught:
        models.build({"name": "resnet18", "pretrained": True}, (3, 64, 64), 10)
    assert str(weights) in str(caught.value)
    weights.unlink()
    os.mkfifo(weights)
    with pytest.raises(RunError, match="no regular file"):
        models.build({"name": "resnet18", "pretrained": True}, (3, 64, 64), 10)


@pytest.mark.parametrize("counts", [True, False])  # of batches, which torchvision's first file does not have
@pytest.mark.parametrize("place", ["torch/hub/checkpoints", "weights"])
def test_weights_on_disk_are_used_and_the_head_is_the_seeds(tmp_path, monkeypatch, place, counts):
    folder = tmp_path / place
    folder.mkdir(parents=True)
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path))
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
