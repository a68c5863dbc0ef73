"""CH-MNIST, on files made in its layout: the split, class shares, and what can be wrong with the folders."""

import numpy as np
import pytest
import torch
from loaders import pixels

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import ch_mnist
from fednb.datasets.ch_mnist import CLASSES
from fednb.federation import SPLITS

IMAGES = 50  # of each class; 400 in all, of which 80 are for testing


def load(whole, size=8, **options):
    return fednb.datasets.load("ch_mnist", whole, size=size, **options)


def under_test(federation) -> list[bytes]:
    return sorted(image for site in federation.sites for image in pixels(site.test))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, picture):
    whole = tmp_path_factory.mktemp("tissue")
    for number in range(8 * IMAGES):
        picture(whole / "ch_mnist" / CLASSES[number % 8] / f"{number:03}_CRC-Prim-HE-01.tif", number, size=15)
    return whole


class TestSites:
    def test_every_image_is_used_once_and_a_fifth_is_for_testing(self, whole):
        federation = load(whole)
        assert [site.name for site in federation.sites] == [f"client_{number}" for number in range(8)]
        assert federation.classes == CLASSES and federation.image_shape == (3, 8, 8)
        assert len(under_test(federation)) == 80
        everything = [image for site in federation.sites for split in SPLITS for image in pixels(getattr(site, split))]
        files = [file for name in CLASSES for file in images.files(whole / "ch_mnist" / name)]
        assert sorted(everything) == sorted(images.decode(file, 8)[0].tobytes() for file in files)

    def test_the_split_disregards_classes_and_is_always_the_same(self, whole):
        """A stratified split would have ten test images of each class."""
        one, other = load(whole, seed=0), load(whole, seed=1, classes_per_client=4)
        assert under_test(one) == under_test(other) and one.fingerprint != other.fingerprint
        found = torch.cat([site.test.targets for site in one.sites]).bincount(minlength=8)
        assert (found != 10).any() and 3 < found.min()

    def test_fewer_images_than_there_are_is_a_note(self, whole, monkeypatch):
        assert load(whole).notes == ("400 of CH-MNIST's 5000 images are on disk.",)
        monkeypatch.setattr(ch_mnist, "COMPLETE", 400)
        assert load(whole).notes == ()


class TestLayout:
    def test_the_folder_may_keep_the_archive_s_name(self, whole, tree):
        (tree / "ch_mnist").rename(tree / "Kather_texture_2016_image_tiles_5000")
        assert load(tree).fingerprint == load(whole).fingerprint
        assert ch_mnist.describe(tree) == ["ready", "all classes: 400 images (complete: 5000)"]


class TestReal:
    @pytest.mark.parametrize(("kind", "count"), [("original_tif", 24), ("png", 8), ("resampled", 100)])
    def test_samples(self, real_data, tmp_path, kind, count):
        """The original tiles, and forms in which others hand them on."""
        samples = real_data / "ch_mnist_samples" / kind
        if not samples.is_dir():
            pytest.skip(f"no {samples}")
        (tmp_path / "ch_mnist").symlink_to(samples)
        federation = load(tmp_path, size=64, clients=1)
        assert federation.notes[0] == f"{count} of CH-MNIST's 5000 images are on disk."
        everything = pixels(*(getattr(federation.sites[0], split) for split in SPLITS))
        assert len(set(everything)) == count and federation.image_shape == (3, 64, 64)

    def test_counts(self, real):
        federation = load(real)
        total = np.sum([[len(getattr(site, split)) for split in SPLITS] for site in federation.sites], axis=0)
        assert total[:2].sum() == 4000 and total[2] == 1000
