"""Retinal vessels: counts, the cut, masks that stay masks, and what can be wrong with the folders."""

from itertools import combinations

import numpy as np
import pytest
import torch
from loaders import counts
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import retinal_vessels
from fednb.datasets.retinal_vessels import SITES
from fednb.errors import DataError, RecipeError
from fednb.federation import IGNORED, SPLITS

SIDE = 16
STEMS = {
    "CHASEDB1": [f"Image_{child:02}{eye}" for child in range(1, 11) for eye in "LR"],
    **{name: [f"{part}_{i:02}" for part in ("train", "test") for i in range(5)] for name in ("DRIVE", "HRF", "LES-AV")},
    "STARE": [f"im{number:04}" for number in range(10)],
}


def load(root, size=SIDE, **options):
    return fednb.datasets.load("retinal_vessels", root, size=size, **options)


def black_and_white(path, white) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(white) * np.uint8(255)).convert("1").save(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, picture):
    """Noise; the mask of image i of a site is its column i, the field of view all but the upper four rows."""
    root = tmp_path_factory.mktemp("retinal")
    field = np.arange(SIDE)[:, None].repeat(SIDE, 1) >= 4
    for site, (name, stems) in enumerate(STEMS.items()):
        for number, stem in enumerate(stems):
            place = root / "retinal_vessels" / name
            picture(place / "images" / f"{stem}.png", 100 * site + number, size=SIDE)
            black_and_white(place / "masks" / f"{stem}.png", np.arange(SIDE)[None].repeat(SIDE, 0) == number % SIDE)
            black_and_white(place / "fov" / f"{stem}.png", field)
    return root


def stems(split, name: str, root) -> set[str]:
    """Which files a split is made of, by their pixels."""
    place = root / "retinal_vessels" / name / "images"
    known = {images.decode(path, SIDE)[0].tobytes(): path.stem for path in images.files(place)}
    return {known[image.numpy().tobytes()] for image in split.images}


class TestCut:
    def test_counts(self, whole):
        federation = load(whole)
        lists = dict.fromkeys(("DRIVE", "HRF", "LES-AV"), (4, 1, 5))
        assert counts(federation) == {"CHASEDB1": (12, 2, 6), **lists, "STARE": (6, 1, 3)}
        assert (federation.task, federation.classes) == ("segmentation", ("background", "vessel"))
        assert federation.image_shape == (3, SIDE, SIDE) and federation.notes == ()

    def test_the_lists_in_the_names_are_kept(self, whole):
        for name in ("DRIVE", "HRF", "LES-AV"):
            site = load(whole).site(name)
            assert stems(site.test, name, whole) == {f"test_{i:02}" for i in range(5)}

    def test_both_eyes_of_a_child_are_in_one_split(self, whole):
        for seed in range(5):
            site = load(whole, seed=seed).site("CHASEDB1")
            children = [{stem[:-1] for stem in stems(getattr(site, split), "CHASEDB1", whole)} for split in SPLITS]
            assert [len(some) for some in children] == [6, 1, 3]
            assert not any(one & other for one, other in combinations(children, 2))

    def test_every_image_is_in_one_split_and_only_validation_is_drawn_by_the_seed(self, whole):
        seeds = [load(whole, seed=seed) for seed in range(6)]
        for name in SITES:
            cuts = [tuple(frozenset(stems(getattr(f.site(name), s), name, whole)) for s in SPLITS) for f in seeds]
            assert all(frozenset.union(*parts) == set(STEMS[name]) for parts in cuts)
            assert len({test for *_, test in cuts}) == 1 < len({validation for _, validation, _ in cuts})

    def test_a_share_trains_on_the_first_of_one_order_and_changes_nothing_else(self, whole):
        shares = [load(whole, fraction=share) for share in (0.25, 0.5, 0.75, 1.0)]
        for name, full in (("CHASEDB1", 12), ("DRIVE", 4), ("STARE", 6)):
            used = [stems(federation.site(name).train, name, whole) for federation in shares]
            assert used[0] < used[1] < used[2] < used[3]
            assert [len(some) for some in used] == [round(share * full) for share in (0.25, 0.5, 0.75, 1.0)]
            for split in ("validation", "test"):
                assert len({frozenset(stems(getattr(f.site(name), split), name, whole)) for f in shares}) == 1
        assert shares[-1].fingerprint == load(whole).fingerprint

    def test_a_share_that_leaves_nothing_is_refused(self, whole):
        with pytest.raises(RecipeError, match="DRIVE no"):
            load(whole, fraction=0.1)


