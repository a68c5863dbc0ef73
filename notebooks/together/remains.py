"""What remains of a method's gain over FedAvg when FedAvg, too, has each site's own running statistics."""

import federations
import fednb
from fednb import report
from fednb.papers import protocol
from fednb.report import labels, runs_table, wording
from fednb.report.gates import activity, trivial
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.sentences import spans
from fednb.report.style import style

OWN, BASELINE = "+own_statistics", "fedavg"
METHODS = ["fedrdn", "fedfa", "fraug", "distrans"]
WIDE = 30
NETWORKS = {"group": "with group normalisation", "none": "without normalisation"}


def recipes(base: fednb.Recipe, seeds: list[int]) -> dict[str, list[fednb.Recipe]]:
    """By what normalises: batch normalisation, with averaged and with own statistics, and FedBN; and, unless weights
    are ImageNet's, which come with it: groups; nothing."""
    methods, model = [[], *federations.methods(METHODS, base)], base.full["model"]
    both = methods + [[*each, "own_statistics"] for each in methods]
    batch = base.vary(augmentations=both, seed=seeds) + base.vary(algorithm=["fedbn"], seed=seeds)
    if model.get("pretrained"):
        return {"batch": batch}
    return {
        "batch": batch,
        "group": base.with_(model=model | {"groups": 2}).vary(augmentations=methods, seed=seeds),
        "none": base.with_(model=model | {"normalisation": False}).vary(seed=seeds),
    }


def effects(results) -> report.tables.Table:
    """Every run over FedAvg, and over FedAvg with own statistics where it has them, all tested together."""
    own, others = BASELINE + OWN, [run for run in results.frame["run"].unique() if run != BASELINE]
    pairs = [(run, own if run.endswith(OWN) and run != own else BASELINE) for run in others]
    return report.effects(results, pairs, claims=False)


def answer(tables: dict) -> list[str]:
    """What own statistics alone give FedAvg, least and most over the data sets; how many of the methods' gains are
    significant, how many are with own statistics on both sides, and the largest of these."""
    alone, before, after = {}, [], {}
    for name, table in tables.items():
        for row in table.frame.to_dict("records"):
            if row["better"] == BASELINE + OWN:
                alone[name] = row
            elif row["better"].endswith(OWN):
                after[f"{labels.short(row['better'].removesuffix(OWN))}'s on {name}"] = row
            elif row["better"] != "fedbn":
                before.append(row["direction"])
    least, most = (found(alone, key=lambda name: alone[name]["ours"]) for found in (min, max))
    gives = " to ".join(f"{_points(alone[name])} on {name}" for name in dict.fromkeys((least, most)))
    largest = max(after, key=lambda name: after[name]["ours"])
    above, left, lost = (
        sum(row["direction"] == word for row in rows.values())
        for rows, word in ((alone, "above"), (after, "above"), (after, "below"))
    )
    return [
        f"own running statistics, which need no training, give FedAvg {gives}, significant on {above} of {len(alone)} "
        f"federations; of the methods' {len(before)} differences from FedAvg {before.count('above')} are significant "
        f"gains, with own statistics on both sides {left}, and {lost} are significant losses",
        f"the largest gain with own statistics on both sides is {largest}: {_points(after[largest])}",
    ]


def by_method(tables: dict, found: dict) -> list[str]:
    """A sentence for each method: on how many federations it is above FedAvg, on how many it still is with own
    statistics on both sides, and what remains on each."""
    lines = []
    for method in METHODS:
        rows = [
            row | {"on": name, "idle": _idle(row["better"], found[name])}
            for name, table in tables.items()
            for row in table.frame.to_dict("records")
            if method in labels.method(row["better"]).split("+")
        ]
        before, left = ([row for row in rows if (row["worse"] == BASELINE) == over] for over in (True, False))
        above, still, lost = (
            sum(row["direction"] == word for row in of)
            for of, word in ((before, "above"), (left, "above"), (left, "below"))
        )
        each = ", ".join(f"{row['on']}{row['idle']} {_points(row)}" for row in left)
        lines.append(
            f"{labels.pretty(method)} is above FedAvg on {above} of {len(before)} federations; with own statistics on "
            f"both sides above on {still}, below on {lost}: {each}"
        )
    return lines


