"""Office-Home: counts, the cut, what a fraction leaves out, and what can be wrong with the folders."""

import hashlib
import os
import shutil
from itertools import combinations

import loaders
import pytest

import fednb.data
from fednb.data import _images as images
from fednb.data import office_home
from fednb.data.office_home import CLASSES, DOMAINS
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS


def load(root, size=4, **options):
    return fednb.data.load("office_home", root, size=size, **options)


def counts(federation) -> dict:
    return {site.name: tuple(len(getattr(site, split)) for split in SPLITS) for site in federation.sites}


def hashes(split) -> set[str]:
    return {hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in split.images}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """650 images a domain: 65 are for testing, 59 of the other 585 for validation, and 53 are a tenth of 526."""
    root = tmp_path_factory.mktemp("office_home")
    loaders.things(root, each=10)
    return root


@pytest.fixture
def tree(whole, tmp_path):
    """A copy that a test may change by removing files: they are links."""
    shutil.copytree(whole, tmp_path / "data", copy_function=os.link, ignore=shutil.ignore_patterns(".fednb_cache"))
    return tmp_path / "data"


class TestCut:
    @pytest.mark.parametrize(
        "options, expected",
        [({}, (53, 59, 65)), ({"fraction": 1.0}, (526, 59, 65)), ({"test_fraction": 0.2}, (53, 59, 13))],
    )
    def test_counts(self, whole, options, expected):
        federation = load(whole, **options)
        assert counts(federation) == dict.fromkeys(("art", "clipart", "product", "real"), expected)
        assert len(federation.classes) == 65 and federation.image_shape == (3, 4, 4)

    def test_every_class_is_tested(self, whole):
        for site in load(whole, fraction=1.0).sites:
            assert site.test.targets.bincount(minlength=65).tolist() == [1] * 65
            held = sum(getattr(site, split).targets.bincount(minlength=65) for split in SPLITS)
            assert held.tolist() == [10] * 65

    def test_no_image_is_in_two_splits_or_sites(self, whole):
        site_parts = [site.parts for site in load(whole, spare=True).sites]
        parts = [hashes(part) for parts in site_parts for part in parts]
        assert all(not first & second for first, second in combinations(parts, 2))
        assert sum(map(len, parts)) == 4 * 650

    def test_what_a_fraction_leaves_out_is_handed_over_on_request(self, whole):
        plain, asked, every = (load(whole, **o).sites[3] for o in ({}, {"spare": True}, {"fraction": 1.0}))
        assert plain.spare is None and hashes(asked.train) == hashes(plain.train)
        assert hashes(asked.train) | hashes(asked.spare) == hashes(every.train) and len(asked.spare) == 526 - 53

    def test_test_images_are_always_the_same(self, whole):
        one, other = (load(whole, seed=seed).sites[0] for seed in (0, 1))
        assert hashes(one.test) == hashes(other.test)
        assert hashes(one.train) != hashes(other.train) and hashes(one.validation) != hashes(other.validation)

    def test_the_order_of_a_listing_does_not_matter(self, whole, monkeypatch):
        expected = load(whole).fingerprint
        listing = images.Path.iterdir
        monkeypatch.setattr(images.Path, "iterdir", lambda self: reversed(list(listing(self))))
        assert load(whole).fingerprint == expected

    def test_labels_are_those_of_the_folders(self, whole):
        site = load(whole).site("real")
        on_disk = {
            images.decode(file, 4)[0].tobytes(): number
            for number, name in enumerate(CLASSES)
            for file in images.files(whole / "office_home" / "Real World" / name)
        }
        for split in SPLITS:
            part = getattr(site, split)
            for image, target in zip(part.images, part.targets, strict=True):
                assert on_disk[image.numpy().tobytes()] == target


class TestCounts:
    def test_of_the_published_images(self):
        assert sum(complete for _, complete in DOMAINS.values()) == 15588
        assert len(set(CLASSES)) == 65 and list(CLASSES) == sorted(CLASSES)  # as torchvision's ImageFolder numbers them

    def test_other_numbers_are_noted(self, whole, monkeypatch):
        notes = load(whole).notes
        assert "has no lists" in notes[0] and "Real World has 650 images; Office-Home's has 4357." in notes
        monkeypatch.setattr(office_home, "DOMAINS", {site: (folder, 650) for site, (folder, _) in DOMAINS.items()})
        assert not any("Office-Home's has" in note for note in load(whole).notes)

    def test_described_by_domain(self, tree):
        assert office_home.describe(tree)[:2] == ["ready", "Art: 650 images (complete: 2427)"]
        shutil.rmtree(tree / "office_home" / "Real World")
        lines = office_home.describe(tree)
        assert "no folder" in lines[0] and lines[-1] == "Real World: 0 images (complete: 4357)"


class TestBadInput:
    def test_a_missing_domain_is_named(self, tree):
        shutil.rmtree(tree / "office_home" / "Real World")
        with pytest.raises(DataError, match=r"no folder \S+Real World\. Expected: Office-Home"):
            load(tree)
        assert "Real World" in fednb.data.available("office_home", tree)

    def test_a_missing_class_is_named(self, tree):
        shutil.rmtree(tree / "office_home" / "Art" / "ToothBrush")
        with pytest.raises(DataError, match=r"no folder \S+ToothBrush\."):
            load(tree)

    def test_a_class_without_images_is_named(self, tree):
        for file in (tree / "office_home" / "Art" / "Mop").iterdir():
            file.unlink()
        with pytest.raises(DataError, match="Art/Mop has no images"):
            load(tree)

    def test_a_corrupt_image_is_named(self, tree):
        for file in (tree / "office_home" / "Clipart" / "Soda").iterdir():
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content[:-30])
        with pytest.raises(DataError, match=r"Soda/\d+\.png cannot be decoded"):
            load(tree)

    @pytest.mark.parametrize("option", ["fraction", "test_fraction"])
    def test_shares_out_of_range(self, whole, option):
        with pytest.raises(RecipeError, match=f"{option} is 0"):
            load(whole, **{option: 0})
        with pytest.raises(RecipeError, match="art is left with .* Enlarge them"):
            load(whole, **{option: 0.0005})
