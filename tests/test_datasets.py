"""Federations from other libraries' data sets: pixels and labels arrive as they were; what cannot be one is named."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Subset, TensorDataset
from torchvision.datasets import ImageFolder

import fednb
from fednb.errors import DataError
from fednb.federation import Federation

PIXELS = torch.arange(4 * 3 * 8 * 6).reshape(4, 3, 8, 6).remainder(251).to(torch.uint8)
LABELS = [0, 1, 2, 1]
GOOD = list(zip(PIXELS, LABELS, strict=True))
KNOWN = "could not be compared"


class Pairs(list):
    """As torchvision's: pairs (image, label), their labels, and class names where they are known."""

    def __init__(self, pairs, classes=None, target_transform=None):
        super().__init__(pairs)
        self.targets, self.target_transform = [label for _, label in self], target_transform
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
    pairs = [(FORMS[form](image), label) for image, label in GOOD]
    made = Federation.from_datasets({"a": (pairs, pairs[:2], pairs[2:]), "b": (pairs, None, [])}, name="ours")
    assert made.name == "ours" and made.classes == ("0", "1", "2")
    assert torch.equal(made.site("a").train.images, PIXELS) and made.site("a").train.targets.tolist() == LABELS
    assert torch.equal(made.site("a").test.images, PIXELS[2:]) and len(made.site("b").validation) == 0
    assert made.site("b").test.images.shape == (0, 3, 8, 6)
    assert made.notes[-1] == "8 images are there twice, the first in a / train and a / validation."


@pytest.mark.parametrize("number", [int, np.int64, torch.tensor, lambda of: torch.tensor([of]), np.array])
def test_rows_are_read_by_the_columns_that_are_named(number):
    rows = Rows([{"img": i, "fine": 2, "coarse": number(1)} for i in PIXELS], fine=["x", "y", "z"], coarse=["p", "q"])
    made = Federation.from_datasets({"a": (rows, None, None)}, columns=("img", "coarse"))
    assert made.classes == ("p", "q") and made.site("a").train.targets.tolist() == [1] * 4


def test_images_have_one_channel_or_more():
    grey = [(Image.fromarray(PIXELS[0, 0].numpy()), 0), (PIXELS[0, 0].numpy(), 1), (PIXELS[0, :1], 1)]
    assert Federation.from_datasets({"a": (grey, None, None)}).image_shape == (1, 8, 6)
    data = TensorDataset(PIXELS[:, :2], torch.tensor(LABELS))
    assert Federation.from_datasets({"a": (data, None, None)}, classes="xyz").image_shape == (2, 8, 6)


