"""What all networks here have in common: stages in a row, hidden layers, a head."""

from torch import Tensor, nn

Shape = tuple[int, int, int]  # channels, height, width


class Staged(nn.Module):
    """A network that defines the modules named in ``stages``, ``hidden`` and ``head``."""

    stages: tuple[str, ...]
    stage_channels: tuple[int, ...]

    def features(self, images: Tensor) -> Tensor:
        """[n, channels, height, width] -> [n, d], what the head sees."""
        for stage in self.stages:
            images = getattr(self, stage)(images)
        return self.hidden(images)

    def forward(self, images: Tensor) -> Tensor:
        """[n, channels, height, width] -> logits [n, classes]."""
        return self.head(self.features(images))
