"""What tables say, in sentences computed from their numbers."""

from typing import TYPE_CHECKING

from fednb.report import words
from fednb.report.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

TESTED = ("reproduced", "larger", "smaller", "undecided", "no effect", "opposite")
UNTESTED = {
    "not run": "not run",
    "one seed": "run with one seed only",
    "older code": "run by older code only",
    "not paired": "run without scores of the same images in the same seeds",
    "other sites": "run over other sites than the paper's",
}
PRINTED, SMALL = "as printed", "small"  # settings
HERE = {
    "reproduced": "Reproduced here",
    "larger": "Larger here",
    "smaller": "Smaller here",
    "undecided": "Undecided here, neither told from zero nor below the printed effect",
    "no effect": "Not told from zero here, and below the printed effect",
    "opposite": "The opposite here",
    "one seed": "Here, one seed and no verdict",
    "older code": "Here, by older code and without a verdict",
    "not paired": "Here, without scores of the same images in the same seeds and without a verdict",
}
BETWEEN = {
    "above": "is above {}",
    "below": "is below {}",
    "undecided": "cannot be told from {}",
    "one seed": "against {}, one seed and no verdict",
    "older code": "against {}, by older code and without a verdict",
    "not paired": "against {}, without scores of the same images in the same seeds and without a verdict",
}


def sentences(table: Table) -> str:
    """A line for each row of ``fednb.report.scoreboard`` or ``fednb.report.effects``; what was not run is counted.

    A sentence says no more than the row's verdict, and names the rules that give another: what cannot be told from
    chance is neither above nor below, also where its interval, taken alone, leaves zero out.
    """
    claims = "verdict" in table.frame
    rows = zip(table.cells.index, table.frame.assign(alone=words.alone(table.frame)).itertuples(), strict=True)
    lines = [_of_claim(row) if claims else _of_effect(label, row) for label, row in rows if row.ours == row.ours]
    silent = table.frame["ours"].isna()
    for word, count in table.frame.loc[silent, "verdict"].value_counts().items() if claims else ():
        lines.append(f"{UNTESTED[word].capitalize()}: {count} of {len(silent)} claims.")
    head = [f"{table.mark}: nothing here speaks of the paper."] if table.mark else []
    return "\n".join(head + lines) or "No pair was run."


def _of_claim(row) -> str:
    others = getattr(row, "other_rules", "")
    told = f"Printed: {row.claim} {HERE[row.verdict]}: {row.effect} {_points(row)}."
    return told + (f" By other rules, {others}." if others else "")


def _of_effect(label: str, row) -> str:
    where = f"{label.partition(': ')[0]}: " if ": " in label else ""
    better, _, worse = label.rpartition(": ")[2].partition(" - ")
    worse = worse[1:-1] if worse.startswith("(") else worse
    return f"{where}{better} {BETWEEN[row.direction].format(worse)}: {_points(row)}."


def _points(row) -> str:
    return (
        f"{words.signed(row.ours)} points ({words.signed(row.low)} to {words.signed(row.high)}{', alone' * row.alone})"
    )


def told(claims: "DataFrame") -> list[str]:
    """Four sentences on the claims of all papers: how many there are, what became of those that are tested, why the
    others are not.

    claims: rows of ``fednb.report.board``.
    """
    verdicts = claims["verdict"].value_counts()
    tested = claims[claims["verdict"].isin(TESTED)]
    printed = int((tested["setting"] == PRINTED).sum())
    found = ", ".join(f"{verdicts.get(word, 0)} {word}" for word in TESTED)
    turned = int((tested["other_rules"] != "").sum())
    others = [f"{verdicts[word]} {text}" for word, text in UNTESTED.items() if verdicts.get(word)]
    waiting = claims[claims["verdict"] == "not run"]
    begun = waiting["federation"].isin(claims.loc[claims["ours"].notna(), "federation"])
    why = {
        "are on data of which no claim is run yet": waiting.loc[~begun, "federation"],
        "are on data of which others are run": waiting.loc[begun, "federation"],
    }
    waits = " and ".join(f"{len(rows)} {what} ({_counted(rows)})" for what, rows in why.items() if len(rows))
    return [
        f"{len(claims)} claims of {claims['of'].nunique()} papers compare two runs: {len(tested)} are tested with two "
        f"seeds or more, {printed} of them at the printed setting and {len(tested) - printed} at a smaller one.",
        f"Of those tested: {found}; {turned} have another verdict by another rule of selection.",
        f"Not tested: {', '.join(others) or 'none'}.",
        f"Of those not run, {waits}." if waits else "Every claim was run.",
    ]


def _counted(named) -> str:
    return ", ".join(f"{name} {count}" for name, count in named.value_counts().items())
