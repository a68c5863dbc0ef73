"""CH-MNIST, on files made in its layout: the split, class shares, and what can be wrong with the folders."""

import shutil

import numpy as np
import pytest
import torch
from loaders import copied, pixels

import fednb.data
from fednb.data import _images as images
from fednb.data import ch_mnist
from fednb.data.ch_mnist import CLASSES
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

IMAGES = 50  # of each class; 400 in all, of which 80 are for testing


def load(root, size=8, **options):
    return fednb.data.load("ch_mnist", root, size=size, **options)


def under_test(federation) -> list[bytes]:
    return sorted(image for site in federation.sites for image in pixels(site.test))


@pytest.fixture(scope="module")
def root(tmp_path_factory, picture):
    root = tmp_path_factory.mktemp("tissue")
    for number in range(8 * IMAGES):
        picture(root / "ch_mnist" / CLASSES[number % 8] / f"{number:03}_CRC-Prim-HE-01.tif", number, size=15)
    return root


@pytest.fixture
def tree(root, tmp_path):
    return copied(root, tmp_path / "data")


class TestSites:
    def test_every_image_is_used_once_and_a_fifth_is_for_testing(self, root):
        federation = load(root)
        assert [site.name for site in federation.sites] == [f"client_{number}" for number in range(8)]
        assert federation.classes == CLASSES and federation.image_shape == (3, 8, 8)
        assert len(under_test(federation)) == 80
        everything = [image for site in federation.sites for split in SPLITS for image in pixels(getattr(site, split))]
        files = [file for name in CLASSES for file in images.files(root / "ch_mnist" / name)]
        assert sorted(everything) == sorted(images.decode(file, 8)[0].tobytes() for file in files)

    def test_the_split_disregards_classes_and_is_always_the_same(self, root):
        """A stratified split would have ten test images of each class."""
        one, other = load(root, seed=0), load(root, seed=1, classes_per_client=4)
        assert under_test(one) == under_test(other) and one.fingerprint != other.fingerprint
        found = torch.cat([site.test.targets for site in one.sites]).bincount(minlength=8)
        assert (found != 10).any() and 3 < found.min()

    @pytest.mark.parametrize("clients, u", [(8, 6), (8, 4), (8, 2), (16, 4)])
    def test_class_shares(self, root, clients, u):
        federation = load(root, clients=clients, classes_per_client=u)
        assert len(federation.sites) == clients
        for site in federation.sites:
            own = set(site.train.targets.tolist()) | set(site.validation.targets.tolist())
            assert len(own) == u and set(site.test.targets.tolist()) <= own

    def test_one_class_is_tested_beside_as_many_images_of_others(self, root):
        for site in load(root, classes_per_client=1).sites:
            (label,) = site.train.targets.unique().tolist()
            assert 2 * int((site.test.targets == label).sum()) == len(site.test)

    def test_fewer_images_than_there_are_is_a_note(self, root, monkeypatch):
        assert load(root).notes == ("400 of CH-MNIST's 5000 images are on disk.",)
        monkeypatch.setattr(ch_mnist, "COMPLETE", 400)
        assert load(root).notes == ()


class TestLayout:
    def test_the_folder_may_keep_the_archive_s_name(self, root, tree):
        (tree / "ch_mnist").rename(tree / "Kather_texture_2016_image_tiles_5000")
        assert load(tree).fingerprint == load(root).fingerprint
        assert ch_mnist.describe(tree) == ["ready", "400 images (complete: 5000)"]

    def test_an_empty_class(self, tree):
        shutil.rmtree(tree / "ch_mnist" / "05_DEBRIS")
        (tree / "ch_mnist" / "05_DEBRIS").mkdir()
        with pytest.raises(DataError, match="05_DEBRIS has no images"):
            load(tree)

    def test_options_out_of_range(self, root):
        with pytest.raises(RecipeError, match="may be 8"):
            load(root, clients=3, classes_per_client=4)


class TestReal:
    def test_counts(self, real_data):
        if problem := fednb.data.available("ch_mnist", real_data):
            pytest.skip(problem)
        federation = load(real_data)
        total = np.sum([[len(getattr(site, split)) for split in SPLITS] for site in federation.sites], axis=0)
        assert total[:2].sum() == 4000 and total[2] == 1000
