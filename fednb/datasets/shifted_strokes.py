"""The strokes of handwritten digits, which four sites see differently: masks that are embedded."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets.shifted_digits import missing, seen
from fednb.federation import Federation, Site, Split

__all__ = ["NEEDS", "TASK", "load", "missing"]

TASK = "segmentation"
NEEDS = None


def load(root: Path | None = None, *, size: int = 32) -> Federation:
    """The images and sites of ``shifted_digits``, with a class for every pixel: stroke from half of the ink on."""
    sites = []
    for name, strokes, pixels, _, cuts in seen(size):
        ink = images.resized(np.rint(255 * strokes).astype(np.uint8)[:, None], size)[:, 0]
        whole = Split(pixels, torch.from_numpy((ink >= 128).astype(np.uint8)))
        sites.append(Site(name, *(whole.select(cut) for cut in cuts)))
    return Federation("shifted_strokes", sites, ("ground", "stroke"), task=TASK)
