"""What tables say, in sentences computed from their numbers."""

from collections.abc import Iterable
from statistics import mean

from pandas import DataFrame

from fednb import papers
from fednb.registry import task
from fednb.report import labels, wording
from fednb.report.tables import Table
from fednb.report.verdicts import CLAIM, NOT_PAIRED, PRINTED, SMALL, TESTED, VERDICTS

WHY_UNTESTED = {
    "not run": "not run",
    "not testable": "not testable here",
    "one seed": "run with one seed only",
    "older code": "run by older code only",
    "not paired": f"run {NOT_PAIRED}",
    "other sites": "run over other sites than the paper's",
}


def claimed(claim: dict, printed: Iterable[float], effect: float) -> str:
    """A claim of ``fednb.papers.claims`` in words: "DisTrans is 3.7 points above FedAvg on CIFAR-10 at DH 40 %."

    printed: the numbers of its table, which give the decimals. effect: better less worse, in points.
    """
    better, worse = (labels.short(claim[side]) for side in ("better", "worse"))
    decimals = max(len(str(value).partition(".")[2]) for value in printed)
    points = "points of Dice" if task(claim["federation"]) == "segmentation" else "points"
    return f"{better[0].upper()}{better[1:]} is {effect:.{decimals}f} {points} above {worse} {_on(claim)}."


def curve_in_words(claim: dict) -> str:
    """A claim of ``fednb.papers.curves``: "FedFA is highest at probability 0.5 of 0.3, 0.5, 0.7 on CIFAR-10." """
    runs = " > ".join(labels.short(run) for run in claim["runs"])
    x, values = wording.spaced(claim["x"]), ", ".join(map(str, claim["values"]))
    shape = {
        "order": f"at {x} {values}" if x else "",
        "maximum": f"is highest at {x} {claim['at']} of {values}",
        "monotone": f"{claim['at']} over {x} {values}",
    }[claim["kind"]]
    return " ".join(filter(None, (runs, shape, _on(claim)))) + "."


def effect(claim: dict) -> str:
    """A claim in short: ``"FedRDN - FedAvg"``, with its setting and its site where it has such."""
    short = [labels.short(claim[name]) for name in ("better", "worse")]
    site = "" if claim["site"] == "average" else labels.site(claim["site"])
    return ", ".join(filter(None, (wording.minus(*short), claim["setting"], site)))


def _on(claim: dict) -> str:
    """What a claim is on, with its printed setting: a heterogeneity, a share of the training images, clients."""
    site = f" at {labels.site(claim['site'])}" if claim.get("site", "average") != "average" else ""
    setting = claim["setting"]
    if setting == papers.UNSEEN:
        under = " at unseen clients"
    elif "/" in setting or setting == "1":
        under = f" with {'all' if setting == '1' else setting} of the training images"
    elif setting.endswith("clients"):
        under = f" with {setting}"
    else:
        under = f" at {'DH ' * setting.endswith('%')}{setting}" if setting else ""
    return f"on {labels.federation(claim['federation'])}{site}{under}"


def sentences(table: Table) -> str:
    """A line for each row of ``fednb.report.effects``."""
    head = [f"{table.mark}: nothing here speaks of the paper."] if table.mark else []
    return "\n".join([*head, *map(_of_effect, table.frame.to_dict("records"))]) or "No pair was run."


def though(word: str, row) -> str:
    """What is added to "no effect as printed" where the interval that decides leaves zero out."""
    way = "above" if row["together_low"] > 0 else "below" if row["together_high"] < 0 else ""
    return f", though {way} zero" if way and word == "no effect as printed" else ""


def _of_effect(row: dict) -> str:
    by = list(row)[2]  # behind the two runs
    where = f"{wording.spaced(by)} {row[by]}: " if by != "by" else ""
    better, worse = (labels.pretty(row[side]) for side in ("better", "worse"))
    better += "," * better.endswith(labels.AS_RELEASED)
    why = f", as {row['why']}" if row["why"] else ""
    phrase = VERDICTS[row["direction"]].phrase.format(worse) + though(row["direction"], row)
    return f"{where}{better} {phrase}{why}: {_points(row)}."


def _points(row: dict) -> str:
    low, high, smallest = (row[name] for name in ("together_low", "together_high", "smallest"))
    alone, together = spans(row)
    unsure = low * high <= 0 < smallest  # 0: of an interval without width, which says nothing of what could be seen
    detectable = f"; detectable: {wording.number(smallest)}" if unsure else ""
    simultaneous = f", simultaneous {together}" if together else ""
    return f"{wording.signed(row['ours'])} points ({alone}{simultaneous}{detectable})"


def spans(row) -> tuple[str, str]:
    """The 95 % interval, and the simultaneous one, which is "" where there is none or it is the same."""
    names = (("low", "high"), ("together_low", "together_high"))
    alone, together = (" to ".join(wording.signed(row[name]) for name in ends) for ends in names)
    return alone, "" if together in (alone, " to ") else together


def summary(claims: DataFrame) -> list[str]:
    """Sentences on the claims of ``fednb.report.recorded_board``: those tested at either setting, why others not."""
    tested, of, words = claims[claims["verdict"].isin(TESTED)], claims["of"].unique(), {2: "two", 3: "three", 4: "four"}
    pairs = f"{len(claims.drop_duplicates(['of', *CLAIM]))} pairwise claims"
    every = f"{labels.printed(of[0])}'s {pairs}" if len(of) == 1 else f"{pairs} of {words.get(len(of), len(of))} papers"
    found, smaller = (tested.loc[tested["setting"] == board, "verdict"].value_counts() for board in (PRINTED, SMALL))
    large, small = (", ".join(f"{own[word]} {word}" for word in TESTED if word in own) for own in (found, smaller))
    turned, reasons = int((tested["other_rules"] != "").sum()), untested(claims)["verdict"].value_counts()
    others = ", ".join(f"{reasons[word]} {text}" for word, text in WHY_UNTESTED.items() if word in reasons)
    lines = {
        f"At the paper's setting we tested {found.sum()} of {every}: {large}.": large,
        f"None of {every} was tested at the paper's setting.": not large,
        f"At a smaller setting, which says nothing of what the paper found, we tested {smaller.sum()}: {small}.": small,
        f"Not tested: {others}.": others,
        f"{turned} verdict{'s change' if turned > 1 else ' changes'} by the paper's own rule of selection.": turned,
    }
    return [line for line, there in lines.items() if there]


def untested(claims: DataFrame) -> DataFrame:
    """The claims that are tested on neither board, each once."""
    claim = ["of", *CLAIM]
    tested = claims["verdict"].isin(TESTED).groupby([claims[name] for name in claim]).transform("any")
    return claims[~tested.astype(bool)].drop_duplicates(claim)


def paired_difference(ours: Iterable[float], others: Iterable[float], together: int = 1) -> str:
    """The mean difference of two runs over seeds, its interval and a word: ``"-9.0 points (-12.0 to -6.0), below"``, by
    Student's paired t over seeds alone. together: how many differences are looked at together (Bonferroni)."""
    from scipy.stats import ttest_1samp

    differences = [mine - other for mine, other in zip(ours, others, strict=True)]
    points = f"{wording.signed(mean(differences))} points"
    if len(differences) == 1:
        return points
    low, high = ttest_1samp(differences, 0).confidence_interval(1 - 0.05 / together)
    word = "above" if low > 0 else "below" if high < 0 else "inconclusive"
    return f"{points} ({wording.signed(low)} to {wording.signed(high)}), {word}"
