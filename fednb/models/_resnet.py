"""What ResNet-18 and ResNet-50 have in common: torchvision's network, its residual stages, ImageNet weights."""

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn

from fednb.errors import RecipeError, RunError
from fednb.models._staged import Staged


class ResNet(Staged):
    """A stem, torchvision's four residual stages, the mean over the last map, a head.

    ``name`` and ``weights`` are set by the subclass: torchvision's function, and its ImageNet weights for it.
    """

    stages = ("layer1", "layer2", "layer3", "layer4")
    name: str
    weights: str

    def __init__(self, image_shape: tuple[int, int, int], classes: int, pretrained: bool = False):
        from torchvision import models

        super().__init__()
        channels, height, width = image_shape
        if min(height, width) < 32:
            raise RecipeError(
                f"{self.name} was given images of {height} x {width}; its stages need at least 32 x 32. "
                "Load larger images (size=...) or take digits_cnn."
            )
        if pretrained and channels != 3:
            raise RecipeError(
                f"{self.name} was given images of {channels} channels and pretrained; ImageNet's weights are for 3. "
                "Load colour images, or leave pretrained out."
            )
        network = getattr(models, self.name)()
        if pretrained:
            network.load_state_dict(fetched(models.get_weight(self.weights).url))
        if channels != 3:
            network.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
            nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")  # as torchvision does
        self.stem = nn.Sequential(network.conv1, network.bn1, network.relu, network.maxpool)
        for stage in self.stages:
            setattr(self, stage, getattr(network, stage))
        wide = network.fc.in_features
        self.stage_channels = (wide // 8, wide // 4, wide // 2, wide)
        self.hidden = nn.Sequential(network.avgpool, nn.Flatten())
        self.head = nn.Linear(wide, classes)

    def features(self, images: Tensor) -> Tensor:
        return super().features(self.stem(images))


def fetched(url: str) -> dict[str, Tensor]:
    """The weights at a URL, from torch's cache if they are there; RunError naming both where they cannot be had.

    torchvision's names end in the beginning of the file's SHA-256, which torch compares when it downloads; here a file
    that is there is compared too.
    """
    file = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    try:
        if file.exists():
            _compare(file, file.stem.rpartition("-")[2])
        return torch.hub.load_state_dict_from_url(url, map_location="cpu", check_hash=True, weights_only=True)
    except Exception as error:  # no network, a proxy's page, a file cut short: each has a type of its own
        raise RunError(
            f"the ImageNet weights could not be loaded ({type(error).__name__}: {error}). Expected the content of "
            f"{url} at {file}: put it there (remove a damaged one), or set pretrained to false."
        ) from error


def _compare(file: Path, beginning: str) -> None:
    if not file.is_file():
        raise ValueError("no regular file")
    with open(file, "rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if not found.startswith(beginning):
        raise ValueError(f"its SHA-256 begins with {found[: len(beginning)]}, torchvision's with {beginning}")
