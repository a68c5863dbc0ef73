"""U-Net, the network of FedFA's and FedRDN's ProstateMRI: a class for every pixel."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.models._normalisation import normalised
from fednb.models._staged import Shape


class UNet(nn.Module):
    """Four encoders, a bottleneck and four decoders of two 3 x 3 convolutions each, with batch normalisation.

    For segmentation: ``features`` are maps, and the head is a 1 x 1 convolution. ``stages`` are the four pools and the
    bottleneck: a layer appended to one changes what goes down to the next, and the skip connections carry the encoders'
    outputs without it, as in the released code. ``stage_channels`` gives the 15.5 KB of FedFA, Eq. 25.

    Args:
        image_shape: (channels, height, width); height and width divisible by 16.
        classes: number of classes, background included.
        channels: of the first encoder; each next one has twice as many. 32 in Table 14: 7,763,074 parameters with
            3 channels in and 2 classes (29.6 MB).
        normalisation, groups: as of ``_normalisation.normalised``; group normalisation, or none, is ours.

    Reference: FedFA, Tables 14 and 15, which leave out the transposed convolutions and the concatenations: from the
    released code, as are padded convolutions without bias and the order (up-sampled maps first, skip second).
    """

    stages = ("pool1", "pool2", "pool3", "pool4", "bottleneck")

    def __init__(
        self, image_shape: Shape, classes: int, channels: int = 32, normalisation: bool = True, groups: int = 0
    ):
        super().__init__()
        channels_in, height, width = image_shape
        if height % 16 or width % 16:
            raise RecipeError(f"unet was given images of {height} x {width}; both must be divisible by 16.")
        block = partial(_block, normalised=partial(normalised, normalisation=normalisation, groups=groups))
        self.stage_channels = tuple(channels * 2**stage for stage in range(5))
        before = (channels_in, *self.stage_channels)
        for level in range(1, 5):
            setattr(self, f"encoder{level}", block(before[level - 1], before[level]))
            setattr(self, f"pool{level}", nn.Sequential(nn.MaxPool2d(2)))
        self.bottleneck = block(before[4], before[5])
        for level in range(4, 0, -1):
            setattr(self, f"up{level}", nn.ConvTranspose2d(before[level + 1], before[level], 2, stride=2))
            setattr(self, f"decoder{level}", block(2 * before[level], before[level]))
        self.head = nn.Conv2d(channels, classes, 1)

    def features(self, images: Tensor) -> Tensor:
        """[n, channels, height, width] -> [n, 32, height, width], what the head sees."""
        maps, skips = images, {}
        for level in (1, 2, 3, 4):
            skips[level] = getattr(self, f"encoder{level}")(maps)
            maps = getattr(self, f"pool{level}")(skips[level])
        maps = self.bottleneck(maps)
        for level in (4, 3, 2, 1):
            upsampled = getattr(self, f"up{level}")(maps)
            maps = getattr(self, f"decoder{level}")(torch.cat([upsampled, skips[level]], 1))
        return maps

    def forward(self, images: Tensor) -> Tensor:
        """[n, channels, height, width] -> logits [n, classes, height, width]."""
        return self.head(self.features(images))


def _block(channels_in: int, channels_out: int, normalised: Callable) -> nn.Sequential:
    layers = []
    for before in (channels_in, channels_out):  # Table 15
        norm = normalised(channels_out)
        layers += [nn.Conv2d(before, channels_out, 3, padding=1, bias=not norm), *norm, nn.ReLU()]
    return nn.Sequential(*layers)
