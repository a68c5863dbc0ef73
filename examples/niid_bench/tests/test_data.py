"""The noisy federation, on made images: who sees which noise, and that nothing else differs."""

import numpy as np
import pytest
from PIL import Image

import fednb
from fednb.datasets.cifar10 import CLASSES


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Ten images of each class and part, all of one grey."""
    folder = tmp_path_factory.mktemp("images")
    for part in ("train", "test"):
        for number, name in enumerate(CLASSES):
            place = folder / "cifar10" / part / name
            place.mkdir(parents=True)
            for image in range(10):
                Image.fromarray(np.full((32, 32, 3), 100 + number, np.uint8)).save(place / f"{image:04}.png")
    return folder


def spreads(federation) -> list[float]:
    """Of each party's pixels about the image's own grey, in 0..1, over training and test images."""
    found = []
    for site in federation.sites:
        parts = [part.images.float() - (100 + part.targets.view(-1, 1, 1, 1)) for part in (site.train, site.test)]
        found.append([float(part.std()) / 255 for part in parts])
    return found


def test_noise_grows_from_party_to_party_in_training_and_test(root):
    found = np.array(spreads(fednb.load("noisy_cifar10", root, clients=5)))
    assert found == pytest.approx(np.tile([[0.0], [0.025], [0.05], [0.075], [0.1]], 2), abs=0.002)


def test_without_noise_it_is_the_homogeneous_partition_each_image_once(root):
    noisy, plain = (fednb.load("noisy_cifar10", root, clients=5, noise=noise) for noise in (0.1, 0.0))
    assert np.max(spreads(plain)) == 0
    for part, each in (("train", 18), ("validation", 2), ("test", 20)):
        dealt = [[getattr(site, part).targets for site in federation.sites] for federation in (noisy, plain)]
        assert [len(own) for own in dealt[0]] == [each] * 5
        assert all(bool((a == b).all()) for a, b in zip(*dealt, strict=True))
        assert sum(own.bincount(minlength=10) for own in dealt[1]).tolist() == [each // 2] * 10


def test_the_seed_deals_out_images_and_noise(root):
    one, same, other = (fednb.load("noisy_cifar10", root, clients=5, seed=seed) for seed in (0, 0, 1))
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [({"clients": 1}, "clients is 1"), ({"noise": -1}, "noise is -1"), ({"clients": 11}, "cannot be dealt out")],
)
def test_what_cannot_be_is_refused(root, options, said):
    with pytest.raises(fednb.FednbError, match=said):
        fednb.load("noisy_cifar10", root, **options)
