"""CIFAR-10 and CIFAR-100: both layouts, both partitions, what a client is tested on, and damaged batches."""

import pickle
from collections import Counter

import loaders
import numpy as np
import pytest
import torch
from loaders import pixels
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import cifar10, cifar100
from fednb.datasets.cifar10 import CLASSES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

TRAIN, TEST = 30, 10  # images of each class


def load(root, size=32, **options):
    return fednb.datasets.load("cifar10", root, size=size, **options)


def counts(federation) -> list:
    return [tuple(len(getattr(site, split)) for split in SPLITS) for site in federation.sites]


def trained(federation) -> list[bytes]:
    return [image for site in federation.sites for part in (site.train, site.validation) for image in pixels(part)]


def under_test(federation) -> list[bytes]:
    return sorted(image for site in federation.sites for image in pixels(site.test))


def held(split) -> list[int]:
    """The number of images of each class."""
    return split.targets.bincount(minlength=10).tolist()


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


def python2_pickle(x: np.ndarray, y: np.ndarray) -> bytes:
    """A batch as Python 2 wrote CIFAR-10's: a dictionary of text, an array and a list, by hand."""
    raw = x.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I%d\nI%d\nt" % x.shape
        + b"cnumpy\ndtype\n(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n"
        + b"T%stb" % (len(raw).to_bytes(4, "little") + raw)
    )
    labels = b"(" + b"".join(b"I%d\n" % label for label in y) + b"l"
    return b"(S'data'\n" + array + b"S'labels'\n" + labels + b"S'batch_label'\nS'a batch'\nd."


def write_batches(folder, arrays, write=python2_pickle):
    folder.mkdir(parents=True)
    x, y = (array.reshape(len(array), -1).squeeze() for array in arrays["train"])
    for number, batch in enumerate(zip(np.split(x, 5), np.split(y, 5), strict=True), 1):
        (folder / f"data_batch_{number}").write_bytes(write(*batch))
    x, y = arrays["test"]
    (folder / "test_batch").write_bytes(write(x.reshape(len(x), -1), y))


class TestLayouts:
    @pytest.mark.parametrize("place", ["cifar-10-batches-py", "cifar10/cifar-10-batches-py"])
    @pytest.mark.parametrize(
        "write",
        [
            python2_pickle,
            lambda x, y: pickle.dumps({"data": x, "labels": y.tolist(), "filenames": ["a.png"] * len(y)}, 2),
        ],
    )
    def test_batches_and_folders_are_the_same(self, tmp_path, arrays, folders, place, write):
        write_batches(tmp_path / place, arrays, write)
        assert load(tmp_path).fingerprint == load(folders).fingerprint

    def test_jpeg_files_and_missing_images_are_notes(self, folders, tmp_path, monkeypatch):
        assert load(folders).notes == (
            "300 of CIFAR-10's 50000 train images are used; 300 are on disk.",
            "100 of CIFAR-10's 10000 test images are used; 100 are on disk.",
        )
        monkeypatch.setattr(cifar10, "COMPLETE", {"train": 300, "test": 100})
        assert load(folders).notes == ()
        copy = loaders.copied(folders, tmp_path / "copy")
        for file in (copy / "cifar10" / "train" / "airplane").iterdir():
            Image.open(file).save(file.with_suffix(".jpg"))
            file.unlink()
        (note,) = load(copy).notes
        assert note == "The train images are JPEG files: their pixels are close to CIFAR-10's own, not equal."


class TestHundred:
    def test_pixels_and_fine_labels(self, files_of):
        root = files_of("cifar100")
        federation = fednb.datasets.load("cifar100", root, size=32, clients=10, classes_per_client=10)
        for part, splits in {"train": ("train", "validation"), "test": ("test",)}.items():
            file = pickle.loads((root / "cifar-100-python" / part).read_bytes())
            parts = [getattr(site, split) for site in federation.sites for split in splits]
            found = zip(pixels(*parts), (int(y) for split in parts for y in split.targets), strict=True)
            expected = zip((image.tobytes() for image in file["data"]), file["fine_labels"], strict=True)
            assert sorted(found) == sorted(expected)
        mine = [{*site.train.targets.tolist(), *site.validation.targets.tolist()} for site in federation.sites]
        assert sorted(sum(map(list, mine), [])) == list(range(100))  # as in DisTrans' Table 1 at DH = 100 %

    def test_the_classes_in_their_order(self):
        """Some numbers of the published list, whose order is the alphabet's."""
        assert len(set(cifar100.CLASSES)) == 100 and list(cifar100.CLASSES) == sorted(cifar100.CLASSES)
        numbers = {0: "apple", 19: "cattle", 49: "mountain", 72: "seal", 99: "worm"}
        assert {number: cifar100.CLASSES[number] for number in numbers} == numbers


