"""LeNet-5 in its usual modern form, for small images."""

from torch import nn

from fednb.errors import RecipeError
from fednb.models._staged import Staged


class LeNet5(Staged):
    """Two 5 x 5 convolutions with max pools and three fully connected layers, ReLU between them.

    Args:
        image_shape: (channels, height, width); height and width at least 28. Images below 32 x 32 are padded by 2
            pixels of black on each side, as LeCun et al. do with 28 x 28.

    61,706 parameters for 10 classes of grey images, 28 x 28 or 32 x 32.

    Reference: LeCun et al., *Gradient-based learning applied to document recognition*, Proc. IEEE 1998, Sec. II.B,
    with ReLU, max pools, all connections between the convolutions and a linear head in the place of its sigmoids,
    trained averages, partial connections and radial basis functions. FedFA names LeNet for EMNIST and DisTrans for
    BioID; neither prints its layers or releases its code.
    """

    stages = ("stage1", "stage2")
    stage_channels = (6, 16)

    def __init__(self, image_shape: tuple[int, int, int], classes: int):
        super().__init__()
        channels, height, width = image_shape
        if min(height, width) < 28:
            raise RecipeError(f"lenet5 was given images of {height} x {width}; it needs at least 28 x 28.")
        padding = 2 if min(height, width) < 32 else 0
        self.stage1 = nn.Sequential(nn.Conv2d(channels, 6, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2))
        self.stage2 = nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        rows, columns = (((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, width))
        dense = [nn.Linear(16 * rows * columns, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()]
        self.hidden = nn.Sequential(nn.Flatten(), *dense)
        self.head = nn.Linear(84, classes)
