"""One dial for the strength of a feature shift: four sites of like images that one factor sets apart, by level."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import cifar10, shifted_digits
from fednb.errors import RecipeError, nearest
from fednb.federation import Federation, Site, Split
from fednb.randomness import random_state

NEEDS = None  # for CIFAR-10 the files of cifar10
KINDS, LEVELS = ("digits", "cifar10"), 4
DEALT = {"clients": 4, "classes_per_client": 10, "size": 32, "train_images": 2000, "test_images": 2000}
CASTS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]) * 255.0  # red, green, blue, yellow


def load(
    root: Path | None = None, *, images: str = "digits", factor: str = "colour", level: int = 0, seed: int = 0
) -> Federation:
    """Four sites that are drawn alike and then differ in one factor alone, 32 x 32 pixels, ten classes.

    With share ``a = level / 4`` and the site's place ``b = 0, 1/3, 2/3, 1``; pixels are rounded and cut to 0..255:

    - ``colour``: x becomes (1 - 0.5 a) x + 0.5 a c, where c is red, green, blue or yellow;
    - ``contrast``: the deviation from the image's mean times 1 - 0.8 a b;
    - ``blur``: a Gaussian of standard deviation 2 a b pixels; ``noise``: Gaussian noise of 64 a b grey levels;
    - ``rotation``: by 90 a b degrees counter-clockwise, with black corners.

    Args:
        images: "digits", those of ``shifted_digits``; or "cifar10", 2,000 training and 2,000 test images in all.
        level: 0, no shift, to 4. seed: of the noise, and deals CIFAR-10 out; the digits are dealt out alike.

    Source: ours; factors as in Hendrycks and Dietterich, *Benchmarking neural network robustness to common corruptions
    and perturbations*, ICLR 2019, and for rotation as in rotated MNIST (Ghifary et al., ICCV 2015)."""
    for value, known in ((images, KINDS), (factor, LOOKS)):
        if value not in known:
            raise RecipeError(f'shift_dial has no "{value}"; {nearest(value, known)}')
    if level not in range(LEVELS + 1):
        raise RecipeError(f"shift_dial has level {level}; expected a whole number from 0 to {LEVELS}.")
    base = shifted_digits.dealt(32, plain=True) if images == "digits" else cifar10.load(root, **DEALT, seed=seed)
    sites = []
    for number, site in enumerate(base.sites):
        draws = random_state("shift_dial", images, number, seed)
        seen = [Split(_look(part.images, factor, level, number, draws), part.targets) for part in site.parts[:3]]
        sites.append(Site(f"site {number + 1}", *seen))
    return Federation("shift_dial", sites, base.outline.classes, base.notes)


def missing(root: Path, *, images: str = "digits", seed: int = 0, **options) -> str | None:
    return shifted_digits.missing() if images == "digits" else cifar10.missing(root, **DEALT, seed=seed)


def _look(pixels: torch.Tensor, factor: str, level: int, number: int, draws) -> torch.Tensor:
    from scipy import ndimage

    seen = LOOKS[factor](pixels.double().numpy(), level / LEVELS, number, draws, ndimage)
    return torch.from_numpy(np.rint(seen).clip(0, 255).astype(np.uint8))


LOOKS = {  # of images [n, 3, 32, 32]
    "colour": lambda x, a, k, *_: (1 - 0.5 * a) * x + 0.5 * a * CASTS[k][:, None, None],
    "contrast": lambda x, a, k, *_: (mean := x.mean((1, 2, 3), keepdims=True)) + (1 - 0.8 * a * k / 3) * (x - mean),
    "blur": lambda x, a, k, _, ndimage: ndimage.gaussian_filter(x, (0, 0, 2 * a * k / 3, 2 * a * k / 3)),
    "noise": lambda x, a, k, draws, _: x + 64 * a * k / 3 * draws.randn(*x.shape),
    "rotation": lambda x, a, k, _, ndimage: ndimage.rotate(x, 90 * a * k / 3, (3, 2), reshape=False, order=1),
}
