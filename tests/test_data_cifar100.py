"""CIFAR-100: torchvision's folder and archive, both partitions, and damaged files; the rest is CIFAR-10's code."""

import gzip
import io
import pickle
import tarfile

import loaders
import numpy as np
import pytest
from test_data_odd_files import limited, repeated

import fednb.datasets
from fednb.datasets import cifar10, cifar100
from fednb.datasets.cifar100 import CLASSES
from fednb.errors import DataError

FOLDER = "cifar-100-python"


def load(root, size=32, clients=4, classes_per_client=50, **options):
    return fednb.datasets.load(
        "cifar100", root, size=size, clients=clients, classes_per_client=classes_per_client, **options
    )


def held(federation, *splits) -> list[tuple[bytes, int]]:
    parts = [getattr(site, split) for site in federation.sites for split in splits]
    return [(x.numpy().tobytes(), int(y)) for part in parts for x, y in zip(part.images, part.targets, strict=True)]


@pytest.fixture
def root(tmp_path):
    loaders.hundred(tmp_path)
    return tmp_path


def pack(root, members: dict[str, bytes]):
    with tarfile.open(root / f"{FOLDER}.tar.gz", "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.fixture
def archive(root):
    """The same files, packed; the test images come first, as the order in the archive means nothing."""
    pack(root, {f"{FOLDER}/{part}": (root / FOLDER / part).read_bytes() for part in ("test", "train")})
    (root / FOLDER).rename(root / "apart")
    return root


class TestFederation:
    def test_pixels_and_fine_labels(self, root):
        federation = load(root)
        for part, splits in {"train": ("train", "validation"), "test": ("test",)}.items():
            file = pickle.loads((root / FOLDER / part).read_bytes())
            expected = zip((image.tobytes() for image in file["data"]), file["fine_labels"], strict=True)
            assert sorted(held(federation, *splits)) == sorted(expected)
        assert federation.classes == CLASSES and federation.image_shape == (3, 32, 32)
        assert "300 of CIFAR-100's 50000 train images are used; 300 are on disk." in federation.notes

    def test_the_classes_in_their_order(self):
        """Some numbers of the published list, whose order is the alphabet's."""
        assert len(set(CLASSES)) == 100 and list(CLASSES) == sorted(CLASSES)
        numbers = {0: "apple", 19: "cattle", 49: "mountain", 72: "seal", 99: "worm"}
        assert {number: CLASSES[number] for number in numbers} == numbers

    def test_ten_clients_with_ten_classes_each_have_all_between_them(self, root):
        """As in DisTrans' Table 1 at DH = 100 %."""
        federation = load(root, clients=10, classes_per_client=10)
        mine = [{*site.train.targets.tolist(), *site.validation.targets.tolist()} for site in federation.sites]
        assert sorted(sum(map(list, mine), [])) == list(range(100))

    @pytest.mark.parametrize("place", ["", "cifar100"])
    def test_the_archive_is_the_same(self, archive, place):
        (archive / place).mkdir(exist_ok=True)
        (archive / f"{FOLDER}.tar.gz").rename(archive / place / f"{FOLDER}.tar.gz")
        packed = load(archive)
        assert sorted(p.name for p in archive.iterdir()) == sorted(["apart", place or f"{FOLDER}.tar.gz"])
        (archive / "apart").rename(archive / FOLDER)
        assert packed.fingerprint == load(archive).fingerprint

    def test_dirichlet_and_fewer_images(self, root):
        federation = load(root, partition="dirichlet", clients=5, train_images=200, test_images=100)
        assert len(held(federation, "train", "validation")) == 200
        assert [len(site.test) for site in federation.sites] == [20] * 5

    def test_described(self, root, archive, tmp_path):
        assert cifar100.describe(archive) == ["ready", f"files in {FOLDER}.tar.gz"]
        (archive / "apart").rename(archive / FOLDER)
        assert cifar100.describe(archive) == ["ready", f"files in {FOLDER}"] and not cifar100.damaged(archive)


class TestBadInput:
    def test_too_many_clients(self, root):
        with pytest.raises(
            DataError, match="300 training and 200 test images .* 500 clients by 10 of 100 classes each"
        ):
            load(root, clients=500, classes_per_client=10)

    @pytest.mark.parametrize(
        "content, message",
        [
            (b"<html>", 'expected a pickled dictionary with "data" and "fine_labels"'),
            (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [0]}), "cannot be read"),
            (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "fine_labels": [100]}), "labels from 100 to 100"),
            (pickle.dumps({"data": np.zeros((1, 1024), np.uint8), "fine_labels": [0]}), r"uint8 \[1, 1024\]"),
        ],
    )
    def test_a_damaged_file_in_the_archive_is_named(self, root, content, message):
        pack(root, {f"{FOLDER}/train": content, f"{FOLDER}/test": (root / FOLDER / "test").read_bytes()})
        (root / FOLDER).rename(root / "apart")
        file = root / f"{FOLDER}.tar.gz" / "train"
        with pytest.raises(DataError, match=f"{file} .*{message}"):
            load(root)
        assert [path for path, _ in cifar100.damaged(root)] == [file]

    @pytest.mark.parametrize("damage", ["cut", "html", "member", "folder", "sparse"])
    def test_a_damaged_archive_is_named(self, archive, damage):
        file = archive / f"{FOLDER}.tar.gz"
        if damage == "cut":
            file.write_bytes(file.read_bytes()[:-1000])
        elif damage == "html":
            file.write_bytes(b"<html>")
        elif damage == "member":
            pack(archive, {f"{FOLDER}/test": b"", "train": b""})
        else:
            with tarfile.open(file, "w:gz", format=tarfile.PAX_FORMAT) as made:
                entry = tarfile.TarInfo(f"{FOLDER}/train")
                entry.type = tarfile.DIRTYPE if damage == "folder" else tarfile.REGTYPE
                if damage == "sparse":  # a file of nothing that claims to be large
                    entry.pax_headers = {
                        "GNU.sparse.map": "0,0",
                        "GNU.sparse.size": str(2**40),
                        "GNU.sparse.name": entry.name,
                    }
                made.addfile(entry)
        with pytest.raises(DataError, match=rf"{FOLDER}\.tar\.gz cannot be read \(.*\)\. Fetch it again"):
            load(archive)
        assert cifar100.damaged(archive)

    def test_an_archive_stops_at_the_size_of_the_complete_one(self, tmp_path):
        repeated(tmp_path / f"{FOLDER}.tar.gz", gzip.open, bytes(2**20), 99)
        said = limited(
            "from fednb.datasets import cifar10\ncifar10.MOST = 10**6\n"
            f"try: fednb.datasets.load('cifar100', {str(tmp_path)!r})\n"
            "except fednb.datasets.DataError as error: print(error)",
            60,
        )
        assert "tar.gz unpacks to more than 1000000 bytes" in said
        assert cifar10.MOST < 2**28
