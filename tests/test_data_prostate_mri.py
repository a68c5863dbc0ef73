"""Prostate MRI: the papers' counts, the cuts, what becomes of a volume, and what can be wrong with the files."""

from itertools import combinations

import loaders
import numpy as np
import pytest
import torch

import fednb.datasets
from fednb import papers
from fednb.datasets import prostate_mri
from fednb.datasets.prostate_mri import SITES, SLICES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

SIDE, DEEP = 20, 13
USED = {(volume, number) for volume in range(5) for number in range(1, 12)}


def load(root, size=SIDE, **options):
    return fednb.datasets.load("prostate_mri", root, size=size, **options)


def place(root, site="HK"):
    return root / "prostate_mri" / site


def replace(root, case: str, grey=None, mask=None, site="HK") -> None:
    """Another volume and mask in the place of a case; None leaves one out."""
    for path in place(root, site).glob(f"{case}*"):
        path.unlink()
    loaders.scan(place(root, site), case, noise() if grey is None else grey, mask)


def noise() -> np.ndarray:
    return np.random.RandomState(99).randint(0, 2000, (DEEP, SIDE, SIDE)).astype(np.int16)


def marked(*voxels) -> np.ndarray:
    mask = np.zeros((DEEP, SIDE, SIDE), np.uint8)
    for voxel in voxels:
        mask[voxel] = 1
    return mask


def slices(split) -> list[tuple[int, int]]:
    """(volume, slice) of each image, which its mask tells."""
    return [tuple(mask.nonzero()[0].tolist()) for mask in split.targets]


def sample(federation, volume: int, number: int, site="HK"):
    """Image and mask of a slice, from whichever split has it."""
    for split in SPLITS:
        part = getattr(federation.site(site), split)
        if (volume, number) in slices(part):
            at = slices(part).index((volume, number))
            return part.images[at], part.targets[at]
    raise AssertionError(f"no slice {number} of volume {volume}")


def cut(name: str, split: str, ratio: float) -> list[int]:
    """How many slices of the published site are in each part."""
    return [len(part) for part in prostate_mri._cut(name, split, ratio, np.arange(SLICES[name]), None)]


class TestCut:
    def test_the_counts_that_fedfa_prints(self):
        printed = papers.settings("fedfa")["printed"]
        table13 = printed["images_prostate_mri"]["value"]
        assert {name.lower(): cut(name, "fedfa", 0.6) for name in SITES} == table13
        mini = printed["images_mini_prostate_mri"]["value"]
        assert {name.lower(): cut(name, "fedfa", 0.1)[0] for name in SITES} == mini

    def test_the_counts_of_harmofls_code(self):
        assert cut("BIDMC", "harmofl", 0.6) == [167, 41, 53]  # of 261: 0.64 is 167.04, 0.8 is 208.8
        assert cut("UCL", "harmofl", 0.6) == [112, 28, 35]  # of 175: 112 and 140, exactly

    @pytest.mark.parametrize(
        "options, wanted",
        [
            ({}, (33, 11, 11)),
            ({"ratio": 0.1}, (32, 11, 11)),  # 32 at least
            ({"split": "harmofl"}, (35, 9, 11)),  # of 55: 35.2 and 44
            ({"split": "patients"}, (33, 11, 11)),
            ({"split": "patients", "ratio": 0.3}, (32, 11, 11)),
        ],
    )
    def test_counts(self, whole, options, wanted):
        federation = load(whole, **options)
        assert federation.counts().to_dict("index") == {name: dict(zip(SPLITS, wanted, strict=True)) for name in SITES}
        assert (federation.task, federation.classes) == ("segmentation", ("background", "prostate"))
        assert federation.image_shape == (3, SIDE, SIDE)

    @pytest.mark.parametrize("split", prostate_mri.SPLITS)
    def test_every_slice_with_prostate_is_in_one_split_and_knows_its_volume(self, whole, split):
        for site in load(whole, split=split).sites:
            parts = [slices(getattr(site, part)) for part in SPLITS]
            assert sorted(sum(parts, [])) == sorted(USED)
            for part, found in zip(SPLITS, parts, strict=True):
                assert getattr(site, part).volumes.tolist() == [volume for volume, _ in found]

    def test_patients_are_kept_apart_on_demand(self, whole):
        for split, apart in {"fedfa": False, "patients": True}.items():
            federation = load(whole, split=split)
            for site in federation.sites:
                patients = [{volume for volume, _ in slices(getattr(site, part))} for part in SPLITS]
                assert apart != any(one & other for one, other in combinations(patients, 2))
            assert apart != any("slices of one patient in training and in test" in note for note in federation.notes)

    def test_a_smaller_ratio_tests_on_the_same_slices(self, whole):
        full, mini = load(whole).site("UCL"), load(whole, ratio=0.1).site("UCL")
        assert slices(full.test) == slices(mini.test) and slices(full.train)[:32] == slices(mini.train)

    def test_sites_are_drawn_apart_and_always_the_same(self, whole):
        federation = load(whole)
        assert len({tuple(slices(site.test)) for site in federation.sites}) == len(SITES)
        assert federation.fingerprint == load(whole).fingerprint != load(whole, split="harmofl").fingerprint

    def test_other_counts_than_published_are_noted(self, whole):
        notes = load(whole, split="patients").notes
        assert notes[0] == "BIDMC has 55 slices with prostate; FedFA's Table 13 is made from 261."
        assert len(notes) == len(SITES)


