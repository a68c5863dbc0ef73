"""Federations: what they refuse, what they note, and what their fingerprint depends on."""

import hashlib
import pickle

import pytest
import torch

from fednb.errors import DataError
from fednb.federation import SPLITS, Federation, Site, Split, twice


def split(count=3, shape=(3, 4, 5), targets=None, seed=0) -> Split:
    images = torch.randint(0, 256, (count, *shape), generator=torch.Generator().manual_seed(seed))
    targets = torch.arange(count) % 2 if targets is None else torch.tensor(targets, dtype=torch.int64)
    return Split(images.to(torch.uint8), targets)


def site(name="a", **splits) -> Site:
    return Site(name, *(splits.get(part, split()) for part in ("train", "validation", "test")))


def federation(*sites, classes=("cat", "dog"), notes=()) -> Federation:
    return Federation("toy", sites or (site("a"), site("b")), classes, notes)


@pytest.mark.parametrize(
    ("images", "targets", "message"),
    [
        (torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64), "images are torch.float32"),
        (torch.zeros(3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), r"\[3, 4, 4\]"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2), "targets are torch.float32"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), "for 2 images"),
    ],
)
def test_tensors_of_another_kind_are_refused(images, targets, message):
    with pytest.raises(DataError, match=message):
        Split(images, targets)


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([], "has no sites"),
        ([site("a"), site("a")], "two sites of one name: a, a"),
        ([site("a"), site("b", train=split(0))], "site b of toy has no training images"),
        ([site("a"), site("b", test=split(shape=(3, 4, 6)))], r"images of b / test are \[3, 4, 6\], those of a"),
        ([site("a", validation=split(targets=[0, 1, 2]))], "labels of a / validation run from 0 to 2; expected 0..1"),
        ([site("a", test=split(targets=[0, -1, 0]))], "labels of a / test run from -1 to 0"),
    ],
)
def test_wrong_sites_are_refused(sites, message):
    with pytest.raises(DataError, match=message):
        Federation("toy", sites, ("cat", "dog"))


def test_a_class_that_a_site_lacks_becomes_a_note():
    lacking = site("b", train=split(targets=[1, 1, 1]))
    assert federation(site("a"), lacking, notes=("first",)).notes == ("first", "b has no training image of cat.")
    assert federation().notes == ()
    assert federation(site("a"), lacking).to("cpu").notes == ("b has no training image of cat.",)


def test_counts_shape_and_sites():
    made = federation(site("a"), site("b", test=split(7)))
    assert made.image_shape == (3, 4, 5)
    assert made.counts().to_dict("index") == {
        "a": {"train": 3, "validation": 3, "test": 3},
        "b": {"train": 3, "validation": 3, "test": 7},
    }
    assert made.site("b").name == "b"
    with pytest.raises(DataError, match='no site "amazone"; did you mean "amazon"'):
        federation(site("amazon"), site("dslr")).site("amazone")


def test_select_takes_positions_in_their_order():
    whole = split(5)
    chosen = whole.select([4, 0, 4])
    assert len(chosen) == 3
    assert torch.equal(chosen.images, whole.images[[4, 0, 4]]) and chosen.targets.tolist() == [0, 0, 0]


def test_the_volumes_of_slices_go_along():
    whole = Split(*split(4).parts[:2], torch.tensor([7, 7, 0, 2]))
    assert whole.select([3, 0]).volumes.tolist() == [2, 7] and whole.to("cpu").volumes.tolist() == [7, 7, 0, 2]
    assert split(4).volumes is split(4).select([0]).volumes is split(4).to("cpu").volumes is None
    tested = [
        federation(site(test=Split(*split().parts[:2], numbers)))
        for numbers in (None, torch.arange(3), torch.ones(3).long())
    ]
    assert len({made.fingerprint for made in tested}) == 3


@pytest.mark.parametrize("volumes", [torch.arange(3), torch.zeros(4)])
def test_volumes_that_are_not_one_number_a_slice_are_refused(volumes):
    with pytest.raises(DataError, match=r"volumes are torch.* for 4 images; expected int64 \[4\]"):
        Split(*split(4).parts[:2], volumes)


