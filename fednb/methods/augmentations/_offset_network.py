"""The networks with which DisTrans' server aggregates offsets: one as printed, one as released."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from fednb.errors import RecipeError

WIDTH = 32


class Aggregator(nn.Module):
    """Offsets of all clients, each with its class fractions e, to aggregated offsets.

    The paper says "a single-input-channel generator with four convolutional layers" and no more. Ours are 3 x 3 with 32
    channels and ReLU between them; e enters as constant planes, and what the layers give, zero at first, is added.

    Reference: DisTrans, Sec. 4.4 and 5.
    """

    def __init__(self, classes: int, shape: tuple[int, int, int]):
        super().__init__()
        channels = shape[0]
        layers = []
        for before, after in pairwise((classes + channels, WIDTH, WIDTH, WIDTH, channels)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.zeros_(self.layers[-1].bias)

    def forward(self, fractions: Tensor, offsets: Tensor) -> Tensor:
        """[k, classes] and [k, c, h, w] -> [k, c, h, w]."""
        planes = fractions[:, :, None, None].expand(-1, -1, *offsets.shape[2:])
        return offsets + self.layers(torch.cat([offsets, planes], 1))

    def learn(self, fractions: Tensor, seen: Tensor, offsets: Tensor, rate: float) -> None:
        """One step of SGD on the sum over clients of ||t_i - t'_i||^2, t'_i made of ``seen``; the rate is a pixel's."""
        optimiser = torch.optim.SGD(self.parameters(), lr=rate / offsets[0].numel())
        (offsets - self(fractions, seen)).square().sum().backward()
        optimiser.step()


class Hypernetwork(nn.Module):
    """Class fractions e alone to an offset of 3 x 64 x 64; 3,598,004 parameters with 10 classes.

    Reference: DisTrans, released code, where widths are fixed for 10 classes.
    """

    def __init__(self, classes: int, shape: tuple[int, int, int]):
        super().__init__()
        if tuple(shape) != (3, 64, 64):
            raise RecipeError(
                f"distrans' released aggregation network makes offsets of 3 x 64 x 64; the images are {list(shape)}. "
                'Load colour images with size=64, or take another aggregation or variant "paper".'
            )
        perceptron = [spectral_norm(_dense(classes)), nn.ReLU(), spectral_norm(_dense(100)), _dense(100)]
        self.embed = nn.Sequential(*perceptron, nn.Unflatten(1, (100, 1, 1)))
        layers = [nn.ConvTranspose2d(100, 512, 4, bias=False), nn.BatchNorm2d(512), nn.ReLU()]
        for before, after in ((512, 256), (256, 128), (128, 64)):
            layers += [_doubled(before, after), nn.BatchNorm2d(after), nn.ReLU()]
        self.grow = nn.Sequential(*layers, _doubled(64, 3), nn.Tanh())

    def forward(self, fractions: Tensor, offsets: Tensor) -> Tensor:
        return torch.cat([self.grow(self.embed(e[None])) for e in fractions])

    def learn(self, fractions: Tensor, seen: Tensor, offsets: Tensor, rate: float) -> None:
        optimiser = torch.optim.SGD(self.parameters(), lr=rate)
        for e, offset in zip(fractions, offsets, strict=True):
            optimiser.zero_grad()
            F.mse_loss(self(e[None], offset[None])[0], offset).backward()
            optimiser.step()


def _dense(width: int) -> nn.Linear:
    layer = nn.Linear(width, 100)
    nn.init.kaiming_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _doubled(before: int, after: int) -> nn.ConvTranspose2d:
    return nn.ConvTranspose2d(before, after, 4, stride=2, padding=1, bias=False)
