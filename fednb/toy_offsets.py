"""DisTrans, Section 3 and Figure 2: the two toy problems that motivate an offset for each client.

(a) Cosine. Two clients, ``y = cos(w_k x) + noise`` with x in R, model ``f(x) = cos(w x)``, squared loss.
(b) Linear. Two clients, ``y = w_k . x + noise`` with x in R^2, model ``f(x) = w . x`` without a bias, squared
    loss, trained by federated averaging.

An offset replaces a client's input x by ``x' = x + (p x + q)`` with a scale p and a shift q.

What an offset can do, by algebra. Write ``s = 1 + p``.

* A scale p that both clients share changes the unit of w and nothing else:
  ``w x' = (s w) (x + q / s)``. So the loss at (w, p, q) is the loss at (s w, 0, q / s).
* (b) With mean ``m_k`` and covariance ``S_k`` of client k's inputs, its expected loss is
  ``(s w - w_k)' S_k (s w - w_k) + (w . q_k - (w_k - s w) . m_k)^2 + noise variance``.
  The shift enters by ``w . q_k`` alone: it is a private bias. It removes the second term at best. The first
  term stays, and if ``m_k = 0`` a shift can only add to it.
* (a) With x ~ N(m, d^2) a shift adds ``w q`` to the phase of the cosine. If ``m = 0`` the term in which the
  model agrees with the labels, ``-cos(w q) (exp(-d^2 (s w - w_k)^2 / 2) + exp(-d^2 (s w + w_k)^2 / 2))``,
  only shrinks by it; if m is far from 0, a phase can make up for ``(w_k - s w) m``.

As printed
  1. p is fixed and the same at both clients. In (a) q is found by brute force, in (b) q and w by SGD at each
     client.
  2. (a) x is drawn from a Gaussian; (b) each of the two dimensions from a normal distribution. The noise has
     mean 0.
  3. Figure 2 shows the squared training loss against w (a) and against the sum of w's two dimensions (b).

Left open, our choice
  1. Whether the offset is added to x or stands in its place. Added: the introduction speaks of "an offset
     that is added to the local data". In its place would be the same inputs with p one larger.
  2. The centre and spread of x, the true weights, p, the noise and all sizes: arguments. The paper prints no
     number for Figure 2.
  3. What the brute force minimises: ``aim="gap"``, the root mean square difference of the two clients'
     losses over the grid of w (the text speaks of this difference), or ``aim="loss"``, the smallest mean
     loss that one shared w can have.
  4. One number q for each client in (a), one vector q in R^2 for each client in (b).
  5. (b) An offset stays at its client. For each mini-batch the offset steps first, then the model
     (Algorithm 1). The curve of Figure 2b is taken as the path of the aggregate over the rounds.
  6. ``learn=("p", "q")`` lets each client learn its own scale, one for each dimension. The paper does not do
     this.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.errors import FednbError, NotebookError, nearest

REAL = torch.float64
AIMS = ("gap", "loss")

# The paper prints no sizes: "paper" is only a larger draw and a finer search than "quick".
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


def _cases(points, seeds, centres, true_weights, spread, noise):
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


# ---------------------------------------------------------------------------------------------- (a) cosine


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
        smallest mean of both losses, which is what one shared w can reach."""
        first, second = self.losses
        best = self.weights[self.losses.argmin(1)]
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
    for case, clients in _cases(size["points"], seeds, centres, **data):
        rows.append(case | {"offset": "none", "result": cosine_curves(clients, weights)})
        for aim in AIMS:
            found = search_shifts(clients, weights, p, candidates, aim)
            rows.append(case | {"offset": aim, "result": cosine_curves(clients, weights, p, found)})
    return rows


# ---------------------------------------------------------------------------------------------- (b) linear


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
            slopes = torch.autograd.grad(linear_loss(part, weight, **offset | free), list(free.values()))
            for name, slope in zip(learn, slopes, strict=True):
                offset[name] = offset[name] - rate * slope
        free = weight.clone().requires_grad_()
        (slope,) = torch.autograd.grad(linear_loss(part, free, **offset), free)
        weight = weight - rate * slope
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
    for case, clients in _cases(size["points"], seeds, centres, **data):
        for name, (scale, learn) in offsets.items():
            path = federate(clients, size["rounds"], scale, learn, seed=case["seed"])
            rows.append(case | {"offset": name, "result": path})
    return rows


# ----------------------------------------------------------------------------------- table, text and figure


