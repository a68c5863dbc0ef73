"""Federations from other libraries' data sets: pixels and labels arrive as they were; what cannot be one is named."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Subset, TensorDataset

from fednb.errors import DataError
from fednb.federation import Federation

PIXELS = torch.arange(4 * 3 * 8 * 6).reshape(4, 3, 8, 6).remainder(251).to(torch.uint8)
LABELS = [0, 1, 2, 1]


class Pairs(list):
    """As torchvision's: pairs (image, label), and class names where they are known."""

    def __init__(self, pairs, classes=None):
        super().__init__(pairs)
        if classes:
            self.classes = classes


class Rows(list):
    """As Hugging Face's: dictionaries, and features."""

    def __init__(self, rows, **features):
        super().__init__(rows)
        self.features = {name: SimpleNamespace(names=names) for name, names in features.items()}


def picture(pixels: torch.Tensor) -> Image.Image:
    return Image.fromarray(pixels.permute(1, 2, 0).numpy())


FORMS = {
    "pictures": lambda image: picture(image),
    "arrays": lambda image: image.permute(1, 2, 0).numpy(),
    "bytes": lambda image: image,
    "floats": lambda image: image.float() / 255,  # as ToTensor gives them
}


@pytest.mark.parametrize("form", FORMS)
def test_pixels_and_labels_are_those_of_the_data_set(form):
    pairs = Pairs((FORMS[form](image), label) for image, label in zip(PIXELS, LABELS, strict=True))
    made = Federation.from_datasets({"a": (pairs, pairs[:2], pairs[2:]), "b": (pairs, None, [])}, name="ours")
    assert made.name == "ours" and made.classes == ("0", "1", "2")
    assert torch.equal(made.site("a").train.images, PIXELS) and made.site("a").train.targets.tolist() == LABELS
    assert torch.equal(made.site("a").test.images, PIXELS[2:]) and len(made.site("b").validation) == 0
    assert made.site("b").test.images.shape == (0, 3, 8, 6)


@pytest.mark.parametrize(
    "label", [int, np.int64, torch.tensor, lambda of: torch.tensor([of]), np.array, lambda of: np.array([of], np.uint8)]
)
def test_rows_are_read_by_what_is_in_them(label):
    rows = Rows(
        (
            {"id": str(n), "img": picture(image), "species": label(of)}
            for n, (image, of) in enumerate(zip(PIXELS, LABELS, strict=True))
        ),
        img=None,
        species=["owl", "robin", "wren"],
    )
    made = Federation.from_datasets({"a": (rows, None, rows)})
    assert made.classes == ("owl", "robin", "wren")
    assert torch.equal(made.site("a").train.images, PIXELS) and made.site("a").test.targets.tolist() == LABELS


def test_of_two_columns_one_is_chosen():
    rows = Rows([{"img": image, "fine": 2, "coarse": 1} for image in PIXELS], fine=["x", "y", "z"], coarse=["p", "q"])
    with pytest.raises(DataError, match=r"a / train: example 0 has images in img and whole numbers in fine, coarse"):
        Federation.from_datasets({"a": (rows, None, None)})
    made = Federation.from_datasets({"a": (rows, None, None)}, columns=("img", "coarse"))
    assert made.classes == ("p", "q") and made.site("a").train.targets.tolist() == [1] * 4


def test_grey_subsets_and_tensor_data_sets():
    grey = TensorDataset(PIXELS[:, :1], torch.tensor(LABELS))
    named = Pairs(((image[0].numpy(), 1) for image in PIXELS), ["no", "yes"])
    made = Federation.from_datasets({"a": (Subset(named, [2, 0]), None, None)})
    assert made.classes == ("no", "yes") and torch.equal(made.site("a").train.images, PIXELS[[2, 0], :1])
    made = Federation.from_datasets({"a": (grey, None, None)}, classes="xyz")
    assert made.image_shape == (1, 8, 6) and made.classes == ("x", "y", "z")


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7])
def test_any_number_of_channels_is_taken_where_no_other_axis_could_be_theirs(channels):
    image = PIXELS[:3].reshape(-1, 8, 6)[:channels]
    for given in (image, image.permute(1, 2, 0).numpy()):
        made = Federation.from_datasets({"a": ([(given, 0)], None, None)})
        assert torch.equal(made.site("a").train.images[0], image)


