"""The two toy problems' clients, and how large they are."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.errors import NotebookError, nearest

REAL = torch.float64
SIZES = {
    "smoke": {"points": 60, "weights": 41, "shifts": 25, "rounds": 20},
    "quick": {"points": 500, "weights": 201, "shifts": 121, "rounds": 200},
    "paper": {"points": 2000, "weights": 201, "shifts": 241, "rounds": 200},
}


def sizes(profile: str) -> dict[str, int]:
    """Points per client, candidates for w, candidates for q, rounds. Raises NotebookError if unknown."""
    if profile not in SIZES:
        raise NotebookError(f'PROFILE is "{profile}"; {nearest(profile, SIZES)}')
    return SIZES[profile]


@dataclass(frozen=True)
class Client:
    """One client's training data: x float64 ``[n]`` or ``[n, 2]``, y float64 ``[n]``."""

    x: Tensor
    y: Tensor


def shifted(x: Tensor, p: Tensor | float, q: Tensor | float) -> Tensor:
    """``x + (p x + q)``, the input with its offset. p = 0 and q = 0 give x itself, bit for bit."""
    return x + (p * x + q)


def make_clients(true_weights, points: int, centre: float, spread: float, noise: float, seed: int):
    """One Client for each entry of ``true_weights``: a number makes problem (a), a pair makes problem (b).

    x ~ N(centre, spread^2) in each dimension; ``noise`` is the standard deviation of the noise on y.
    The same seed gives the same draws before centre and spread are applied.
    """
    clients = []
    for k, weight in enumerate(true_weights):
        draw = torch.Generator().manual_seed(1000 * seed + k)
        weight = torch.as_tensor(weight, dtype=REAL)
        x = centre + spread * torch.randn(points, *weight.shape, generator=draw, dtype=REAL)
        clean = x @ weight if weight.ndim else torch.cos(weight * x)
        clients.append(Client(x, clean + noise * torch.randn(points, generator=draw, dtype=REAL)))
    return clients


def cases(points, seeds, centres, true_weights, spread, noise):
    """What both studies go through: seed and centre with the two clients made from them."""
    if not (seeds and centres and len(true_weights) == 2):
        raise NotebookError(
            f"the toy problems got seeds {seeds}, centres {centres} and {len(true_weights)} true weights; "
            "expected at least one seed, at least one centre and two true weights, one for each client."
        )
    for seed in seeds:
        for centre in centres:
            clients = make_clients(true_weights, points, centre, spread, noise, seed)
            yield {"seed": seed, "centre": centre}, clients
