"""Lines of an answer: a method's place among others, and what many comparisons come to."""

from fednb import papers, report
from fednb.report import labels


def place(results, run: str) -> str:
    """A run's average test accuracy, which number it has among all methods, other variants of its own left out, and who
    is first: a count, no verdict."""
    chosen = report.selected(results.frame, papers.protocol.rules()["selection"])
    variants = chosen["run"].map(labels.method) == labels.method(run)
    chosen = chosen[~variants | (chosen["run"] == run)]
    means = chosen.groupby("run")["accuracy"].mean().sort_values(ascending=False)
    where, who = labels.federation(chosen["federation"].iloc[0]), labels.short(run)
    who += "," * (labels.AS_RELEASED in who)
    number, first = list(means.index).index(run) + 1, means.index[0]
    ahead = "" if number == 1 else f" ({labels.short(first)} is first, {means[first]:.1f} %)"
    return f"{where}: {who} has {means[run]:.1f} %, number {number} of {len(means)}{ahead}"


def outcome(table) -> list[str]:
    """Of ``report.effects``, a line for each value of its field: how many comparisons are what, how large they are, and
    which true effects they could have shown."""
    frame, lines = table.frame, []
    field = frame.columns[2]
    for value, rows in frame.groupby(field, sort=False):
        counts = ", ".join(f"{count} {word}" for word, count in rows["direction"].value_counts().items())
        head = "" if field == "by" else f"{field} {value}: "
        low, high = rows["ours"].min(), rows["ours"].max()
        least, most = rows["smallest"].min(), rows["smallest"].max()
        points = f"{low:+.1f} to {high:+.1f} points (detectable: {least:.1f} to {most:.1f})"
        lines.append(f"{head}{len(rows)} comparisons, {counts}: {points}")
    return lines


def summed(table, none: str, some: str) -> str:
    """All comparisons of ``report.effects`` in one sentence. none: how it begins where no comparison is significant;
    some: where some are."""
    frame = table.frame
    counts = frame["direction"].value_counts()
    words = ", ".join(f"{count} of {len(frame)} {word}" for word, count in counts.items())
    points = f"{frame['ours'].min():+.1f} to {frame['ours'].max():+.1f} points"
    least, most = frame["smallest"].min(), frame["smallest"].max()
    head = some if {"above", "below"} & set(counts.index) else none
    return f"{head}: {words}, {points} (detectable: {least:.1f} to {most:.1f})"


def steps(table, names: tuple[str, ...]) -> str:
    """The rows of ``report.effects`` by these names: ``"own batch normalisation +9.3 (above), ..."``."""
    rows = zip(names, table.frame["ours"], table.frame["direction"], strict=True)
    return ", ".join(f"{name} {ours:+.1f} ({word})" for name, ours, word in rows)


def own_ends(results, runs: list[str]) -> str:
    """In which round each run's curve is first within two points of its own end."""
    near = report.first_near(results.frame)
    rounds = [f"{labels.short(run)} in {near[run]:.0f}" for run in runs]
    return f"first within two points of its own end, by round: {', '.join(rounds)}"


def rates(results) -> str:
    """The means of the last rounds, the highest first, and whether rates divided by the number of classes are better
    than undivided ones, which are options of a run."""
    ends = report.selected(results.frame, "mean_of_last").groupby("run")["accuracy"].mean()
    said = ", ".join(f"{labels.short(run)} {end:.1f} %" for run, end in ends.sort_values(ascending=False).items())
    undivided = [run for run in ends.index if "_rate=" in run]
    best = "Divided" if undivided and ends[undivided].max() < ends["fedavg+fraug"] else "Undivided"
    return f"Mean of the last rounds: {said}." + f" {best} rates are better here." * bool(undivided)
