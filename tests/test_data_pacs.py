"""PACS: counts, the cut, what is decoded, and what can be wrong with the folders."""

import hashlib
import os
import shutil
from itertools import combinations

import numpy as np
import pytest

import fednb.data
from fednb.data import _images as images
from fednb.data import pacs
from fednb.data.pacs import CLASSES, DOMAINS
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

# 700 images a domain: 70 are for testing, 63 of the other 630 for validation, and 57 are a tenth of 567.
IMAGES = 100


def load(root, size=4, **options):
    return fednb.data.load("pacs", root, size=size, **options)


def counts(federation) -> dict:
    return {site.name: tuple(len(getattr(site, split)) for split in SPLITS) for site in federation.sites}


def hashes(split) -> set[str]:
    return {hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in split.images}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, picture):
    root = tmp_path_factory.mktemp("pacs")
    number = 0
    for domain in DOMAINS:
        for name in CLASSES:
            for i in range(IMAGES):
                number += 1
                picture(root / "pacs" / domain / name / f"pic_{i:03}.png", number, size=4)
    return root


@pytest.fixture
def tree(whole, tmp_path):
    """A copy without cache that a test may change by removing files: they are links."""
    shutil.copytree(whole, tmp_path / "data", copy_function=os.link, ignore=shutil.ignore_patterns(".fednb_cache"))
    return tmp_path / "data"


class TestCut:
    @pytest.mark.parametrize(
        "options, expected",
        [
            ({}, (57, 63, 70)),
            ({"fraction": 1.0}, (567, 63, 70)),
            ({"fraction": 0.5, "test_fraction": 0.3}, (284, 63, 21)),
        ],
    )
    def test_counts(self, whole, options, expected):
        federation = load(whole, **options)
        assert counts(federation) == dict.fromkeys(DOMAINS, expected)
        assert federation.classes == CLASSES and federation.image_shape == (3, 4, 4)
        for site in federation.sites:
            for split in SPLITS:
                per_class = getattr(site, split).targets.bincount(minlength=7)
                assert per_class.max() - per_class.min() <= 2

    def test_no_image_is_in_two_splits_or_sites(self, whole):
        federation = load(whole, fraction=1.0)
        parts = [hashes(getattr(site, split)) for site in federation.sites for split in SPLITS]
        assert all(not first & second for first, second in combinations(parts, 2))
        assert sum(map(len, parts)) == 4 * 7 * IMAGES

    def test_test_images_are_always_the_same(self, whole):
        one, other = (load(whole, seed=seed).sites[0] for seed in (0, 1))
        assert hashes(one.test) == hashes(other.test)
        assert hashes(one.train) != hashes(other.train) and hashes(one.validation) != hashes(other.validation)

    def test_what_a_fraction_leaves_out_is_handed_over_on_request(self, whole):
        plain, asked, every = (load(whole, **o).sites[0] for o in ({}, {"spare": True}, {"fraction": 1.0}))
        assert plain.spare is None and hashes(asked.train) == hashes(plain.train)
        assert hashes(asked.train) | hashes(asked.spare) == hashes(every.train)
        assert len(asked.train) + len(asked.spare) == len(every.train)
        assert hashes(asked.test) == hashes(plain.test) and hashes(asked.validation) == hashes(plain.validation)

    def test_smaller_fractions_are_inside_larger_ones(self, whole):
        small, large = load(whole, test_fraction=0.5).sites[0], load(whole, fraction=0.4).sites[0]
        assert hashes(small.train) < hashes(large.train) and hashes(small.test) < hashes(large.test)
        assert hashes(small.validation) == hashes(large.validation)

    def test_same_pixels_every_time(self, whole):
        assert load(whole).fingerprint == load(whole).fingerprint != load(whole, seed=1).fingerprint

    def test_labels_are_those_of_the_folders(self, whole):
        site = load(whole).site("photo")
        on_disk = {
            images.decode(file, 4)[0].tobytes(): number
            for number, name in enumerate(CLASSES)
            for file in images.files(whole / "pacs" / "photo" / name)
        }
        for split in SPLITS:
            part = getattr(site, split)
            for image, target in zip(part.images, part.targets, strict=True):
                assert on_disk[image.numpy().tobytes()] == target

    def test_only_images_in_use_are_decoded_and_only_once(self, tree, monkeypatch):
        decoded = []
        decode = images.decode
        monkeypatch.setattr(images, "decode", lambda path, *how: decoded.append(path) or decode(path, *how))
        cold = load(tree)
        assert len(decoded) == len(set(decoded)) == 4 * (57 + 63 + 70)
        assert load(tree).fingerprint == cold.fingerprint and len(decoded) == 4 * (57 + 63 + 70)


