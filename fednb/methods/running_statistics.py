"""The running statistics of a network's layers: left as they are by a pass, or measured anew."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from fednb.loop.client import Client

MEASURED_AT_ONCE = 128


@contextmanager
def frozen(model: nn.Module, but: type | tuple[type, ...] = ()):
    """Inside, layers with a flag ``track_running_stats`` use the batch's statistics, and running ones do not change.

    but: kinds of layers that go on as they are.
    """
    layers: list = [m for m in model.modules() if getattr(m, "track_running_stats", False) and not isinstance(m, but)]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True


def batch_norms(model: nn.Module) -> dict[str, nn.Module]:
    """The layers of batch normalisation, by their names."""
    return {name: m for name, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}


@cache
def mixed_with(mixin: type, kind: type[nn.Module]) -> type[nn.Module]:
    """A kind of layer with a mixin's ``forward`` before its own, for layers that keep their entries' names."""
    return type(f"{mixin.__name__}{kind.__name__}", (mixin, kind), {})


@torch.no_grad()
def measured(client: Client, names: Collection[str]) -> None:
    """Running statistics of these names become those of the client's training images, seen as at test time.

    names: entries of its network, such as ``client.keeps``; others than statistics of batch normalisation are passed
    over. Taken is the mean over batches of nearly equal size, through the network as it is.
    """
    layers: list = [layer for name, layer in batch_norms(client.model).items() if f"{name}.running_mean" in names]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    client.model.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # torch's plain mean over batches
        layer.train()
    count = len(client.site.train)
    for indices in torch.arange(count).chunk(-(-count // MEASURED_AT_ONCE)):
        client.forward(client.batch(client.site.train, indices, training=False))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
        layer.eval()
