"""How curves of clients that took part run over the rounds, and rows of several seeds; frames as in ``selected``."""

from fednb.papers import protocol
from fednb.report.selection import WINDOW

NEAR = 2.0  # points below the end of a curve from which on it is near


def late_rise(frame, by: str | list[str] = "run"):
    """Whether curves still rise: points by which the mean test accuracy of a run's last quarter is above that of the
    quarter before, a Series by ``by``; NaN of one round."""
    tested = _tested(frame)
    end = tested.groupby("key")["round"].transform("max")
    span = (end // 4).clip(lower=1)
    late, before = (tested[(end - tested["round"]) // span == part] for part in (0, 1))
    return late.groupby(by)["accuracy"].mean() - before.groupby(by)["accuracy"].mean()


def not_converged(frame) -> dict[str, float]:
    """By run each ``late_rise`` that exceeds the protocol's ``level_curve`` by more than its error over seeds."""
    by_seed = late_rise(frame, by=["run", "seed"]).unstack("seed")
    rise, error = by_seed.mean(axis=1), by_seed.sem(axis=1).fillna(0)  # one seed has no error
    return rise[rise.abs() - protocol.rules()["level_curve"] > error].to_dict()


def late_steps(frame, by: str | list[str] = "run"):
    """How much curves move: the standard deviation of a curve's steps from round to round in its second half, points:
    of each seed's mean over sites, then a mean over seeds. By ``by``; NaN below three steps."""
    tested, each = _tested(frame), [*([by] if isinstance(by, str) else by), "key"]
    late = tested[tested["round"] > tested.groupby("key")["round"].transform("max") / 2]
    steps = late.groupby([*each, "round"])["accuracy"].mean().groupby(each).diff()
    return steps.groupby(each).std().groupby(by).mean()


def first_near(frame, end_of: str | None = None):
    """By run the first round in which the mean over seeds and sites is at most two points below its end, or the end of
    the run ``end_of``; NaN where a curve never is. An end is the mean of the last ten rounds."""
    curves = _tested(frame).pivot_table("accuracy", "round", "run")
    ends = curves.tail(WINDOW).mean()
    near = curves >= (ends if end_of is None else ends[end_of]) - NEAR
    return near.idxmax().where(near.any())


def common_seeds(rows):
    """The rows of the seeds that every run has: means over seeds that may be held against each other."""
    return rows[rows.groupby("seed")["run"].transform("nunique") == rows["run"].nunique()]


def _tested(frame):
    return frame[(frame["split"] == "test") & frame["took_part"].astype(bool)]
