"""What the two toy problems show: a table, sentences, Figure 2."""

from fednb.report.page import Lines
from toy_offsets.training import Curves, Path

STILL = 0.01  # standard deviation of the sum of w over the last quarter of a run that has converged


def table(rows: list[dict]):
    """The results' numbers as a data frame, means over the seeds, indexed by centre of x and offset."""
    import pandas

    numbers = [{"centre": row["centre"], "offset": row["offset"]} | row["result"].numbers for row in rows]
    return pandas.DataFrame(numbers).groupby(["centre", "offset"], sort=False).mean()


def answers(cosine: list[dict], linear: list[dict]) -> list[str]:
    """What became of both parts of the claim, a line for each and each centre of x."""
    losses, ends, paths = table(cosine), table(linear)["loss at the end"], table(linear)["restless"]
    helped = [
        f"{centre:g}"
        for centre in ends.index.unique("centre")
        if ends[centre, "q"] < 0.9 * ends[centre, "none"]
        and losses.loc[(centre, "loss"), "lowest shared loss"]
        < 0.9 * losses.loc[(centre, "none"), "lowest shared loss"]
    ]
    still = paths.xs("none", level="offset").max() < STILL
    lines = [
        f"the shift q helps only where inputs are centred at {' or '.join(helped) or 'none of these'}; the average "
        f"{'converges without it, too' if still else 'does not converge without it'}"
    ]
    for centre in losses.index.unique("centre"):
        none, own = (losses.loc[(centre, offset), "lowest shared loss"] for offset in ("none", "loss"))
        lines.append(f"(a) x around {centre:g}: the best shared w has a loss of {none:.3f} without, {own:.3f} with q")
    for centre in ends.index.unique("centre"):
        none, own = (ends.loc[(centre, offset)] for offset in ("none", "q"))
        lines.append(f"(b) x around {centre:g}: the average ends at a loss of {none:.3f} without, {own:.3f} with q")
    return lines


def sentences(cosine: list[dict], linear: list[dict], noise: float) -> Lines:
    """Up to six sentences on both tables; ``noise`` is the standard deviation of the noise on y."""
    losses, ends, lines = table(cosine), table(linear), []
    for centre in losses.index.unique("centre"):
        none, gap = losses.loc[(centre, "none")], losses.loc[(centre, "gap")]
        closer = f"brings the two losses from {none['gap']:.3f} to {gap['gap']:.3f} apart"
        cost = f"the lowest shared loss goes from {none['lowest shared loss']:.3f} to {gap['lowest shared loss']:.3f}"
        lines.append(f"(a) x around {centre:g}: the q with the smallest gap {closer}, and {cost}.")
    plain = ends.xs("none", level="offset")
    apart = (plain["loss at the end"] - plain["lowest possible"]).abs().max()
    still = f"w varies by {plain['restless'].max():.4f} over its last quarter"
    lines.append(f"(b) without offsets the average converges, too: {still}.")
    lines.append(f"(b) its loss ends within {apart:.3f} of the best that one shared w can have.")
    scaled = ends.xs("p and q", level="offset")["loss at the end"].max()
    lines.append(f"(b) with a learned scale p, too, the loss ends at {scaled:.3f}; the noise alone is {noise**2:.3f}.")
    return Lines({"": lines})


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
