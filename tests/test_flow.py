"""The basic flow: flips, rotations and crops of whole batches, each image with its own draw."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2.functional import rotate as reference

from fednb.methods import flow
from fednb.randomness import generator


def noise(count: int, height: int, width: int) -> torch.Tensor:
    return torch.rand(count, 3, height, width, generator=generator("noise"), dtype=torch.float64)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (31, 33), (24, 40), (41, 17)])
def test_rotation_is_torchvisions(height, width):
    """Same angles, nearest sampling, black where nothing falls. A pixel may differ where two are equally near
    (at 30 degrees, with a sine of 1/2, many are, so that angle is left out).
    """
    images, degrees = noise(7, height, width), torch.tensor([-29.7, -17.3, -1.0, 0.0, 4.4, 29.0, 90.0])
    ours = flow.rotate(images, degrees)
    pairs = zip(images, degrees, strict=True)
    theirs = torch.stack([reference(i, float(d), interpolation=InterpolationMode.NEAREST) for i, d in pairs])
    assert ours.shape == images.shape and ours.dtype == images.dtype
    assert (ours != theirs).any(1).float().mean(dim=(1, 2)).max() < 0.003
    assert torch.equal(ours[3], images[3])


def test_angles_are_uniform_within_30_degrees(monkeypatch):
    monkeypatch.setattr(flow, "rotate", lambda images, degrees: degrees)
    drawn = flow.rotation(torch.ones(9000, 1, 1, 1), generator("angles"))
    assert 29.9 < drawn.abs().max() <= 30
    counts = drawn.histc(6, -30, 30)
    assert (counts - 1500).abs().max() < 4 * 1500**0.5


def test_each_image_has_its_own_draw():
    images = noise(1, 48, 48).expand(64, -1, -1, -1)
    turned = flow.rotation(images, generator("own"))
    assert len({image.numpy().tobytes() for image in turned}) > 60  # two angles may be too near to differ
    flipped = flow.flip(images, generator("own"))
    mirrored = [torch.equal(image, images[0].flip(-1)) for image in flipped]
    same = [torch.equal(image, images[0]) for image in flipped]
    assert all(a != b for a, b in zip(mirrored, same, strict=True)) and 16 < sum(mirrored) < 48


@pytest.mark.parametrize(("height", "width"), [(9, 14), (6, 6)])
def test_a_crop_is_one_of_the_padded_image(height, width):
    """Of its 81 crops each is drawn about as often as the others; the middle one is the image."""
    image = noise(1, height, width)
    padded = F.pad(image, (4, 4, 4, 4), mode="reflect")[0]
    places = [(top, left) for top in range(9) for left in range(9)]
    crops = {(top, left): padded[:, top : top + height, left : left + width] for top, left in places}
    known = {crop.contiguous().numpy().tobytes(): place for place, crop in crops.items()}
    drawn = flow.crop(image.expand(4000, -1, -1, -1), generator("crops"))
    counts = Counter(known[crop.numpy().tobytes()] for crop in drawn)
    assert set(counts) == set(places) and max(counts.values()) < 90
    assert known[image[0].numpy().tobytes()] == (4, 4)


def test_operations_follow_the_given_order_and_draws_can_be_repeated():
    images = noise(8, 9, 9)
    draws = generator("order")
    wanted = flow.rotation(flow.flip(images, draws), draws)
    assert torch.equal(flow.apply(images, ("flip", "rotation"), generator("order")), wanted)
    assert not torch.equal(flow.apply(images, ("rotation", "flip"), generator("order")), wanted)
    assert flow.apply(images, (), generator("order")) is images
