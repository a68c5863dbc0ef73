"""What tables say, in sentences computed from their numbers."""

from typing import TYPE_CHECKING

from fednb import papers
from fednb.catalogue import task
from fednb.report import labels, wording
from fednb.report.tables import Table
from fednb.report.verdicts import CLAIM, NOT_PAIRED, PRINTED, SMALL, TESTED, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame

WHY_UNTESTED = {
    "not run": "not run",
    "not testable": "not testable here",
    "one seed": "run with one seed only",
    "older code": "run by older code only",
    "not paired": f"run {NOT_PAIRED}",
    "other sites": "run over other sites than the paper's",
}


def claimed(claim: dict, printed: "Iterable[float]", effect: float) -> str:
    """A claim in words, with the decimals that its table has: "DisTrans is 3.7 points above FedAvg on CIFAR-10 at DH
    40 %."

    claim: of ``fednb.papers.claims``. printed: the numbers of its table. effect: better less worse, in points.
    """
    better, worse = (labels.short(claim[side]) for side in ("better", "worse"))
    decimals = max(len(str(value).partition(".")[2]) for value in printed)
    points = "points of Dice" if task(claim["federation"]) == "segmentation" else "points"
    return f"{better[0].upper()}{better[1:]} is {effect:.{decimals}f} {points} above {worse} {on(claim)}."


def curve_in_words(claim: dict) -> str:
    """ "DisTrans is highest at alpha 0.3 of 0.1, 0.3, 0.5, 0.7 on CIFAR-10 at DH 0 %."

    claim: of ``fednb.papers.curves``.
    """
    runs = " > ".join(labels.short(run) for run in claim["runs"])
    x, values = wording.spaced(claim["x"]), ", ".join(map(str, claim["values"]))
    told = {
        "order": f"at {x} {values}" if x else "",
        "maximum": f"is highest at {x} {claim['at']} of {values}",
        "monotone": f"{claim['at']} over {x} {values}",
    }[claim["kind"]]
    return " ".join(filter(None, (runs, told, on(claim)))) + "."


def effect(claim: dict) -> str:
    """A claim in short: ``"FedRDN - FedAvg"``, with its setting and its site where it has such."""
    short = [labels.short(claim[name]) for name in ("better", "worse")]
    site = "" if claim["site"] == "average" else labels.site(claim["site"])
    return ", ".join(filter(None, (wording.minus(*short), claim["setting"], site)))


def on(claim: dict) -> str:
    """What a claim is on: "on CIFAR-10 at DH 40 %"."""
    site = f" at {labels.site(claim['site'])}" if claim.get("site", "average") != "average" else ""
    return f"on {labels.federation(claim['federation'])}{site}{_under(claim['setting'])}"


def _under(setting: str) -> str:
    """A printed setting in words: a heterogeneity, a share of the training images, a number of clients."""
    if setting == papers.UNSEEN:
        return " at unseen clients"
    if "/" in setting or setting == "1":
        return f" with {'all' if setting == '1' else setting} of the training images"
    if setting.endswith("clients"):
        return f" with {setting}"
    return f" at {'DH ' * setting.endswith('%')}{setting}" if setting else ""


def sentences(table: Table) -> str:
    """The rows of ``fednb.report.scoreboard`` under their outcomes, or a line for each row of ``fednb.report.effects``;
    what was not run is counted.

    A sentence says no more than the row's verdict, and names the paper's rule of selection where that gives another:
    what cannot be distinguished from chance is neither above nor below, also where its interval, taken alone, leaves
    zero out.
    """
    head = [f"{table.mark}: nothing here speaks of the paper."] if table.mark else []
    if "verdict" not in table.frame:
        rows = zip(table.cells.index, table.frame.itertuples(), strict=True)
        return "\n".join([*head, *(_of_effect(label, row) for label, row in rows)]) or "No pair was run."
    silent, blocks = table.frame["ours"].isna(), ["\n".join(head)]
    for word, verdict in VERDICTS.items():
        rows = table.frame[~silent & (table.frame["verdict"] == word)]
        if len(rows):
            lines = [
                f"{verdict.sign} {verdict.heading} ({len(rows)} of {len(silent)} claims)",
                *map(_of_claim, rows.itertuples()),
            ]
            blocks.append("\n- ".join(lines))
    counts = table.frame.loc[silent, "verdict"].value_counts()
    for word, count in counts.items():
        blocks.append(f"{VERDICTS[word].sign} {WHY_UNTESTED[word].capitalize()}: {count} claims")
    return "\n\n".join(filter(None, blocks))


def _of_claim(row) -> str:
    why = f"; {row.why}" if row.why else ""
    told = f"{row.claim.removesuffix('.')}; here {_points(row)}{why}"
    return told + (f"; by the paper's rule, {row.other_rules}" if row.other_rules else "")


