"""Methods by data sets: what each scores more than one of them, a number in a cell."""

from fednb.report import labels, wording
from fednb.report.comparison import HIGHER, LOWER
from fednb.report.sentences import SIGNS
from fednb.report.tables import Table

TINTS = {"above": HIGHER, "below": LOWER, "not testable": "background-color: #d9d9d9; color: black"}


def matrix(tables: dict[str, Table], against: str) -> Table:
    """Points of each method over ``against``, tinted where distinguished from zero; and each method's mean rank.

    tables: of ``fednb.report.effects``, by the data set that each is of. against: the label of a run, such as
        ``"fedavg"``; pairs whose second run is another one are passed over.

    Its frame holds federation, row (its name there), better (its label), ours (points) and direction.
    """
    import pandas

    parts = []
    for federation, table in tables.items():
        own = table.frame[table.frame["worse"] == against]
        rows = own["better"].map(wording.row_names([*own["better"]]))
        parts.append(own.assign(federation=federation, row=rows)[["federation", "row", "better", "ours", "direction"]])
    frame = pandas.concat(parts)
    points, verdicts = (
        frame.pivot(index="row", columns="federation", values=values)
        .reindex(index=frame["row"].unique(), columns=tables)
        .rename(columns=labels.federation)
        .rename_axis(index=None, columns=None)
        for values in ("ours", "direction")
    )
    rank = points.rank(ascending=False).mean(axis=1).map(wording.number)
    shown = points.map(wording.signed)
    signs = verdicts.map(lambda word: f" {SIGNS[word]}" if word in TINTS else "")
    colours = verdicts.map(lambda word: TINTS.get(word, "")).assign(rank="")
    caption = (
        f"Points over {labels.pretty(against)}, average over the sites, in the seeds that both have.",
        "Blue (plain text: △) is told above zero, orange (▽) below it, grey (⊘) is not testable; what has no tint "
        "cannot be distinguished from zero.",
        "Rank: the place by points, 1 for the most, averaged over the data sets; chance has no part in it.",
    )
    return Table(
        frame,
        caption,
        (shown + signs).assign(rank=rank),
        wide=shown.assign(rank=rank),
        colours=colours,
        mark="".join(dict.fromkeys(table.mark for table in tables.values())),
    )
