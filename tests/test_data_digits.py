"""The four sources of digits: formats, counts, fractions, MNIST-M's origin, and damaged files."""

import gzip

import numpy as np
import pytest
import torch
from loaders import counts, different
from PIL import Image

import fednb.datasets
from fednb.datasets import digits
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS


def load(root, **options):
    return fednb.datasets.load("digits", root, **options)


def noise(seed: int, n: int, size: int, *channels: int):
    """Images [n, size, size] or [n, size, size, channels] and labels 0..9, each as often."""
    images = np.random.RandomState(seed).randint(0, 256, (n, size, size, *channels), np.uint8)
    return images, (np.arange(n) * 7 % 10).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def write_mnist(folder, gzipped=False):
    folder = folder / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name, (x, y) in zip(("train", "t10k"), MNIST, strict=True):
        for kind, array in {"images-idx3": x, "labels-idx1": y}.items():
            content = gzip.compress(idx(array)) if gzipped else idx(array)
            (folder / f"{name}-{kind}-ubyte{'.gz' * gzipped}").write_bytes(content)


def write_npz(file, train, test, **more):
    """An array that is None is left out."""
    file.parent.mkdir(parents=True, exist_ok=True)
    named = {"x_train": train[0], "y_train": train[1], "x_test": test[0], "y_test": test[1], **more}
    np.savez(file, **{name: array for name, array in named.items() if array is not None})


def larger(image: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(image).resize((32, 32), Image.BILINEAR))


MNIST = noise(1, 400, 28), noise(2, 100, 28)
ORIGIN = {"index_train": np.arange(200, 300), "index_test": np.arange(50, 100)}
MNIST_M = (noise(3, 100, 32, 3)[0], MNIST[0][1][200:300]), (noise(4, 50, 32, 3)[0], MNIST[1][1][50:100])
USPS = noise(5, 300, 16), noise(6, 60, 16)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """All but SVHN, as if the sources had no more images than the ones made here."""
    made = {"mnist": (400, 100), "mnist_m": (100, 50), "usps": (300, 60), "svhn": (200, 40)}
    monkeypatch.setattr(digits, "COMPLETE", made)
    write_mnist(tmp_path / "digits", gzipped=True)
    write_npz(tmp_path / "digits" / "mnist_m.npz", *MNIST_M, **ORIGIN)
    write_npz(tmp_path / "digits" / "usps.npz", *USPS)
    return tmp_path


