"""What torchvision's networks have in common here, and what ResNet-18 and ResNet-50 have."""

from functools import partial
from itertools import pairwise

from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.models import _pretrained
from fednb.models._normalisation import group
from fednb.models._staged import Staged


class FromTorchvision(Staged):
    """A network of torchvision's, with stages and a head of its own.

    name: torchvision's function. weights: torchvision's name of ImageNet weights for it, or the origin of others.
    their_head: what torchvision's names of the head's entries begin with.
    """

    name: str
    weights: str | _pretrained.Origin
    their_head: str
    weights_hash = ""

    def network(self, image_shape: tuple[int, int, int], pretrained: bool, groups: int = 0) -> nn.Module:
        """torchvision's network, pretrained or as its function makes it; RecipeError for images that it cannot see."""
        from torchvision import models

        channels, height, width = image_shape
        if min(height, width) < 32:
            raise RecipeError(f"{self.name} was given images of {height} x {width}; it needs at least 32 x 32.")
        if pretrained and channels != 3:
            found = f"{self.name} was given images of {channels} channels"
            raise RecipeError(f"{found} and pretrained; ImageNet's weights are for 3.")
        if pretrained and groups:
            raise RecipeError(f"{self.name} was given {groups} groups and pretrained; ImageNet's weights have none.")
        layer = {"norm_layer": partial(group, groups)} if groups else {}
        network = getattr(models, self.name)(**layer)
        if pretrained:
            self.weights_hash = _pretrained.start(network, self.their_head, self.weights)
        return network

    def cut(self, network: nn.Module, ends: tuple[int, ...], classes: int) -> None:
        """Stages that end after so many of torchvision's ``features``, the mean over the last maps, and a head."""
        for stage, (start, end) in zip(self.stages, pairwise((0, *ends)), strict=True):
            setattr(self, stage, nn.Sequential(*network.features[start:end]))
        self.hidden = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), network.classifier[0])
        self.head = nn.Linear(self.stage_channels[-1], classes)


class ResNet(FromTorchvision):
    """A stem, torchvision's four residual stages, the mean over the last map, a head of its own.

    Args:
        image_shape: (channels, height, width); height and width at least 32, where the last maps are single pixels.
        pretrained: with torchvision's first ImageNet weights (IMAGENET1K_V1), from ``weights/`` of the data folder or
            torch's cache, else fetched. They are for 3 channels and normalised images: add the augmentation
            "normalise".
        groups: as of ``_normalisation.normalised``, without ImageNet's weights; ours.

    Reference: He et al., *Deep residual learning for image recognition*, CVPR 2016.
    """

    stages = ("layer1", "layer2", "layer3", "layer4")
    their_head = "fc."

    def __init__(self, image_shape: tuple[int, int, int], classes: int, pretrained: bool = False, groups: int = 0):
        super().__init__()
        network, channels = self.network(image_shape, pretrained, groups), image_shape[0]
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
