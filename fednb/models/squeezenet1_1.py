"""SqueezeNet 1.1, the smallest backbone here of which ImageNet weights can be had in a package of Python's index."""

import torch
from torch import nn

from fednb.methods.augmentations.normalise import IMAGENET_MEAN, IMAGENET_STD
from fednb.models._pretrained import Origin, Weights
from fednb.models._torchvision import FromTorchvision

FIRE = dict(zip(("2", "3", "4", "5", "6", "7", "8", "9"), (3, 4, 6, 7, 9, 10, 11, 12), strict=True))
LAYERS = {"conv1": "features.0", "conv10": "classifier.1"} | {
    f"fire{number}/{theirs}": f"features.{place}.{ours}"
    for number, place in FIRE.items()
    for theirs, ours in (("squeeze1x1", "squeeze"), ("expand1x1", "expand1x1"), ("expand3x3", "expand3x3"))
}
CAFFE_MEAN = (123.68, 116.78, 103.94)  # of red, green and blue in 0..255, subtracted in training


def _renamed(weights: Weights) -> Weights:
    """Kernels [height, width, in, out] -> [out, in, height, width]; the first sees blue, green and red in 0..255."""
    found = {}
    for name, entry in weights.items():
        layer, _, kind = name.rpartition("/")
        if layer not in LAYERS:
            raise ValueError(f"{name} is no entry of that file")
        entry = entry.permute(3, 2, 0, 1).contiguous() if kind == "0" else entry
        found[f"{LAYERS[layer]}.{'weight' if kind == '0' else 'bias'}"] = entry
    colours = found["features.0.weight"].flip(1).double() * 255  # has no padding, so that the bias takes up a mean
    deviation, mean, caffe = (torch.tensor(v, dtype=torch.float64) for v in (IMAGENET_STD, IMAGENET_MEAN, CAFFE_MEAN))
    shift = (colours * (mean - caffe / 255)[:, None, None]).sum((1, 2, 3))
    found["features.0.weight"] = (colours * deviation[:, None, None]).float()
    found["features.0.bias"] = (found["features.0.bias"].double() + shift).float()
    return found


class SqueezeNet11(FromTorchvision):
    """torchvision's SqueezeNet 1.1 with a head of its own; 722,496 parameters without it.

    Its stages are the first convolution and the fire modules between two pools. Its head is linear on the mean over the
    last maps, the published one a convolution and a ReLU before the mean. It has no batch normalisation.

    Args:
        image_shape, classes: as of ``_torchvision.ResNet``.
        pretrained: with ImageNet weights: those of the Python package ndf 0.1.4, in ``weights/`` of the data folder.
            They are for 3 channels and normalised images: add the augmentation "normalise". They were trained on blue,
            green and red (measured on Office-Caltech-10) in 0..255 minus the mean, which the first convolution takes
            up.

    Reference: Iandola et al., *SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and < 0.5 MB model size*,
    2016; version 1.1 is its authors' code. No paper here uses it.
    """

    name = "squeezenet1_1"
    weights = Origin(
        "squeezenet1_1_imagenet",
        "squeezenet_weights.pkl of the Python package ndf 0.1.4 (MIT licence), its arrays under the keys that lead to "
        "them, such as conv1/0",
        "e8e5ef19c9af",
        _renamed,
    )
    their_head = "classifier."
    stages = ("stage1", "stage2", "stage3", "stage4")
    stage_channels = (64, 128, 256, 512)

    def __init__(self, image_shape: tuple[int, int, int], classes: int, pretrained: bool = False):
        super().__init__()
        network, channels = self.network(image_shape, pretrained), image_shape[0]
        if channels != 3:
            first = network.features[0] = nn.Conv2d(channels, 64, 3, stride=2)
            nn.init.kaiming_uniform_(first.weight)  # as torchvision does
            nn.init.zeros_(first.bias)
        self.cut(network, (3, 6, 9, 13), classes)