class TestFederation:
    def test_counts_and_pixels(self, root):
        """Every image of a site is one of its source, resized, under its label, with its colours in their channels."""
        federation = load(root, fraction=0.5)
        assert counts(federation) == {"mnist": (180, 20, 100), "mnist_m": (45, 5, 50), "usps": (135, 15, 60)}
        for part in (getattr(site, split) for site in federation.sites for split in SPLITS):
            per_class = part.targets.bincount(minlength=10)
            assert per_class.max() - per_class.min() <= 1
        source = {larger(image).tobytes(): int(label) for image, label in zip(*MNIST[0], strict=True)}
        train = federation.site("mnist").train
        assert torch.equal(train.images[:, :1].expand(-1, 3, -1, -1), train.images)
        assert [source[image[0].numpy().tobytes()] for image in train.images] == train.targets.tolist()
        source = {image.transpose(2, 0, 1).tobytes() for image in MNIST_M[0][0]}
        assert different(federation.site("mnist_m").train) <= source

    def test_domains_choose_the_sites_and_their_order(self, root):
        assert "svhn is not on disk and left out." in load(root).notes
        federation = load(root, domains=["usps", "mnist"])
        assert list(counts(federation)) == ["usps", "mnist"] and federation.notes == ()

    def test_the_fraction_is_of_the_complete_source(self, root, monkeypatch):
        """MNIST-M is said to have 1,000 and 200 images; 100 and 50 are on disk."""
        monkeypatch.setitem(digits.COMPLETE, "mnist_m", (1000, 200))
        assert counts(load(root, fraction=0.05, test_fraction=0.1))["mnist_m"] == (45, 5, 20)
        assert counts(load(root, fraction=0.1))["mnist_m"] == (90, 10, 50)
        assert "mnist_m is tested on 50 images; 200 are asked for." in load(root).notes

    @pytest.mark.parametrize(
        "options, error, said",
        [
            ({"domains": ["usps", "svhn"]}, DataError, "no svhn in .*digits"),
            ({"domains": ["minst"]}, RecipeError, 'no domain "minst"; did you mean "mnist"'),
            ({"fraction": 0.03}, RecipeError, "mnist_m is left with 3 training, 0 validation"),
            ({"domains": ["usps"], "test_fraction": 0.005}, RecipeError, "usps is left with .* and 0 test images"),
            ({"domains": ["usps"], "more": True}, DataError, r"no usps_more\.npz in .*; say more=False"),
            ({"fraction": 1.0, "separate_mnist_m": True}, DataError, "400 training images of mnist; 300 are on disk"),
        ],
    )
    def test_what_cannot_be_had(self, root, options, error, said):
        with pytest.raises(error, match=said):
            load(root, **options)

    @pytest.mark.parametrize("first, said", [(140, None), (241, "index_train has 59 numbers of the file before it")])
    def test_a_source_in_two_files(self, root, monkeypatch, first, said):
        """MNIST-M's second has 60 to train on, from ``first`` on, and 30 to test."""
        monkeypatch.setitem(digits.COMPLETE, "mnist_m", (160, 80))
        index = {"index_train": np.arange(first, first + 60), "index_test": np.arange(30)}
        train, test = (noise(9, 60, 32, 3)[0], MNIST[0][1][first : first + 60]), noise(10, 30, 32, 3)
        write_npz(root / "digits" / "mnist_m_more.npz", train, (test[0], MNIST[1][1][:30]), **index)
        if said:
            with pytest.raises(DataError, match=f"mnist_m_more.npz cannot be read .{said}"):
                load(root, more=True)
            return
        whole = load(root, fraction=1.0, more=True)
        assert counts(whole)["mnist_m"] == (144, 16, 80) and "240 digits of mnist are in" in whole.notes[-1]
        everything = np.concatenate([MNIST_M[1][0], test[0]]).transpose(0, 3, 1, 2)
        assert different(whole.site("mnist_m").test) == {image.tobytes() for image in everything}


class TestOrigin:
    def test_digits_of_mnist_m_are_left_out_of_mnist(self, root, monkeypatch):
        """MNIST-M uses all its 150 digits; without them MNIST has 300 and 50."""
        shared = load(root, fraction=1.0)
        monkeypatch.setitem(digits.COMPLETE, "mnist", (300, 50))
        separate = load(root, fraction=1.0, separate_mnist_m=True)
        origins = zip(MNIST, ORIGIN.values(), strict=True)
        originals = {np.stack([larger(image)] * 3).tobytes() for (x, _), index in origins for image in x[index]}
        assert [len(different(*f.site("mnist").parts) & originals) for f in (shared, separate)] == [150, 0]
        assert counts(shared)["mnist"] == (360, 40, 100) and counts(separate)["mnist"] == (270, 30, 50)
        assert any(note.startswith("150 digits of mnist are in mnist_m") for note in shared.notes)
        assert not any("digits of mnist" in note for note in separate.notes)

    def test_mnist_alone_needs_mnist_m_to_leave_its_digits_out(self, root):
        together = load(root).only("mnist")
        (root / "digits" / "mnist_m.npz").unlink()
        assert load(root, site="mnist").fingerprint == together.fingerprint
        with pytest.raises(DataError, match="no mnist_m in"):
            load(root, site="mnist", separate_mnist_m=True)

    def test_a_file_that_does_not_say_or_says_wrongly(self, root):
        write_npz(root / "digits" / "mnist_m.npz", *MNIST_M)
        assert any("does not say from which digits" in note for note in load(root).notes)
        with pytest.raises(DataError, match=r"mnist_m\.npz has no index_train"):
            load(root, separate_mnist_m=True)
        for wrong in (np.arange(201, 301), np.arange(350, 450), np.arange(5), -ORIGIN["index_train"]):
            write_npz(root / "digits" / "mnist_m.npz", *MNIST_M, **(ORIGIN | {"index_train": wrong}))
            with pytest.raises(DataError, match="index_train .* does not lead to MNIST images of the same digits"):
                load(root, fraction=1.0)


