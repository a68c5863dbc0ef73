"""What the board of the same budget says, in sentences that are computed from it."""

import numpy
from pandas import DataFrame

from budget import LOCAL
from budget_board import REFERENCES, Gains
from draws import interval, ranks
from fednb.report import labels
from fednb.report.wording import number, signed


def answer(against: dict[str, DataFrame], local: dict[str, DataFrame], boards: dict[str, DataFrame]) -> list[str]:
    """Which methods are significantly above both references, and the highest bound over the better of the two, where
    methods that are not active do not count; which is the highest, and how many are above and below local training.

    against, local, boards: by name of the federation, of ``budget_board``."""
    against = {name: rows for name, rows in against.items() if {*rows["worse"]} == {*REFERENCES}}
    if not against:
        return [f"{' and '.join(map(labels.short, REFERENCES))} are recorded on no federation"]
    rows = {name: own[~own["better"].map(boards[name]["idle"]).astype(bool)] for name, own in against.items()}
    rows = {name: own[~own["better"].isin(REFERENCES)] for name, own in rows.items()}
    others = {run for own in rows.values() for run in own["better"]}
    pairs = [f"{labels.short(run)} on {name}" for name, own in rows.items() for run in _above_both(own)]
    who = f"{', '.join(pairs) or 'none'} of {len(others)} others"
    said = (
        f"{who} is significantly above both FedBN and FedAvg with own statistics on any of {len(against)} federations"
    )
    bounds = [own.groupby("better")["together_high"].min().max() for own in rows.values() if len(own)]
    lines = [said + (f" (95 % bounds: up to {signed(max(bounds))})" if bounds else "")]
    first = [f"{_first(boards[name])} on {name}" + _beside(local.get(name)) for name in against]
    lines[0] += f"; highest, and methods significantly above and below local training: {'; '.join(first)}"
    for name, own in rows.items():
        if len(own):
            row = own[own["better"] == own.groupby("better")["ours"].min().idxmax()].sort_values("ours").iloc[0]
            better, worse = labels.short(row["better"]), labels.short(row["worse"])
            lines.append(f"{name}: the best other is {better}, {_points(row)} over {worse}")
    return lines


def over_each(against: dict[str, DataFrame]) -> list[str]:
    """Which methods are above and below each reference, on each federation."""
    lines = []
    for name, rows in against.items():
        for reference in rows["worse"].unique():
            own = rows[rows["worse"] == reference]
            parts = [f"{word} {_named(own[own['direction'] == word])}" for word in ("above", "below")]
            lines.append(f"{name}, against {labels.short(reference)}: {'; '.join(parts)}")
    return lines


def tuning(gains: dict[str, Gains]) -> list[str]:
    """What tuning gained over the defaults: in the mean, how many methods gained significantly, and the largest gain
    and loss."""
    lines = []
    for name, (rows, mean, low, high) in gains.items():
        if len(rows):
            ends = [rows.loc[rows["ours"].idxmax()], rows.loc[rows["ours"].idxmin()]]
            above, below = _significant(rows)
            least, most = rows["smallest"].min(), rows["smallest"].max()
            lines.append(
                f"{name}: {len(rows)} methods left their default and gained {signed(mean)} ({signed(low)} to "
                f"{signed(high)}) in the mean; tested together {above} gained significantly, {below} lost, where gains "
                f"are detectable from {number(least)} to {number(most)} points up, by method; largest "
                f"{_of(ends[0])}, smallest {_of(ends[1])}"
            )
    return lines


def choice(choices: dict[str, DataFrame], gains: dict[str, Gains]) -> list[str]:
    """What validation promised and how near the next configuration was.

    choices: by name of the federation, of ``choices.choices``."""
    lines = []
    for name, rows in choices.items():
        moved = rows.loc[gains[name].each["better"], "promised"]
        if len(moved):
            near = (rows["lead"] < rows["deviation"]).sum()
            lines.append(
                f"{name}: on {rows['images'].iloc[0]} validation images, in one seed, methods that left their default "
                f"promised {signed(moved.mean())}; choices that lead the next by less than a standard deviation over "
                f"seeds: {near} of {len(rows)}; with a rate from the highest fifth: {rows['highest'].sum()}"
            )
    return lines