def of_fedbn(found: dict) -> str:
    """FedBN over FedAvg with own statistics, which the declaration has not, each by itself."""
    rows = {name: report.effects(own, [("fedbn", BASELINE + OWN)], claims=False).frame for name, own in found.items()}
    over = ", ".join(f"{name} {_points(frame.iloc[0])}" for name, frame in rows.items())
    return f"FedBN over FedAvg with own statistics, not declared, each by itself: {over}"


def detectable(tables: dict) -> str:
    """The smallest effect with own statistics on both sides that is detected on each federation, in the median."""
    parts = []
    for name, table in tables.items():
        own = table.frame[table.frame["worse"] != BASELINE]
        parts.append(f"{name} {wording.number(own['smallest'].median())}")
    return f"smallest detectable effect with own statistics on both sides, points (median): {', '.join(parts)}"


def elsewhere(name: str, batch, grouped, others: dict) -> str:
    """FedAvg in networks without batch normalisation, next to ``batch``'s and a constant answer; what methods add with
    group normalisation."""
    usual, scores = _average(batch), {kind: _average(results) for kind, results in others.items()}
    constant = trivial(batch.records[0])
    known = f", a constant answer {wording.number(constant)}" if constant is not None else ""
    has = ", ".join(f"{NETWORKS[kind]} {wording.number(score)}" for kind, score in scores.items())
    learned = "it learns less with groups; to that add" if scores["group"] < usual else "to groups add"
    adds = ", ".join(
        f"{labels.short(row['better'])}{_idle(row['better'], others['group'])} {_points(row)}"
        for row in grouped.frame.to_dict("records")
    )
    return f"{name}: FedAvg has {has} (batch normalisation {wording.number(usual)}{known}); {learned} {adds}"


def figure(tables: dict, title: str):
    """A panel for each data set, which ends at ``WIDE`` points, a row for each method: in grey its gain over FedAvg, in
    its colour, below, what remains with own statistics on both sides. Thick lines are 95 % intervals, thin ones
    simultaneous; a filled dot is significant."""
    runs = [*(f"fedavg+{name}" for name in METHODS), "fedbn", BASELINE + OWN]
    drawn_of = {labels.method(run) for table in tables.values() for run in table.frame["better"]}
    rows = {labels.method(run): run for run in runs if labels.method(run) in drawn_of}
    columns = min(3, len(tables))
    height = (1 + 0.42 * len(rows)) * -(-len(tables) // columns)
    drawn, every = new_figure(len(tables), WIDEST, height, columns=columns, common=False)
    for number, (axes, (name, table)) in enumerate(zip(every, tables.items(), strict=True)):
        decorate(axes, "points", "", name, grid="both")
        axes.axvline(0, color="0.4", linewidth=1, zorder=1)
        for each in table.frame.itertuples():
            left = each.worse != BASELINE
            place = [*rows].index(labels.method(each.better.removesuffix(OWN) if left else each.better)) + 0.3 * left
            color = style(each.better.removesuffix(OWN))["color"] if left else "0.55"
            axes.plot([each.together_low, each.together_high], [place] * 2, color=color, linewidth=1)
            axes.plot([each.low, each.high], [place] * 2, color=color, linewidth=3)
            fill = color if each.direction in ("above", "below") else "white"
            axes.plot(each.ours, place, "o" if left else "s", color=color, markerfacecolor=fill, markersize=6)
        axes.set_yticks(
            range(len(rows)), map(labels.short, rows.values()) if number % columns == 0 else [""] * len(rows)
        )
        axes.set_ylim(len(rows) - 0.4, -0.4)
        axes.set_xlim(max(-WIDE, axes.get_xlim()[0]), min(WIDE, axes.get_xlim()[1]))
    drawn.suptitle(title, fontsize=11)
    return as_written(drawn)


def _points(row: dict) -> str:
    return f"{wording.signed(row['ours'])} ({spans(row)[1] or spans(row)[0]})"


def _average(results) -> float:
    """FedAvg's mean over the sites, per cent."""
    frame = runs_table(results).frame
    return frame.loc[(frame["run"] == BASELINE) & (frame["client"] == "average"), "value"].item()


def _idle(run: str, results) -> str:
    records = [record for recipe, record in results.found.items() if record and recipe.label == run]
    return " (not active)" if activity(labels.parts(run)[1][0], records) < protocol.rules()["active"] else ""