class TestIndexFiles:
    @pytest.fixture
    def indexed(self, tree):
        for name in ("BIDMC", "HK", "I2CVB", "UCL", "ISBI", "ISBI_1.5"):
            order = np.arange(55) if name == "ISBI_1.5" else np.arange(54, -1, -1)
            np.save(tree / "prostate_mri" / f"{name}-index.npy", order)
        return tree

    def test_slices_are_taken_in_the_order_of_the_index(self, indexed):
        federation = load(indexed, index_files=True)
        backwards = sorted(USED, reverse=True)
        for name in SITES:
            site = federation.site(name)
            listed = [slices(getattr(site, part)) for part in SPLITS]
            assert sum(listed, []) == (backwards[::-1] if name == "BMC" else backwards)

    def test_a_missing_index_is_named(self, indexed):
        (indexed / "prostate_mri" / "UCL-index.npy").unlink()
        with pytest.raises(DataError, match=r"There is no \S+UCL-index.npy.*index_files=False"):
            load(indexed, index_files=True)

    @pytest.mark.parametrize("wrong", [np.arange(54), np.arange(1, 56), np.zeros(55, int), np.arange(55.0)])
    def test_an_index_of_other_slices_is_refused(self, indexed, wrong):
        np.save(indexed / "prostate_mri" / "HK-index.npy", wrong)
        with pytest.raises(DataError, match=r"HK-index.npy holds .*expected each of 0..54 once"):
            load(indexed, index_files=True)

    @pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"no array"])
    def test_a_damaged_index_is_named(self, indexed, content):
        (indexed / "prostate_mri" / "HK-index.npy").write_bytes(content)
        with pytest.raises(DataError, match=r"HK-index.npy cannot be read"):
            load(indexed, index_files=True)

    def test_nothing_in_an_index_is_executed(self, indexed):
        np.save(indexed / "prostate_mri" / "HK-index.npy", np.array([print], object), allow_pickle=True)
        with pytest.raises(DataError, match=r"HK-index.npy cannot be read"):
            load(indexed, index_files=True)


