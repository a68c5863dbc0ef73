"""Prostate MRI: the papers' counts, the cuts, what becomes of a volume, and what can be wrong with the files."""

from itertools import combinations

import loaders
import numpy as np
import pytest
import torch

import fednb.datasets
from fednb import papers
from fednb.datasets import prostate_mri
from fednb.datasets.prostate_mri import SITES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

SIDE, DEEP = 20, 13
SLICES = {"BIDMC": 261, "HK": 157, "I2CVB": 468, "BMC": 384, "RUNMC": 411, "UCL": 175}  # in FedFA's released indices
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
    for part in (getattr(federation.site(site), split) for split in SPLITS):
        if (volume, number) in slices(part):
            at = slices(part).index((volume, number))
            return part.images[at], part.targets[at]
    raise AssertionError(f"no slice {number} of volume {volume}")


def cut(name: str, split: str, ratio: float) -> list[int]:
    """How many slices of the published site are in each part."""
    return [len(part) for part in prostate_mri._cut(name, split, ratio, np.arange(SLICES[name]), None)]


def test_the_counts_that_fedfa_prints_and_of_harmofls_code():
    printed = papers.settings("fedfa")["printed"]
    assert {name.lower(): cut(name, "fedfa", 0.6) for name in SITES} == printed["images_prostate_mri"]["value"]
    mini = printed["images_mini_prostate_mri"]["value"]
    assert {name.lower(): cut(name, "fedfa", 0.1)[0] for name in SITES} == mini
    assert cut("BIDMC", "harmofl", 0.6) == [167, 41, 53]  # of 261: 0.64 is 167.04, 0.8 is 208.8
    assert cut("UCL", "harmofl", 0.6) == [112, 28, 35]  # of 175: 112 and 140, exactly


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, (33, 11, 11)),
        ({"split": "harmofl"}, (35, 9, 11)),  # of 55: 35.2 and 44
        ({"split": "patients", "ratio": 0.3}, (32, 11, 11)),  # 32 at least
    ],
)
def test_every_slice_with_prostate_is_in_one_split_and_knows_its_volume(files_of, options, wanted):
    federation = load(files_of("prostate_mri"), **options)
    assert loaders.counts(federation) == dict.fromkeys(SITES, wanted) and federation.task == "segmentation"
    by_patient = options.get("split") == "patients"
    if not options:  # a smaller ratio tests on the same slices
        full, mini = federation.site("UCL"), load(files_of("prostate_mri"), ratio=0.1).site("UCL")
        assert slices(full.test) == slices(mini.test) and slices(full.train)[:32] == slices(mini.train)
    for site in federation.sites:
        parts = [slices(getattr(site, part)) for part in SPLITS]
        assert {*sum(parts, [])} <= USED and len({*sum(parts, [])}) == sum(wanted)
        for part, found in zip(SPLITS, parts, strict=True):
            assert getattr(site, part).volumes.tolist() == [volume for volume, _ in found]
        patients = [{volume for volume, _ in part} for part in parts]
        assert by_patient != any(one & other for one, other in combinations(patients, 2))
    assert by_patient != any("slices of one patient in training and in test" in note for note in federation.notes)


