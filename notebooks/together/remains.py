"""What remains of a method's gain over FedAvg when FedAvg, too, has each site's own running statistics."""

import federations
import fednb
from fednb import report
from fednb.papers import protocol
from fednb.report import labels, runs_table, wording
from fednb.report.gates import activity
from fednb.report.plots._axes import WIDEST, as_written, decorate, new_figure
from fednb.report.sentences import spans
from fednb.report.style import style

OWN, BASELINE = "+own_statistics", "fedavg"
METHODS = ["fedrdn", "fedfa", "fraug", "distrans"]
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
        f"federations; {before.count('above')} of {len(before)} differences between the methods and FedAvg are "
        f"significant gains, with own statistics on both sides {left}, and {lost} are significant losses",
        f"the largest gain with own statistics on both sides is {largest}: {_points(after[largest])}",
    ]


def remains(name: str, table, results) -> str:
    """Each method's gain over FedAvg, and what remains of it with own statistics on both sides, with its interval."""
    rows = {(row["better"], row["worse"]): row for row in table.frame.to_dict("records")}
    lines = []
    for better, worse in rows:
        if worse == BASELINE + OWN:
            gain, left = rows[better.removesuffix(OWN), BASELINE], rows[better, worse]
            idle = ", not active" if _inactive(better, results) else ""
            lines.append(f"{labels.short(gain['better'])}{idle} {wording.signed(gain['ours'])}, {_points(left)}")
    return f"{name}, over FedAvg, then with own statistics on both sides: {'; '.join(lines)}"


def elsewhere(name: str, grouped, others: dict) -> list[str]:
    """FedAvg in networks without batch normalisation; what methods add with group normalisation."""
    scores = []
    for kind, results in others.items():
        frame = runs_table(results).frame
        [score] = frame.loc[(frame["run"] == BASELINE) & (frame["client"] == "average"), "value"]
        scores.append(f"{NETWORKS[kind]} FedAvg has {wording.number(score)} %")
    adds = ", ".join(f"{labels.short(row['better'])} {_points(row)}" for row in grouped.frame.to_dict("records"))
    return [f"{name}: {scores[0]}; to that add {adds}", *(f"{name}: {score}" for score in scores[1:])]


def figure(tables: dict, title: str):
    """A panel for each data set, a row for each method: in grey its gain over FedAvg, in its colour, below, what
    remains with own statistics on both sides. Thick lines are 95 % intervals, thin ones simultaneous; a filled dot is
    significant."""
    rows = {labels.method(run): run for run in (*(f"fedavg+{name}" for name in METHODS), "fedbn", BASELINE + OWN)}
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
    drawn.suptitle(title, fontsize=11)
    return as_written(drawn)


def _points(row: dict) -> str:
    return f"{wording.signed(row['ours'])} ({spans(row)[1] or spans(row)[0]})"


def _inactive(run: str, results) -> bool:
    records = [record for recipe, record in results.found.items() if record and recipe.label == run]
    return activity(labels.parts(run)[1][0], records) < protocol.rules()["active"]
