"""FedRDN as a transform: in torchvision's Compose, against Eq. 4 to 7, and against the loop."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from fednb.errors import DataError
from fednb.methods.augmentations.fedrdn import normalise
from fednb.standalone.transforms import RandomDataNormalise, statistics

MEANS = torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.5, 0.5], [0.7, 0.6, 0.9]])
STDS = torch.tensor([[0.5, 0.25, 0.2], [0.1, 0.2, 0.4], [1.0, 0.3, 0.6]])


def pictures(count: int, height: int = 5, width: int = 7) -> list[Image.Image]:
    draws = np.random.RandomState(0)
    return [Image.fromarray(draws.randint(0, 256, (height, width, 3), np.uint8)) for _ in range(count)]


def candidates(image: np.ndarray) -> np.ndarray:
    """[client, channel, height, width]: what each client's pair makes of an image."""
    return (image - MEANS.numpy()[:, :, None, None]) / STDS.numpy()[:, :, None, None]


def whose(result, image: np.ndarray) -> int:
    """Whose pair the image was normalised with."""
    off = np.abs(candidates(image) - np.asarray(result)).max((1, 2, 3))
    assert off.min() < 1e-5 and np.sort(off)[1] > 1e-2
    return int(off.argmin())


def pixels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture).transpose(2, 0, 1) / np.float32(255)


def flow(last) -> v2.Compose:
    return v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), last])


def test_in_compose_each_image_gets_one_clients_pair_anew():
    (picture,), transform = pictures(1), flow(RandomDataNormalise(MEANS, STDS, own=1))
    torch.manual_seed(0)
    seen = [whose(transform(picture), pixels(picture)) for _ in range(300)]
    assert (np.abs(np.bincount(seen, minlength=3) - 100) < 33).all()  # uniform: 4 standard deviations


class Pictures(Dataset):
    def __init__(self, transform):
        self.pictures, self.transform = pictures(30), transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), index


def test_in_a_loader_it_batches_plain_tensors():
    loader = DataLoader(Pictures(flow(RandomDataNormalise(MEANS, STDS, own=0))), batch_size=10)
    torch.manual_seed(0)
    for images, indices in loader:
        assert images.shape == (10, 3, 5, 7) and images.dtype == torch.float32
        drawn = {whose(i, pixels(loader.dataset.pictures[k])) for i, k in zip(images, indices, strict=True)}
        assert len(drawn) > 1


def test_one_image_by_hand():
    """(0.5 - 0.1) / 0.5, (0.5 - 0.2) / 0.25, (0.5 - 0.3) / 0.2."""
    result = RandomDataNormalise(MEANS, STDS, own=0).eval()(torch.full((3, 2, 2), 0.5))
    torch.testing.assert_close(result[:, 1, 0], torch.tensor([0.8, 1.2, 1.0]))


@pytest.mark.parametrize("training", [True, False])
def test_it_is_the_loops_normalise_for_the_same_draws(training):
    images = torch.rand(9, 3, 4, 4, dtype=torch.float64)
    transform = RandomDataNormalise(MEANS, STDS, own=2).train(training)
    torch.manual_seed(3)
    drawn = torch.randint(3, (9,)) if training else torch.tensor([2] * 9)
    torch.manual_seed(3)
    assert torch.equal(transform(images), normalise(images, MEANS, STDS, drawn, drawn))


def test_statistics_are_means_over_images_of_any_size():
    """Means 0.2 and 0.6; deviations 0.2 (0.0 and 0.4) and 0 : the large image counts no more than the small one."""
    small = torch.tensor([[[0.0, 0.4]]])
    large = torch.full((1, 30, 30), 0.6)
    mean, std = statistics([small, large])
    torch.testing.assert_close(mean, torch.tensor([0.4]))
    torch.testing.assert_close(std, torch.tensor([0.1]))


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), "images are torch.uint8; expected floats"),
        (pictures(1), "images are Image; expected floats"),
        ([], "no images were given"),
        (torch.linspace(0, 1, 96).reshape(2, 3, 4, 4) * torch.tensor([1, 0, 1])[:, None, None], "channel 1 is const"),
    ],
)
def test_what_no_statistics_can_be_made_of(images, said):
    with pytest.raises(DataError, match=said):
        statistics(images)


def test_labels_pass_beside_the_images_and_other_shapes_are_refused():
    from torchvision.transforms import v2

    means, stds = torch.rand(2, 3), torch.rand(2, 3) + 0.5
    transform = RandomDataNormalise(means, stds, own=1).eval()
    image, label = v2.Compose([transform])(torch.rand(3, 4, 4), 7)
    assert label == 7 and image.shape == (3, 4, 4)
    with pytest.raises(DataError, match=r"images are \[1, 4, 4\]; expected 3 channels"):
        transform(torch.rand(1, 4, 4))
    with pytest.raises(DataError, match="standard deviation is 0 or below"):
        RandomDataNormalise(means, torch.zeros(2, 3), own=0)
