"""What one step sees."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

# Of weights, images and losses, by a recipe's ``precision``
DTYPES = {"fp32": torch.float32, "bf16": torch.float32, "fp64": torch.float64}


@dataclass
class Batch:
    """Images and what is asked of them, and what the network makes of them.

    images: float ``[n, channels, height, width]``, in [0, 1] until a method's ``inputs`` changes them.
    targets: int64 ``[n]``, of segmentation uint8 ``[n, height, width]`` with 255 where a pixel is ignored.
    training: False at test time.
    features, logits: ``[n, d]`` and ``[n, classes]``, of segmentation ``[n, d, height, width]`` and
        ``[n, classes, height, width]``, set by ``client.forward``.
    label_shares: where images are mixed, the share of each class in the mixed labels, float ``[n, classes, ...]``;
        ``features`` and ``logits`` are of the mixtures then. None where ``targets`` are their labels.
    aside: what a method's ``inputs`` leaves for its other hooks.
    """

    images: Tensor
    targets: Tensor
    training: bool
    features: Tensor | None = None
    logits: Tensor | None = None
    label_shares: Tensor | None = None
    aside: dict = field(default_factory=dict)
