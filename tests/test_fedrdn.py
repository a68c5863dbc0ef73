"""FedRDN and FedRDN-V against Eq. 4 to 8, computed independently in float64."""

import numpy as np
import pytest
import torch
from methods import HELD_OUT, federation, prepared, train
from PIL import Image
from torchvision.transforms import v2

from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS, Federation, Site, Split
from fednb.methods import flow
from fednb.methods.augmentations import fedrdn
from fednb.methods.augmentations.fedrdn import RandomDataNormalise
from fednb.randomness import generator

PAPER = "fedrdn"
RELEASED = {"name": "fedrdn", "variant": "released"}


def clients(augmentation, data=None, **settings) -> dict:
    """Of a run after the exchange before round 1, by name."""
    return prepared([augmentation], data, **settings).clients


def state(client) -> dict[str, np.ndarray]:
    return {name: tensor.double().numpy() for name, tensor in client.memory(client.methods[-1]).items()}


def pixels(split) -> np.ndarray:
    return split.images.numpy().astype(np.float64) / 255


def statistics(images: np.ndarray, ddof: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 5 for every image, then the mean over images in the place of Eq. 4's sum."""
    flat = images.reshape(*images.shape[:2], -1)
    means = flat.sum(2) / flat.shape[2]
    deviations = np.sqrt(((flat - means[..., None]) ** 2).sum(2) / (flat.shape[2] - ddof))
    return means.mean(0), deviations.mean(0)


def test_every_client_knows_all_pairs_of_eq_4_and_5():
    data = federation()
    wanted = [statistics(pixels(site.train)) for site in data.sites]
    for client, (mean, std) in zip(clients(PAPER).values(), wanted, strict=True):
        known = state(client)
        np.testing.assert_allclose(known["mean"], [pair[0] for pair in wanted], rtol=1e-6)
        np.testing.assert_allclose(known["std"], [pair[1] for pair in wanted], rtol=1e-6)
        np.testing.assert_allclose(known["own_mean"], [mean], rtol=1e-6)
        np.testing.assert_allclose(known["own_std"], [std], rtol=1e-6)


def test_released_statistics_are_sample_deviations_of_augmented_images():
    still = clients(RELEASED)
    for client in still.values():
        mean, std = statistics(pixels(client.site.train), ddof=1)
        np.testing.assert_allclose(state(client)["own_mean"][0], mean, rtol=1e-6)
        np.testing.assert_allclose(state(client)["own_std"][0], std, rtol=1e-6)
    for client in clients(RELEASED, flow=("rotation",)).values():
        draws = generator(0, 0, client.name, "fedrdn statistics")
        turned = flow.rotation(client.site.train.images.float() / 255, draws).numpy().astype(np.float64)
        mean, std = statistics(turned, ddof=1)
        np.testing.assert_allclose(state(client)["own_mean"][0], mean, rtol=1e-5)
        np.testing.assert_allclose(state(client)["own_std"][0], std, rtol=1e-5)
        assert (mean < state(still[client.name])["own_mean"]).all()  # black corners
    for client in clients(PAPER, flow=("rotation",)).values():
        assert state(client)["own_mean"][0] == pytest.approx(statistics(pixels(client.site.train))[0])


def candidates(client, indices) -> np.ndarray:
    """[mean of client, sigma of client, image, ...]: all results that Eq. 6 could have, unpaired ones included."""
    known, images = state(client), pixels(client.site.train.select(indices))
    mean, std = known["mean"][:, None, None, :, None, None], known["std"][None, :, None, :, None, None]
    return (images - mean) / std


def drawn(client, indices) -> tuple[list[int], list[int]]:
    """Whose mean and whose sigma each image of one training batch was normalised with."""
    indices = torch.as_tensor(indices)
    batch = client.batch(client.site.train, indices, training=True)
    off = np.abs(candidates(client, indices) - batch.images.numpy()).max((3, 4, 5))
    assert (np.sort(off.reshape(-1, len(indices)), axis=0)[0] < 1e-12).all()
    assert (np.sort(off.reshape(-1, len(indices)), axis=0)[1] > 1e-3).all()  # only one fits
    best = off.reshape(-1, len(indices)).argmin(0)
    means, sigmas = np.unravel_index(best, off.shape[:2])
    return means.tolist(), sigmas.tolist()


def test_paper_draws_one_pair_for_each_image_each_time():
    client = next(iter(clients(PAPER).values()))
    seen = []
    for _ in range(20):
        means, sigmas = drawn(client, range(12))
        assert means == sigmas
        seen.append(tuple(means))
    assert len(set(seen)) == 20 and all(len(set(draws)) > 1 for draws in seen)
    counts = np.bincount(np.concatenate(seen), minlength=3)
    assert counts.sum() == 240 and (abs(counts - 80) < 30).all()  # uniform: 4 standard deviations


def test_released_draws_once_for_the_batch_and_mean_and_sigma_apart():
    client = next(iter(clients(RELEASED).values()))
    seen = set()
    for _ in range(60):
        means, sigmas = drawn(client, range(4))
        assert len(set(means)) == len(set(sigmas)) == 1
        seen.add((means[0], sigmas[0]))
    assert seen == {(a, b) for a in range(3) for b in range(3)}


@pytest.mark.parametrize("augmentation", [PAPER, RELEASED])
def test_at_test_time_every_image_gets_its_own_clients_pair(augmentation):
    for client in clients(augmentation, flow=("flip", "rotation")).values():
        known = state(client)
        mean, std = known["own_mean"][0][:, None, None], known["own_std"][0][:, None, None]
        batch = client.batch(client.site.test, torch.arange(HELD_OUT), training=False)
        np.testing.assert_allclose(batch.images, (pixels(client.site.test) - mean) / std, atol=1e-12)


@pytest.mark.parametrize("augmentation", [PAPER, RELEASED, "fedrdn_v"])
def test_a_constant_channel_is_an_error_that_names_it(augmentation):
    data = federation()
    images = data.sites[1].train.images.clone()
    images[:, 2] = torch.arange(len(images), dtype=torch.uint8)[:, None, None]  # constant in each image
    dull = Site("harbour", Split(images, data.sites[1].train.targets), *[data.sites[1].test] * 2)
    with pytest.raises(DataError, match="channel 2 is constant in every training image of harbour"):
        clients(augmentation, Federation("toy", [data.sites[0], dull], data.classes))


def test_fedrdn_v_uses_the_mean_over_clients_always():
    data = federation()
    pairs = [statistics(pixels(site.train)) for site in data.sites]
    mean, std = (np.mean([pair[n] for pair in pairs], axis=0)[:, None, None] for n in (0, 1))  # Eq. 8 over K
    for client in clients("fedrdn_v").values():
        for split, training in ((client.site.train, True), (client.site.test, False)):
            batch = client.batch(split, torch.arange(5), training=training)
            np.testing.assert_allclose(batch.images, (pixels(split)[:5] - mean) / std, rtol=1e-5, atol=1e-6)


def test_normalisation_of_images_with_other_channels_is_refused():
    """Three means would make three channels of one without a word."""
    data = federation()
    splits = ([getattr(site, name) for name in SPLITS] for site in data.sites)
    cut = [[Split(split.images[:, :1], split.targets) for split in own] for own in splits]
    grey = [Site(site.name, *own) for site, own in zip(data.sites, cut, strict=True)]
    with pytest.raises(RecipeError, match="normalise has 3 means and 3 standard deviations.*clinic have 1 channels"):
        train({"augmentations": ["normalise"]}, Federation("grey", grey, data.classes), rounds=1)


MEANS = torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.5, 0.5], [0.7, 0.6, 0.9]])
STDS = torch.tensor([[0.5, 0.25, 0.2], [0.1, 0.2, 0.4], [1.0, 0.3, 0.6]])


