"""How much clients differ in the classes that they have (DisTrans, Sec. 4.3 and 4.4)."""

import torch
from torch import Tensor

from fednb.errors import DataError


def distributional_heterogeneity(counts) -> float:
    r"""DH of a federation: 0 where every client has every class, 1 where no class is at two clients.

    .. math::
        DH = 1 - \frac{\sum_j c_j}{N C}  \tag{3}

    with N classes and C clients; c_j is the number of clients that have class j, or 0 where fewer than two have
    it (Eq. 4, which leaves out a class that nobody has). How many images a client has of a class does not matter.

    counts: images of each class at each client, ``[clients, classes]``.
    """
    held = _matrix(counts) > 0
    clients = held.sum(0)
    shared = int(clients[clients > 1].sum())  # Eq. 4
    return (held.numel() - shared) / held.numel()  # Eq. 3


def class_fractions(counts) -> Tensor:
    """The vector e of each client: which part of all images of a class is at this client; float64, 0 for no images.

    counts: as above; the fractions have the same shape, and those of a class sum to 1.
    """
    counts = _matrix(counts).double()
    return counts / counts.sum(0).clamp(min=1)


def _matrix(counts) -> Tensor:
    counts = torch.as_tensor(counts)
    if counts.ndim != 2 or not counts.numel():
        raise DataError(
            f"counts are of shape {list(counts.shape)}; expected [clients, classes], with one of each at least."
        )
    return counts
