"""The four sources of digits: formats, counts, fractions, MNIST-M's origin, and damaged files.

There are 40 test images each, and 1190, 590, 73, 733 training images; MNIST-M is made from MNIST's last 590 and all 40.
"""

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


def load(tree, **options):
    return fednb.datasets.load("digits", tree, **{"fraction": 0.01} | options)


def held(tree, name) -> dict[str, np.ndarray]:
    return dict(np.load(tree / "digits" / f"{name}.npz"))


def rewrite(tree, name, **changed) -> None:
    """Changes arrays of a file; None takes one away."""
    arrays = held(tree, name) | changed
    np.savez(tree / "digits" / f"{name}.npz", **{key: array for key, array in arrays.items() if array is not None})


def larger(image: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(image).resize((32, 32), Image.BILINEAR))


class TestFederation:
    def test_counts_and_pixels(self, tree):
        """Every image of a site is one of its source, resized, under its label, with its colours in their channels."""
        federation = load(tree)
        assert counts(federation) == {
            "mnist": (540, 60, 40), "mnist_m": (531, 59, 40), "usps": (66, 7, 40), "svhn": (660, 73, 40)
        }  # fmt: skip
        for part in (getattr(site, split) for site in federation.sites for split in SPLITS):
            per_class = part.targets.bincount(minlength=10)
            assert per_class.max() - per_class.min() <= 1
        mnist, train = held(tree, "mnist"), federation.site("mnist").train
        source = {larger(x).tobytes(): y for x, y in zip(mnist["x_train"], mnist["y_train"], strict=True)}
        assert torch.equal(train.images[:, :1].expand(-1, 3, -1, -1), train.images)
        assert [source[image[0].numpy().tobytes()] for image in train.images] == train.targets.tolist()
        source = {image.transpose(2, 0, 1).tobytes() for image in held(tree, "mnist_m")["x_train"]}
        assert different(federation.site("mnist_m").train) <= source

    def test_usps_has_mnists_margin_where_asked(self, tree):
        plain, margin = (load(tree, usps_margin=asked, test_fraction=0.02) for asked in (False, True))
        images, whole = margin.site("usps").test.images, plain.site("usps").test.images
        inside = images[:, :, 5:-5, 5:-5].double()
        assert not images[:, :, :5].any() and not images[..., -5:].any() and inside.shape[2:] == (22, 22)
        assert abs(inside.mean() - whole.double().mean()) < 3  # all of the image, shrunk
        assert torch.equal(margin.site("mnist").test.images, plain.site("mnist").test.images)

    def test_domains_choose_the_sites_and_their_order(self, tree):
        (tree / "digits" / "svhn.npz").unlink()
        assert "svhn is not on disk and left out." in load(tree).notes
        assert list(counts(load(tree, domains=["usps", "mnist"]))) == ["usps", "mnist"]
        with pytest.raises(DataError, match="no svhn in .*digits"):
            load(tree, domains=["usps", "svhn"])

    def test_test_images_are_a_share_of_the_complete_source(self, tree):
        assert counts(load(tree, test_fraction=0.002))["mnist_m"] == (531, 59, 18)
        assert "mnist_m is tested on 40 images; 9001 are asked for." in load(tree).notes

    @pytest.mark.parametrize(
        "options, error, said",
        [
            ({"domains": ["minst"]}, RecipeError, 'no domain "minst"; did you mean "mnist"'),
            ({"fraction": 0.0005}, RecipeError, "usps is left with 4 training, 0 validation"),
            ({"domains": ["usps"], "test_fraction": 0.0002}, RecipeError, "usps is left with .* and 0 test images"),
            ({"domains": ["usps"], "more": True}, DataError, r"no usps_more\.npz in .*; say more=False"),
            ({"domains": ["usps"], "fraction": 0.1}, DataError, "729 training images of usps; 73 are on disk"),
        ],
    )
    def test_what_cannot_be_had(self, tree, options, error, said):
        with pytest.raises(error, match=said):
            load(tree, **options)

    @pytest.mark.parametrize("first, said", [(540, None), (541, "index_train has 1 numbers of the file before it")])
    def test_a_source_in_two_files(self, tree, monkeypatch, first, said):
        """MNIST-M's second has 60 to train on, from ``first`` on, and 30 to test, of which the first has none."""
        monkeypatch.setitem(digits.COMPLETE, "mnist_m", (650, 40))
        mnist_m, index = held(tree, "mnist_m"), np.arange(first, first + 60)
        cut = {"x_test": mnist_m["x_test"][:10], "y_test": np.arange(10), "index_test": np.arange(10)}
        rewrite(tree, "mnist_m", **cut)
        more = {"x_train": 255 - mnist_m["x_train"][:60], "y_train": index % 10, "index_train": index}
        more |= {f"{name}_test": mnist_m[f"{name}_test"][10:] for name in ("x", "y", "index")}
        np.savez(tree / "digits" / "mnist_m_more.npz", **more)
        if said:
            with pytest.raises(DataError, match=f"mnist_m_more.npz cannot be read .{said}"):
                load(tree, more=True)
            return
        whole = load(tree, domains=["mnist_m"], fraction=1.0, more=True)
        assert counts(whole)["mnist_m"] == (585, 65, 40)
        everything = [*mnist_m["x_train"], *more["x_train"], *mnist_m["x_test"]]
        assert different(*whole.sites[0].parts) == {image.transpose(2, 0, 1).tobytes() for image in everything}


