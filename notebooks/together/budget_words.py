"""What the board of the same budget says, in sentences that are computed from it."""

import numpy
from pandas import DataFrame

from budget import LOCAL
from budget_board import REFERENCES
from fednb.report import labels
from fednb.report.wording import number, signed
from ranks import intervals


def answer(against: dict[str, DataFrame]) -> list[str]:
    """Which tuned methods are significantly above both references on each federation, and the largest gain over the
    better of the two.

    against: by name of the federation, of ``budget_board.against_references``."""
    pairs = [f"{labels.short(run)} on {name}" for name, rows in against.items() for run in _above_both(rows)]
    others = {run for rows in against.values() for run in rows["better"]} - {*REFERENCES}
    bounds = [
        rows.groupby("better")["together_high"].min().drop([*REFERENCES], errors="ignore") for rows in against.values()
    ]
    said = f"{', '.join(pairs) or 'none'} of {len(others)} others is significantly above both FedBN and FedAvg"
    where, most = f"on any of {len(against)} federations", signed(max(map(max, bounds)))
    lines = [f"tuned alike, {said} with own statistics {where} (upper bounds over the better: to {most})"]
    for name, rows in against.items():
        least = rows.groupby("better")["ours"].min().drop(list(REFERENCES), errors="ignore")
        run = least.idxmax()
        row = rows[rows["better"] == run].sort_values("ours").iloc[0]
        lines.append(f"{name}: the best other is {labels.short(run)}, {_points(row)} over {labels.short(row['worse'])}")
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


def tuning(gains: dict[str, DataFrame]) -> list[str]:
    """What tuning gained over the defaults: how many methods moved, how many gained significantly; the largest gain and
    the largest loss."""
    lines = []
    for name, rows in gains.items():
        if len(rows):
            ends = [rows.loc[rows["ours"].idxmax()], rows.loc[rows["ours"].idxmin()]]
            above, below = ((rows["direction"] == word).sum() for word in ("above", "below"))
            lines.append(
                f"{name}: {len(rows)} methods moved from their default, {above} gained significantly, {below} lost; "
                f"mean {signed(rows['ours'].mean())}, {', '.join(map(_of, ends))}"
            )
    return lines


def local(over_local: dict[str, DataFrame], boards: dict[str, DataFrame]) -> list[str]:
    """How many methods are significantly above and below local training on each federation.

    over_local: by name of the federation, of ``budget_board.against``."""
    lines = []
    for name, rows in over_local.items():
        above, below = ((rows["direction"] == word).sum() for word in ("above", "below"))
        said = f"{name}: local training, tuned alike, has {number(boards[name].loc[LOCAL, 'mean'])}"
        lines.append(f"{said}; of {len(rows)} methods {above} are significantly above it, {below} below")
    return lines


def mean_ranks(drawn: dict[str, DataFrame]) -> str:
    """Of each method over the federations with its 95 % interval, the best first.

    drawn: by name of the federation, of ``budget_board.drawn_ranks``."""
    means = intervals(sum(drawn.values()) / len(drawn)).sort_values("rank", kind="stable")
    parts = [f"{labels.short(run)} {rank:.1f} ({low:.1f} to {high:.1f})" for run, rank, low, high in means.itertuples()]
    return f"mean rank over {len(drawn)} federations: {', '.join(parts)}"


def more_seeds(drawn: dict[str, DataFrame], images: dict[str, DataFrame]) -> list[str]:
    """How wide the ranks' intervals are, and what of it more seeds would leave.

    images: as ``drawn``, with images alone drawn again."""
    lines = []
    for name in drawn:
        ranks = map(intervals, (drawn[name], images[name]))
        wide, least = ((own["rank_high"] - own["rank_low"]).mean() for own in ranks)
        said = f"{name}: the mean interval of a rank is {wide:.1f} places wide"
        lines.append(f"{said}, with test images alone drawn again, which more seeds do not narrow, {least:.1f}")
    return lines


def kilobytes(boards: dict[str, DataFrame]) -> str:
    """What a client sends and receives in a round on the first federation: those that most share, then the others."""
    name, board = next(iter(boards.items()))
    usual = board["kilobytes"].between(*board["kilobytes"].median() * numpy.array([0.95, 1.05]))
    others = ", ".join(f"{labels.short(run)} {value:.0f}" for run, value in board.loc[~usual, "kilobytes"].items())
    low, high = board.loc[usual, "kilobytes"].agg(["min", "max"])
    return f"{name}, KB of a client a round: {usual.sum()} methods {low:.0f} to {high:.0f}; {others or 'no other'}"


def _above_both(rows: DataFrame) -> list[str]:
    above = rows[rows["direction"] == "above"].groupby("better")["worse"].nunique()
    return [run for run, count in above.items() if count == len(REFERENCES)]


def _named(rows: DataFrame) -> str:
    return ", ".join(_of(row) for _, row in rows.iterrows()) or "none"


def _of(row) -> str:
    return f"{labels.short(row['better'])} {_points(row)}"


def _points(row) -> str:
    return f"{signed(row['ours'])} ({signed(row['together_low'])} to {signed(row['together_high'])})"
