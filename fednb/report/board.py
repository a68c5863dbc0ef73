"""The scoreboard, of one paper and of all: every claim with the printed effect, ours and its verdict, as tables."""

import pandas
from pandas import DataFrame

from fednb import papers
from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.claims import judged
from fednb.report.effects import SPARE
from fednb.report.sentences import untested
from fednb.report.tables import Table
from fednb.report.verdicts import CLAIM, TESTED


def scoreboard(results, paper: str, table: str | None = None) -> Table:
    """Every claim of the paper that compares two runs of a printed table: printed effect, ours, verdict; of all tables
    or of one. Errors and the frame's columns: as in ``fednb.report.claims.judged``."""
    claims = [claim for claim in papers.claims(paper) if table is None or table in claim["tables"]]
    frame, everything = judged(results, paper, claims), wording.frame_of(results)
    chosen_by = wording.rule_words(protocol.rules()["selection"], everything)
    stand_ins = wording.mark(everything)
    caption = (
        f"Claims of {_called(paper)} that compare two runs; effects in points, in the seeds that both have, of the "
        f"average unless a claim names a site. {wording.AVERAGE} Selection: {chosen_by}.",
        *([f"Results on {stand_ins} are left out: they say nothing about the paper."] if stand_ins else []),
    )
    deviating = dict.fromkeys(text for texts in frame["deviations"] for text in texts.split("; ") if text)
    made = (
        *wording.effect_lines(frame),
        *([f"Otherwise than the paper's setting: {'; '.join(deviating)}."] if deviating else []),
        *wording.setting_lines(results),
    )
    return Table(frame.drop(columns="sides"), caption, _cells(frame), made)


def board(claims: DataFrame) -> Table:
    """The claims of ``fednb.report.recorded_board`` as a table; its frame is all of them, unrounded."""
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


def by_paper(claims: DataFrame) -> DataFrame:
    """How many claims of ``fednb.report.recorded_board`` of each paper, and of all, have which verdict, how many one on
    both boards, and how many none."""
    tested = claims[claims["verdict"].isin(TESTED)]
    counts = pandas.crosstab(tested["of"], tested["verdict"]).reindex(columns=TESTED, fill_value=0)
    every, told = (rows.drop_duplicates(["of", *CLAIM])["of"].value_counts() for rows in (claims, tested))
    counts = counts.reindex(sorted(every.index), fill_value=0)
    counts.insert(0, "claims", every)
    counts["on both boards"] = counts[list(TESTED)].sum(axis=1) - told.reindex(counts.index, fill_value=0)
    counts["not tested"] = untested(claims)["of"].value_counts().reindex(counts.index, fill_value=0)
    counts.loc["all"] = counts.sum()
    return counts.rename(index=_called).rename_axis(index=None, columns=None)


def _called(paper: str) -> str:
    return labels.printed(paper) if paper in papers.names() else paper
