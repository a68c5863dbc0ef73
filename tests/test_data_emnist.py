"""EMNIST by writers: what LEAF's files hold reaches one client a writer; damaged files are named."""

import json

import loaders
import numpy as np
import pytest
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import emnist
from fednb.datasets._partition import sizes
from fednb.errors import DataError
from fednb.federation import SPLITS


def load(root, clients=3, **options):
    return fednb.datasets.load("emnist", root, clients=clients, **options)


def held(site) -> list[tuple[bytes, int]]:
    parts = [getattr(site, split) for split in SPLITS]
    return sorted(
        (x.numpy().tobytes(), int(y)) for part in parts for x, y in zip(part.images, part.targets, strict=True)
    )


@pytest.fixture
def root(tmp_path):
    loaders.writers(tmp_path)
    return tmp_path


@pytest.fixture
def entries(root) -> dict:
    """Each writer's images and classes, as the files have them."""
    files = [json.loads(file.read_text()) for file in sorted((root / "emnist").iterdir())]
    return files[0]["user_data"] | files[1]["user_data"]


def change(root, edit, number=1):
    file = root / "emnist" / f"all_data_{number}.json"
    content = json.loads(file.read_text())
    edit(content)
    file.write_text(json.dumps(content))
    return file


class TestFederation:
    def test_a_client_is_a_writer_with_its_own_images(self, root, entries):
        federation = load(root)
        expected = {
            name: sorted(
                (bytes(round(grey * 255) for grey in image), label)
                for image, label in zip(entry["x"], entry["y"], strict=True)
            )
            for name, entry in entries.items()
        }
        mine = [held(site) for site in federation.sites]
        writers = [next(name for name in expected if expected[name] == images) for images in mine]
        assert sorted(writers) == ["f0100_03", "f0101_47", "f0300_11"]
        assert federation.image_shape == (1, 28, 28)

    def test_rows_stay_rows(self, root):
        """The first 28 numbers of an image are its upper row: nothing is transposed."""
        change(root, lambda held: held["user_data"]["f0300_11"].update(x=[[1.0] * 28 + [0.0] * 756] * 28))
        sites = load(root).sites
        (site,) = (site for site in sites if set(site.train.images.unique().tolist()) == {0, 255})
        assert (site.train.images[:, :, 0] == 255).all() and not site.train.images[:, :, 1:].any()

    def test_classes(self):
        """LEAF: 0 to 9 are digits, 10 to 35 capital, 36 to 61 small letters."""
        assert len(emnist.CLASSES) == 62
        assert [emnist.CLASSES[number] for number in (0, 9, 10, 35, 36, 61)] == list("09AZaz")

    def test_a_tenth_is_for_testing_and_a_tenth_of_the_others_validation(self, root):
        counts = sorted([len(getattr(site, split)) for split in SPLITS] for site in load(root).sites)
        assert counts == [[16, 2, 2], [23, 2, 3], [28, 4, 3]]

    def test_ten_images_suffice_for_all_shares(self):
        assert all(min(sizes(count, emnist.SHARES)) >= 1 for count in range(emnist.LEAST, 1000))

    def test_fewer_clients_are_the_first_of_more(self, root):
        two, three = load(root, clients=2), load(root)
        assert [held(site) for site in two.sites] == [held(site) for site in three.sites[:2]]

    def test_how_writers_lie_in_files_does_not_matter_and_the_seed_does(self, root, tmp_path):
        before = load(root).fingerprint
        assert before != load(root, seed=1).fingerprint
        first, second = sorted((root / "emnist").iterdir())
        third = first.with_name("all_data_2.json")
        first.rename(third), second.rename(first)
        assert load(root).fingerprint == before

    def test_resized(self, root):
        small, large = load(root), load(root, size=32)
        image = Image.fromarray(small.sites[1].test.images[0, 0].numpy())
        expected = np.asarray(image.resize((32, 32), Image.BILINEAR))
        assert (large.sites[1].test.images[0, 0].numpy() == expected).all()

    def test_where_leaf_writes_them(self, root):
        expected = load(root).fingerprint
        (root / "femnist" / "data").mkdir(parents=True)
        (root / "emnist").rename(root / "femnist" / "data" / "all_data")
        assert load(root).fingerprint == expected
        assert emnist.describe(root) == ["ready", "all_data_*.json: 2 files (complete: 36)"]

    def test_notes(self, root):
        assert load(root).notes[:2] == (
            "3 of the 3 writers on disk with at least 10 images take part.",
            "2 of LEAF's 36 files are on disk.",
        )


