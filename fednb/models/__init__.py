"""Networks, one file each.

Every network is made from ``(image_shape, classes, **options)`` and has

- ``features(images) -> [n, d]`` and ``head``, a linear layer ``[n, d] -> [n, classes]``; calling it composes both. A
  network for segmentation has both for every pixel, ``[n, d, height, width]``, and its head is a convolution;
- ``stages``: names of its convolutional stages in order, each an ``nn.Sequential``: a feature method appends its layer
  to it; ``stage_channels``: the channels after each.
"""

import os

from torch import nn

from fednb.models import _pretrained
from fednb.randomness import seeded
from fednb.registry import complete, find, make

pretrained_below = _pretrained.below


def build(given: str | dict, image_shape: tuple[int, int, int], classes: int, seed: int = 0) -> nn.Module:
    """The network that a recipe's ``model`` names, initialised by ``seed`` alone.

    Raises RecipeError for an unknown name or option, or an image too small for the network; RunError where the weights
    that it begins with are missing, damaged or of another network.
    """
    with seeded(seed, "model"):
        return make("models", given, image_shape, classes)


def lacks(given: str | dict, root: str | os.PathLike | None = None) -> str | None:
    """What is missing of the weights that a recipe's ``model`` begins with, in one sentence; None where nothing is, or
    where torchvision's can be fetched."""
    full = complete("models", given)
    origin = getattr(find("models", full["name"]), "weights", None) if full.get("pretrained") else None
    return _pretrained.lacking(origin, root) if isinstance(origin, _pretrained.Origin) else None
