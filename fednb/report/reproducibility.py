"""The tables of a paper's reproducibility report; ``claims``: of ``fednb.report.recorded_board``, of one paper."""

import hashlib
from collections import Counter

import pandas
from pandas import DataFrame
from pandas.io.formats.style import Styler

from fednb import papers
from fednb.report import labels, wording

PROFILES = ("paper", "quick")  # the others prove that a notebook runs


def verdicts(claims: DataFrame) -> DataFrame:
    """How many claims of each table and data set have which verdict at which setting; "not run" where there is none."""
    where = [claims["table"], claims["federation"].map(labels.federation), claims["setting"].replace("", "not run")]
    return pandas.crosstab(where, claims["verdict"]).rename_axis(["table", "data", "at"]).rename_axis(None, axis=1)


def settings(paper: str, which: str) -> Styler:
    """The settings that the paper prints ("printed"): value, and where it stands; or those that decide a run and that
    it does not print ("not_printed"): the value taken, and why."""
    frame = DataFrame.from_dict(papers.settings(paper)[which], orient="index").rename(index=wording.spaced)
    return _whole(frame.assign(value=frame["value"].map(_value)))


def _value(value) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{wording.spaced(name)}: {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def profiles(paper: str) -> Styler:
    """Our profiles: a recipe's fields on the paper's own federation, and what differs on others; empty: the default."""
    own = {profile: papers.recipe(paper, profile) for profile in PROFILES}
    frame = pandas.DataFrame({name: pandas.Series(fields).map(wording.as_text) for name, fields in own.items()})
    others = {
        f"on {labels.federation(federation)}: {wording.spaced(name)}": {profile: wording.as_text(value)}
        for federation, by_profile in papers.settings(paper).get("on", {}).items()
        for profile, fields in by_profile.items()
        if profile in PROFILES
        for name, value in fields.items()
    }
    rows = pandas.concat([frame, pandas.DataFrame.from_dict(others, orient="index")]) if others else frame
    return _whole(rows.rename(index=wording.spaced).fillna(""))


def contradictions(paper: str) -> Styler:
    """The printed numbers that contradict others of the paper: row, site, printed, expected and why."""
    found = papers.inconsistencies(paper)
    parts = zip(found["algorithm"], found["augmentation"], strict=True)
    rows = found.assign(
        row=[labels.pretty("+".join(filter(None, part))) for part in parts],
        federation=found["federation"].map(labels.federation),
    )
    columns = ["table", "row", "federation", "site", "printed", "expected", "reason"]
    return _whole(rows[columns].reset_index(drop=True))


def deviations(claims: DataFrame) -> DataFrame:
    """In what the runs of claims differ from the paper's setting, and for how many claims."""
    counts = Counter(text for texts in claims["deviations"].dropna() for text in texts.split("; ") if text)
    return pandas.DataFrame(counts.most_common(), columns=["runs have", "claims"]).set_index("runs have")


def reasons(claims: DataFrame) -> Styler:
    """Why claims are without a verdict: the word, the data set, the reason, and how many claims it keeps from one."""
    where = claims.assign(data=claims["federation"].map(labels.federation), why=claims["why"].fillna(""))
    counts = where.groupby(["verdict", "data", "why"]).size().sort_values(ascending=False)
    return _whole(counts.rename("claims").reset_index())


def _whole(frame: DataFrame) -> Styler:
    """A table whose texts are not cut, as a data frame's are."""
    styler = frame.style.format(precision=2).set_properties(**{"text-align": "left", "white-space": "normal"})
    return styler.set_uuid(hashlib.sha256(frame.to_csv().encode()).hexdigest()[:8])
