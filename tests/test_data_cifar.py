"""CIFAR-10 and CIFAR-100: both layouts, both partitions, what a client is tested on, and damaged files."""

import hashlib
import pickle
from collections import Counter
from pathlib import Path

import loaders
import numpy as np
import pytest
import torch
import torchvision
from loaders import pixels
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import cifar10, cifar100
from fednb.datasets.cifar10 import CLASSES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

TEST = 10  # images of each class


def load(root, size=32, **options):
    return fednb.datasets.load("cifar10", root, size=size, **options)


def of_all(federation, *parts) -> list[bytes]:
    return sorted(pixels(*(getattr(site, part) for site in federation.sites for part in parts)))


def held(split) -> np.ndarray:
    """The number of images of each class."""
    return split.targets.bincount(minlength=10).numpy()


@pytest.fixture(scope="module")
def folders(files_of):
    return files_of("cifar10")


@pytest.fixture(scope="module")
def arrays(folders) -> dict:
    """Images [n, 3, 32, 32] and labels by part, class after class."""
    held = {}
    for part in ("train", "test"):
        files = [sorted((folders / "cifar10" / part / name).iterdir()) for name in CLASSES]
        x = np.stack([images.decode(file, 32)[0] for own in files for file in own])
        held[part] = x, np.repeat(np.arange(10), [len(own) for own in files])
    return held