class TestClassShares:
    @pytest.mark.parametrize("u", [10, 6, 2])
    def test_tested_on_its_own_classes_in_its_own_shares(self, folders, arrays, u):
        federation = load(folders, classes_per_client=u)
        for site in federation.sites:
            mine = np.array(held(site.train)) + held(site.validation)
            assert (mine > 0).sum() == u and ((mine > 0) == (np.array(held(site.test)) > 0)).all()
            # The same share of 30 and of 10, each rounded by less than one image.
            assert np.abs(mine / TRAIN - np.array(held(site.test)) / TEST).max() < 1 / TRAIN + 1 / TEST
        assert sorted(trained(federation)) == sorted(image.tobytes() for image in arrays["train"][0])
        assert under_test(federation) == sorted(image.tobytes() for image in arrays["test"][0])
        for train, validation, _ in counts(federation):
            assert abs(validation - 0.1 * (train + validation)) <= 0.5

    def test_one_class_is_tested_beside_as_many_images_of_others(self, folders, arrays):
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
            negatives.update(
                image for image, target in zip(pixels(site.test), site.test.targets, strict=True) if target != label
            )
        assert sorted(own) == list(range(10))
        assert any("as many images of the others, drawn with replacement" in note for note in federation.notes)
        # Ten draws of 10 from the 90 others: a client's own draws repeat some image.
        assert any(len({*pixels(site.test)}) < 2 * TEST for site in federation.sites)
        assert len(negatives) > 50  # the clients do not draw the same ones

    def test_too_many_clients(self, folders):
        for u, clients in ((1, 200), (2, 10**9)):
            with pytest.raises(DataError, match=f"to {clients} clients by {u} of 10 classes each.* Take fewer clients"):
                load(folders, classes_per_client=u, clients=clients)


class TestDirichlet:
    def test_dealt_and_tested(self, folders, arrays):
        federation = load(folders, partition="dirichlet", clients=5, concentration=0.3)
        assert sorted(trained(federation)) == sorted(image.tobytes() for image in arrays["train"][0])
        assert min(train + validation for train, validation, _ in counts(federation)) >= 10
        assert under_test(federation) == sorted(image.tobytes() for image in arrays["test"][0])
        for site in federation.sites:
            assert len(site.test) == 20 and max(held(site.test)) - min(held(site.test)) <= 1


class TestFewer:
    def test_so_many_images_of_all_classes(self, folders):
        federation = load(folders, train_images=200, test_images=50)
        assert np.sum(counts(federation), axis=0).tolist() == [180, 20, 50]
        for split, expected in {"test": [5] * 10, "train": [18] * 10}.items():
            total = np.sum([held(getattr(site, split)) for site in federation.sites], axis=0)
            assert np.abs(total - expected).max() <= 2

    def test_counts_out_of_range(self, folders):
        for option in ("train_images", "test_images"):
            for count in (0, -1, 2.5, True, 60_000):
                with pytest.raises(RecipeError, match=f"{option} is {count}"):
                    load(folders, **{option: count})
        with pytest.raises(DataError, match="train_images=301, but 300 are on disk"):
            load(folders, train_images=301)
        with pytest.raises(DataError, match="30 training .* Take fewer clients"):
            load(folders, train_images=30)


class TestSpare:
    @pytest.mark.parametrize("options", [{}, {"classes_per_client": 2}, {"partition": "dirichlet", "clients": 5}])
    def test_the_other_test_images_dealt_out_alike(self, folders, arrays, options):
        plain, asked = (load(folders, test_images=50, **options, **spare) for spare in ({}, {"spare": True}))
        assert counts(asked) == counts(plain) and all(site.spare is None for site in plain.sites)
        for one, other in zip(plain.sites, asked.sites, strict=True):
            assert all(torch.equal(getattr(one, s).images, getattr(other, s).images) for s in SPLITS)
            assert abs(len(other.spare) - len(other.test)) <= 5
        everything = [image for site in asked.sites for part in (site.test, site.spare) for image in pixels(part)]
        assert sorted(everything) == sorted(image.tobytes() for image in arrays["test"][0])
        assert "50 other test images are spare." in asked.notes

    def test_none_left_over_is_refused(self, folders):
        with pytest.raises(RecipeError, match="no spare images: all 100 are test images. Lower test_images"):
            load(folders, spare=True)


def test_a_batch_of_something_else_is_named(arrays, tmp_path):
    write_batches(tmp_path / "cifar-10-batches-py", arrays)
    file = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    for shape, label, message in (
        *(((2, 3072), 0, r"\[2, 3072\] bytes for 1 labels"), ((1, 1024), 0, r"\[1, 1024\]")),
        *(((1, 3072), 10, "labels from 0 to 9"), ((1, 3072), -1, "labels from 0 to 9")),
    ):
        file.write_bytes(pickle.dumps({"data": np.zeros(shape, np.uint8), "labels": [label]}, 2))
        with pytest.raises(DataError, match=f"data_batch_3 .*({message})"):
            load(tmp_path)


def test_counts_of_real_images_by_partition(real_data):
    if problem := fednb.datasets.available("cifar10", real_data):
        pytest.skip(problem)
    some = {"train_images": 2000, "test_images": 1000}
    shared = load(real_data, classes_per_client=2, **some)
    assert np.sum(counts(shared), axis=0)[2] == 1000 and sum(np.sum(counts(shared), axis=0)[:2]) == 2000
    drawn = load(real_data, partition="dirichlet", clients=40, concentration=0.3, **some)
    assert {test for _, _, test in counts(drawn)} == {25}