def test_a_picture_is_the_same_by_folders_and_by_a_data_set(tmp_path):
    """Turned, transparent, grey, of a palette: pixels, labels and notes."""
    draws, exif = np.random.RandomState(0), Image.Exif()
    exif[0x0112] = 6
    colours = [draws.randint(0, 256, (8, 8, channels), np.uint8) for channels in (3, 3, 4, 2)]
    folder = tmp_path / "own" / "a" / "train" / "cat"
    folder.mkdir(parents=True)
    Image.fromarray(colours[0]).save(folder / "0.png", exif=exif)
    Image.fromarray(colours[1]).convert("P").save(folder / "1.png", transparency=3)
    Image.fromarray(colours[2]).save(folder / "2.png")
    Image.fromarray(colours[3][..., 0]).save(folder / "3.png")
    (tmp_path / "own" / "a" / "test" / "cat").mkdir(parents=True)
    Image.fromarray(colours[0] // 2).save(folder.parents[1] / "test" / "cat" / "0.png")
    train, test = (
        [(Image.open(f), 0) for f in sorted(p.glob("*.png"))] for p in (folder, folder.parents[1] / "test/cat")
    )
    made = Federation.from_datasets({"a": (train, None, test)}, name="own", classes=["cat"])
    own = fednb.load("folders", tmp_path, folder="own", size=8, shares=(0.9, 0.01, 0.09))
    images = [{image.numpy().tobytes() for image in each.sites[0].train.images} for each in (made, own)]
    assert images[0] == images[1] and made.sites[0].test.images.equal(own.sites[0].test.images)
    unusual = [
        [note.partition(":")[0] for note in each.notes if "EXIF" in note or "trans" in note] for each in (made, own)
    ]
    assert unusual[0] == unusual[1] and len(unusual[0]) == 2


class TestClasses:
    """A label is a number in its own data set's class names: cat is 0 at one site, 1 at another."""

    A, B = ["cat", "dog"], ["ant", "cat"]

    @pytest.mark.parametrize(
        "hidden",
        [
            lambda own: own,
            lambda own: ConcatDataset([Subset(own, [1])] * 2),
            lambda own: Subset(ConcatDataset([own, own]), [5, 2]),
        ],
    )
    def test_are_found_inside(self, hidden):
        a, b = (Pairs([(image, 1) for image in PIXELS], names) for names in (self.A, self.B))
        made = Federation.from_datasets(
            {"a": (hidden(a), None, None), "b": (hidden(b), None, None)}, classes="ant cat dog".split()
        )
        assert set(made.site("a").train.targets.tolist()) == {2} and set(made.site("b").train.targets.tolist()) == {1}
        assert not any(KNOWN in note for note in made.notes)
        with pytest.raises(DataError, match="different classes: a / train has cat, dog; b / train has ant, cat"):
            Federation.from_datasets({"a": (hidden(a), None, None), "b": (hidden(b), None, None)})

    @pytest.mark.parametrize(
        "unknown",
        [
            lambda own: list(own),
            lambda own: Pairs(own, own.classes, target_transform=lambda label: label),
            lambda own: ConcatDataset([own, list(own)]),
        ],
    )
    def test_that_are_not_known_or_were_changed_are_a_note(self, unknown):
        a, b = (Pairs(GOOD, names) for names in ("cat dog owl".split(), "dog cat owl".split()))
        made = Federation.from_datasets({"a": (a, None, None), "b": (unknown(b), None, None)}, classes=a.classes)
        assert made.notes[0].startswith("b / train: no class names") and KNOWN in made.notes[0]
        labels = [label for _, label in (unknown(b)[n] for n in range(len(unknown(b))))]
        assert made.site("b").train.targets.tolist() == labels

    def test_of_one_site_alone_need_no_note(self):
        assert not any(KNOWN in note for note in Federation.from_datasets({"a": (GOOD, None, None)}).notes)

    def test_of_image_folders_of_which_one_lacks_a_class(self, tmp_path):
        for number, name in enumerate(("a/bike", "a/keyboard", "a/mug", "b/bike", "b/mug")):
            (tmp_path / name).mkdir(parents=True)
            Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / name / "0.png")
        sites = {site: (ImageFolder(tmp_path / site), None, None) for site in "ab"}
        made = Federation.from_datasets(sites, classes=["bike", "keyboard", "mug"])
        assert made.site("b").train.targets.tolist() == [0, 2]


def one(image, label=0):
    return {"a": ([(image, label)], None, None)}


SMALL = (PIXELS[0, :, :4], 0)


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        *((sites, "mine is made of") for sites in ([GOOD], {}, {"a": GOOD})),
        ({"a": (GOOD, None, None), "b": ([*GOOD, SMALL], None, None)}, "b / train: image 4 is [3, 4, 6]"),
        (one(PIXELS[0].float()), "a / train: image 0 is torch.float32 [3, 8, 6] with values from 0 to 143; expected"),
        (one(PIXELS[0].int()), "image 0 is torch.int32 [3, 8, 6]"),
        (one(Image.new("I;16", (6, 8))), "image 0 has more than 8 bits a channel (mode I;16)"),
        (one("0001.png"), "image 0 is a str; expected a PIL picture"),
        (one(PIXELS[0].numpy()), "image 0 is torch.uint8 [6, 3, 8] with values from 0 to 143; expected"),
        *((one(PIXELS[0], label), "label 0 is") for label in (0.5, None, True, np.array([0.5]), np.array([0, 1]))),
        (one(PIXELS[0], PIXELS[0, 0]), "expected a class number such as 0. Masks are read from folders"),
        (one(PIXELS[0], -1), "labels of a / train run from -1 to -1; expected 0"),
        ({"a": ([PIXELS[0]], None, None)}, "example 0 is no pair"),
        ({"a": ([{"img": PIXELS[0]}], None, None)}, "example 0 is no pair"),
        ({"a": (Pairs(GOOD, ["p", "q"]), None, None)}, "a / train has the label 2 and the 2 classes p, q"),
    ],
)
def test_what_makes_no_federation_is_named(sites, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Federation.from_datasets(sites)


def test_labels_and_names_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=re.escape("labels of a / train run from 0 to 2; expected 0..1 (2 classes)")):
        Federation.from_datasets({"a": (GOOD, None, None)}, classes=["p", "q"])
    with pytest.raises(DataError, match="a / train has the classes q, r; expected those of p, z"):
        Federation.from_datasets({"a": (Pairs(GOOD, ["p", "q", "r"]), None, None)}, classes=["p", "z"])