class TestVolumes:
    def test_channels_are_a_slice_and_its_neighbours(self, tree):
        """Slice i has the grey 20 i, the last 241: of 255, 20 i / 241 rounded down."""
        grey = np.repeat(np.arange(0, 241, 20), SIDE**2).reshape(DEEP, SIDE, SIDE).astype(np.int16)
        grey[-1] = 241
        replace(tree, "Case00", grey, marked((5, 0, 5), (11, 0, 11)))
        federation = load(tree, split="harmofl")
        for number, wanted in {5: (84, 105, 126), 11: (211, 232, 255)}.items():
            image, _ = sample(federation, 0, number)
            assert [channel.unique().tolist() for channel in image] == [[grey] for grey in wanted]

    def test_grey_values_are_clipped_at_the_quantile_of_the_volume(self, tree):
        """Of 5,200 voxels 20 have 5000 and 100 have 200, so 200 is at 0.99: white; -55 is black, 255 levels between."""
        grey = np.full((DEEP, SIDE, SIDE), 72.5, np.float32)
        grey[5, 1:3] = 9.5
        grey[5, 3] = 5000
        grey[5, 4:9] = 200
        grey[12, 0, 0] = -55
        replace(tree, "Case00", grey, marked((5, 0, 5)))
        rows = sample(load(tree, split="harmofl"), 0, 5)[0][1]
        assert [row.unique().tolist() for row in rows[:10]] == [[127], [64], [64], *[[255]] * 6, [127]]

    def test_rows_and_columns_are_those_of_the_file(self, tree):
        """A file counts along x, y, z: the second axis is a picture's row."""
        import nibabel

        grey, mask = noise(), marked((5, 0, 5))
        grey[5, 3, 7] = -3000
        replace(tree, "Case00", grey, mask)
        assert nibabel.load(place(tree) / "Case00.nii.gz").get_fdata()[7, 3, 5] == -3000
        assert sample(load(tree, split="harmofl"), 0, 5)[0][1, 3, 7] == 0

    def test_ends_and_slices_without_prostate_are_left_out(self, tree):
        replace(tree, "Case00", noise(), marked((0, 0, 0), (3, 0, 3), (12, 0, 12)))
        site = load(tree, split="patients").site("HK")
        assert sorted(number for part in SPLITS for volume, number in slices(getattr(site, part)) if volume == 0) == [3]

    def test_two_zones_are_one_prostate(self, whole):
        _, mask = sample(load(whole), 2, 4)
        assert mask.sum() == mask[2, 4] == 1

    def test_a_volume_is_read_with_either_spelling_of_its_mask(self, whole):
        assert len(list(place(whole, "HK").glob("*_Segmentation.nii.gz"))) == 5
        assert len(list(place(whole, "BIDMC").glob("*_segmentation.nii.gz"))) == 5

    def test_resized_masks_are_what_is_half_covered(self, tree):
        """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8: rows 4 and 5 are 3/4 of small
        row 2, row 11 is 3/8 of small row 5, which is not enough."""
        mask = marked()
        mask[6, [4, 5, 11]] = 1
        for number in range(5):
            replace(tree, f"Case{number:02}", noise(), np.maximum(mask, marked(*((i, 4, 0) for i in range(DEEP)))))
        masks = torch.cat([getattr(load(tree, size=10).site("HK"), part).targets for part in SPLITS])
        wide = masks[(masks == 1).all(2).any(1)]
        assert len(masks) == 55 and len(wide) == 5
        assert all((mask == 1).any(1).nonzero().flatten().tolist() == [2] for mask in wide)

    def test_resized_images_are_bilinear(self, tree):
        grey = np.zeros((DEEP, SIDE, SIDE), np.int16)
        grey[:, :, 10:] = 255
        replace(tree, "Case00", grey, marked((5, 4, 0), (5, 4, 1), (5, 5, 0), (5, 5, 1)))
        federation = load(tree, size=10, split="patients")
        columns = [image[1] for part in SPLITS for image in getattr(federation.site("HK"), part).images]
        (wanted,) = [image for image in columns if (image == image[0]).all()]
        assert wanted[0].tolist() == [0, 0, 0, 0, 32, 223, 255, 255, 255, 255]  # 1/8 of the other side

    def test_a_large_mask_leaves_its_volume_out(self, tree, monkeypatch):
        wide = np.random.RandomState(0).randint(0, 2, (DEEP, SIDE, SIDE)).astype(np.uint8)
        replace(tree, "Case03", noise(), wide)
        sizes = [path.stat().st_size for path in (tree / "prostate_mri").glob("*/*egmentation*")]
        monkeypatch.setattr(prostate_mri, "LARGEST_MASK", max(sizes))
        federation = load(tree, split="harmofl")
        assert sum(federation.counts().loc["HK"]) == 44
        text = "HK: left out for a mask of 1 MiB or more: 1 volumes, first Case03_segmentation.nii.gz."
        assert text in federation.notes
        monkeypatch.setattr(prostate_mri, "LARGEST_MASK", 1)
        with pytest.raises(DataError, match="BIDMC: left out .* 5 volumes.* No other is there"):
            load(tree)


