"""Two curves over the rounds held against each other, and accuracy by local epochs."""

from fednb import report
from fednb.report import labels
from fednb.report.plots._axes import as_written, decorate, new_figure
from fednb.report.style import style

EARLY = 10


def held_against(results, run: str, plain: str) -> str:
    """In a sentence how far a curve is above another early and late, and in how many seeds it moves less."""
    test = results.frame[results.frame["split"] == "test"]
    both = report.common_seeds(test[test["run"].isin([run, plain])])
    if both["run"].nunique() < 2:
        return ""
    means = both.groupby(["round", "run"])["accuracy"].mean().unstack()
    ahead, half = means[run] - means[plain], len(means) // 2
    steps = report.late_steps(both, ["run", "seed"])
    calmer = (steps[run] - steps[plain]).dropna() < 0
    names = labels.short(run), labels.short(plain)
    early, late = ahead[:EARLY].mean(), ahead[half:].mean()
    points = f"{early:+.1f} points in the first {EARLY} rounds, {late:+.1f} in the last half"
    return f"{' over '.join(names)}: {points}; steadier in {calmer.sum()} of {len(calmer)} seeds"


def by_local_epochs(chosen, title: str):
    """A line for each method, its mean over sites and seeds, with a small dot for each seed."""
    figure, (axes,) = new_figure(1, width=6.4, height=3.8)
    for run, rows in chosen.groupby("run"):
        by_seed = rows.groupby(["local_epochs", "seed"])["accuracy"].mean().unstack()
        look = style(run)
        axes.plot(by_seed.index, by_seed.mean(axis=1), label=labels.short(run), markersize=7, **look)
        axes.plot(by_seed.index, by_seed, linestyle="none", marker=".", color=look["color"], alpha=0.5)
    decorate(axes, "local epochs", "test accuracy (%), mean over clients", title)
    axes.set_xticks(sorted(chosen["local_epochs"].unique()))
    axes.legend(frameon=False, loc="lower right")
    return as_written(figure)


def falls(chosen, run: str, few: int, many: int) -> list[str]:
    """Whether a run's mean falls from few local epochs to many: a line where both were run, and no test."""
    means = chosen[chosen["run"] == run].groupby("local_epochs")["accuracy"].mean()
    if not {few, many} <= set(means.index):
        return []
    word = "falls" if means[many] < means[few] else "does not fall"
    values = f"{means[few]:.1f} and {means[many]:.1f} %"
    return [f"{labels.short(run)} {word} from {few} to {many} local epochs: {values} (not tested)"]
