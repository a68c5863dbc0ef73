"""A pass that leaves the running statistics of a network's layers as they are."""

from contextlib import contextmanager

from torch import nn


@contextmanager
def frozen(model: nn.Module):
    """Inside, layers of batch normalisation use the batch's statistics, and running ones do not change.

    Layers with a flag ``track_running_stats`` are meant: torch's, and those here that keep running statistics.
    """
    layers = [m for m in model.modules() if getattr(m, "track_running_stats", False)]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
