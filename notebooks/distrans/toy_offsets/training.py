"""The two toy problems: the cosine's offsets by brute force, the linear model's by federated averaging."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.errors import FednbError, nearest
from toy_offsets.data import REAL, Client, cases, shifted, sizes

AIMS = ("gap", "loss")


def cosine_loss(client: Client, weights: Tensor, p: float = 0.0, q: float = 0.0) -> Tensor:
    """Mean of ``(cos(w x') - y)^2`` for each w of ``weights`` ``[m]``: ``[m]``."""
    x = shifted(client.x, p, q)  # [n]
    return ((torch.cos(weights[:, None] * x) - client.y) ** 2).mean(1)


@dataclass(frozen=True)
class Curves:
    """Two clients' losses ``[2, m]`` over ``weights`` ``[m]`` with the shifts that were used."""

    weights: Tensor
    losses: Tensor
    shifts: tuple[float, float]

    @property
    def numbers(self) -> dict[str, float]:
        """How far the clients are apart (root mean square over the grid, distance of their best w), and the
        smallest mean of both losses, which is what one shared w can reach.

        The distance is NaN where a loss still falls at the grid's last w: its minimum was not seen."""
        first, second = self.losses
        best = self.weights[self.losses.argmin(1)]
        best = best.where(best != self.weights[-1], torch.nan)
        return {
            "gap": float((first - second).square().mean().sqrt()),
            "distance of minima": float((best[0] - best[1]).abs()),
            "lowest shared loss": float(self.losses.mean(0).min()),
        }


def cosine_curves(clients, weights: Tensor, p: float = 0.0, shifts=(0.0, 0.0)) -> Curves:
    """Both clients' losses with scale p and one shift each; p = 0 and shifts of 0 are no offset."""
    losses = torch.stack([cosine_loss(c, weights, p, q) for c, q in zip(clients, shifts, strict=True)])
    return Curves(weights, losses, tuple(shifts))


def search_shifts(clients, weights: Tensor, p: float, shifts: Tensor, aim: str) -> tuple[float, float]:
    """Brute force over all pairs of ``shifts`` ``[s]`` for the two clients; the first pair wins a tie.

    aim: "gap" or "loss" (module text, our choice 3). Raises FednbError if it is neither.
    """
    if aim not in AIMS:
        raise FednbError(f'the aim of the search is "{aim}"; {nearest(aim, AIMS)}')
    first, second = (torch.stack([cosine_loss(c, weights, p, q) for q in shifts.tolist()]) for c in clients)
    if aim == "gap":
        score = torch.stack([((losses - second) ** 2).mean(1) for losses in first])  # [s, s]
    else:
        score = torch.stack([((losses + second) / 2).amin(1) for losses in first])
    row, column = divmod(int(score.argmin()), len(shifts))
    return float(shifts[row]), float(shifts[column])


def cosine_study(profile, seeds, centres, reach, p=0.0, **data) -> list[dict]:
    """Problem (a) for every seed and centre of x: without offset, and with q searched for each aim.

    w runs over [0, 4], q over [-reach, reach]; ``data`` is true_weights, spread and noise of make_clients.
    A row has seed, centre, offset ("none", "gap" or "loss") and result, the Curves.
    """
    size = sizes(profile)
    weights = torch.linspace(0, 4, size["weights"], dtype=REAL)
    half = size["shifts"] // 2
    candidates = torch.arange(-half, half + 1, dtype=REAL) * (reach / half)  # 0 is one of them, exactly
    rows = []
    for case, clients in cases(size["points"], seeds, centres, **data):
        rows.append(case | {"offset": "none", "result": cosine_curves(clients, weights)})
        for aim in AIMS:
            found = search_shifts(clients, weights, p, candidates, aim)
            rows.append(case | {"offset": aim, "result": cosine_curves(clients, weights, p, found)})
    return rows


def linear_loss(client: Client, weight: Tensor, p: Tensor | float = 0.0, q: Tensor | float = 0.0) -> Tensor:
    """Mean of ``(w . x' - y)^2`` over the client's points, for w ``[2]``."""
    return ((shifted(client.x, p, q) @ weight - client.y) ** 2).mean()


@dataclass(frozen=True)
class Path:
    """A federated run: aggregated w ``[rounds + 1, 2]``, mean training loss ``[rounds + 1]``, lowest_loss."""

    weights: Tensor
    losses: Tensor
    lowest: float

    @property
    def numbers(self) -> dict[str, float]:
        """Where the run ends; "restless" is the standard deviation of the sum over the last quarter."""
        sums = self.weights.sum(1)
        return {
            "loss at the end": float(self.losses[-1]),
            "lowest possible": self.lowest,
            "sum of w": float(sums[-1]),
            "restless": float(sums[-max(2, len(sums) // 4) :].std()),
        }


def federate(clients, rounds: int, p=0.0, learn=(), rate=0.01, steps=10, seed=0) -> Path:
    """Federated averaging of w from 0, equal weights; a round is one local epoch of ``steps`` mini-batches.

    An offset starts at (p, 0), stays at its client, and steps before w on each mini-batch, both by SGD with
    ``rate``. ``learn`` names what it learns: () with p = 0 is no offset, ("q",) the paper's offset,
    ("p", "q") our addition.
    """
    offsets = [{"p": torch.full((2,), p, dtype=REAL), "q": torch.zeros(2, dtype=REAL)} for _ in clients]
    orders = [torch.Generator().manual_seed(1000 * seed + 500 + k) for k in range(len(clients))]
    parts = list(zip(clients, offsets, orders, strict=True))
    weights, losses = [torch.zeros(2, dtype=REAL)], []
    for _ in range(rounds):
        losses.append(_mean_loss(clients, weights[-1], offsets))
        replies = [_local_epoch(*part, weights[-1], learn, rate, steps) for part in parts]
        weights.append(torch.stack(replies).mean(0))
    losses.append(_mean_loss(clients, weights[-1], offsets))
    return Path(torch.stack(weights), torch.stack(losses), lowest_loss(clients, learn))


def _mean_loss(clients, weight, offsets) -> Tensor:
    return sum(linear_loss(c, weight, **own) for c, own in zip(clients, offsets, strict=True)) / len(clients)


def _local_epoch(client, offset, order, weight, learn, rate, steps) -> Tensor:
    """One pass over the client's points; updates ``offset`` in place, returns the new w ``[2]``."""
    for picked in torch.randperm(len(client.y), generator=order).chunk(steps):
        part = Client(client.x[picked], client.y[picked])
        if learn:
            free = {name: offset[name].clone().requires_grad_() for name in learn}
            gradients = torch.autograd.grad(linear_loss(part, weight, **offset | free), list(free.values()))
            for name, gradient in zip(learn, gradients, strict=True):
                offset[name] = offset[name] - rate * gradient
        free = weight.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(linear_loss(part, free, **offset), free)
        weight = weight - rate * gradient
    return weight


def lowest_loss(clients, learn=()) -> float:
    """The smallest mean training loss of any shared w with any such offsets, by least squares.

    For clients with equal numbers of points. A shared fixed p changes nothing (module text). ("q",): a shift
    is a private bias, so each client's x and y lose their means. ("p", "q"): with a private scale for each
    dimension each client fits alone, as long as no entry of the shared w is 0.
    """
    xs, ys = [c.x for c in clients], [c.y for c in clients]
    if "q" in learn:
        xs, ys = [x - x.mean(0) for x in xs], [y - y.mean() for y in ys]
    problems = zip(xs, ys, strict=True) if "p" in learn else [(torch.cat(xs), torch.cat(ys))]
    left = [((x @ torch.linalg.lstsq(x, y[:, None]).solution)[:, 0] - y).square().mean() for x, y in problems]
    return float(torch.stack(left).mean())


def linear_study(profile, seeds, centres, p=0.0, **data) -> list[dict]:
    """Problem (b) for every seed and centre of x; ``data`` as in cosine_study.

    A row has seed, centre, offset ("none", "q" or "p and q" learned) and result, the Path.
    """
    size = sizes(profile)
    offsets = {"none": (0.0, ()), "q": (p, ("q",)), "p and q": (p, ("p", "q"))}
    rows = []
    for case, clients in cases(size["points"], seeds, centres, **data):
        for name, (scale, learn) in offsets.items():
            path = federate(clients, size["rounds"], scale, learn, seed=case["seed"])
            rows.append(case | {"offset": name, "result": path})
    return rows