class TestMasks:
    def test_a_mask_is_that_of_its_image_and_ignored_outside_the_field(self, whole):
        for name in SITES:
            site = load(whole).site(name)
            for image, mask in zip(site.test.images, site.test.targets, strict=True):
                (stem,) = stems(type(site.test)(image[None], mask[None]), name, whole)
                wanted = torch.zeros(SIDE, SIDE, dtype=torch.uint8)
                wanted[:, STEMS[name].index(stem) % SIDE] = 1
                wanted[:4] = IGNORED
                assert torch.equal(mask, wanted)

    def test_a_pixel_is_vessel_from_a_coverage_of_two_fifths(self, tree):
        """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8. Rows 6 and 7 are small row 3,
        3/4 of it; row 11 is 3/8 of small row 5, which is not enough. Field of view from row 4: 7/8 of small row 2.
        """
        place = tree / "retinal_vessels" / "STARE" / "masks"
        rows = np.zeros((SIDE, SIDE), bool)
        rows[[6, 7, 11]] = True
        for path in images.files(place):
            path.unlink()
            black_and_white(path, rows)
        mask = load(tree, size=8).site("STARE").train.targets[0]
        assert (mask == 1).any(1).tolist() == [False, False, False, True, False, False, False, False]
        assert (mask[3] == 1).all() and (mask[:2] == IGNORED).all() and (mask[2:] != IGNORED).all()


class TestBadInput:
    @pytest.mark.parametrize("kind", ["masks", "fov"])
    def test_a_mask_of_another_size_is_named(self, tree, kind):
        path = tree / "retinal_vessels" / "HRF" / kind / "train_01.png"
        path.unlink()
        black_and_white(path, np.ones((SIDE, 2 * SIDE), bool))
        with pytest.raises(DataError, match=rf"HRF/{kind}/train_01.png is 32 x 16 pixels and its image 16 x 16"):
            load(tree)

    @pytest.mark.parametrize("kind", ["masks", "fov"])
    @pytest.mark.parametrize(
        ("mode", "values", "message"),
        [
            ("L", [0, 1], "has the values 1; expected black and white, 0 and 255"),
            ("L", [*range(1, 255, 2)], r"has the values 1, 3, 5, 7, 9, \.\.\.; expected black"),
            ("P", [0, 1], "has the values 1; expected black"),
            ("RGB", [0, 255], r"has 3 channels \(mode RGB\); expected a mask"),
        ],
    )
    def test_a_mask_that_is_not_black_and_white_is_named(self, tree, kind, mode, values, message):
        path = tree / "retinal_vessels" / "LES-AV" / kind / "train_02.png"
        path.unlink()
        made = Image.fromarray(np.resize(np.uint8(values), (SIDE, SIDE)))
        if mode == "P":
            made.putpalette([0, 0, 0, 255, 255, 255])
        (made.convert("RGB") if mode == "RGB" else made).save(path)
        with pytest.raises(DataError, match=rf"LES-AV/{kind}/train_02.png {message}"):
            load(tree)

    @pytest.mark.parametrize(("kind", "expected"), [("masks", "the vessels"), ("fov", "the field of view")])
    def test_a_mask_that_is_black_alone_is_named(self, tree, kind, expected):
        path = tree / "retinal_vessels" / "CHASEDB1" / kind / "Image_03R.png"
        path.unlink()
        black_and_white(path, np.zeros((SIDE, SIDE), bool))
        with pytest.raises(DataError, match=rf"{kind}/Image_03R.png is black alone; expected {expected} in white"):
            load(tree)

    def test_a_field_of_view_that_is_lost_in_resizing(self, tree):
        path = tree / "retinal_vessels" / "DRIVE" / "fov" / "test_00.png"
        path.unlink()
        black_and_white(path, np.arange(SIDE * SIDE).reshape(SIDE, SIDE) == 100)
        with pytest.raises(DataError, match=r"DRIVE / test are 255 \(ignored\) in every pixel of image 0"):
            load(tree, size=SIDE // 2)

    @pytest.mark.parametrize("kind", ["images", "masks", "fov"])
    @pytest.mark.parametrize("left", [10, -30])  # bytes: no header, or no end
    def test_an_unreadable_file_is_named(self, tree, kind, left):
        path = tree / "retinal_vessels" / "STARE" / kind / "im0004.png"
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[:left])
        with pytest.raises(DataError, match=rf"STARE/{kind}/im0004.png cannot be decoded"):
            load(tree)

    def test_too_few_images(self, tree):
        for number in range(4, 10):
            (tree / "retinal_vessels" / "STARE" / "images" / f"im000{number}.png").unlink()
        with pytest.raises(DataError, match="STARE has 4 images; expected 5 or more"):
            load(tree)


class TestReal:
    def test_counts_and_shares_of_vessel(self, real):
        assert retinal_vessels.describe(real) == [
            "ready",
            *(f"{n}: {c} images (complete: {c})" for n, c in SITES.items()),
        ]
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