class TestVolumes:
    def test_channels_are_a_slice_and_its_neighbours(self, tree):
        """Slice i has the grey 20 i, the last 241: of 255, 20 i / 241 rounded down."""
        grey = np.repeat(np.arange(0, 241, 20), SIDE**2).reshape(DEEP, SIDE, SIDE).astype(np.int16)
        grey[-1] = 241
        replace(tree, "Case00", grey, marked((0, 0, 0), (5, 0, 5), (11, 0, 11), (12, 0, 12)))
        federation = load(tree, split="patients")
        for number, wanted in {5: (84, 105, 126), 11: (211, 232, 255)}.items():
            image, _ = sample(federation, 0, number)
            assert [channel.unique().tolist() for channel in image] == [[grey] for grey in wanted]
        parts = (slices(getattr(federation.site("HK"), part)) for part in SPLITS)
        assert sorted(number for part in parts for volume, number in part if volume == 0) == [5, 11]  # no ends

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
        """A file counts along x, y, z: the second axis is a picture's row. Two zones are one prostate."""
        import nibabel

        grey, mask = noise(), 2 * marked((5, 0, 5))
        grey[5, 3, 7] = -3000
        replace(tree, "Case00", grey, mask)
        assert nibabel.load(place(tree) / "Case00.nii.gz").get_fdata()[7, 3, 5] == -3000
        image, found = sample(load(tree, split="harmofl"), 0, 5)
        assert image[1, 3, 7] == 0 and found.sum() == found[0, 5] == 1

    def test_resized_masks_are_what_is_half_covered_and_images_bilinear(self, tree):
        """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8: rows 4 and 5 are 3/4 of small
        row 2, row 11 is 3/8 of small row 5, which is not enough."""
        mask, grey = marked(), np.zeros((DEEP, SIDE, SIDE), np.int16)
        mask[6, [4, 5, 11]] = 1
        grey[:, :, 10:] = 255
        for number in range(5):
            replace(tree, f"Case{number:02}", grey, np.maximum(mask, marked(*((i, 4, 0) for i in range(DEEP)))))
        site = load(tree, size=10).site("HK")
        masks = torch.cat([getattr(site, part).targets for part in SPLITS])
        wide = masks[(masks == 1).all(2).any(1)]
        assert len(masks) == 55 and len(wide) == 5
        assert all((mask == 1).any(1).nonzero().flatten().tolist() == [2] for mask in wide)
        assert site.train.images[0, 1, 0].tolist() == [0, 0, 0, 0, 32, 223, 255, 255, 255, 255]  # 1/8 of the other side

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


@pytest.mark.parametrize(
    "grey, mask, message",
    [
        (noise(), None, r"no \S+Case01_segmentation\S+ \(1 such"),
        (noise()[:, :10], marked((5, 1, 5)), r"has 20 x 10 x 13 voxels.* 20 x 20 x 13 .*; expected"),
        (noise(), marked((0, 4, 4), (12, 4, 4)), "values 0, 1, empty; expected"),
        (noise(), np.float32(0.5) * marked((5, 1, 5)), "values 0, 0.5; expected"),
        (noise(), np.int16(-1) * marked((5, 1, 5)), "values -1, 0; expected"),
        (np.stack([noise(), noise()]), marked((5, 1, 5)), r"shape is \(20, 20, 13, 2\)"),
        (np.where(noise() > 1900, np.nan, 1.0), marked((5, 1, 5)), "voxels that are no numbers"),
        (noise().astype(np.complex64), marked((5, 1, 5)), "Cannot cast"),
        (np.zeros((DEEP, SIDE, SIDE), np.int16), marked((5, 1, 5)), "voxels from 0 to 0"),
    ],
)
def test_what_is_no_volume_or_mask_is_named(tree, grey, mask, message):
    replace(tree, "Case01", grey, mask)
    with pytest.raises(DataError, match=rf"HK/Case01\S* .*{message}|{message}"):
        load(tree)


def test_too_few_slices_or_no_volume(tree):
    replace(tree, "Case01", noise(), marked((5, 1, 5)))
    with pytest.raises(DataError, match='HK has 45 slices with prostate, too few for split="fedfa"'):
        load(tree)
    for path in place(tree, "BIDMC").iterdir():
        path.unlink()
    (place(tree, "BIDMC") / "._Case00.nii.gz").write_bytes(b"what macOS adds")
    assert fednb.datasets.available("prostate_mri", tree) == f"There is no volume in {place(tree, 'BIDMC')}."


def test_options_out_of_range_and_without_nibabel(files_of, monkeypatch):
    for ratio in (0.0, 0.7, "all"):
        with pytest.raises(RecipeError, match=f"ratio is {ratio!r}"):
            load(files_of("prostate_mri"), ratio=ratio)
    with pytest.raises(RecipeError, match="Leave ratio or split out"):
        load(files_of("prostate_mri"), split="harmofl", ratio=0.1)
    monkeypatch.setattr(prostate_mri, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"nibabel is not installed.*\[prostate\]"):
        load(files_of("prostate_mri"))
