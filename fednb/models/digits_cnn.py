"""The six-layer convolutional network of the digits experiments."""

from functools import partial

from torch import nn

from fednb.errors import RecipeError
from fednb.models._normalisation import normalised
from fednb.models._staged import Shape, Staged


class DigitsCNN(Staged):
    """Three 5 x 5 convolutions and three fully connected layers, with batch normalisation, no dropout.

    Args:
        image_shape: (channels, height, width); height and width at least 8.
        channels: channels of the first two stages; the third has twice as many.
        width: width of the first fully connected layer; the second has a quarter of it.
        normalisation, groups: as of ``_normalisation.normalised``; group normalisation, or none, is ours.

    The defaults are FRAug's released network: 18,151,370 parameters at 3 x 32 x 32 and 10 classes (FRAug, Table 4:
    18.15 M). FedBN's DigitModel is the same for 28 x 28 images with 2 x 2 pools.
    """

    stages = ("stage1", "stage2", "stage3")

    def __init__(
        self,
        image_shape: Shape,
        classes: int,
        channels: int = 64,
        width: int = 2048,
        normalisation: bool = True,
        groups: int = 0,
    ):
        super().__init__()
        channels_in, height, size = image_shape
        if min(height, size) < 8:
            raise RecipeError(f"digits_cnn was given images of {height} x {size}; it needs at least 8 x 8.")
        norm = partial(normalised, normalisation=normalisation, groups=groups)

        def convolution(before, after):
            return [nn.Conv2d(before, after, 5, padding=2), *norm(after), nn.ReLU()]

        def dense(before, after):
            return [nn.Linear(before, after), *norm(after, batch=nn.BatchNorm1d), nn.ReLU()]

        self.stage1 = nn.Sequential(*convolution(channels_in, channels), nn.MaxPool2d(3, 2, padding=1))
        self.stage2 = nn.Sequential(*convolution(channels, channels), nn.MaxPool2d(3, 2, padding=1))
        self.stage3 = nn.Sequential(*convolution(channels, 2 * channels))
        self.stage_channels = (channels, channels, 2 * channels)
        flat = 2 * channels * -(-height // 4) * -(-size // 4)
        self.hidden = nn.Sequential(nn.Flatten(), *dense(flat, width), *dense(width, width // 4))
        self.head = nn.Linear(width // 4, classes)