def _of_effect(label: str, row) -> str:
    where = f"{label.partition(': ')[0]}: " if ": " in label else ""
    better, _, worse = label.rpartition(": ")[2].partition(" - ")
    better, worse = (side[1:-1] if side.startswith("(") else side for side in (better, worse))
    better += "," * better.endswith(labels.AS_RELEASED)
    why = f", as {row.why}" if row.why else ""
    return f"{where}{better} {VERDICTS[row.direction].phrase.format(worse)}{why}: {_points(row)}."


def _points(row) -> str:
    told = f"{wording.signed(row.ours)} points ({wording.signed(row.low)} to {wording.signed(row.high)}"
    if row.smallest != row.smallest:
        return f"{told})"
    together = f"{wording.signed(row.together_low)} to {wording.signed(row.together_high)}"
    unsure = row.together_low * row.together_high <= 0 and row.smallest > 0  # 0: all runs and images gave the same
    detectable = f"; detectable: {wording.number(row.smallest)}" if unsure else ""
    return f"{told}, simultaneous {together}{detectable})"


def in_short(claims: "DataFrame") -> str:
    """What was found, in one sentence for each board: of ``fednb.report.recorded_board``."""
    tested = claims[claims["verdict"].isin(TESTED)]
    (of_printed, printed), (of_small, small) = (
        (len(own), ", ".join(f"{count} {word}" for word, count in own["verdict"].value_counts().items()) or "none")
        for own in (tested[tested["setting"] == board] for board in (PRINTED, SMALL))
    )
    every = len(claims.drop_duplicates(["of", *CLAIM]))
    return (
        f"Of {every} claims of {claims['of'].nunique()} papers, {of_printed} could be tested at the paper's own "
        f"setting: {printed}. {of_small} could be tested at a smaller one, which says how the methods do there and "
        f"nothing of what the paper found: {small}."
    )


def told(claims: "DataFrame") -> list[str]:
    """Four sentences on the claims of all papers: how many there are, what became of those that are tested, why the
    others are not.

    claims: of ``fednb.report.recorded_board``.
    """
    tested = claims[claims["verdict"].isin(TESTED)]
    found = []
    for own in (tested[tested["setting"] == board] for board in (PRINTED, SMALL)):
        counts = own["verdict"].value_counts()
        outcome = ", ".join(f"{counts[word]} {word}" for word in TESTED if word in counts) or "none"
        found.append(f"{len(own)} are tested: {outcome}.")
    turned = int((tested["other_rules"] != "").sum())
    every = claims.drop_duplicates(["of", *CLAIM])
    without = untested(claims)
    verdicts = without["verdict"].value_counts()
    others = [f"{verdicts[word]} {text}" for word, text in WHY_UNTESTED.items() if verdicts.get(word)]
    waiting = without[without["verdict"] == "not run"]
    begun = waiting["federation"].isin(claims.loc[claims["ours"].notna(), "federation"])
    why = {
        "are on data of which no claim is run yet": waiting.loc[~begun, "federation"],
        "are on data of which others are run": waiting.loc[begun, "federation"],
    }
    waits = " and ".join(f"{len(rows)} {what} ({on_data(rows)})" for what, rows in why.items() if len(rows))
    return [
        f"{len(every)} claims of {claims['of'].nunique()} papers compare two runs; a pair that stands in several "
        f"tables is one. At the paper's setting {found[0]}",
        f"At a smaller setting, which says nothing of what the paper found, {found[1]} On the two boards together "
        f"{turned} have another verdict by the paper's own rule of selection.",
        f"Tested at neither: {', '.join(others) or 'none'}.",
        f"Of those not run, {waits}." if waits else "Every claim was run.",
    ]


def untested(claims: "DataFrame") -> "DataFrame":
    """The claims that are tested on neither board, each once."""
    claim = ["of", *CLAIM]
    tested = claims["verdict"].isin(TESTED).groupby([claims[name] for name in claim]).transform("any")
    return claims[~tested.astype(bool)].drop_duplicates(claim)


def on_data(named) -> str:
    """ "DomainNet 21, ProstateMRI 12", of a column of federations."""
    return ", ".join(f"{labels.federation(name)} {count}" for name, count in named.value_counts().items())


def paired_difference(ours: "Iterable[float]", others: "Iterable[float]", together: int = 1) -> str:
    """The mean difference of two runs over seeds, its interval and a word: ``"-9.0 points (-12.0 to -6.0), below"``.

    ours, others: a number for each seed, in per cent, in one order; ValueError where they are not as many. together:
    how many such differences are looked at together (Bonferroni): the interval holds with 95 % for all of them. From
    Student's paired t over seeds alone, as if there were no other images; one seed has no interval and no word.
    """
    from scipy.stats import ttest_1samp

    differences = [mine - other for mine, other in zip(ours, others, strict=True)]
    points = f"{wording.signed(sum(differences) / len(differences))} points"
    if len(differences) == 1:
        return points
    low, high = ttest_1samp(differences, 0).confidence_interval(1 - 0.05 / together)
    word = "above" if low > 0 else "below" if high < 0 else "not told"
    return f"{points} ({wording.signed(low)} to {wording.signed(high)}), {word}"
