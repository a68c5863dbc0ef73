"""What remains of a method's gain over FedAvg when FedAvg, too, has each site's own running statistics."""

from dataclasses import replace

from fednb.papers import protocol
from fednb.report import labels, runs_table, wording
from fednb.report.gates import activity
from fednb.report.sentences import spans

OWN = "+own_statistics"
NETWORKS = {"group": "with group normalisation", "none": "without normalisation"}


def panels(effects) -> dict:
    """Effects over FedAvg, and those between runs with own statistics, both under the names of the methods alone."""
    frame = effects.frame
    own = frame["worse"].str.endswith(OWN)
    names = {side: frame.loc[own, side].str.replace(OWN, "") for side in ("better", "worse")}
    return {
        "averaged statistics": replace(effects, frame=frame[~own]),
        "own statistics on both sides": replace(effects, frame=frame[own].assign(**names)),
    }


def remains(effects, methods: list[str], results) -> list[str]:
    """What own statistics give FedAvg and what methods add to that, in one line; then each method's gain over FedAvg,
    and what remains of it. A method that was not active is marked."""
    rows = {(row["better"], row["worse"]): row for row in effects.frame.to_dict("records")}
    gains = {run: _points(rows[run, "fedavg"]) for run in (*methods, "fedavg" + OWN)}
    left = {run: _points(rows[run + OWN, "fedavg" + OWN]) + _inactive(run + OWN, results) for run in methods}
    adds = ", ".join(f"{labels.short(run)} {said}" for run, said in left.items())
    alone = gains.pop("fedavg" + OWN)
    return [
        f"own running statistics, which need no training, give FedAvg {alone} points; to that add {adds}",
        *(
            f"{labels.short(run)} over FedAvg {gain}; with own statistics on both sides {left[run]}"
            for run, gain in gains.items()
        ),
    ]


def elsewhere(others: dict, grouped) -> list[str]:
    """FedAvg in networks without batch normalisation; what methods add with group normalisation."""
    lines = []
    for name, results in others.items():
        frame = runs_table(results).frame
        [score] = frame.loc[(frame["run"] == "fedavg") & (frame["client"] == "average"), "value"]
        lines.append(f"{NETWORKS[name]} FedAvg has {wording.number(score)} %")
    adds = ", ".join(f"{labels.short(row['better'])} {_points(row)}" for row in grouped.frame.to_dict("records"))
    return [f"{lines[0]}; to that add {adds}", *lines[1:]]


def _points(row: dict) -> str:
    return f"{wording.signed(row['ours'])} ({spans(row)[1] or spans(row)[0]})"


def _inactive(run: str, results) -> str:
    records = [record for recipe, record in results.found.items() if record and recipe.label == run]
    method, _ = labels.parts(run)[1]
    return " (not active)" if activity(method, records) < protocol.rules()["active"] else ""
