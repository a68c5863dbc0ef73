"""CIFAR-10 and CIFAR-100: both layouts, both partitions, what a client is tested on, and damaged batches."""

import pickle
import re
from collections import Counter

import loaders
import numpy as np
import pytest
import torch
from loaders import pixels
from PIL import Image

import fednb.datasets
from fednb.datasets import cifar10, cifar100
from fednb.datasets.cifar10 import CLASSES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

# Images of each class here: 50 for training and 20 for testing.
TRAIN, TEST = 50, 20


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
def arrays() -> dict:
    """Images [n, 3, 32, 32] and labels by part, class after class."""
    random = np.random.RandomState(0)
    return {
        part: (random.randint(0, 256, (10 * count, 3, 32, 32), np.uint8), np.repeat(np.arange(10), count))
        for part, count in {"train": TRAIN, "test": TEST}.items()
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory, arrays):
    root = tmp_path_factory.mktemp("folders")
    for part, (x, y) in arrays.items():
        for number, (image, label) in enumerate(zip(x, y, strict=True)):
            file = root / "cifar10" / part / CLASSES[label] / f"{number:04}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image.transpose(1, 2, 0)).save(file)
    return root


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


@pytest.fixture(scope="module")
def batches(tmp_path_factory, arrays):
    root = tmp_path_factory.mktemp("batches")
    write_batches(root / "cifar-10-batches-py", arrays)
    return root


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
            "500 of CIFAR-10's 50000 train images are used; 500 are on disk.",
            "200 of CIFAR-10's 10000 test images are used; 200 are on disk.",
        )
        monkeypatch.setattr(cifar10, "COMPLETE", {"train": 500, "test": 200})
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
    def test_tested_on_its_own_classes_in_its_own_shares(self, batches, arrays, u):
        federation = load(batches, classes_per_client=u)
        for site in federation.sites:
            mine = np.array(held(site.train)) + held(site.validation)
            assert (mine > 0).sum() == u and ((mine > 0) == (np.array(held(site.test)) > 0)).all()
            # The same share of 50 and of 20, each rounded by less than one image.
            assert np.abs(mine / TRAIN - np.array(held(site.test)) / TEST).max() < 1 / TRAIN + 1 / TEST
        assert sorted(trained(federation)) == sorted(image.tobytes() for image in arrays["train"][0])
        assert under_test(federation) == sorted(image.tobytes() for image in arrays["test"][0])
        for train, validation, _ in counts(federation):
            assert abs(validation - 0.1 * (train + validation)) <= 0.5

    def test_one_class_is_tested_beside_as_many_images_of_others(self, batches, arrays):
        federation = load(batches, classes_per_client=1)
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
        # Ten draws of 20 from the 180 others: a client's own draws repeat some image.
        assert any(len({*pixels(site.test)}) < 2 * TEST for site in federation.sites)
        assert len(negatives) > 100  # the clients do not draw the same ones

    @pytest.mark.parametrize("u, clients", [(1, 200), (2, 100), (5, 10**9)])
    def test_too_many_clients(self, batches, u, clients):
        """The number that is named is possible, and a multiple of what the classes need."""
        with pytest.raises(DataError, match=f"to {clients} clients by {u} of 10 classes each") as found:
            load(batches, classes_per_client=u, clients=clients)
        most = int(re.search(r"Take at most (\d+) clients", str(found.value))[1])
        federation = load(batches, classes_per_client=u, clients=most)
        assert len(federation.sites) == most > 20 and most * u % 10 == 0
        assert all(train >= 4 and validation and test for train, validation, test in counts(federation))


class TestDirichlet:
    def test_dealt_and_tested(self, batches, arrays):
        federation = load(batches, partition="dirichlet", clients=8, concentration=0.3)
        assert sorted(trained(federation)) == sorted(image.tobytes() for image in arrays["train"][0])
        assert min(train + validation for train, validation, _ in counts(federation)) >= 10
        assert under_test(federation) == sorted(image.tobytes() for image in arrays["test"][0])
        for site in federation.sites:
            assert len(site.test) == 25 and max(held(site.test)) - min(held(site.test)) <= 1