def test_slices_reach_another_process_with_their_volumes():
    whole = Split(*split(4).parts[:2], torch.tensor([7, 7, 0, 2]))
    for part in (whole, split(4)):
        there = pickle.loads(pickle.dumps(part))
        assert [type(a) for a in there.parts] == [type(a) for a in part.parts]
        assert all(torch.equal(a, b) for a, b in zip(there.parts, part.parts, strict=True) if a is not None)


def test_the_fingerprint_is_of_pixels_labels_names_and_their_order():
    made = federation()
    assert made.fingerprint == federation().fingerprint and len(made.fingerprint) == 16
    image = split()
    image.images[0, 0, 0, 0] += 1
    others = [
        federation(site("a"), site("b", test=image)),
        federation(site("a"), site("b", test=split(targets=[1, 1, 0]))),
        federation(site("a"), site("c")),
        federation(site("b"), site("a")),
        federation(classes=("dog", "cat")),
        federation(site("a"), site("b", train=split(4))),
    ]
    assert len({made.fingerprint, *(other.fingerprint for other in others)}) == 7
    untested, unvalidated = (federation(site("a", **{part: split(0)})) for part in ("test", "validation"))
    assert untested.fingerprint != unvalidated.fingerprint
    assert made.to("cpu").fingerprint == made.fingerprint
    noncontiguous = Split(image.images.contiguous(memory_format=torch.channels_last), image.targets)
    assert federation(site("a"), site("b", test=noncontiguous)).fingerprint == others[0].fingerprint


def masked(values=((0, 1), (1, 255)), count=2, shape=(3, 2, 2)) -> Split:
    """Images of 2 x 2 with this mask each."""
    masks = torch.tensor(values, dtype=torch.uint8).expand(count, -1, -1)
    return Split(torch.zeros(count, *shape, dtype=torch.uint8), masks)


def segmented(**splits) -> Federation:
    parts = [splits.get(part, masked()) for part in ("train", "validation", "test")]
    return Federation("eyes", (Site("a", *parts),), ("background", "vessel"), task="segmentation")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: masked(shape=(3, 2, 3)), r"uint8 \[2, 2, 2\] for 2 images.*uint8 \[2, 2, 3\]"),
        (
            lambda: segmented(test=masked(((0, 2), (1, 255)))),
            "run from 0 to 2; expected 0..1 .*, or 255",
        ),
        (
            lambda: segmented(test=masked(((255, 255), (255, 255)))),
            r"are 255 \(ignored\) in every pixel of image 0",
        ),
        (
            lambda: Federation("eyes", (site(),), ("a", "b"), task="segmentation"),
            "one class number per image, and",
        ),
        (lambda: Federation("eyes", segmented().sites, ("a", "b")), "per pixel, and the task is classification"),
        (lambda: Federation("eyes", (site(),), ("a", "b"), task="segmentaton"), 'did you mean "segmentation"'),
    ],
)
def test_masks_that_do_not_fit_are_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()


def test_a_site_without_a_pixel_of_a_class_is_noted():
    assert segmented().notes == ()
    assert segmented(train=masked(((0, 0), (0, 255)))).notes == ("a has no training pixel of vessel.",)


def test_the_fingerprint_of_a_classification_is_that_of_old_records():
    """SHA-256 of names and classes, then pixels and labels: worked out without the class."""
    digest = hashlib.sha256(b"a\nb\ncat\ndog")
    for part in 6 * [split()]:
        digest.update(part.images.numpy().tobytes() + part.targets.numpy().tobytes())
    assert federation().fingerprint == digest.hexdigest()[:16]
    assert segmented().fingerprint != segmented(test=masked(((0, 1), (1, 0)))).fingerprint


def test_many_sites_without_a_class_are_one_note():
    lacking = split(targets=[0, 0, 0])
    sites = tuple(Site(f"site {number}", lacking, lacking, lacking) for number in range(5))
    assert Federation("made", sites, ("a", "b")).notes == ("5 of 5 sites have no training image of some class.",)
    assert len(Federation("made", sites[:4], ("a", "b")).notes) == 4


def test_an_image_that_is_in_two_splits_is_a_note():
    other = split(seed=1)
    assert twice(
        [site("a", validation=split(0), test=other), site("b", **dict.fromkeys(SPLITS, split(2, seed=2)))]
    ) == ["4 images are there twice, the first in b / train and b / validation."]
    assert twice([site("a", validation=split(0), test=other)]) == []
