"""Claims on several runs, judged by their steps, the differences that they state to be above zero, tested together.

"as in print": every step is significantly above zero. "otherwise than in print": some step is below it. "not testable":
the runs of none pass the gates. "inconclusive": in between.
"""

from collections import Counter
from functools import cache
from itertools import pairwise

import pandas

from fednb import papers
from fednb.papers import protocol
from fednb.report import labels
from fednb.report.claims import NOT_RUN, of_protocol, on_site
from fednb.report.comparison import on_federation
from fednb.report.deviations import deviations
from fednb.report.effects import INCONCLUSIVE, Pair, effects_of, one_setting
from fednb.report.gates import gate
from fednb.report.intervals import alike
from fednb.report.selection import selected
from fednb.report.sentences import curve_in_words
from fednb.report.verdicts import PRINTED, SMALL
from fednb.report.wording import ALWAYS, all_took_part, spaced

AS_PRINTED, OTHERWISE = "as in print", "otherwise than in print"
CURVE = ("of", "figure", "claim", "federation", "verdict", "why", "setting", "deviations")


def curves(results, paper: str, claims: list[dict] | None = None):
    """The claims of ``fednb.papers.curves``, all unless given, by recorded runs: a frame with ``CURVE``, without of.

    why: how many steps are significant, and what keeps the others from it. setting: the board, ``PRINTED`` where the
    runs differ from the paper's setting in x alone. RecipeError if a run at one x was made in several settings.
    """
    chosen = all_took_part(selected(of_protocol(results), protocol.rules()["selection"]), results)
    differing = deviations(results.records, paper)
    rows = []
    for claim in papers.curves(paper) if claims is None else claims:
        verdict, why, keys = _judged(results, paper, claim, chosen, differing)
        others = _others(differing, keys, claim)
        setting = (SMALL if others else PRINTED) if keys else ""
        about = claim["figure"], curve_in_words(claim), claim["federation"]
        rows.append((*about, verdict, why, setting, "; ".join(others)))
    return pandas.DataFrame(rows, columns=[name for name in CURVE if name != "of"])


def steps(claim: dict) -> list[tuple[tuple, tuple]]:
    """The differences that a claim states to be above zero: (run, x) less (run, x)."""
    values, runs = claim["values"], claim["runs"]
    if claim["kind"] == "order":
        return [((higher, x), (lower, x)) for x in values for higher, lower in pairwise(runs)]
    if claim["kind"] == "maximum":
        return [((runs[0], claim["at"]), (runs[0], x)) for x in values if x != claim["at"]]
    downwards = values if claim["at"] == "falls" else values[::-1]
    return [((runs[0], higher), (runs[0], lower)) for higher, lower in pairwise(downwards)]


def _others(differing: dict, keys, claim: dict) -> dict[str, None]:
    """In what runs differ from the paper's setting besides the claim's x."""
    of_x = f"{spaced(claim['x'])} "
    return dict.fromkeys(text for key in keys for text in differing[key] if not text.startswith(of_x))


def _judged(results, paper: str, claim: dict, chosen, differing: dict) -> tuple[str, str, tuple[str, ...]]:
    """Verdict, why, and the keys of the runs."""
    records, rules = {record.key: record for record in results.records}, protocol.rules()
    _, spreads = alike(results, rules["selection"], seeds=rules["seeds"])
    sites = ", ".join(sorted(papers.sites(paper, claim["federation"])))
    here = on_federation(chosen, results, papers.run_on(paper, claim["federation"], claim["setting"]))
    here = on_site(here, "average", sites)
    at = here["key"].map(lambda key: _x(records[key].recipe, claim["x"]))

    @cache
    def point(run: str, x):
        of_run = here["run"].map(lambda own: _same(own, run, claim["x"])).astype(bool)
        return one_setting(here[of_run & (at == x)] if claim["x"] else here[of_run], run)

    @cache
    def shut(run: str, x) -> str:
        keys = tuple(point(run, x)["key"].unique())
        board = SMALL if any(_others(differing, keys, claim)) else PRINTED
        why, _ = gate(results, paper, claim | {"site": "average"}, keys, rules["selection"], spreads, board)
        return f"{spaced(claim['x'])} {x}: {why}" if why and claim["x"] else why

    every = steps(claim)
    ran = [pair for pair in every if not any(point(*side).empty for side in pair)]
    # x is a setting of the two sides, which differ in it and in what the study ties to it
    sides = [Pair(*(point(*side)[[name for name in here if name in ALWAYS]] for side in pair)) for pair in ran]
    found = effects_of(sides, results, spreads, rules["level"] / len(every))
    directions, reason = [NOT_RUN] * (len(every) - len(ran)), ""
    for pair, effect in zip(ran, found, strict=True):
        why = "" if effect.untested else next(filter(None, (shut(*side) for side in pair)), "")
        reason = reason or why
        directions.append("not testable" if why else effect.direction)
    counts = Counter(directions)
    told = f"{counts['above'] + counts['below']} of {len(every)} steps significant"
    told += f", {counts['below']} of them the other way" if counts["below"] else ""
    kept = [f"{count} {word}" for word, count in counts.items() if word not in ("above", "below", INCONCLUSIVE)]
    keys = tuple(dict.fromkeys(key for pair in ran for side in pair for key in point(*side)["key"]))
    verdict = INCONCLUSIVE
    if counts["below"] or counts["above"] == len(every):
        verdict = OTHERWISE if counts["below"] else AS_PRINTED
    elif counts["not testable"] == len(ran):
        verdict = "not testable" if ran else NOT_RUN
    return verdict, "; ".join(filter(None, (", ".join([told, *kept]), reason))), keys


def _x(recipe: dict, name: str):
    """A recipe's own field, or an option of its data or methods; None where it has none of that name."""
    parts = (recipe, recipe["federation"], recipe.get("algorithm", {}), *recipe.get("augmentations", ()))
    return next((part[name] for part in parts if name in part), None)


def _same(run: str, label: str, x: str) -> bool:
    """Whether a run is the labelled one, whatever its x."""
    others = {(name, option) for name, option in labels.options(run) if option.partition("=")[0] != x}
    return labels.method(run) == labels.method(label) and others == labels.options(label)