class TestFormats:
    def test_mnist_in_all_forms_is_the_same(self, tmp_path, root):
        write_npz(tmp_path / "npz" / "mnist.npz", *MNIST)
        write_mnist(tmp_path / "plain" / "digits")
        for other in ("npz", "plain"):
            assert load(tmp_path / other, domains=["mnist"]).fingerprint == load(root, domains=["mnist"]).fingerprint
        (tmp_path / "plain" / "digits" / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").unlink()
        with pytest.raises(DataError, match="no mnist in"):
            load(tmp_path / "plain", domains=["mnist"])

    def test_a_damaged_idx_file_is_named(self, root):
        file = root / "digits" / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
        content, plain = file.read_bytes(), idx(MNIST[0][0])
        other_type, short = gzip.compress(b"\0\0\x0d\3" + plain[4:]), gzip.compress(plain[:-1])
        for damaged in (content[: len(content) // 2], b"<html>not found</html>", other_type, short):
            file.write_bytes(damaged)
            with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz cannot be read"):
                load(root, domains=["mnist"])

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"y_test": None}, "expected x_train, y_train, x_test and y_test"),
            ({"x_train": np.array([print])}, r"cannot be read \(.*OBJECT"),
            ({"x_train": USPS[0][0] / 255}, r"train images are float64 \[300, 16, 16\]"),
            ({"x_test": USPS[1][0][:, None]}, r"test images are uint8 \[60, 1, 16, 16\]"),
            ({"y_train": USPS[0][1][:-1]}, r"labels uint8 \[299\]"),
            ({"y_train": USPS[0][1] / 1.0}, "labels float64"),
            ({"y_train": USPS[0][1] + 1}, "a digit from 0 to 9"),
            ({"y_test": USPS[1][1].astype(int) - 1}, "a digit from 0 to 9"),
            ({"x_test": USPS[1][0][:0], "y_test": USPS[1][1][:0]}, r"test images are uint8 \[0"),
        ],
    )
    def test_what_an_npz_should_not_hold(self, root, change, message):
        write_npz(root / "digits" / "usps.npz", *USPS, **change)
        with pytest.raises(DataError, match=rf"usps\.npz.*{message}"):
            load(root, domains=["usps"])

    def test_a_file_of_another_bit_is_named(self, root):
        content = bytearray((root / "digits" / "usps.npz").read_bytes())
        content[700] ^= 1
        (root / "digits" / "usps.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"usps\.npz cannot be read"):
            load(root, domains=["usps"])


def test_counts_of_real_images(real_data):
    if problem := fednb.datasets.available("digits", real_data, domains=["mnist", "mnist_m", "usps"], more=True):
        pytest.skip(problem)
    federation = load(real_data, domains=["mnist", "mnist_m", "usps"], fraction=0.01, separate_mnist_m=True)
    assert [cut[:2] for cut in counts(federation).values()] == [(540, 60), (531, 59), (66, 7)]
    tested = federation.site("usps").test.targets.bincount().tolist()
    assert tested == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    federation = load(real_data, domains=["mnist", "mnist_m"], fraction=0.1, more=True)
    assert counts(federation)["mnist_m"] == (5310, 590, 9000)
    assert "mnist_m is tested on 9000 images; 9001 are asked for." in federation.notes
