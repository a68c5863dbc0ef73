"""AlexNet, with batch normalisation or without."""

from collections.abc import Callable
from functools import partial

from torch import nn

from fednb.errors import RecipeError
from fednb.models._bf16_layers import AveragePool, Convolution, Linear, StridedConvolution
from fednb.models._normalisation import normalised
from fednb.models._staged import Shape, Staged


def _convolution(before: int, after: int, *, normalised: Callable, pool: bool = False, **geometry) -> nn.Sequential:
    layers = [(StridedConvolution if "stride" in geometry else Convolution)(before, after, **geometry)]
    layers += normalised(after)
    # The largest of some values, or 0, is the same in both orders; this one has fewer values for the ReLU.
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2)] if pool else []), nn.ReLU())


def _connected(before: int, after: int, normalised: Callable) -> list[nn.Module]:
    layer, norm = Linear(before, after), normalised(after, batch=nn.BatchNorm1d)
    return [layer, *norm, nn.ReLU()] if norm else [nn.Dropout(), layer, nn.ReLU()]


class AlexNet(Staged):
    """Five convolutional stages and three fully connected layers.

    Args:
        image_shape: (channels, height, width); height and width at least 63.
        width: hidden width of the classifier. 4096 in FedBN's and FedRDN's released code (57,063,498 parameters with 10
            classes); 1024 in FedFA, Table 10 (12,974,154 parameters).
        normalisation: True has batch normalisation after all layers but the last, and no dropout. False has none, and
            dropout of 0.5 before the first two fully connected layers: torchvision's AlexNet, which DisTrans' released
            code takes (57,044,810 parameters with 10 classes), from random weights.
        groups: as of ``_normalisation.normalised``; ours.

    Reference: FedFA, Table 10; FedRDN, Sec. 4.1 names AlexNet only, its width is that of the released code.
    """

    stages = ("stage1", "stage2", "stage3", "stage4", "stage5")
    stage_channels = (64, 192, 384, 256, 256)

    def __init__(
        self, image_shape: Shape, classes: int, width: int = 4096, normalisation: bool = True, groups: int = 0
    ):
        super().__init__()
        channels, height, size = image_shape
        if min(height, size) < 63:
            raise RecipeError(f"alexnet was given images of {height} x {size}; its pools need at least 63 x 63.")
        norm = partial(normalised, normalisation=normalisation, groups=groups)
        convolution = partial(_convolution, normalised=norm)
        self.stage1 = convolution(channels, 64, pool=True, kernel_size=11, stride=4, padding=2)
        self.stage2 = convolution(64, 192, pool=True, kernel_size=5, padding=2)
        self.stage3 = convolution(192, 384, kernel_size=3, padding=1)
        self.stage4 = convolution(384, 256, kernel_size=3, padding=1)
        self.stage5 = convolution(256, 256, pool=True, kernel_size=3, padding=1)
        hidden = [*_connected(256 * 6 * 6, width, norm), *_connected(width, width, norm)]
        self.hidden = nn.Sequential(AveragePool(6), nn.Flatten(), *hidden)
        self.head = nn.Linear(width, classes)
