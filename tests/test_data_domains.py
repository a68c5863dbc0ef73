"""PACS and Office-Home: counts, the cut, what a fraction leaves out, and notes."""

import pytest
from loaders import counts, different, drawings, things

import fednb.datasets
from fednb.datasets import office_home, pacs
from fednb.errors import RecipeError
from fednb.federation import SPLITS

MODULES = {"pacs": pacs, "office_home": office_home}


def load(name, root, size=4, **options):
    return fednb.datasets.load(name, root, size=size, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Of PACS 700 images a domain: 70 are for testing, 63 of the other 630 for validation, and 57 are a tenth of 567.
    Of Office-Home 650: 65 are for testing, 59 of the other 585 for validation, and 53 are a tenth of 526."""
    root = tmp_path_factory.mktemp("domains")
    things(root, each=10)
    drawings(root, each=100)
    return root


@pytest.mark.parametrize(
    "name, options, expected",
    [
        ("pacs", {}, (57, 63, 70)),
        ("pacs", {"fraction": 0.5, "test_fraction": 0.3}, (284, 63, 21)),
        ("office_home", {"fraction": 1.0}, (526, 59, 65)),
        ("office_home", {"test_fraction": 0.2}, (53, 59, 13)),
    ],
)
def test_counts(whole, name, options, expected):
    federation, module = load(name, whole, **options), MODULES[name]
    assert counts(federation) == dict.fromkeys(module.DOMAINS, expected)
    for part in (getattr(site, split) for site in federation.sites for split in SPLITS):
        per_class = part.targets.bincount(minlength=len(module.CLASSES))
        assert per_class.max() - per_class.min() <= 2


@pytest.mark.parametrize("name", MODULES)
def test_what_a_fraction_leaves_out_is_handed_over_on_request(whole, name):
    plain, asked, every = (load(name, whole, **o).sites[3] for o in ({}, {"spare": True}, {"fraction": 1.0}))
    assert plain.spare is None and different(asked.train) == different(plain.train)
    assert different(asked.train) | different(asked.spare) == different(every.train)
    assert len(asked.train) + len(asked.spare) == len(every.train)
    assert different(asked.test, asked.validation) == different(plain.test, plain.validation)


def test_a_fraction_that_leaves_nothing_and_files_of_another_size(whole):
    for options in ({"fraction": 0.0005}, {"test_fraction": 0.005}):
        with pytest.raises(RecipeError, match="art_painting is left with .* Enlarge them"):
            load("pacs", whole, **options)
    assert load("pacs", whole).notes == (pacs.NOTE, "Files of 6 x 6 pixels; PACS' own are 227 x 227.")
    names = office_home.CLASSES  # as torchvision's ImageFolder numbers them
    assert len(set(names)) == 65 and list(names) == sorted(names)


def test_counts_of_the_real_pacs(real_data):
    if problem := fednb.datasets.available("pacs", real_data):
        pytest.skip(problem)
    federation = load("pacs", real_data, size=16)
    assert counts(federation) == {
        "art_painting": (166, 184, 205),
        "cartoon": (190, 211, 234),
        "photo": (135, 150, 167),
        "sketch": (318, 354, 393),
    }
