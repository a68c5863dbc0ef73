"""What the two toy problems show: a table, sentences, Figure 2."""

from toy_offsets.training import Curves, Path


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
        if after != after or before != before:
            return f"{name} not told (a loss still falls at the end of the grid)"
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
