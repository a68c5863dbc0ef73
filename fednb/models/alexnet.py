"""AlexNet with batch normalisation, the network of the Office-Caltech-10 and DomainNet experiments."""

from torch import nn

from fednb.errors import RecipeError
from fednb.models._bf16_layers import AveragePool, Convolution, Linear, StridedConvolution
from fednb.models._staged import Staged


def _convolution(channels_in: int, channels_out: int, *, pool: bool = False, **geometry) -> nn.Sequential:
    layer = StridedConvolution if "stride" in geometry else Convolution
    layers = [layer(channels_in, channels_out, **geometry), nn.BatchNorm2d(channels_out)]
    # The largest of some values, or 0, is the same in both orders; this one has fewer values for the ReLU.
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2)] if pool else []), nn.ReLU())


class AlexNet(Staged):
    """Five convolutional stages and three fully connected layers, each with batch normalisation, no dropout.

    Args:
        image_shape: (channels, height, width); height and width at least 63.
        classes: number of classes.
        width: hidden width of the classifier. 4096 in FedBN's and FedRDN's released code (57,063,498
            parameters with 10 classes); 1024 in FedFA, Table 10 (12,974,154 parameters).

    Reference: FedFA, Table 10; FedRDN, Sec. 4.1 names AlexNet only, its width is that of the released code.
    """

    stages = ("stage1", "stage2", "stage3", "stage4", "stage5")
    stage_channels = (64, 192, 384, 256, 256)

    def __init__(self, image_shape: tuple[int, int, int], classes: int, width: int = 4096):
        super().__init__()
        channels, height, size = image_shape
        if min(height, size) < 63:
            raise RecipeError(
                f"alexnet was given images of {height} x {size}; its pools need at least 63 x 63. "
                "Load larger images (size=...) or take digits_cnn."
            )
        self.stage1 = _convolution(channels, 64, pool=True, kernel_size=11, stride=4, padding=2)
        self.stage2 = _convolution(64, 192, pool=True, kernel_size=5, padding=2)
        self.stage3 = _convolution(192, 384, kernel_size=3, padding=1)
        self.stage4 = _convolution(384, 256, kernel_size=3, padding=1)
        self.stage5 = _convolution(256, 256, pool=True, kernel_size=3, padding=1)
        self.hidden = nn.Sequential(
            AveragePool(6),
            nn.Flatten(),
            Linear(256 * 6 * 6, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, classes)