def missing(entrants: dict, boards: dict[str, DataFrame]) -> list[str]:
    """Methods that have no row, as a try or a run of theirs failed or is not recorded."""
    lines = []
    for name, board in boards.items():
        if lacking := [labels.short(run) for run in entrants if run not in board.index]:
            lines.append(f"{name}: not on the board, as runs of them are missing: {', '.join(lacking)}")
    return lines


def cost(every: list) -> str:
    """Of all recorded runs: tries, chosen configurations, defaults and unseen sites."""
    records = {record.key: record for results in every for record in results.records}.values()
    hours = sum(record.origin["seconds"] for record in records) / 3600
    return f"tries, choices, defaults and unseen sites: {len(records):,} runs, {hours:.1f} hours of one core"


def local(over_local: dict[str, DataFrame], boards: dict[str, DataFrame]) -> list[str]:
    """How many methods are significantly above and below local training on each federation.

    over_local: by name of the federation, of ``budget_board.against``."""
    lines = []
    for name, rows in over_local.items():
        if len(rows):
            above, below = _significant(rows)
            said = f"{name}: local training, tuned alike, has {number(boards[name].loc[LOCAL, 'mean'])}"
            lines.append(f"{said}; of {len(rows)} methods {above} are significantly above it, {below} below")
    return lines


def mean_ranks(means: dict[str, DataFrame]) -> str:
    """Of each method that is on all federations, with its 95 % interval, the best first.

    means: by name of the federation, of ``draws.means``."""
    found = interval(sum(map(ranks, means.values())) / len(means)).dropna().sort_values("value", kind="stable")
    parts = [f"{labels.short(run)} {rank:.1f} ({low:.1f} to {high:.1f})" for run, rank, low, high in found.itertuples()]
    return f"mean rank over {len(means)} federations: {', '.join(parts)}"


def more_seeds(means: dict[str, DataFrame], images: dict[str, DataFrame]) -> list[str]:
    """How wide the ranks' intervals are, and about how much of it more seeds would leave.

    images: as ``means``, with test images alone drawn again."""
    lines = []
    for name in means:
        both = (interval(ranks(own)) for own in (means[name], images[name]))
        wide, least = ((own["high"] - own["low"]).mean() for own in both)
        said = f"{name}: a rank's interval is {wide:.1f} places wide on average"
        lines.append(f"{said}, about {least:.1f} would remain with many seeds")
    return lines


def kilobytes(boards: dict[str, DataFrame]) -> str:
    """What a client sends and receives in a round on the first federation: those that most share, then the others."""
    name, board = next(iter(boards.items()))
    usual = board["kilobytes"].between(*board["kilobytes"].median() * numpy.array([0.95, 1.05]))
    others = ", ".join(f"{labels.short(run)} {value:.0f}" for run, value in board.loc[~usual, "kilobytes"].items())
    low, high = board.loc[usual, "kilobytes"].agg(["min", "max"])
    return f"{name}, KB of a client a round: {usual.sum()} methods {low:.0f} to {high:.0f}; {others or 'no other'}"


def _first(board: DataFrame) -> str:
    run = board["mean"].idxmax()
    return "local training" if run == LOCAL else labels.short(run)


def _beside(over_local: DataFrame | None) -> str:
    if over_local is None or over_local.empty:
        return ""
    above, below = _significant(over_local)
    return f", {above} and {below}"


def _significant(rows: DataFrame) -> tuple[int, int]:
    """How many are above and below."""
    return (rows["direction"] == "above").sum(), (rows["direction"] == "below").sum()


def _above_both(rows: DataFrame) -> list[str]:
    above = rows[rows["direction"] == "above"].groupby("better")["worse"].nunique()
    return [run for run, count in above.items() if count == len(REFERENCES)]


def _named(rows: DataFrame) -> str:
    return ", ".join(_of(row) for _, row in rows.iterrows()) or "none"


def _of(row) -> str:
    return f"{labels.short(row['better'])} {_points(row)}"


def _points(row) -> str:
    return f"{signed(row['ours'])} ({signed(row['together_low'])} to {signed(row['together_high'])})"