class TestFewer:
    def test_so_many_images_of_all_classes(self, batches):
        federation = load(batches, train_images=200, test_images=100)
        assert np.sum(counts(federation), axis=0).tolist() == [180, 20, 100]
        for split, expected in {"test": [10] * 10, "train": [18] * 10}.items():
            total = np.sum([held(getattr(site, split)) for site in federation.sites], axis=0)
            assert np.abs(total - expected).max() <= 2
        few, many = (set(trained(load(batches, train_images=count))) for count in (200, 400))
        assert few < many

    def test_counts_out_of_range(self, batches):
        for option in ("train_images", "test_images"):
            for count in (0, -1, 2.5, True, 60_000):
                with pytest.raises(RecipeError, match=f"{option} is {count}"):
                    load(batches, **{option: count})

    def test_more_than_on_disk_and_fewer_than_clients_need(self, batches):
        with pytest.raises(DataError, match="train_images=501, but 500 are on disk"):
            load(batches, train_images=501)
        with pytest.raises(DataError, match=r"30 training .* 5 training images .* Take at most 3 clients"):
            load(batches, train_images=30)
        with pytest.raises(DataError, match=r"4 training .* each client\. Take more images"):
            load(batches, train_images=4)


class TestSpare:
    @pytest.mark.parametrize("options", [{}, {"classes_per_client": 2}, {"partition": "dirichlet", "clients": 5}])
    def test_the_other_test_images_dealt_out_alike(self, batches, folders, arrays, options):
        plain, asked = (load(batches, test_images=100, **options, **spare) for spare in ({}, {"spare": True}))
        assert counts(asked) == counts(plain) and all(site.spare is None for site in plain.sites)
        for one, other in zip(plain.sites, asked.sites, strict=True):
            assert all(torch.equal(getattr(one, s).images, getattr(other, s).images) for s in SPLITS)
            assert other.spare.targets.unique().tolist() == other.test.targets.unique().tolist()
            assert abs(len(other.spare) - len(other.test)) <= 5
        everything = [image for site in asked.sites for part in (site.test, site.spare) for image in pixels(part)]
        assert sorted(everything) == sorted(image.tobytes() for image in arrays["test"][0])
        assert "100 other test images are spare." in asked.notes
        assert load(folders, test_images=100, spare=True, **options).fingerprint == asked.fingerprint

    def test_one_class_has_spare_images_of_others_beside_its_own(self, batches):
        site = load(batches, classes_per_client=1, test_images=100, spare=True, size=8).sites[0]
        own = site.train.targets.unique()
        assert len(site.spare) == 20 and (site.spare.targets[:10] == own).all() and own not in site.spare.targets[10:]
        assert site.spare.images.shape[2:] == (8, 8) and not {*pixels(site.spare)} & {*pixels(site.test)}
        with pytest.raises(RecipeError, match="no spare images: all 200 are test images. Lower test_images"):
            load(batches, spare=True)


@pytest.mark.parametrize(
    "shape, labels, message",
    [
        ((2, 3072), [0], r"\[2, 3072\] bytes for 1 labels"),
        ((1, 1024), [0], r"\[1, 1024\]"),
        ((1, 3072), [10], "labels from 10 to 10"),
        ((1, 3072), [-1], "labels from -1 to -1"),
    ],
)
def test_a_batch_of_something_else_is_named(batches, tmp_path, shape, labels, message):
    copy = loaders.copied(batches, tmp_path / "copy")
    file = copy / "cifar-10-batches-py" / "data_batch_3"
    file.write_bytes(pickle.dumps({"data": np.zeros(shape, np.uint8), "labels": labels}, 2))
    with pytest.raises(DataError, match=f"data_batch_3 .*({message})"):
        load(copy)


def test_counts_of_real_images_by_partition(real_data):
    if problem := fednb.datasets.available("cifar10", real_data):
        pytest.skip(problem)
    some = {"train_images": 2000, "test_images": 1000}
    shared = load(real_data, classes_per_client=2, **some)
    assert np.sum(counts(shared), axis=0)[2] == 1000 and sum(np.sum(counts(shared), axis=0)[:2]) == 2000
    drawn = load(real_data, partition="dirichlet", clients=40, concentration=0.3, **some)
    assert {test for _, _, test in counts(drawn)} == {25}
