"""What a table's number rests on: which draw the print agrees with, by which rule, and how far one run made again
lies."""

import fednb
from fednb import papers, report
from fednb.report import labels, wording


def off_print(results, printed) -> dict[str, float]:
    """By row how far its sites are from the printed ones in the best test round: the mean over sites, without sign."""
    if not results.records:
        return {}
    rows = report.comparison(results, printed, "best_test")
    rows = rows[(rows["site"] != "average") & rows["difference"].notna()]
    return rows["difference"].abs().groupby(rows["row"], sort=False).mean().to_dict()


def made_again(now, earlier) -> str:
    """In a sentence how far the same runs lie apart that were made twice, on two machines."""
    if not now.records or not earlier.records:
        return ""
    means = [
        report.selected(each.frame, "mean_of_last").groupby(["run", "seed"])["accuracy"].mean()
        for each in (now, earlier)
    ]
    apart = (means[0] - means[1]).dropna()
    deviation = ((apart**2).mean() / 2) ** 0.5
    return f"One run made again elsewhere has a standard deviation of {deviation:.1f} points ({len(apart)} pairs)."


def apart_by_seed(results, run: str, other: str) -> float:
    """The largest difference between two runs of one seed, in points of the average, with whatever flow both have."""
    chosen = report.selected(results.frame, "mean_of_last")
    means = chosen.groupby(["augmentation", "seed", "algorithm"])["accuracy"].mean().unstack()
    return float((means[run] - means[other]).abs().max())


def by_its_rule(claims) -> list[str]:
    """What the first claim is by the paper's own rule of selection, where that says otherwise. claims: of a page."""
    rows = [frame.iloc[0] for frame in claims[:1]]
    return [f"{row['effect']} by the paper's own rule ({row['other_rules']})" for row in rows if row["other_rules"]]


def as_released(printed) -> list[str]:
    """What the released draw gains over FedAvg at the paper's setting, and which draw the printed row agrees with."""
    base, seeds = fednb.Recipe(**papers.recipe("fedrdn", "paper")), papers.protocol.rules()["seeds"]
    drawn, at_once = (
        base.vary(augmentations=flows, seed=seeds)
        for flows in ([["fedrdn"]], [[], [{"name": "fedrdn", "variant": "released"}]])
    )
    found = fednb.Study([*drawn, *at_once], "fedrdn").recorded()
    off = off_print(found, printed)
    lines, label = [], at_once[-1].label
    for row in report.effects(found, [(label, "fedavg")]).frame.itertuples() if found.records else ():
        lines.append(f"as released, FedRDN - FedAvg {wording.signed(row.ours)}: {row.direction}")
        both = {run: off[labels.pretty(run)] for run in (label, drawn[0].label) if labels.pretty(run) in off}
        near, *other = sorted(both, key=both.get)
        points = " against ".join(f"{both[run]:.1f}" for run in (near, *other))
        which = "as released" if near == label else "of Eq. 6"
        lines.append(f"the printed row agrees with the draw {which} ({points} points off its sites)")
    return lines


def improved(results, plain: list[str]) -> list[str]:
    """Which of these runs FedRDN improves in results at the paper's setting, by how much, and which were not run."""
    ran = set(results.frame["run"]) if results.records else set()
    pairs = [(f"{run}+fedrdn", run) for run in plain if {f"{run}+fedrdn", run} <= ran]
    if not pairs:
        return []
    rows = report.effects(results, pairs).frame.query("direction == 'above'")
    gains = [f"{labels.short(row.worse)} {wording.signed(row.ours)}" for row in rows.itertuples()]
    lacking = ", ".join(labels.short(run) for run in plain if run not in {worse for _, worse in pairs})
    rest = f"; {lacking} with FedRDN were not run there" if lacking else ""
    return [f"improved at the paper's setting: {', '.join(gains)} ({len(gains)} of {len(plain)}{rest})"]


def agree(off: dict[str, float]) -> list[str]:
    """``off_print`` in lines, with which draw the printed row agrees with first."""
    near = min(off, key=off.get) if off else ""
    draws = "the released draw, not with Eq. 6" if labels.AS_RELEASED in near else "Eq. 6, not with the released draw"
    lines = [f"the printed row agrees with {draws} (best test round)"] if off else []
    return [
        *lines,
        *(f"{row} differs from the printed sites by {points:.1f} points on average" for row, points in off.items()),
    ]
