"""Real handwritten digits that four sites see differently; embedded, so that everything runs without data."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from fednb.datasets import _images as images
from fednb.datasets._partition import sizes, stratified
from fednb.errors import DataError
from fednb.federation import Federation, Site, Split
from fednb.randomness import random_state

NEEDS = None
SITES = ("plain", "photos", "blurred", "tinted")
SHARES = (0.5, 0.15, 0.35)  # train, validation, test


def load(root: Path | None = None, *, size: int = 32) -> Federation:
    """Four sites of about 224 training, 68 validation and 157 test images, ten classes.

    - ``plain``: white digits on black; ``blurred``: black digits on white, blurred;
    - ``photos``: the absolute difference of the digit and a crop of a photograph, as MNIST-M is made;
    - ``tinted``: yellowish digits of low contrast on a reddish ground.

    The images are scikit-learn's 1,797 digits (8 x 8 pixels, 17 grey levels), enlarged to 32 x 32 bilinearly, and the
    crops are of its two sample photographs. Each digit is in one site and one split; sites and splits are stratified by
    class. ``size`` other than 32 resizes the finished images.

    Source: the test part of the Optical Recognition of Handwritten Digits data (Alpaydin and Kaynak 1998, UCI,
    CC BY 4.0) and two photographs (CC BY), all distributed with scikit-learn."""
    return dealt(size)


def dealt(size: int, plain: bool = False) -> Federation:
    """As ``load``; or the same digits, at all sites as at the first."""
    wholes = [(name, Split(pixels, labels), cuts) for name, _, pixels, labels, cuts in seen(size, plain)]
    sites = [Site(name, *map(whole.select, cuts)) for name, whole, cuts in wholes]
    return Federation("shifted_digits", sites, tuple("0123456789"))


def seen(size: int, plain: bool = False) -> Iterator[tuple]:
    """Each site's name, strokes ``[n, 32, 32]`` in 0..1, pixels ``[n, 3, size, size]``, labels ``[n]``, and the
    positions of training, validation and test images."""
    if problem := missing():
        raise DataError(problem)
    from sklearn.datasets import load_digits

    digits = load_digits()
    targets = digits.target.astype(np.int64)
    strokes = _enlarge(digits.images / 16)
    parts = stratified(targets, sizes(len(targets), [1 / len(SITES)] * len(SITES)), "shifted_digits")
    for name, members in zip(SITES, parts, strict=True):
        look = _plain if plain else _LOOKS[name]
        looks = np.rint(look(strokes[members])).astype(np.uint8)
        pixels = torch.from_numpy(images.resized(looks.transpose(0, 3, 1, 2), size)).contiguous()
        cuts = stratified(targets[members], sizes(len(members), SHARES), "shifted_digits", name)
        yield name, strokes[members], pixels, torch.from_numpy(targets[members]), cuts


def missing(root: Path | None = None, **options) -> str | None:
    if importlib.util.find_spec("sklearn"):
        return None
    return "The images come with scikit-learn, which is not installed: pip install scikit-learn."


def _enlarge(digits: np.ndarray) -> np.ndarray:
    """[n, 8, 8] -> [n, 32, 32], bilinear. All weights are eighths, so the result is exact on every machine."""
    centres = (np.arange(32) + 0.5) / 4 - 0.5
    weights = np.maximum(0, 1 - np.abs(centres.clip(0, 7)[:, None] - np.arange(8)))
    return weights @ digits @ weights.T


def _plain(strokes: np.ndarray) -> np.ndarray:
    """[n, 32, 32] in 0..1 -> [n, 32, 32, 3] in 0..255; so are the other looks."""
    return np.repeat(255 * strokes[..., None], 3, axis=-1)


def _photos(strokes: np.ndarray) -> np.ndarray:
    return np.abs(_crops(len(strokes)) - _plain(strokes))


def _blurred(strokes: np.ndarray) -> np.ndarray:
    padded = np.pad(strokes, ((0, 0), (4, 4), (4, 4)))
    for axis in (1, 2):
        # Binomial weights of nine pixels, standard deviation sqrt(2); all are 256ths, so exact as well.
        windows = np.lib.stride_tricks.sliding_window_view(padded, 9, axis=axis)
        padded = windows @ (np.array([1, 8, 28, 56, 70, 56, 28, 8, 1]) / 256)
    return 255 - _plain(padded)


def _tinted(strokes: np.ndarray) -> np.ndarray:
    ground, ink = np.array([150, 70, 60]), np.array([180, 120, 80])
    return ground + strokes[..., None] * (ink - ground)


_LOOKS = {"plain": _plain, "photos": _photos, "blurred": _blurred, "tinted": _tinted}


def _crops(count: int) -> np.ndarray:
    """[count, 32, 32, 3]: random places of the two photographs at half their size."""
    from sklearn.datasets import load_sample_images

    photos = [Image.fromarray(photo).reduce(2) for photo in load_sample_images().images]
    random = random_state("shifted_digits", "crops")
    crops = []
    for _ in range(count):
        photo = np.asarray(photos[random.randint(len(photos))], dtype=np.float64)
        top, left = random.randint(photo.shape[0] - 31), random.randint(photo.shape[1] - 31)
        crops.append(photo[top : top + 32, left : left + 32])
    return np.stack(crops)