def table(rows: list[dict]):
    """The results' numbers as a data frame, means over the seeds, indexed by centre of x and offset."""
    import pandas

    numbers = [{"centre": row["centre"], "offset": row["offset"]} | row["result"].numbers for row in rows]
    return pandas.DataFrame(numbers).groupby(["centre", "offset"], sort=False).mean()


def findings(cosine, linear, noise: float) -> str:
    """What the two tables say, in Markdown; ``noise`` is the standard deviation of the noise on y.

    "Lower" and "higher" mean by more than a twentieth.
    """

    def change(name, before, after):
        word = "lower" if after < 0.95 * before else "higher" if after > 1.05 * before else "about the same"
        return f"{name} {before:.3f} → {after:.3f} ({word})"

    lines = []
    for centre in cosine.index.unique("centre"):
        none = cosine.loc[(centre, "none")]
        for aim, goal in (("gap", "the gap"), ("loss", "one shared w")):
            parts = [change(name, none[name], cosine.loc[(centre, aim), name]) for name in cosine.columns]
            lines.append(f"- **(a), x around {centre:g}, q searched for {goal}:** {'; '.join(parts)}.")
    for centre in linear.index.unique("centre"):
        none = linear.loc[(centre, "none"), "loss at the end"]
        for offset, what in (("q", "q learned"), ("p and q", "p and q learned")):
            end = linear.loc[(centre, offset), "loss at the end"]
            lines.append(
                f"- **(b), x around {centre:g}, {what}:** {change('loss of the aggregate', none, end)}; "
                f"the noise alone is {noise**2:.3f}."
            )
    moves = linear.xs("none", level="offset")["restless"].max()
    lines.append(
        f"- **(b), no offset:** over the last quarter of the rounds the sum of w varies by {moves:.4f} "
        "(standard deviation)."
    )
    return "\n".join(lines)


def figure(cosine: list[dict], linear: list[dict]):
    """Figure 2 for the first seed, one column for each centre of x. Returns the figure.

    Rows: (a) with q searched for the gap, (a) with q searched for one shared w, (b). Dashed is without
    offset; colours differ in lightness, so that the figure reads in grey. A large mark ends a path.
    """
    import matplotlib.pyplot as plt

    cosine = [row for row in cosine if row["seed"] == cosine[0]["seed"]]
    linear = [row for row in linear if row["seed"] == linear[0]["seed"]]
    centres = list(dict.fromkeys(row["centre"] for row in cosine))
    shape = {"figsize": (4.4 * len(centres), 8.4), "squeeze": False, "layout": "constrained"}
    fig, axes = plt.subplots(3, len(centres), sharey="row", **shape)
    for column, centre in enumerate(centres):
        curves = {row["offset"]: row["result"] for row in cosine if row["centre"] == centre}
        _draw_curves(axes[0, column], curves["none"], curves["gap"])
        axes[0, column].set(title=f"(a) x around {centre:g}, q for the gap", xlabel="w")
        _draw_curves(axes[1, column], curves["none"], curves["loss"])
        axes[1, column].set(title=f"(a) x around {centre:g}, q for one shared w", xlabel="w")
        paths = {row["offset"]: row["result"] for row in linear if row["centre"] == centre}
        _draw_paths(axes[2, column], paths)
        axes[2, column].set(title=f"(b) x around {centre:g}", xlabel="sum of w's dimensions", yscale="log")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("squared training loss")
        ax.legend(frameon=False, fontsize=8)
    plt.close(fig)
    return fig


def _draw_curves(ax, plain: Curves, moved: Curves) -> None:
    for k, colour in enumerate(("#003366", "#ee9944")):
        style = {"color": colour, "linewidth": 3, "alpha": 0.5}
        ax.plot(moved.weights, moved.losses[k], label=f"client {k + 1}, offset", **style)
        ax.plot(plain.weights, plain.losses[k], "--", color=colour, label=f"client {k + 1}, no offset")


def _draw_paths(ax, paths: dict[str, Path]) -> None:
    styles = {"p and q": ("-^", "#ee9944"), "q": ("-s", "#003366"), "none": ("--o", "#888888")}
    for z, (offset, (style, colour)) in enumerate(styles.items(), start=3):
        sums, losses = paths[offset].weights.sum(1), paths[offset].losses
        label = "no offset" if offset == "none" else f"{offset} learned"
        ax.plot(sums, losses, style, color=colour, markersize=3, linewidth=1, zorder=z, label=label)
        size = 6 if offset == "none" else 10
        end = {"markersize": size, "markeredgecolor": "black", "zorder": z}
        ax.plot(sums[-1], losses[-1], style[-1], color=colour, **end)
