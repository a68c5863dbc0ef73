"""CIFAR-10 dealt out equally to parties, each with noise of its own level: NIID-Bench's noise-based feature skew."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import cifar10
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Site, Split
from fednb.randomness import random_state

NEEDS, missing = cifar10.NEEDS, cifar10.missing


def load(
    root: Path,
    *,
    clients: int = 10,
    noise: float = 0.1,
    size: int = 32,
    train_images: int | None = None,
    test_images: int | None = None,
    seed: int = 0,
) -> Federation:
    r"""Sites client_0, client_1, ..., which differ in their noise alone: equally large, dealt out at random.

    .. math:: \hat x = x + \epsilon, \quad \epsilon \sim \mathcal N(0, \sigma_i^2 I), \quad \sigma_i = \sigma i / (N-1)

    for images in [0, 1] at party i = 0, ..., N - 1: the first has no noise, the last has all of it.

    Args:
        clients: N, at least 2.
        noise: sigma, at least 0; 0 is the homogeneous partition.
        size, train_images, test_images: as in ``fednb.datasets.cifar10``. A tenth of the training images is validation.
        seed: of the partition and of the noise.

    Reference: Li et al., *Federated learning on non-IID data silos: an experimental study*, ICDE 2022.

    As released (``experiments.py``, ``utils.py``):

    1. The noise's standard deviation is as above (the README calls it a variance).
    2. Noise is drawn anew whenever an image is read. Ours is drawn once for each image, then rounded and cut to 0..255.
    3. The model is tested on all test images at each party's level. Ours are dealt out, so that an image is seen at one
       level: the mean over parties has the same expected value, and no image counts ten times.
    """
    if not isinstance(clients, int) or clients < 2:
        raise RecipeError(f"clients is {clients!r}; expected a whole number of at least 2.")
    if not isinstance(noise, int | float) or not 0 <= noise < float("inf"):
        raise RecipeError(f"noise is {noise!r}; expected a number of at least 0, such as 0.1.")
    whole = cifar10.load(root, clients=1, size=size, train_images=train_images, test_images=test_images, seed=seed)
    (pool,) = whole.sites
    parts = (pool.train, pool.validation, pool.test)
    if min(map(len, parts)) < clients:
        raise DataError(f"{len(pool.validation)} validation images cannot be dealt out to {clients} clients; use more.")
    dealt = [_dealt(part, clients, noise, seed, number) for number, part in enumerate(parts)]
    sites = [Site(f"client_{party}", *own) for party, own in enumerate(zip(*dealt, strict=True))]
    said = f"Images have Gaussian noise, with a standard deviation from 0 at client_0 to {noise} at the last client."
    return Federation("noisy_cifar10", sites, whole.classes, (*whole.notes, said))


def _dealt(split: Split, clients: int, noise: float, *key) -> list[Split]:
    """Each party's equal part, with its noise."""
    draws, made = random_state("noisy_cifar10", *key), []
    for party, own in enumerate(np.array_split(draws.permutation(len(split)), clients)):
        part = split.select(own)
        drawn = 255 * noise * party / (clients - 1) * draws.standard_normal(part.images.shape)
        images = np.rint(part.images.numpy() + drawn).clip(0, 255).astype(np.uint8)
        made.append(Split(torch.from_numpy(images), part.targets))
    return made
