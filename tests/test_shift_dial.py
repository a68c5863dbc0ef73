"""The shift dial: sites that are alike at level 0, and what each factor does to an image at the others."""

import numpy as np
import pytest
import torch

import fednb
from fednb.datasets.shift_dial import LOOKS
from fednb.errors import RecipeError


def pixels(factor: str, level: int) -> list[np.ndarray]:
    """The training images of each site, float64."""
    return [
        site.train.images.numpy().astype(float) for site in fednb.load("shift_dial", factor=factor, level=level).sites
    ]


def test_at_level_0_no_factor_does_anything_and_labels_never_change():
    plain = fednb.load("shift_dial")
    for factor in LOOKS:
        assert fednb.load("shift_dial", factor=factor).fingerprint == plain.fingerprint
        far = fednb.load("shift_dial", factor=factor, level=4)
        assert far.fingerprint != plain.fingerprint
        assert all(torch.equal(a.train.targets, b.train.targets) for a, b in zip(far.sites, plain.sites, strict=True))


@pytest.mark.parametrize("level", [2, 4])
def test_factors_are_what_they_say(level):
    """Written out for single images; the first site is untouched but for its cast."""
    share, plain = level / 4, pixels("colour", 0)
    found = {factor: pixels(factor, level) for factor in LOOKS}
    for factor in LOOKS.keys() - {"colour"}:
        np.testing.assert_array_equal(found[factor][0], plain[0])
    for site, cast in enumerate(([255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0])):
        toward = np.array(cast)[:, None, None]
        np.testing.assert_allclose(
            found["colour"][site][3], plain[site][3] + (toward - plain[site][3]) * share / 2, atol=0.51
        )
        image, less = plain[site][5], 1 - 0.8 * share * site / 3
        np.testing.assert_allclose(found["contrast"][site][5], image.mean() * (1 - less) + image * less, atol=0.51)
        noise = (found["noise"][site] - plain[site])[(plain[site] > 120) & (plain[site] < 135)]
        assert noise.std() == pytest.approx(64 * share * site / 3, rel=0.1, abs=1e-9)
    if level == 4:  # a right angle, counter-clockwise
        np.testing.assert_allclose(found["rotation"][3], np.rot90(plain[3], 1, (2, 3)), atol=0.51)
    at = np.arange(-20, 21)
    kernel = np.exp(-(at**2) / (2 * (2 * share) ** 2))
    seen = np.pad(plain[3][7, 0], 20, mode="symmetric")
    for axis in (0, 1):
        seen = np.apply_along_axis(np.convolve, axis, seen, kernel / kernel.sum(), "same")
    np.testing.assert_allclose(found["blur"][3][7, 0], seen[20:-20, 20:-20], atol=0.6)  # scipy cuts the kernel off


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"factor": "color"}, 'no "color"; did you mean "colour"'),
        ({"images": "mnist"}, 'no "mnist"'),
        ({"level": 5}, "level 5; expected a whole number from 0 to 4"),
    ],
)
def test_refused(options, said):
    with pytest.raises(RecipeError, match=said):
        fednb.load("shift_dial", **options)
