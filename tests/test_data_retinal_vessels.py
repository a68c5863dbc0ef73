"""Retinal vessels: counts, the cut, masks that stay masks, and what can be wrong with the folders."""

from itertools import combinations

import numpy as np
import pytest
import torch
from loaders import counts
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets.retinal_vessels import SITES
from fednb.errors import DataError, RecipeError
from fednb.federation import IGNORED, SPLITS

SIDE = 24
LISTS = ("DRIVE", "HRF", "LES-AV")


def load(root, size=SIDE, **options):
    return fednb.datasets.load("retinal_vessels", root, size=size, **options)


def black_and_white(path, white) -> None:
    path.unlink(missing_ok=True)  # it may be a link
    Image.fromarray(np.asarray(white) * np.uint8(255)).convert("1").save(path)


def stems(split, name: str, root) -> frozenset[str]:
    """Which files a split is made of, by their pixels."""
    place = root / "retinal_vessels" / name / "images"
    known = {images.decode(path, SIDE)[0].tobytes(): path.stem for path in images.files(place)}
    return frozenset(known[image.numpy().tobytes()] for image in split.images)


def test_counts_and_the_lists_in_the_names(whole):
    federation = load(whole)
    assert counts(federation) == {"CHASEDB1": (12, 2, 6), **dict.fromkeys(LISTS, (4, 1, 5)), "STARE": (6, 1, 3)}
    assert federation.notes == ()
    for name in LISTS:
        assert stems(federation.site(name).test, name, whole) == {f"test_{i:02}" for i in range(5)}


def test_both_eyes_of_a_child_are_in_one_split_and_only_validation_is_drawn(whole):
    seeds = [load(whole, seed=seed) for seed in range(6)]
    for name in ("CHASEDB1", "DRIVE", "STARE"):
        cuts = [[stems(getattr(made.site(name), split), name, whole) for split in SPLITS] for made in seeds]
        assert len({test for *_, test in cuts}) == 1 < len({validation for _, validation, _ in cuts})
        if name == "CHASEDB1":
            children = [[{stem[:-1] for stem in part} for part in parts] for parts in cuts]
            assert all([len(part) for part in parts] == [6, 1, 3] for parts in children)
            assert not any(one & other for parts in children for one, other in combinations(parts, 2))


def test_a_share_trains_on_the_first_of_one_order_and_changes_nothing_else(whole):
    shares = [load(whole, fraction=share) for share in (0.25, 0.5, 1.0)]
    for name, full in (("CHASEDB1", 12), ("STARE", 6)):
        used = [stems(federation.site(name).train, name, whole) for federation in shares]
        assert used[0] < used[1] < used[2]
        assert [len(some) for some in used] == [round(share * full) for share in (0.25, 0.5, 1.0)]
        assert len({stems(made.site(name).test, name, whole) for made in shares}) == 1
    with pytest.raises(RecipeError, match="DRIVE no"):
        load(whole, fraction=0.1)


def test_a_mask_is_that_of_its_image_and_ignored_outside_the_field(whole):
    """That of image i is the quarter i mod 4; the first five rows are outside."""
    for name in SITES:
        site, files = load(whole).site(name), images.files(whole / "retinal_vessels" / name / "images")
        files.sort(key=lambda path: (path.name.startswith("test"), path.name))
        order = [images.decode(path, SIDE)[0].tobytes() for path in files]
        for image, mask in zip(site.test.images, site.test.targets, strict=True):
            quarter = order.index(image.numpy().tobytes()) % 4
            wanted = torch.zeros(SIDE, SIDE, dtype=torch.uint8)
            wanted[quarter // 2 * 12 :, quarter % 2 * 12 :][:12, :12] = 1
            wanted[:5] = IGNORED
            assert torch.equal(mask, wanted)


def test_a_pixel_is_vessel_from_a_coverage_of_two_fifths(tree):
    """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8. Rows 8 and 9 are small row 4, 3/4
    of it; row 15 is 3/8 of small row 7, which is not enough. Field of view from row 5: half of small row 2."""
    rows = np.zeros((SIDE, SIDE), bool)
    rows[[8, 9, 15]] = True
    for path in images.files(tree / "retinal_vessels" / "STARE" / "masks"):
        black_and_white(path, rows)
    mask = load(tree, size=12).site("STARE").train.targets[0]
    assert (mask == 1).any(1).nonzero().flatten().tolist() == [4]
    assert (mask[4] == 1).all() and (mask[:2] == IGNORED).all() and (mask[2:] != IGNORED).all()


@pytest.mark.parametrize("kind", ["masks", "fov"])
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (np.resize(np.uint8([*range(1, 256, 2)]), (SIDE, SIDE)), r"has the values 1, 3, 5, 7, 9; expected"),
        (np.zeros((SIDE, SIDE), np.uint8), "has the values 0; expected white"),
        (np.full((SIDE, SIDE, 3), 255, np.uint8), r"has 3 channels \(mode RGB\); expected a mask"),
        (np.full((SIDE, 2 * SIDE), 255, np.uint8), "is 48 x 24 pixels and its image 24 x 24"),
    ],
)
def test_a_mask_of_something_else_is_named(tree, kind, made, message):
    path = tree / "retinal_vessels" / "LES-AV" / kind / "train_02.png"
    path.unlink()
    Image.fromarray(made).save(path)
    with pytest.raises(DataError, match=rf"LES-AV/{kind}/train_02.png {message}"):
        load(tree)


def test_a_field_of_view_that_is_lost_in_resizing_and_a_broken_one(tree):
    path = tree / "retinal_vessels" / "DRIVE" / "fov" / "test_00.png"
    black_and_white(path, np.arange(SIDE * SIDE).reshape(SIDE, SIDE) == 100)
    with pytest.raises(DataError, match=r"DRIVE / test are 255 \(ignored\) in every pixel of image 0"):
        load(tree, size=SIDE // 2)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"DRIVE/fov/test_00.png cannot be decoded"):
        load(tree)


def test_counts_and_shares_of_vessel_of_real_images(real):
    federation = load(real, size=128)
    assert counts(federation) == {
        "CHASEDB1": (16, 4, 8),
        "DRIVE": (16, 4, 20),
        "HRF": (19, 5, 21),
        "LES-AV": (9, 2, 11),
        "STARE": (11, 3, 6),
    }
    for site in federation.sites:
        known = site.train.targets != IGNORED
        assert 0.6 < float(known.float().mean()) < 0.8  # a circle in its square is 0.785
        assert 0.06 < float((site.train.targets == 1).sum() / known.sum()) < 0.16