@pytest.fixture
def binary(arrays, tmp_path):
    """A data folder with CIFAR-10's binary version: an image's label, then its 3072 bytes."""
    (tmp_path / "cifar-10-batches-bin").mkdir()
    for part, names in {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}.items():
        x, y = arrays[part]
        entries = np.column_stack([y, x.reshape(len(x), -1)]).astype(np.uint8)
        for name, own in zip(names, np.split(entries, len(names)), strict=True):
            (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(own.tobytes())
    return tmp_path


class Hostile:
    """A pickle that makes a file when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


class TestLayouts:
    def test_binary_version_and_folders_are_the_same(self, binary, folders):
        assert load(binary).fingerprint == load(folders).fingerprint

    @pytest.mark.parametrize("source", [cifar10.CIFAR, cifar100.CIFAR], ids=lambda source: source.name)
    def test_torchvisions_files_are_read_where_their_sums_are_right(
        self, source, binary, files_of, tmp_path, monkeypatch
    ):
        root, place = {"cifar10": binary}.get(source.name) or files_of(source.name), tmp_path / "new" / source.pickled
        reader, lists = getattr(torchvision.datasets, source.name.upper()), {"train": [], "test": []}
        place.mkdir(parents=True)

        def write(name: str, held) -> str:
            (place / name).write_bytes(pickle.dumps(held))
            return hashlib.md5((place / name).read_bytes()).hexdigest()

        for part, names in source.files.items():
            for name in names:
                content = np.fromfile(root / source.folder / f"{name}.bin", np.uint8)
                entries = content.reshape(-1, source.label + 3073)
                labels = {("labels", "fine_labels")[source.label]: entries[:, source.label].tolist()}
                held = labels | {"data": entries[:, -3072:]}
                lists[part].append([name, write(name, held)])
            monkeypatch.setattr(reader, f"{part}_list", lists[part])
        digest = write(reader.meta["filename"], {reader.meta["key"]: source.classes})
        monkeypatch.setattr(reader, "meta", reader.meta | {"md5": digest})
        made = [fednb.datasets.load(source.name, where, size=32, clients=2) for where in (root, tmp_path / "new")]
        assert made[0].fingerprint == made[1].fingerprint
        write(source.files["test"][0], Hostile(tmp_path / "called"))
        with pytest.raises(DataError, match=rf"{source.pickled} has other files than {source.title}'s own"):
            fednb.datasets.load(source.name, tmp_path / "new")
        assert not (tmp_path / "called").exists()

    def test_a_damaged_binary_file_is_named(self, binary):
        file = binary / "cifar-10-batches-bin" / "data_batch_3.bin"
        for content in (b"", bytes(3072), bytes(3074), b"\x0a" + bytes(3072)):
            file.write_bytes(content)
            with pytest.raises(DataError, match=rf"data_batch_3\.bin has {len(content)} bytes; expected 3073 .*class"):
                load(binary)

    def test_jpeg_files_and_missing_images_are_notes(self, folders, tmp_path):
        copy = loaders.copied(folders, tmp_path / "copy")
        for file in (copy / "cifar10" / "train" / "airplane").iterdir():
            Image.open(file).save(file.with_suffix(".jpg"))
            file.unlink()
        assert load(copy).notes == (
            "300 of CIFAR-10's 50000 train images are used; 300 are on disk.",
            "The train images are JPEG files: their pixels are close to CIFAR-10's own, not equal.",
            "100 of CIFAR-10's 10000 test images are used; 100 are on disk.",
        )

    def test_hundred_fine_labels(self, files_of):
        root = files_of("cifar100")
        federation = fednb.datasets.load("cifar100", root, size=32, clients=10, classes_per_client=10)
        for part, splits in {"train": ("train", "validation"), "test": ("test",)}.items():
            content = (root / "cifar-100-binary" / f"{part}.bin").read_bytes()
            entries = [content[start : start + 3074] for start in range(0, len(content), 3074)]
            parts = [getattr(site, split) for site in federation.sites for split in splits]
            found = zip(pixels(*parts), (int(y) for split in parts for y in split.targets), strict=True)
            assert sorted(found) == sorted((entry[2:], entry[1]) for entry in entries)
        mine = [{*site.train.targets.tolist(), *site.validation.targets.tolist()} for site in federation.sites]
        assert sorted(sum(map(list, mine), [])) == list(range(100))  # as in DisTrans' Table 1 at DH = 100 %

    def test_hundred_classes_in_their_order(self):
        assert list(cifar100.CLASSES) == sorted(set(cifar100.CLASSES)) and len(cifar100.CLASSES) == 100
        numbers = {0: "apple", 19: "cattle", 49: "mountain", 72: "seal", 99: "worm"}
        assert {number: cifar100.CLASSES[number] for number in numbers} == numbers


class TestPartitions:
    def test_one_class_is_tested_next_to_as_many_images_of_others(self, folders, arrays):
        federation = load(folders, classes_per_client=1)
        source = dict(zip((image.tobytes() for image in arrays["test"][0]), arrays["test"][1], strict=True))
        own, negatives = [], Counter()
        for site in federation.sites:
            (label,) = site.train.targets.unique().tolist()
            own.append(label)
            assert len(site.test) == 2 * TEST and held(site.test)[label] == TEST
            assert (site.test.targets[:TEST] == label).all()  # distrans/fig4_alpha rests on the order
            assert [source[image] for image in pixels(site.test)] == site.test.targets.tolist()
            assert len({*pixels(site.test)[:TEST]}) == TEST
            negatives.update(pixels(site.test)[TEST:])
        assert sorted(own) == list(range(10))
        assert any("as many images of the others, drawn with replacement" in note for note in federation.notes)
        # Ten draws of 10 from the 90 others: a client's own draws repeat some image.
        assert any(len({*pixels(site.test)}) < 2 * TEST for site in federation.sites)
        assert len(negatives) > 50  # the clients do not draw the same ones

    def test_dirichlet(self, folders, arrays):
        """Each image once; ten or more to train and validate on, a tenth of them validation."""
        federation = load(folders, partition="dirichlet", clients=5, concentration=0.3)
        for part, splits in {"train": ("train", "validation"), "test": ("test",)}.items():
            assert of_all(federation, *splits) == sorted(image.tobytes() for image in arrays[part][0])
        for site in federation.sites:
            trained = len(site.train) + len(site.validation)
            assert trained >= 10 and abs(len(site.validation) - 0.1 * trained) <= 0.5
            assert len(site.test) == 20 and max(held(site.test)) - min(held(site.test)) <= 1


class TestCounts:
    @pytest.mark.parametrize(
        "options, error, said",
        [
            *(({"train_images": count}, RecipeError, f"train_images is {count}") for count in (0, -1, 2.5, True)),
            ({"test_images": 101}, DataError, "test_images=101, but 100 are on disk"),
            ({"train_images": 30}, DataError, "30 training .* Take fewer clients"),
            ({"clients": 200, "classes_per_client": 1}, DataError, "to 200 clients by 1 of 10 classes each"),
            ({"clients": 10**9, "classes_per_client": 2}, DataError, "to 1000000000 clients by 2 of 10"),
            ({"clients": 10**9, "partition": "dirichlet"}, DataError, "to 1000000000 clients by Dir"),
            ({"spare": True}, RecipeError, "no spare images: all 100 are test images. Lower test_images"),
        ],
    )
    def test_out_of_range(self, folders, options, error, said):
        with pytest.raises(error, match=said):
            load(folders, **options)

    @pytest.mark.parametrize(
        "options, first",
        [
            ({"classes_per_client": 2}, [163, 217, 125, 183]),
            ({"partition": "dirichlet", "clients": 5}, [209, 23, 137, 125, 116, 47, 163, 183, 159, 73]),
        ],
    )
    def test_fewer_and_spare_ones(self, folders, arrays, options, first):
        """So many of all classes; spare are the other test images, dealt out as these are."""
        options = options | {"train_images": 200, "test_images": 50}
        plain, asked = (load(folders, **options, spare=spare) for spare in (False, True))
        for splits, each in {("train", "validation"): 20, ("test",): 5}.items():
            assert (sum(held(getattr(site, split)) for site in plain.sites for split in splits) == each).all()
        assert loaders.counts(asked) == loaders.counts(plain) and all(site.spare is None for site in plain.sites)
        for one, other in zip(plain.sites, asked.sites, strict=True):
            assert all(torch.equal(getattr(one, s).images, getattr(other, s).images) for s in SPLITS)
            assert abs(len(other.spare) - len(other.test)) <= 5
        assert of_all(asked, "test", "spare") == sorted(image.tobytes() for image in arrays["test"][0])
        assert "50 other test images are spare." in asked.notes
        assert asked.sites[0].spare.images[:, 0, 0, 0].tolist() == first  # as when results/ was recorded
