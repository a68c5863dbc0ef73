"""DisTrans' double-input-channel network around any backbone, and the two images that enter it."""

import torch
from torch import Tensor, nn

from fednb.methods import batch_norms, mixed_with


def blend(images: Tensor | float, offset: Tensor | float, alpha: float, channels: int) -> Tensor:
    """Eq. 1, of one channel the first blend alone: ``[..., c, h, w]`` -> ``[..., channels * c, h, w]``."""
    mixed = [(1 - alpha) * images + alpha * offset, (1 + alpha) * images - alpha * offset]
    return torch.cat(mixed[:channels], -3)


def along_offset(gradient: Tensor, alpha: float, channels: int) -> Tensor:
    """A loss's gradient for the offset, ``[c, h, w]``, from that for the blended images ``[n, channels * c, h, w]``."""
    added, *subtracted = gradient.sum(0).chunk(channels)
    return alpha * (added - sum(subtracted))


class InputChannels(nn.Module):
    """One backbone for all input channels, images one after the other on the channel axis; one head over both outputs.

    The backbone's own head is taken out; the new one is Kaiming-uniform with zero bias (released code).

    Args:
        projection: width of a dense layer after the backbone; 0 leaves it out.
        own_statistics: whether batch normalisation has running statistics for each channel, or for both together.

    Reference: DisTrans, Sec. 4.1 and Figure 1.
    """

    def __init__(self, backbone: nn.Module, channels: int, projection: int, own_statistics: bool = False):
        super().__init__()
        features, classes = backbone.head.in_features, backbone.head.out_features
        backbone.head = nn.Identity()
        self.channels = channels
        self.backbone = backbone
        self.dense = nn.Linear(features, projection) if projection else nn.Identity()
        self.head = nn.Linear(channels * (projection or features), classes)
        nn.init.kaiming_uniform_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.normalisations = split_statistics(backbone, channels) if own_statistics and channels > 1 else []
        self.stages = tuple(f"backbone.{stage}" for stage in backbone.stages)
        self.stage_channels = backbone.stage_channels

    def features(self, images: Tensor) -> Tensor:
        found = []
        for channel, image in enumerate(images.chunk(self.channels, 1)):
            for layer in self.normalisations:
                layer.channel = channel
            found.append(self.dense(self.backbone.features(image)))
        return torch.cat(found, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


class OwnStatistics:
    """Of a layer of batch normalisation: running statistics ``[channels, n]``, and which row is in use."""

    channel = 0

    def forward(self, features: Tensor) -> Tensor:
        everyone = dict(self._buffers)
        self._buffers.update({name: rows[self.channel] for name, rows in everyone.items()})  # views: updates stay
        try:
            return super().forward(features)
        finally:
            self._buffers.update(everyone)


def split_statistics(model: nn.Module, channels: int) -> list[nn.Module]:
    """The layers of batch normalisation, which from now on keep running statistics ``[channels, n]``."""
    layers = [layer for layer in batch_norms(model).values() if layer.track_running_stats]
    for layer in layers:
        layer.__class__ = mixed_with(OwnStatistics, type(layer))
        for name, value in layer.named_buffers(recurse=False):
            setattr(layer, name, torch.stack([value] * channels))
    return layers