class TestBadInput:
    def test_more_clients_than_writers(self, root):
        with pytest.raises(
            DataError, match="4 clients are asked for; 3 of the 4 writers .* Take at most 3 clients, or"
        ):
            load(root, clients=4)

    def test_no_writer_with_enough(self, root):
        (root / "emnist" / "all_data_0.json").unlink()
        file = loaders.written(1, {"f0000_00": 9})
        (root / "emnist" / "all_data_1.json").write_text(json.dumps(file))
        with pytest.raises(DataError, match=r"0 of the 1 writers .*\. Get more of LEAF's files"):
            load(root, clients=1)

    def test_a_writer_in_two_files(self, root):
        (root / "emnist" / "all_data_2.json").write_bytes((root / "emnist" / "all_data_0.json").read_bytes())
        with pytest.raises(DataError, match=r"all_data_2\.json has the writer f0100_03 a second time.*Remove one"):
            load(root)

    @pytest.mark.parametrize(
        "edit, message",
        [
            (lambda held: held.pop("users"), "users"),
            (lambda held: held["user_data"].pop("f0300_11"), "f0300_11"),
            (lambda held: held["users"].pop(), "zip"),
            (lambda held: held.update(users=[], num_samples=[]), "need at least one array"),
            (
                lambda held: held["num_samples"].__setitem__(0, 27),
                r"images \[28, 784\] and classes \[28\]; expected 27",
            ),
            (lambda held: held["user_data"]["f0300_11"].update(y=[1] * 27), r"classes \[27\]; expected 28"),
            (lambda held: held["user_data"]["f0300_11"].update(x=[[0] * 783] * 28), r"images \[28, 783\]"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].pop(), "inhomogeneous"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].__setitem__(5, 255), "pixels from 0.0 to 255.0"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].__setitem__(5, -0.1), "pixels from -0.1"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].__setitem__(5, float("nan")), "pixels from nan"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].__setitem__(5, None), "pixels from nan"),
            (lambda held: held["user_data"]["f0300_11"]["y"].__setitem__(5, 62), "whole numbers from 0 to 61"),
            (lambda held: held["user_data"]["f0300_11"]["y"].__setitem__(5, -1), "whole numbers from 0 to 61"),
            (lambda held: held["user_data"]["f0300_11"]["y"].__setitem__(5, 0.5), "whole numbers from 0 to 61"),
            (lambda held: held["user_data"].update(f0300_11=[]), "not enough values"),
        ],
    )
    def test_a_damaged_file_is_named(self, root, edit, message):
        file = change(root, edit)
        with pytest.raises(DataError, match=rf"all_data_1\.json cannot be read \(.*{message}.*\)\. Fetch it again"):
            load(root)
        assert [path for path, _ in emnist.damaged(root)] == [file]

    @pytest.mark.parametrize("content", [b"", b"[]", b"[" * 10**6, b"null"])
    def test_a_file_that_is_something_else(self, root, content):
        (root / "emnist" / "all_data_0.json").write_bytes(content)
        with pytest.raises(DataError, match=r"all_data_0\.json cannot be read"):
            load(root)

    def test_a_file_that_cannot_be_opened(self, root, monkeypatch):
        def refuse(paths):
            raise DataError(f"{paths[0]} cannot be read (Permission denied).")

        monkeypatch.setattr(images, "digests", refuse)
        assert [path.name for path, _ in emnist.damaged(root)] == ["all_data_0.json", "all_data_1.json"]