def test_in_compose_each_image_gets_one_clients_pair_anew():
    picture = Image.fromarray(np.random.RandomState(0).randint(0, 256, (5, 7, 3), np.uint8))
    means, stds = (values.numpy()[:, :, None, None] for values in (MEANS, STDS))
    each = (np.asarray(picture).transpose(2, 0, 1) / 255 - means) / stds
    transform = v2.Compose(
        [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), RandomDataNormalise(MEANS, STDS, own=1)]
    )
    torch.manual_seed(0)
    off = np.array([np.abs(each - transform(picture).numpy()).max((1, 2, 3)) for _ in range(300)])
    assert (off.min(1) < 1e-5).all()
    assert (np.abs(np.bincount(off.argmin(1), minlength=3) - 100) < 33).all()  # uniform: 4 standard deviations


def test_one_image_by_hand():
    """(0.5 - 0.1) / 0.5, (0.5 - 0.2) / 0.25, (0.5 - 0.3) / 0.2."""
    result = RandomDataNormalise(MEANS, STDS, own=0).eval()(torch.full((3, 2, 2), 0.5))
    torch.testing.assert_close(result[:, 1, 0], torch.tensor([0.8, 1.2, 1.0]))


def test_statistics_are_means_over_images_of_any_size():
    """Means 0.2 and 0.6; deviations 0.2 (0.0 and 0.4) and 0: the large image counts no more than the small one."""
    mean, std = fedrdn.statistics([torch.tensor([[[0.0, 0.4]]]), torch.full((1, 30, 30), 0.6)])
    torch.testing.assert_close(mean, torch.tensor([0.4]))
    torch.testing.assert_close(std, torch.tensor([0.1]))


def test_statistics_of_whole_numbers_are_refused():
    with pytest.raises(DataError, match="images are torch.uint8; expected floats"):
        fedrdn.statistics(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