class TestBadInput:
    def test_a_site_without_volumes_is_named(self, tree):
        for path in place(tree).iterdir():
            path.unlink()
        (place(tree) / "._Case00.nii.gz").write_bytes(b"what macOS adds")
        assert fednb.datasets.available("prostate_mri", tree) == f"There is no volume in {place(tree)}."

    def test_a_volume_without_its_mask_is_named(self, tree):
        for number in (1, 3):
            (place(tree, "BMC") / f"Case0{number}_Segmentation.nii.gz").unlink()
        with pytest.raises(DataError, match=r"no \S+BMC/Case01_seg\S+ for the volume Case01.nii.gz \(2 such"):
            load(tree)

    def test_a_mask_of_another_size_is_named(self, tree):
        replace(tree, "Case01", noise()[:, :10], marked((5, 1, 5)))
        with pytest.raises(DataError, match=r"Case01_\S+ is 20 x 20 x 13 voxels and its volume 20 x 10 x 13; expected"):
            load(tree)

    @pytest.mark.parametrize("mask", [marked(), marked((0, 4, 4), (12, 4, 4))])
    def test_an_empty_mask_is_named(self, tree, mask):
        replace(tree, "Case01", noise(), mask)
        with pytest.raises(DataError, match=r"HK/Case01_segmentation.nii.gz is empty: none of its 13 slices"):
            load(tree)

    @pytest.mark.parametrize("value", [3, 255, 0.5, -1])
    def test_mask_values_outside_the_classes_are_named(self, tree, value):
        mask = marked((5, 1, 5)).astype(np.float32)
        mask[6, 4, 4] = value
        replace(tree, "Case01", noise(), mask)
        with pytest.raises(DataError, match=rf"Case01_segmentation.nii.gz has the values {value}; expected 0"):
            load(tree)

    @pytest.mark.parametrize("name", ["Case04.nii.gz", "Case04_Segmentation.nii.gz"])
    @pytest.mark.parametrize("left", [0, 10, -30])  # bytes: none, no header, or no end
    def test_a_broken_volume_is_named(self, tree, name, left):
        path = place(tree) / name
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[:left] if left else b"")
        with pytest.raises(DataError, match=rf"HK/{name} cannot be read .*Expected a whole NIfTI volume"):
            load(tree)
        assert [each for each, _ in prostate_mri.damaged(tree)] == [path]

    @pytest.mark.parametrize(
        "grey, message",
        [
            (noise()[0], r"shape is \(20, 20\)"),
            (np.stack([noise(), noise()]), r"shape is \(20, 20, 13, 2\)"),
            (np.where(noise() > 1900, np.nan, 1.0), "voxels that are no numbers"),
            (noise().astype(np.complex64), "Cannot cast"),
            (np.zeros((DEEP, SIDE, SIDE), np.int16), "no contrast: 99 % of its voxels are 0"),
        ],
    )
    def test_what_is_no_volume_of_grey_values(self, tree, grey, message):
        replace(tree, "Case01", grey, marked((5, 1, 5)))
        with pytest.raises(DataError, match=rf"HK/Case01.nii.gz .*{message}"):
            load(tree)

    def test_a_volume_that_claims_to_be_huge_is_refused_unread(self, tree, monkeypatch):
        monkeypatch.setattr(prostate_mri, "MOST_VOXELS", DEEP * SIDE * SIDE - 1)
        with pytest.raises(DataError, match="no volume of up to 5199 voxels"):
            load(tree)

    def test_too_few_slices(self, tree):
        replace(tree, "Case01", noise(), marked((5, 1, 5)))
        with pytest.raises(DataError, match="HK has 45 slices with prostate.*takes 32 for training and twice 9"):
            load(tree)

    def test_too_few_volumes_to_keep_patients_apart(self, tree):
        for path in place(tree).glob("Case04*"):
            path.unlink()
        with pytest.raises(DataError, match="HK has 4 volumes; expected 5 or more"):
            load(tree, split="patients")

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"ratio": 0.0}, "ratio is 0.0"),
            ({"ratio": 0.7}, "ratio is 0.7"),
            ({"ratio": "all"}, "ratio is 'all'"),
            ({"split": "harmofl", "ratio": 0.1}, "Leave ratio or split out"),
            ({"split": "fedrdn"}, 'no split "fedrdn"; .*Known: fedfa, harmofl, patients'),
        ],
    )
    def test_options_out_of_range(self, whole, options, message):
        with pytest.raises(RecipeError, match=message):
            load(whole, **options)

    def test_without_nibabel_the_extra_is_named(self, whole, monkeypatch):
        monkeypatch.setattr(prostate_mri, "find_spec", lambda name: None)
        with pytest.raises(DataError, match=r'nibabel is not installed.*pip install -e "\.\[prostate\]"'):
            load(whole)
        assert "nibabel" in fednb.datasets.available("prostate_mri", whole) and prostate_mri.damaged(whole) == []
