"""The scoreboard: claims with the printed effect, ours and the verdict, as tables."""

import pandas
from pandas import DataFrame

from fednb.report import wording
from fednb.report.effects import SPARE
from fednb.report.tables import Table


def board(claims: DataFrame) -> Table:
    """The claims of ``fednb.report.recorded_board``, or of ``fednb.report.claims.judged``, as a table; its frame is all
    of them, unrounded."""
    about = f"Effects in points, of the average unless a claim names a site. {wording.AVERAGE}"
    caption = "Claims of the papers that compare two runs.", about
    return Table(claims, caption, _cells(claims), tuple(wording.effect_lines(claims)))


def curve_board(claims: DataFrame) -> Table:
    """The curves of ``fednb.report.recorded_board`` as a table: claims on orders and curves."""
    cells = claims.set_index("claim")[["verdict", "why", "setting", "figure"]].rename_axis(None)
    about = "A step is a difference that the claim states to be above zero; all steps of a claim are tested together."
    return Table(claims, ("Claims of the papers on orders and curves.", about), cells)


def _cells(frame: DataFrame) -> DataFrame:
    first = {"verdict": frame["verdict"], "paper": frame["paper"].map(wording.signed)}
    at_work = frame["activity"].map("{:.2g}".format).where(frame["activity"].notna(), "")
    last = {"why": frame["why"], "marks": frame["marks"], "at work": at_work, "setting": frame["setting"]}
    last |= {"by the paper's rule": frame["other_rules"], "table": frame["table"]}
    return shown(frame, first, last, frame["claim"])


def shown(frame: DataFrame, first: dict, last: dict, rows, value: str = "ours") -> DataFrame:
    """Effects, a frame with ``fednb.report.effects.EFFECT``, as the cells of a table. first, last: columns before and
    after, ``last`` where they say something. rows: their labels."""

    def between(*names: str):
        bounds = frame[[names[0], *names[-2:]]].set_axis(["ours", "low", "high"], axis=1)
        return wording.bounds(bounds, wording.signed)

    texts = {
        **first,
        value: frame["ours"].map(wording.signed),
        "95 %": wording.told_bounds(frame),
        "simultaneous": between("together_low", "together_high"),
        "detectable": frame["smallest"].where(frame["smallest"] > 0).map(wording.number),
        "seeds": frame["seeds"].map(lambda count: str(count) if count else ""),
    }
    if "gap_low" in frame and frame["gap_low"].notna().any():
        last = {"ours - paper": between("gap_low", "gap_high"), **last}
    if SPARE[0] in frame and frame[SPARE[0]].notna().any():
        spare = frame[SPARE[0]].map(wording.signed) + ", " + between(*SPARE)
        last = {"with spare images": spare.where(frame[SPARE[0]].notna(), ""), **last}
    texts |= {name: column for name, column in last.items() if (column != "").any()}
    return pandas.DataFrame(texts).set_axis(rows, axis="index").rename_axis(None)
