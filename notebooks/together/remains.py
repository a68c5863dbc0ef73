"""What remains of a method's gain over FedAvg when FedAvg, too, has each site's own running statistics."""

from dataclasses import replace

from fednb.report import labels, wording
from fednb.report.sentences import spans

OWN = "+own_statistics"


def panels(effects, grouped) -> dict:
    """Effects over FedAvg, those between runs with own statistics, and those of networks with group normalisation, all
    under the names of the methods alone."""
    frame = effects.frame
    own = frame["worse"].str.endswith(OWN)
    names = {side: frame.loc[own, side].str.replace(OWN, "") for side in ("better", "worse")}
    return {
        "averaged statistics": replace(effects, frame=frame[~own]),
        "own statistics on both sides": replace(effects, frame=frame[own].assign(**names)),
        "group normalisation": grouped,
    }


def remains(effects, methods: list[str]) -> list[str]:
    """What own statistics give FedAvg and what methods add to that, in one line; then each method's gain over FedAvg,
    and what remains of it."""
    rows = {(row["better"], row["worse"]): row for row in effects.frame.to_dict("records")}

    def points(better: str, worse: str) -> str:
        row = rows[better, worse]
        return f"{wording.signed(row['ours'])} ({spans(row)[1] or spans(row)[0]})"

    left = {run: points(run + OWN, "fedavg" + OWN) for run in methods}
    adds = ", ".join(f"{labels.short(run)} {said}" for run, said in left.items())
    return [
        f"own running statistics, which need no training, give FedAvg {points('fedavg' + OWN, 'fedavg')} points; "
        f"to that add {adds}",
        *(
            f"{labels.short(run)} over FedAvg {points(run, 'fedavg')}; with own statistics on both sides {left[run]}"
            for run in methods
        ),
    ]