def test_of_small_images_the_channels_axis_counts():
    """Four pixels high, or one: that an axis besides the channels' is as short says nothing."""
    made = Federation.from_datasets({"a": ([(PIXELS[0, :, :1, :4], 0)], None, None)})
    assert made.image_shape == (3, 1, 4)


def broken(number):
    raise OSError("file is truncated")


SMALL = (PIXELS[0, :, :4], 0)
GOOD = [(image, label) for image, label in zip(PIXELS, LABELS, strict=True)]


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([GOOD], "sites are a list; expected"),
        ({}, "mine has no sites"),
        ({"a": GOOD}, "site a of mine is a list; expected three data sets"),
        ({"a": ([], GOOD, GOOD)}, "site a of mine has no training images"),
        ({"a": (GOOD, None, None), "b": (None, GOOD, None)}, "site b of mine has no training images"),
        ({"a": (GOOD, None, None), "b": ([*GOOD, SMALL], None, None)}, "b / train: image 4 is [3, 4, 6]"),
        ({"a": ([(PIXELS[0].float(), 0)], None, None)}, "a / train: image 0 has values from 0 to 143; expected floats"),
        ({"a": ([(PIXELS[0].float() * torch.nan, 0)], None, None)}, "image 0 has values from nan"),
        ({"a": ([(PIXELS[0].int(), 0)], None, None)}, "image 0 is torch.int32; expected uint8"),
        ({"a": ([(Image.new("I;16", (6, 8)), 0)], None, None)}, "image 0 has mode I;16, more than 8 bits"),
        ({"a": ([("0001.png", 0)], None, None)}, "image 0 is a str; expected a PIL picture"),
        ({"a": ([(PIXELS[0], 0.5)], None, None)}, "label 0 is 0.5; expected a class number"),
        ({"a": ([(PIXELS[0], np.array([0, 1]))], None, None)}, "label 0 is array([0, 1]); expected a class number"),
        ({"a": ([(PIXELS[0], np.array([0.5]))], None, None)}, "label 0 is array([0.5]); expected a class number"),
        ({"a": ([(PIXELS[0], np.array([True]))], None, None)}, "label 0 is array([ True]); expected a class number"),
        (
            {"a": ([(PIXELS[0].numpy(), 0)], None, None)},
            "image 0 is an array [3, 8, 6], read as [height, width, channels]: axis 2 would be 6 channels, and axis 0 "
            "has 3. Move it there, such as by numpy.moveaxis.",
        ),
        (
            {"a": ([(PIXELS[0].permute(1, 2, 0), 0)], None, None)},
            "image 0 is a tensor [8, 6, 3], read as [channels, height, width]: axis 0 would be 8 channels, and axis 2 "
            "has 3. Move it there, such as by movedim.",
        ),
        ({"a": ([(PIXELS[0, :1].permute(1, 0, 2), 0)], None, None)}, "axis 0 would be 8 channels, and axis 1 has 1"),
        ({"a": ([(PIXELS[0], None)], None, None)}, "label 0 is None; expected a class number"),
        ({"a": ([(PIXELS[0], -1)], None, None)}, "labels of a / train run from -1 to -1; expected 0"),
        ({"a": ([PIXELS[0]], None, None)}, "example 0 is a Tensor; expected (image, label)"),
        ({"a": (iter(GOOD), None, None)}, "a / train is a list_iterator without length"),
        ({"a": ([{"img": PIXELS[0]}], None, None)}, "images in img and whole numbers in no column"),
        (
            {"a": (Pairs(GOOD, ["p", "q", "r"]), None, None), "b": (Pairs(GOOD, ["q", "p", "r"]), None, None)},
            "the sites of mine name other classes: mine: a / train has p, q, r; mine: b / train has q, p, r",
        ),
        (
            {"a": (type("Bad", (), {"__len__": lambda s: 1, "__getitem__": lambda s, n: broken(n)})(), None, None)},
            "a / train: image 0 cannot be read: OSError: file is truncated",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "given",
)
def test_what_makes_no_federation_is_named(sites, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Federation.from_datasets(sites)


def test_labels_beyond_the_names_are_refused():
    with pytest.raises(DataError, match=re.escape("labels of a / train run from 0 to 2; expected 0..1 (2 classes)")):
        Federation.from_datasets({"a": (GOOD, None, None)}, classes=["p", "q"])
