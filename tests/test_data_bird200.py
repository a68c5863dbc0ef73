"""Bird-200, on files made in its layout: its own lists, class shares, and what can be wrong with them."""

import loaders
import pytest
from loaders import pixels

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import bird200
from fednb.errors import DataError, RecipeError

LISTS = bird200.FOLDER


def load(whole, size=6, **options):
    return fednb.datasets.load("bird200", whole, **{"clients": 2, "size": size, **options})


def on_disk(whole, number) -> bytes:
    """The pixels of an image by its number in the lists; 1 to 600 are for training, the class is (number - 1) % 200."""
    species = (number - 1) % 200 + 1
    file = whole / LISTS / "images" / f"{species:03}.Species_{species}" / f"Species_{number - 1:04}.png"
    return images.decode(file, 6)[0].tobytes()


def edit(whole, name, change):
    """Writes a list anew: ``change(lines)`` are its lines."""
    file = whole / LISTS / name
    file.write_text("\n".join(change(file.read_text().splitlines())) + "\n")


class TestSites:
    def test_training_and_test_images_are_those_of_the_list(self, whole):
        federation = load(whole)
        assert federation.classes[0] == "001.Species_1" and len(federation.classes) == 200
        trained = pixels(*(part for site in federation.sites for part in (site.train, site.validation)))
        assert sorted(trained) == sorted(on_disk(whole, number) for number in range(1, 601))
        tested = pixels(*(site.test for site in federation.sites))
        assert sorted(tested) == sorted(on_disk(whole, number) for number in range(601, 1001))

    def test_original_names_are_jpeg(self, tmp_path):
        loaders.birds(tmp_path, ".jpg")
        assert load(tmp_path).counts().to_numpy()[:, 2].sum() == 400


class TestCounts:
    def test_5994_and_5794_images_are_complete(self, whole, monkeypatch):
        assert sum(bird200.COMPLETE.values()) == 11_788
        notes = load(whole).notes
        assert notes == (
            "600 train images are listed; Bird-200 has 5994.",
            "400 test images are listed; Bird-200 has 5794.",
        )
        monkeypatch.setattr(bird200, "COMPLETE", {"train": 600, "test": 400})
        assert load(whole).notes == ()

    def test_described_by_what_is_on_disk(self, tree, picture):
        (tree / LISTS / "images" / "001.Species_1" / "Species_0000.png").unlink()
        picture(tree / LISTS / "images" / "extra.png", 1)
        *lines, unused = bird200.describe(tree)
        assert lines == [
            "ready",
            "train, in the lists: 600 images (complete: 5994)",
            "train, on disk: 599 images (complete: 5994)",
            "test, in the lists: 400 images (complete: 5794)",
            "test, on disk: 400 images (complete: 5794)",
        ]
        assert "not used: 1 in images" in unused


class TestBadInput:
    @pytest.mark.parametrize(
        "name, change, message",
        [
            ("classes.txt", lambda lines: lines[:-1], "has 199 lines"),
            ("images.txt", lambda lines: lines[:-1], 'image 1000 has the path ""'),
            ("images.txt", lambda lines: [*lines, "1 twice.png"], r'images\.txt, line 1001: "1 twice.png"'),
            ("images.txt", lambda lines: ["1", *lines[1:]], r'images\.txt, line 1: "1"; expected two words'),
            ("image_class_labels.txt", lambda lines: ["1 2", *lines[1:]], 'image 1 has .* the class "2"'),
            ("image_class_labels.txt", lambda lines: ["1 201", *lines[1:]], 'the class "201"'),
            ("train_test_split.txt", lambda lines: ["1 2", *lines[1:]], 'the part "2"'),
            ("train_test_split.txt", lambda lines: lines[1:], 'image 1 .* the part ""'),
        ],
    )
    def test_damaged_lists(self, tree, name, change, message):
        edit(tree, name, change)
        with pytest.raises(DataError, match=message):
            load(tree)
        ((place, reason),) = bird200.damaged(tree)
        assert place == tree / LISTS and bird200.describe(tree) == [reason]

    def test_options_out_of_range(self, whole):
        with pytest.raises(RecipeError, match="may be 200"):
            load(whole, clients=3, classes_per_client=100)
        with pytest.raises(DataError, match="600 training and 400 test images cannot be dealt out to 200 clients"):
            load(whole, clients=200, classes_per_client=20)


class TestReal:
    def test_ten_classes(self, real_data, tmp_path):
        """Photographs of ten classes under lists made for them, which name 190 more without an image."""
        samples = real_data / "cub_200_2011_10classes"
        if not samples.is_dir():
            pytest.skip(f"no {samples}")
        names = sorted(path.name for path in samples.iterdir())
        files = sorted(path.relative_to(samples).as_posix() for path in samples.rglob("*.jpg"))
        classes = [*names, *(f"{number:03}.Made_{number}" for number in range(11, 201))]
        lists = (
            classes,
            files,
            [names.index(file.split("/")[0]) + 1 for file in files],
            [n % 2 for n in range(len(files))],
        )
        (tmp_path / LISTS).mkdir()
        (tmp_path / LISTS / "images").symlink_to(samples)
        for name, held in zip(bird200.LISTS, lists, strict=True):
            (tmp_path / LISTS / name).write_text("".join(f"{number} {line}\n" for number, line in enumerate(held, 1)))
        federation = load(tmp_path, size=64, clients=10)
        assert federation.counts().to_numpy().sum() == len(files) == 294
        assert {label for site in federation.sites for label in site.test.targets.tolist()} == set(range(10))
        assert load(tmp_path, size=64, clients=1).notes[-1].endswith("020.Made_20 and 180 more classes.")
