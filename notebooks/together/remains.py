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


def answer(tables: dict, found: dict) -> list[str]:
    """What own statistics alone give FedAvg, least and most over the data sets; how many differences of active methods
    are significant gains and losses, then with own statistics on both sides; the largest of these."""
    alone, before, after = {}, {}, {}
    for name, table in tables.items():
        for row in table.frame.to_dict("records"):
            if row["better"] == BASELINE + OWN:
                alone[name] = row
            elif row["better"] != "fedbn" and not _idle(row["better"], found[name]):
                place = after if row["better"].endswith(OWN) else before
                place[f"{labels.short(row['better'].removesuffix(OWN))}'s on {name}"] = row
    least, most = (end(alone, key=lambda name: alone[name]["ours"]) for end in (min, max))
    gives = " to ".join(f"{_points(alone[name])} on {name}" for name in dict.fromkeys((least, most)))
    largest = max(after, key=lambda name: after[name]["ours"])
    counts = [_counted(rows) for rows in (alone, before, after)]
    mostly = "mostly the latter: " if counts[2][0] * 2 <= counts[1][0] else ""
    return [
        f"{mostly}own running statistics, which need no training, give FedAvg {gives}, significant on {counts[0][0]} "
        f"of {len(alone)} federations; {counts[1][0]} of {len(before)} differences of active methods from FedAvg are "
        f"significant gains, {_losses(counts[1])}; with own statistics on both sides {counts[2][0]} of {len(after)}, "
        f"{_losses(counts[2])}",
        f"the largest gain with own statistics on both sides is {largest}: {_points(after[largest])}, simultaneous on "
        f"that data set, not over all {len(after)} differences",
    ]


def _counted(rows: dict) -> tuple[int, int]:
    """Significant gains, and losses."""
    words = [row["direction"] for row in rows.values()]
    return words.count("above"), words.count("below")


def _losses(counts: tuple[int, int]) -> str:
    return f"{counts[1]} loss{'es' * (counts[1] != 1)}"


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


def with_groups(found: dict, grouped: dict, others: dict) -> list[str]:
    """How many differences of active methods from FedAvg are significant with group normalisation; then, of each
    federation, FedAvg with each kind of normalisation, next to a constant answer, and what methods add."""
    lines, learned = [], {}
    for name, table in grouped.items():
        rows = {row["better"]: row for row in table.frame.to_dict("records")}
        usual, scores = _average(found[name]), {kind: _average(results) for kind, results in others[name].items()}
        more = scores["group"]["value"] >= usual["value"]
        idle = {run: _idle(run, others[name]["group"]) for run in rows}
        learned |= {(name, run): row for run, row in rows.items() if more and not idle[run]}
        constant = trivial(found[name].records[0])
        known = f", a constant answer {wording.number(constant)}" if constant is not None else ""
        has = ", ".join(f"{NETWORKS[kind]} {_spanned(score)}" for kind, score in scores.items())
        gains = ", ".join(f"{labels.short(run)}{idle[run]} {_points(row)}" for run, row in rows.items())
        lines.append(
            f"{name}: FedAvg has {has}, with batch normalisation {_spanned(usual)}{known}; gains over FedAvg with "
            f"group normalisation{'' if more else ', which learns less'}: {gains}"
        )
    counts = _counted(learned)
    said = f"{counts[0]} of {len(learned)} differences of active methods are significant gains, {_losses(counts)}"
    return [
        f"with group normalisation, where FedAvg learns as much with it as with batch normalisation: {said}",
        *lines,
    ]


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


def _average(results) -> dict:
    """FedAvg's mean over the sites and its 95 % interval, per cent."""
    frame = runs_table(results).frame
    [row] = frame[(frame["run"] == BASELINE) & (frame["client"] == "average")].to_dict("records")
    return row


def _spanned(row: dict) -> str:
    return "{} ({} to {})".format(*(wording.number(row[name]) for name in ("value", "low", "high")))


def _idle(run: str, results) -> str:
    records = [record for recipe, record in results.found.items() if record and recipe.label == run]
    return " (not active)" if activity(labels.parts(run)[1][0], records) < protocol.rules()["active"] else ""
