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
    return Site(name, *(splits.get(part, split()) for part in SPLITS))


def federation(*sites, classes=("cat", "dog"), notes=()) -> Federation:
    return Federation("toy", sites or (site("a"), site("b")), classes, notes)


def masked(values=((0, 1), (1, 255)), shape=(3, 2, 2)) -> Split:
    """Two images of 2 x 2 with this mask each."""
    masks = torch.tensor(values, dtype=torch.uint8).expand(2, -1, -1)
    return Split(torch.zeros(2, *shape, dtype=torch.uint8), masks)


def segmented(**splits) -> Federation:
    parts = [splits.get(part, masked()) for part in SPLITS]
    return Federation("eyes", (Site("a", *parts),), ("background", "vessel"), task="segmentation")


PIXELS, LABELS = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Split(PIXELS.float(), LABELS), "images are torch.float32"),
        (lambda: Split(PIXELS[:, 0], LABELS), r"\[2, 4, 4\]"),
        (lambda: Split(PIXELS, LABELS.float()), "targets torch.float32"),
        (lambda: Split(PIXELS, LABELS[:1]), r"targets torch.int64 \[1\]"),
        (lambda: masked(shape=(3, 2, 3)), r"\[2, 3, 2, 3\], targets torch.uint8 \[2, 2, 2\]"),
        (lambda: Federation("toy", (), ("cat", "dog")), "toy has the sites .*; expected one at least"),
        (lambda: federation(site("a"), site("a")), "has the sites .'a', 'a'.; expected"),
        (lambda: federation(site("a"), site("b", train=split(0))), "site b of toy has no training images"),
        (
            lambda: federation(site("a"), site("b", test=split(shape=(3, 4, 6)))),
            r"b / test are \[3, 4, 6\] .*; expected \[3, 4, 5\] as",
        ),
        (
            lambda: federation(site(validation=split(targets=[0, 1, 2]))),
            "a / validation run from 0 to 2; expected 0..1",
        ),
        (lambda: federation(site(test=split(targets=[0, -1, 0]))), "labels of a / test run from -1 to 0"),
        (lambda: segmented(test=masked(((0, 2), (1, 255)))), "run from 0 to 2; expected 0..1 .*, or 255"),
        (lambda: segmented(test=masked(((255, 255), (255, 255)))), r"255 \(ignored\) in every pixel of image 0"),
        (lambda: Federation("eyes", (site(),), ("a", "b"), task="segmentation"), "with a class per image; expected"),
        (
            lambda: Federation("eyes", segmented().sites, ("a", "b")),
            "with a class per pixel; .* the task is classification",
        ),
        (lambda: Federation("eyes", (site(),), ("a", "b"), task="segmentaton"), 'did you mean "segmentation"'),
        (lambda: federation(site("amazon"), site("dslr")).site("amazone"), 'no site "amazone"; did you mean "amazon"'),
    ],
)
def test_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()


def test_a_class_that_a_site_lacks_becomes_a_note():
    lacking = site("b", train=split(targets=[1, 1, 1]))
    assert federation(site("a"), lacking, notes=("first",)).notes == ("first", "b has no training image of cat.")
    assert federation().notes == segmented().notes == ()
    assert segmented(train=masked(((0, 0), (0, 255)))).notes == ("a has no training pixel of vessel.",)
    sites = [site(f"site {number}", train=split(targets=[0, 0, 0])) for number in range(5)]
    assert federation(*sites).notes == ("5 of 5 sites have no training image of some class.",)
    assert len(federation(*sites[:4]).notes) == 4


def test_select_takes_positions_in_their_order_and_volumes_go_along():
    whole = Split(*split(5).parts[:2], torch.tensor([7, 7, 0, 2, 3]))
    chosen = whole.select([4, 0, 4])
    assert torch.equal(chosen.images, whole.images[[4, 0, 4]]) and chosen.targets.tolist() == [0, 0, 0]
    assert chosen.volumes.tolist() == [3, 7, 3] and whole.to("cpu").volumes.tolist() == [7, 7, 0, 2, 3]
    assert split(4).select([0]).volumes is split(4).to("cpu").volumes is None
    for part in (whole, split(4)):
        there = pickle.loads(pickle.dumps(part))
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(there.parts, part.parts, strict=True))


def test_the_fingerprint_is_of_pixels_labels_volumes_names_and_their_order():
    made = federation(site("a"), site("b", test=split(7)))
    assert made.counts().to_dict("index")["b"] == {"train": 3, "validation": 3, "test": 7}
    image = split()
    image.images[0, 0, 0, 0] += 1
    volumes = [Split(*split().parts[:2], numbers) for numbers in (torch.arange(3), torch.ones(3).long())]
    others = [
        federation(site("a"), site("b", test=image)),
        *(federation(site("a"), site("b", test=test)) for test in (split(targets=[1, 1, 0]), *volumes)),
        *(federation(site("a"), site("b", **{part: split(0)})) for part in ("test", "validation")),
        federation(site("a"), site("c")),
        federation(site("b"), site("a")),
        federation(classes=("dog", "cat")),
        federation(site("a"), site("b", train=split(4))),
    ]
    assert len({federation().fingerprint, made.fingerprint, *(other.fingerprint for other in others)}) == 12
    assert federation().to("cpu").fingerprint == federation().fingerprint
    noncontiguous = Split(image.images.contiguous(memory_format=torch.channels_last), image.targets)
    assert federation(site("a"), site("b", test=noncontiguous)).fingerprint == others[0].fingerprint
    assert segmented().fingerprint != segmented(test=masked(((0, 1), (1, 0)))).fingerprint


def test_the_fingerprint_of_a_classification_is_that_of_old_records():
    """SHA-256 of names and classes, then pixels and labels: worked out without the class."""
    digest = hashlib.sha256(b"a\nb\ncat\ndog")
    for part in 6 * [split()]:
        digest.update(part.images.numpy().tobytes() + part.targets.numpy().tobytes())
    assert federation().fingerprint == digest.hexdigest()[:16]


def test_an_image_that_is_in_two_splits_is_a_note():
    apart = site("a", validation=split(0), test=split(seed=1))
    again = site("b", **dict.fromkeys(SPLITS, split(2, seed=2)))
    assert twice([apart, again]) == ["4 images are there twice, the first in b / train and b / validation."]
    assert twice([apart]) == []