class TestNotes:
    def test_the_lists_are_ours_and_the_files_may_be_smaller(self, whole, monkeypatch):
        lists, files = load(whole).notes
        assert "own lists are not used" in lists and files == "Files of 4 x 4 pixels; PACS' own are 227 x 227."
        monkeypatch.setattr(pacs, "SIDE", 4)
        assert load(whole).notes == (lists,)


class TestBadInput:
    def test_missing_domains_are_named(self, tree):
        for domain in ("photo", "sketch"):
            shutil.rmtree(tree / "pacs" / domain)
        with pytest.raises(DataError, match=r"no folder \S+photo, \S+sketch\. Expected: PACS"):
            load(tree)
        assert "sketch" in fednb.data.available("pacs", tree)

    def test_a_missing_class_is_named(self, tree):
        shutil.rmtree(tree / "pacs" / "photo" / "guitar")
        with pytest.raises(DataError, match=r"no folder \S+guitar\."):
            load(tree)

    def test_a_class_without_images_is_named(self, tree):
        for file in (tree / "pacs" / "photo" / "guitar").iterdir():
            file.unlink()
        with pytest.raises(DataError, match=r"photo/guitar has no images"):
            load(tree)

    def test_a_corrupt_image_is_named(self, tree):
        for file in (tree / "pacs" / "cartoon" / "dog").iterdir():
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content[:-30])
        with pytest.raises(DataError, match=r"dog/pic_\d+\.png cannot be decoded"):
            load(tree)

    @pytest.mark.parametrize("option", ["fraction", "test_fraction"])
    @pytest.mark.parametrize("share", [0, -0.1, 1.5, "0.1"])
    def test_fractions_out_of_range(self, whole, option, share):
        with pytest.raises(RecipeError, match=f"{option} is {share!r}"):
            load(whole, **{option: share})

    @pytest.mark.parametrize("options", [{"fraction": 0.0005}, {"test_fraction": 0.005}])
    def test_a_fraction_that_leaves_nothing(self, whole, options):
        with pytest.raises(RecipeError, match=r"art_painting is left with .* Enlarge them"):
            load(whole, **options)

    def test_described_by_domain(self, tree):
        assert pacs.describe(tree)[:2] == ["ready", "art_painting: 700 images (complete: 2048)"]
        shutil.rmtree(tree / "pacs" / "sketch")
        assert "no folder" in pacs.describe(tree)[0] and pacs.describe(tree)[-1] == "sketch: 0 images (complete: 3929)"


class TestReal:
    @pytest.fixture
    def root(self, real_data):
        if problem := fednb.data.available("pacs", real_data):
            pytest.skip(problem)
        return real_data

    def test_counts_per_site_and_class(self, root):
        assert pacs.describe(root) == [
            "ready",
            *(f"{domain}: {complete} images (complete: {complete})" for domain, complete in DOMAINS.items()),
        ]
        federation = load(root, size=16)
        assert counts(federation) == {
            "art_painting": (166, 184, 205),
            "cartoon": (190, 211, 234),
            "photo": (135, 150, 167),
            "sketch": (318, 354, 393),
        }
        # A tenth of the training images: 0.081 of each class on disk, such as 379 dogs in paintings.
        on_disk = [len(images.files(root / "pacs" / "art_painting" / name)) for name in CLASSES]
        found = federation.sites[0].train.targets.bincount(minlength=7).numpy()
        assert np.abs(found - 0.081 * np.array(on_disk)).max() < 1.5
