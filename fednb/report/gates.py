"""What must hold before a claim is judged; each gate is computed from records, and a shut one is the reason shown."""

import json
from functools import cache
from math import nan
from pathlib import Path
from statistics import mean

from fednb import registry
from fednb.federation import Federation
from fednb.papers import protocol
from fednb.registry import dealt
from fednb.report import labels, wording
from fednb.report.convergence import not_converged
from fednb.report.intervals import of_settings
from fednb.report.selection import selected
from fednb.report.verdicts import PRINTED

TRIVIAL = Path(__file__).with_name("trivial.json")


def gate(
    results, paper: str, claim: dict, keys: tuple[str, ...], rule: str, spreads: dict, board: str
) -> tuple[str, list[str]]:
    """Why a claim cannot be judged by the runs with these keys, or "", and what marks its verdict.

    It cannot where a side's 95 % interval, by their ``spreads_of``, reaches down to a constant answer (its mean over
    seeds), where the paper's own method was not active, or on the board ``PRINTED`` where a run has not converged. On
    the board ``SMALL`` that is a mark, as everywhere a precondition that does not hold in the runs of the same setting.
    """
    frame = wording.frame_of(results)
    own = frame[frame["key"].isin(keys)]
    records = {record.key: record for record in results.records}
    constant = {key: trivial(records[key], claim["site"]) for key in keys}
    if None in constant.values():
        name = records[keys[0]].recipe["federation"]["name"]
        adds = "fednb run" if registry.project() else "python tools/trivial.py"
        return f"no constant answer is known on this {name}: {adds} adds it", []
    for label, rows in wording.settings(selected(own, rule, unseen=not own["took_part"].all())):
        [found] = of_settings([rows], wording.scored(rows, results), spreads)
        bound = mean({row.seed: constant[row.key] for row in rows.itertuples()}.values())
        if found[claim["site"]].low <= bound:
            return f"{label} is not above a constant answer ({wording.number(bound)} %)", []
    rises = {labels.pretty(run): wording.signed(rise) for run, rise in not_converged(own).items()}
    where = "points in the last quarter of its rounds"
    marks = [f"{run} has not converged: {rise} {where}" for run, rise in rises.items()]
    if marks and board == PRINTED:
        return marks[0], []
    for needed in protocol.rules()["precondition"]:
        if (needed["paper"], needed["federation"]) == (paper, claim["federation"]):
            marks.append(_lacking(results.alike, needed["better"], needed["worse"], keys, rule))
    return "", list(filter(None, marks))


def activity(method: str, records) -> float:
    """The mean of what shows a method at work in these runs of it; NaN of runs that were recorded before it came."""
    return mean([record.activity[method] for record in records if method in record.activity] or [nan])


def _lacking(results, better: str, worse: str, keys: tuple[str, ...], rule: str) -> str:
    """Why one run is not above the other in the setting of the runs with these keys, or ""."""
    every = selected(wording.frame_of(results), rule)
    every = every[every["seed"].isin(protocol.rules()["seeds"])]
    here = wording.setting_of(every[every["key"].isin(keys)])
    parts = [rows for _, rows in wording.settings(wording.all_took_part(every, results))]
    ran = {rows["run"].iloc[0]: rows for rows in parts if wording.setting_of(rows) == here}
    called = labels.pretty(better), labels.pretty(worse)
    if better not in ran or worse not in ran:
        return f"{called[0]} above {called[1]} is needed, and not run"
    above, below = (of_settings([ran[label]])[0]["average"].value for label in (better, worse))
    if above > below:
        return ""
    values = f"{wording.number(above)} and {wording.number(below)}"
    return f"{called[0]} is not above {called[1]} here ({values}), as the paper's argument needs"


def trivial(record, site: str = "average") -> float | None:
    """What a constant answer scores on a record's test images, per cent: of each client its most frequent class in
    training, or one class in all where that is more. None where no ``trivial.json`` has the federation or the site."""
    known = _known(registry.project()).get(place(dealt(record.recipe["federation"], record.recipe["seed"])))
    if known is None or site not in ("average", *known["clients"]):
        return None
    by_client = known["clients"]
    own = sum(by_client.values()) / len(by_client) if site == "average" else by_client[site]
    return max(known["chance"], own)


def measured(federation: Federation) -> dict:
    """``chance``: one class in all; ``clients``: by site the share of the test images, per cent, that have the most
    frequent class of its training images. 0 of a segmentation."""
    if federation.outline.task == "segmentation":
        return {"chance": 0.0, "clients": {site.name: 0.0 for site in federation.sites}}
    clients = {
        site.name: 100 * (site.test.targets == site.train.targets.bincount().argmax()).double().mean().item()
        for site in federation.sites
        if len(site.test)
    }
    return {"chance": 100 / len(federation.outline.classes), "clients": clients}


def place(federation: dict) -> str:
    """The name in ``trivial.json`` of a federation as it was dealt out."""
    return json.dumps(wording.switched_on(federation), sort_keys=True)


def places(file: Path) -> dict:
    """The entries of a ``trivial.json`` by ``place``; none where there is no file."""
    known = json.loads(file.read_text()) if file.exists() else {}
    return {place(json.loads(name)): told for name, told in known.items()}


@cache
def _known(project: Path | None) -> dict:
    return (places(project / "results" / TRIVIAL.name) if project else {}) | places(TRIVIAL)