class TestOrigin:
    def test_digits_of_mnist_m_are_left_out_of_mnist(self, tree, monkeypatch):
        """MNIST-M is made of the last 590 of MNIST's 1190 training images and, here, of its last 20 test images."""
        mnist_m = held(tree, "mnist_m")
        rewrite(tree, "mnist_m", **{name: mnist_m[name][20:] for name in ("x_test", "y_test", "index_test")})
        monkeypatch.setitem(digits.COMPLETE, "mnist", (60_000, 20))
        shared, separate = (load(tree, test_fraction=1.0, separate_mnist_m=apart) for apart in (False, True))
        mnist = held(tree, "mnist")
        originals = mnist["x_train"][600:], mnist["x_test"][20:]
        in_both = []
        for site in (found.site("mnist") for found in (shared, separate)):
            trained, tested = different(site.train, site.validation), different(site.test)
            made_from = [{np.stack([larger(image)] * 3).tobytes() for image in part} for part in originals]
            in_both.append(len(trained & made_from[0]) + len(tested & made_from[1]))
        assert in_both[0] > 100 and in_both[1] == 0 and counts(shared)["mnist"] == counts(separate)["mnist"]
        assert any(note.startswith(f"{in_both[0]} digits of mnist are in mnist_m") for note in shared.notes)
        assert not any("digits of mnist" in note for note in separate.notes)

    def test_mnist_alone_needs_mnist_m_to_leave_its_digits_out(self, tree):
        together = load(tree).only("mnist")
        (tree / "digits" / "mnist_m.npz").unlink()
        assert load(tree, site="mnist").fingerprint == together.fingerprint
        with pytest.raises(DataError, match="no mnist_m in"):
            load(tree, site="mnist", separate_mnist_m=True)

    def test_a_file_that_does_not_say_or_says_wrongly(self, tree):
        right = held(tree, "mnist_m")["index_train"]
        for wrong in (right - 1, right + 10, np.arange(5), -right):
            rewrite(tree, "mnist_m", index_train=wrong)
            with pytest.raises(DataError, match="index_train .* does not lead to MNIST images of the same digits"):
                load(tree)
        rewrite(tree, "mnist_m", index_train=None)
        assert any("does not say from which digits" in note for note in load(tree).notes)
        with pytest.raises(DataError, match=r"mnist_m\.npz has no index_train"):
            load(tree, separate_mnist_m=True)


class TestFormats:
    @pytest.mark.parametrize("opener, suffix", [(open, ""), (gzip.open, ".gz")])
    def test_mnists_own_files(self, tree, opener, suffix):
        """Two zero bytes, type 8, the number of dimensions, big-endian sizes, the bytes."""
        npz, mnist, place = load(tree, domains=["mnist"]), held(tree, "mnist"), tree / "MNIST" / "raw"
        (tree / "digits" / "mnist.npz").unlink()
        place.mkdir(parents=True)
        for array, name in {"x_train": "train-images-idx3", "x_test": "t10k-images-idx3"}.items():
            labels = mnist[array.replace("x", "y")].astype(np.uint8)
            for kind, content in {name: mnist[array], name.replace("images-idx3", "labels-idx1"): labels}.items():
                with opener(place / f"{kind}-ubyte{suffix}", "wb") as file:
                    file.write(bytes((0, 0, 8, content.ndim)) + np.array(content.shape, ">u4").tobytes())
                    file.write(content.tobytes())
        assert load(tree, domains=["mnist"]).fingerprint == npz.fingerprint
        images = place / f"train-images-idx3-ubyte{suffix}"
        with opener(images, "rb") as file:
            whole = file.read()
        for damaged in (whole[:-1], b"\0\0\x0d\3" + whole[4:], b"<html>not found</html>"):
            with opener(images, "wb") as file:
                file.write(damaged)
            with pytest.raises(DataError, match=r"train-images-idx3-ubyte\S* cannot be read"):
                load(tree, domains=["mnist"])
        images.unlink()
        with pytest.raises(DataError, match="no mnist in"):
            load(tree, domains=["mnist"])

    @pytest.mark.parametrize(
        "array, change, message",
        [
            ("y_test", lambda array: None, "expected x_train, y_train, x_test and y_test"),
            ("x_train", lambda array: np.array([print]), r"cannot be read \(Object arrays"),
            ("x_train", lambda array: array / 255, r"train images are float64 \[73, 16, 16\]"),
            ("x_test", lambda array: array[:, None], r"test images are uint8 \[40, 1, 16, 16\]"),
            ("x_test", lambda array: array[:0], r"test images are uint8 \[0"),
            ("y_train", lambda array: array[:-1], r"labels int64 \[72\]"),
            ("y_train", lambda array: array / 1.0, "labels float64"),
            ("y_train", lambda array: array + 1, "a digit from 0 to 9"),
            ("y_test", lambda array: array - 1, "a digit from 0 to 9"),
        ],
    )
    def test_what_an_npz_should_not_hold(self, tree, array, change, message):
        rewrite(tree, "usps", **{array: change(held(tree, "usps")[array])})
        with pytest.raises(DataError, match=rf"usps\.npz.*{message}"):
            load(tree, domains=["usps"])


def test_counts_of_real_images(real_data):
    if problem := fednb.datasets.available("digits", real_data, domains=["mnist", "mnist_m", "usps"], more=True):
        pytest.skip(problem)
    federation = load(real_data, domains=["mnist", "mnist_m", "usps"], separate_mnist_m=True)
    assert [cut[:2] for cut in counts(federation).values()] == [(540, 60), (531, 59), (66, 7)]
    tested = federation.site("usps").test.targets.bincount().tolist()
    assert tested == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    federation = load(real_data, domains=["mnist", "mnist_m"], fraction=0.1, more=True)
    assert counts(federation)["mnist_m"] == (5310, 590, 9000)
    assert "mnist_m is tested on 9000 images; 9001 are asked for." in federation.notes
