"""PACS and Office-Home: counts, the cut, what a fraction leaves out, and notes."""

from dataclasses import replace

import loaders
import numpy as np
import pytest
from loaders import counts, different

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import office_home, pacs
from fednb.errors import RecipeError
from fednb.federation import SPLITS

MODULES = {"pacs": pacs, "office_home": office_home}
both = pytest.mark.parametrize("name", MODULES)


def load(name, root, size=4, **options):
    return fednb.datasets.load(name, root, size=size, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Of PACS 700 images a domain: 70 are for testing, 63 of the other 630 for validation, and 57 are a tenth of 567.
    Of Office-Home 650: 65 are for testing, 59 of the other 585 for validation, and 53 are a tenth of 526."""
    root = tmp_path_factory.mktemp("fraction")
    loaders.things(root, each=10)
    for number in range(4 * 7 * 100):
        domain, name = list(pacs.DOMAINS)[number % 4], pacs.CLASSES[number // 4 % 7]
        loaders.picture(root / "pacs" / domain / name / f"{number:04}.png", number, size=4)
    return root


class TestCut:
    @pytest.mark.parametrize(
        "name, options, expected",
        [
            ("pacs", {}, (57, 63, 70)),
            ("pacs", {"fraction": 1.0}, (567, 63, 70)),
            ("pacs", {"fraction": 0.5, "test_fraction": 0.3}, (284, 63, 21)),
            ("office_home", {}, (53, 59, 65)),
            ("office_home", {"fraction": 1.0}, (526, 59, 65)),
            ("office_home", {"test_fraction": 0.2}, (53, 59, 13)),
        ],
    )
    def test_counts(self, whole, name, options, expected):
        federation, module = load(name, whole, **options), MODULES[name]
        assert counts(federation) == dict.fromkeys(module.DOMAINS, expected)
        assert federation.classes == module.CLASSES and federation.image_shape == (3, 4, 4)
        for part in (getattr(site, split) for site in federation.sites for split in SPLITS):
            per_class = part.targets.bincount(minlength=len(module.CLASSES))
            assert per_class.max() - per_class.min() <= 2

    @pytest.mark.parametrize("name, each, tested", [("pacs", 100, 10), ("office_home", 10, 1)])
    def test_every_image_is_used_and_every_class_is_tested(self, whole, name, each, tested):
        classes = len(MODULES[name].CLASSES)
        for site in load(name, whole, fraction=1.0).sites:
            assert site.test.targets.bincount(minlength=classes).tolist() == [tested] * classes
            held = sum(getattr(site, split).targets.bincount(minlength=classes) for split in SPLITS)
            assert held.tolist() == [each] * classes
            assert sum(len(different(getattr(site, split))) for split in SPLITS) == each * classes

    @both
    def test_what_a_fraction_leaves_out_is_handed_over_on_request(self, whole, name):
        plain, asked, every = (load(name, whole, **o).sites[3] for o in ({}, {"spare": True}, {"fraction": 1.0}))
        assert plain.spare is None and different(asked.train) == different(plain.train)
        assert different(asked.train) | different(asked.spare) == different(every.train)
        assert len(asked.train) + len(asked.spare) == len(every.train)
        assert different(asked.test) == different(plain.test) and different(asked.validation) == different(
            plain.validation
        )

    @both
    def test_smaller_fractions_are_inside_larger_ones(self, whole, name):
        small, large = load(name, whole, test_fraction=0.5).sites[0], load(name, whole, fraction=0.4).sites[0]
        assert different(small.train) < different(large.train) and different(small.test) < different(large.test)
        assert different(small.validation) == different(large.validation)

    @both
    def test_the_order_of_a_listing_does_not_matter(self, whole, name, monkeypatch):
        expected = load(name, whole).fingerprint
        listing = images.Path.iterdir
        monkeypatch.setattr(images.Path, "iterdir", lambda self: reversed(list(listing(self))))
        assert load(name, whole).fingerprint == expected

    @both
    @pytest.mark.parametrize("options", [{"fraction": 0.0005}, {"test_fraction": 0.005}])
    def test_a_fraction_that_leaves_nothing(self, whole, name, options):
        first = next(iter(MODULES[name].DOMAINS))
        with pytest.raises(RecipeError, match=f"{first} is left with .* Enlarge them"):
            load(name, whole, **options)


class TestNotes:
    def test_the_lists_are_ours_and_the_files_may_be_smaller(self, whole):
        lists, files = load("pacs", whole).notes
        assert "own lists are not used" in lists and files == "Files of 4 x 4 pixels; PACS' own are 227 x 227."
        assert replace(pacs.DATA, side=4).load(whole, size=4).notes == (lists,)

    def test_other_numbers_than_office_homes(self, whole, monkeypatch):
        notes = load("office_home", whole).notes
        assert "has no lists" in notes[0] and "Real World has 650 images; Office-Home's has 4357." in notes
        for site, (folder, _) in office_home.DOMAINS.items():
            monkeypatch.setitem(office_home.DOMAINS, site, (folder, 650))
        assert not any("Office-Home's has" in note for note in load("office_home", whole).notes)

    def test_of_the_published_images(self):
        assert sum(complete for _, complete in office_home.DOMAINS.values()) == 15588
        names = office_home.CLASSES  # as torchvision's ImageFolder numbers them
        assert len(set(names)) == 65 and list(names) == sorted(names)


def test_counts_of_the_real_pacs(real_data):
    if problem := fednb.datasets.available("pacs", real_data):
        pytest.skip(problem)
    assert pacs.describe(real_data) == [
        "ready",
        *(f"{domain}: {complete} images (complete: {complete})" for domain, complete in pacs.DOMAINS.items()),
    ]
    federation = load("pacs", real_data, size=16)
    assert counts(federation) == {
        "art_painting": (166, 184, 205),
        "cartoon": (190, 211, 234),
        "photo": (135, 150, 167),
        "sketch": (318, 354, 393),
    }
    # A tenth of the training images: 0.081 of each class on disk, such as 379 dogs in paintings.
    on_disk = [len(images.files(real_data / "pacs" / "art_painting" / name)) for name in pacs.CLASSES]
    found = federation.sites[0].train.targets.bincount(minlength=7).numpy()
    assert np.abs(found - 0.081 * np.array(on_disk)).max() < 1.5
