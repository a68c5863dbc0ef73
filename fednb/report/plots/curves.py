"""Lines: accuracy over rounds, and whatever else has an x and a y."""

import seaborn

from fednb.papers import protocol
from fednb.report import wording
from fednb.report.plots._axes import PAPER, WIDEST, as_written, decorate, new_figure, printed_values, wrapped
from fednb.report.selection import selected
from fednb.report.style import LINES, MARKERS, colour, styles

MOST, LONG = 6, 25  # curves in one panel; letters of a name next to it


def convergence(frame, title: str = "", printed=None):
    """Test accuracy or Dice over rounds, a line per method, as in FedRDN's Fig. 1: the unweighted mean over all sites
    that took part, with a band from lowest to highest seed. More than six methods have a panel each, with FedAvg (else
    the first) in grey behind.

    frame: rows of ``Results.frame``.
    printed: rows of ``fednb.papers.printed``: up to six curves then have their names, their ends and the paper's
        numbers next to them, which are diamonds too. A stand-in and other data are never drawn next to these.
    """
    parts = wording.with_seeds(frame[(frame["split"] == "test") & frame["took_part"].astype(bool)])
    runs = {label: rows["run"].iloc[0] for label, rows in parts.items()}
    curves = {
        label: (look, parts[label].groupby(["round", "seed"], as_index=False)["accuracy"].mean())
        for label, look in styles(runs).items()
    }
    marked, what = wording.mark(frame), f"test {wording.measure(frame)} (%)"
    if len(curves) <= MOST:
        figure, (axes,) = new_figure(1, width=7.6)
        for label, curve in curves.items():
            _curve(axes, label, *curve)
        decorate(axes, "round", f"{what}, mean over clients", title, marked)
        if printed is not None and not marked:
            chosen = selected(frame, protocol.rules()["selection"]).set_index("key")["accuracy"]
            ends = {label: float(chosen[rows["key"].unique()].mean()) for label, rows in parts.items()}
            theirs = {label: printed_values(printed, run).get("average") for label, run in runs.items()}
            _ends(axes, curves, ends, theirs)
        elif max(map(len, curves)) > LONG:
            axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize=8)
        else:
            axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    else:
        behind = next((label for label, run in runs.items() if run == "fedavg"), next(iter(curves)))
        grey = curves.pop(behind)[1].groupby("round")["accuracy"].mean()
        figure, every = new_figure(len(curves), width=WIDEST, height=2 * -(-len(curves) // 4), columns=4)
        for number, (axes, (label, curve)) in enumerate(zip(every, curves.items(), strict=True)):
            axes.plot(grey, color="0.7", linewidth=2.5)
            _curve(axes, label, *curve)
            lowest = number + 4 >= len(curves)
            decorate(axes, "round" if lowest else "", "" if number % 4 else what, wrapped(label), marked)
            axes.tick_params(labelbottom=lowest)
            axes.xaxis.label.set_visible(lowest)
        figure.suptitle(f"{title} (mean over clients; grey: {behind})".strip(), fontsize=11)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return as_written(figure)


def _curve(axes, label: str, look: dict, by_seed) -> None:
    look = look | {"markevery": max(1, by_seed["round"].nunique() // 10), "markersize": 5, "markeredgewidth": 0}
    band = {"errorbar": ("pi", 100), "err_kws": {"alpha": 0.15, "linewidth": 0}}
    band = band if by_seed["seed"].nunique() > 1 else {"errorbar": None}
    seaborn.lineplot(by_seed, x="round", y="accuracy", label=label, legend=False, ax=axes, **look, **band)


def _ends(axes, curves: dict, ends: dict, theirs: dict) -> None:
    """Beside each curve its name, the number that tables report, and the printed one, which is a diamond as well."""
    last = max(by_seed["round"].max() for _, by_seed in curves.values())
    values = [value for value in (*ends.values(), *theirs.values()) if value is not None]
    axes.set_ylim(top=max(axes.get_ylim()[1], max(values) + 2))
    low, high = axes.get_ylim()
    places = []
    for value in sorted(ends.values()):  # one above the other, none on another
        places.append(max(value, places[-1] + (high - low) / 11 if places else low))
    down = max(0, places[-1] - high)
    for place, (label, value) in zip(places, sorted(ends.items(), key=lambda end: end[1]), strict=True):
        look, paper, at = curves[label][0], theirs[label], (1.05 * last, place - down)
        text = f"{label}\n{wording.number(value)} %"
        axes.plot([last, at[0]], [value, at[1]], color="0.8", linewidth=1, clip_on=False)
        axes.plot(*at, marker=look["marker"], color=look["color"], linestyle="none", markersize=6, clip_on=False)
        if paper is not None:
            text += f", {PAPER} {wording.number(paper)} ◇"
            diamond = {"marker": "D", "s": 26, "color": "white", "edgecolors": look["color"], "zorder": 4}
            axes.scatter(last, paper, **diamond, clip_on=False)
        beside = {"annotation_clip": False, "verticalalignment": "center", "fontsize": 8}
        axes.annotate(text, at, (8, 0), textcoords="offset points", **beside)
    axes.set_xlim(right=last)


def lines(curves: dict, x: str, y: str, title="", log=False, joined=True):
    """One line for each ``{label: (values of x, values of y)}``, or points alone where they are of several things.

    log: both axes logarithmic. joined: whether points are joined.
    """
    figure, (axes,) = new_figure(1, width=6.4)
    for number, (label, (across, up)) in enumerate(curves.items()):
        line = LINES[number % len(LINES)] if joined else "none"
        marker = MARKERS[number % len(MARKERS)] if len(across) < 30 or not joined else None
        axes.plot(across, up, label=label, marker=marker, markersize=5, color=colour(number), linestyle=line)
    decorate(axes, x, y, title)
    axes.legend(frameon=False)
    if log:
        axes.set(xscale="log", yscale="log")
    return as_written(figure)
