"""FedRDN outside this package's loop: the last transform of any pipeline of images.

::

    mean, std = statistics(client_images)                       # at each client, once: images in [0, 1]
    means, stds = torch.stack(all_means), torch.stack(all_stds)  # the server shares all clients' pairs

    normalise = RandomDataNormalise(means, stds, own=2)          # at client 2
    training = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.RandomHorizontalFlip(), normalise])

    test = RandomDataNormalise(means, stds, own=2).eval()        # at test time: the client's own pair
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from fednb.errors import DataError


class RandomDataNormalise(nn.Module):
    r"""Normalises each image with the statistics of a random client in training, with the client's own otherwise.

    .. math::
        \hat x = (x - \mu^j) / \sigma^j, \quad j \sim \{1, \dots, K\} \quad\text{in training} \tag{6}

        \hat x = (x - \mu^k) / \sigma^k \quad\text{in evaluation mode} \tag{7}

    One draw for each image, anew every time it is seen, from torch's global generator (which a ``DataLoader`` seeds
    in each of its workers). ``v2.Compose`` does not hand ``eval()`` on: call it on this transform, or make two.

    Args:
        means, stds: of all clients, ``[K, channels]``, as ``statistics`` gives them.
        own: which of them this client is, from 0. With K = 1 it is normalisation with the client's own statistics.

    Reference: FedRDN, Sec. 3.2, Algorithm 2.
    """

    def __init__(self, means: Tensor, stds: Tensor, own: int):
        super().__init__()
        if means.ndim != 2 or means.shape != stds.shape:
            raise DataError(
                f"means are {list(means.shape)} and stds {list(stds.shape)}; expected [clients, channels] for both. "
                "Stack the pairs of all clients."
            )
        if not (stds > 0).all():
            raise DataError("a standard deviation is 0 or below; normalisation would divide by it. Remove the channel.")
        if not 0 <= own < len(means):
            raise DataError(f"own is {own}; expected a client from 0 to {len(means) - 1}.")
        self.register_buffer("means", means)
        self.register_buffer("stds", stds)
        self.own = own

    def forward(self, images: Tensor, *others):
        """Floats ``[channels, height, width]``, or a batch ``[n, channels, height, width]`` -> the same shape.

        What comes beside the images, such as labels, is returned beside them as it is.
        """
        normalised = self._normalised(images)
        return (normalised, *others) if others else normalised

    def _normalised(self, images: Tensor) -> Tensor:
        _require_floats(images)
        if images.ndim not in (3, 4) or images.shape[-3] != self.means.shape[1]:
            raise DataError(
                f"images are {list(images.shape)}; expected {self.means.shape[1]} channels, as the statistics have: "
                f"[{self.means.shape[1]}, height, width], or a batch of them. Convert the images first."
            )
        batch = images if images.ndim == 4 else images[None]
        if self.training:
            chosen = torch.randint(len(self.means), (len(batch),))  # Eq. 6
        else:
            chosen = torch.full((len(batch),), self.own)  # Eq. 7
        return normalise(batch, self.means, self.stds, chosen, chosen).reshape(images.shape)


def normalise(images: Tensor, means: Tensor, stds: Tensor, mean_of: Tensor, std_of: Tensor) -> Tensor:
    """Image i with the mean of client ``mean_of[i]`` and the standard deviation of client ``std_of[i]``.

    images: float ``[n, channels, height, width]``; means, stds: ``[clients, channels]``; indices: int64 ``[n]``.
    """
    mean, std = (
        values.to(images.dtype)[chosen.to(values.device, non_blocking=True)][:, :, None, None]
        for values, chosen in ((means, mean_of), (stds, std_of))
    )
    return (images - mean) / std


def statistics(images: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    r"""A client's pair: the means over its images of each image's channel mean and standard deviation.

    .. math::
        \mu^k = \tfrac{1}{n_k} \sum_i \mu_i^k, \quad \sigma^k = \tfrac{1}{n_k} \sum_i \sigma_i^k  \tag{4, 5}

    images: floats ``[n, channels, height, width]``, or any number of images ``[channels, height, width]``, which may
    differ in height and width; before random augmentation. Two float32 tensors ``[channels]``. (FedRDN prints Eq. 4
    as a sum, which would make every image almost constant; its code takes the mean.)

    Raises DataError for no images, or a channel that is constant in every image.
    """
    mean, std, count = 0, 0, 0
    for image in images:
        _require_floats(image)
        pixels = image.double().flatten(1)
        mean, std, count = mean + pixels.mean(1), std + pixels.std(1, correction=0), count + 1
    if not count:
        raise DataError("no images were given; the statistics of a client need at least one.")
    if not std.all():
        constant = ", ".join(map(str, (std == 0).nonzero().flatten().tolist()))
        raise DataError(
            f"channel {constant} is constant in every image: its standard deviation is 0 and normalisation would "
            "divide by it. Remove the channel."
        )
    return (mean / count).float(), (std / count).float()


def _require_floats(images) -> None:
    if not isinstance(images, Tensor) or not images.is_floating_point():
        found = str(images.dtype) if isinstance(images, Tensor) else type(images).__name__
        raise DataError(
            f"images are {found}; expected floats in [0, 1]. Put v2.ToImage() and "
            "v2.ToDtype(torch.float32, scale=True) before."
        )
