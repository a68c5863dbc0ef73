"""Every claim of a paper, its printed effect, ours, and one verdict by ``fednb/papers/protocol.toml``."""

from collections import defaultdict
from functools import cache
from math import nan

from pandas import DataFrame

from fednb import papers
from fednb.errors import DataError, RecipeError
from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.comparison import on_federation, tested
from fednb.report.deviations import deviations, of_unseen, other_options
from fednb.report.effects import EFFECT, Effect, Pair, columns, effects_of, one_setting, spare_effects
from fednb.report.gates import activity, gate
from fednb.report.intervals import alike
from fednb.report.selection import selected
from fednb.report.sentences import claimed, effect
from fednb.report.verdicts import PRINTED, SMALL

# primary: whether the paper stands on it. marks: what a reader must know besides the verdict. activity: the number that
# shows the paper's method at work, NaN where it was not recorded.
# other_rules: the paper's own where it says otherwise, "best validation: inconclusive". setting: the board, PRINTED or
# SMALL, "" without a run. gap_low, gap_high: of ours minus the printed effect, at the paper's setting.
CLAIM = ("claim", "table", "effect", "paper", *EFFECT, "verdict", "why", "other_rules", "setting", "deviations")
CLAIM += ("gap_low", "gap_high", "primary", "marks", "activity")
NOT_RUN, OTHER_SITES = "not run", "other sites"


def verdict(printed: float, found: Effect | str, board: str, runs: int = 1) -> str:
    """What is said of a claim, a word of ``fednb.report.verdicts``; docs/reading.md says what each means.

    printed: the printed effect > 0, in points. found: ours, or why there is none. board: ``PRINTED`` or ``SMALL``.
    runs: of how many runs of each side the printed effect is the mean.
    """
    if isinstance(found, str) or found.untested:
        return found if isinstance(found, str) else found.untested
    rules, together = protocol.rules(), found.together
    margin = max(rules["margin"] * printed, rules["least_margin"])
    if -margin < together.low and together.high < min(margin, printed):
        return "no effect as printed"
    if board == SMALL or found.direction == "inconclusive":
        return found.direction
    if found.direction == "below":
        return "opposite"
    difference = found.measured.against(printed, runs, found.level)
    return "smaller" if difference.high < 0 else "larger" if difference.low > 0 else "reproduced"


def judged(results, paper: str, claims: list[dict] | None = None, keys: set[str] | None = None):
    """Every claim of the paper that compares two runs of a printed table: a frame with ``CLAIM``, and ``sides``, the
    keys of either side's runs.

    A side is the run with the claim's own options; where there is none, a run of its methods with more options
    (``fedprox(mu=0.1)`` for ``fedprox``). claims: of ``fednb.papers.claims``; keys: of the runs that they may rest on;
    all unless given. RecipeError if a side was run in several settings.
    """
    rule = protocol.rules()["selection"]
    claims = papers.claims(paper) if claims is None else claims
    real = of_protocol(results)
    real = real if keys is None else real[real["key"].isin(keys)]
    differing, by_rule, rows = deviations(results.records, paper), {}, []
    tables = [papers.printed(paper, claim["table"], claim["federation"], claim["setting"]) for claim in claims]
    there = [table[table["site"] == claim["site"]] for table, claim in zip(tables, claims, strict=True)]
    records = {record.key: record for record in results.records}
    for name in dict.fromkeys((rule, papers.own_rule(paper))):
        try:
            by_rule[name] = _found(results, real, name, there, tables, claims, paper, name == rule)
        except DataError:  # the runs have no validation images
            if name == rule:
                raise
    for number, (claim, printed) in enumerate(zip(claims, there, strict=True)):
        own, pair, more = by_rule[rule][number]
        said = whole = _printed_effect(printed, claim)
        sides = dict(zip((claim["better"], claim["worse"]), pair or (), strict=False))
        keys = tuple(dict.fromkeys(key for side in sides.values() for key in side["key"]))
        deviating = dict.fromkeys(text for key in keys for text in differing[key])
        for label, side in sides.items():
            deviating |= dict.fromkeys(other_options(paper, side["run"].iloc[0], label, claim["table"]))
        if pair and (common := _common(printed, pair)):
            said = _printed_effect(_over(tables[number], common), claim)
            deviating[f"average over {', '.join(map(labels.site, common))}"] = None
        board = "" if not pair else SMALL if deviating else PRINTED
        runs, shut, marks, at_work = printed["runs"].iloc[0], "", [], nan
        if pair and not own.untested:
            _, spreads = alike(results, rule, of_unseen(printed), protocol.rules()["seeds"])
            at_work = activity(paper, [records[key] for key in sides[claim["better"]]["key"].unique()])
            shut, marks = gate(results, paper, claim, keys, rule, spreads, board)
            if not shut and at_work < (least := protocol.rules()["active"]):  # not where nothing is known
                shut = f"the method was not active ({at_work:.2g}; expected {least} at least)"
        words = {name: verdict(said, found[number][0], board, runs) for name, found in by_rule.items()}
        others = [f"{wording.spaced(name)}: {word}" for name, word in words.items() if word != words[rule]]
        against = own.measured.against(said, runs, own.level) if board == PRINTED else None
        rows.append(
            {
                "claim": claimed(claim, printed["value"], whole),
                "table": ", ".join(claim["tables"]),
                "effect": effect(claim),
                "paper": said,
                **columns(own),
                **more,
                "verdict": "not testable" if shut else words[rule],
                "why": shut,
                "other_rules": "" if shut else "; ".join(others),
                "setting": board,
                "deviations": "; ".join(deviating),
                "gap_low": against.low if against else nan,
                "gap_high": against.high if against else nan,
                "primary": claim["primary"],
                "marks": "; ".join(marks),
                "activity": at_work,
                "sides": [frozenset(side["key"]) for side in sides.values()],
            }
        )
    frame = DataFrame(rows, columns=None if rows else [*CLAIM, "sides"])
    return frame.astype({name: float for name in EFFECT if name != "seeds"})


def of_protocol(results):
    """The rows that a claim may rest on: of real images, on the protocol's seeds."""
    frame = wording.frame_of(results)
    return frame[~frame["stand_in"].astype(bool) & frame["seed"].isin(protocol.rules()["seeds"])]


def _difference(there, claim: dict) -> float:
    rows = dict(zip(papers.labels_of(there), there["value"], strict=True))
    return rows.get(claim["better"], nan) - rows.get(claim["worse"], nan)


def _printed_effect(there, claim: dict) -> float:
    """Better minus worse; RecipeError, naming the claim, where the table does not print the one above the other."""
    better, worse, effect = claim["better"], claim["worse"], _difference(there, claim)
    if not effect > 0:
        rows = papers.labels_of(there)
        found = f"the difference that is printed is {effect:.2f}" if effect <= 0 else f"its rows are {', '.join(rows)}"
        raise RecipeError(
            f"a claim is of {better} above {worse} in {claim['table']} on {claim['federation']}, and {found}. Expected "
            "two rows, the better first; mend it in claims.csv."
        )
    return effect


def _common(printed, pair: Pair) -> list[str]:
    """The sites that both runs were tested at, where the printed average is over more."""
    over = tested(pair.better)
    return [] if printed["sites"].iloc[0] in ("", over) or pair.client != "average" else over.split(", ")


def _over(table, sites: list[str]):
    """The printed rows of these sites as rows of their mean."""
    rows = table[table["site"].isin(sites)]
    return rows.groupby(["algorithm", "augmentation"], sort=False, as_index=False)["value"].mean()


def _found(results, real, rule: str, printed: list, tables: list, claims: list[dict], paper: str, spare: bool) -> list:
    """Ours for each claim, a primary one by itself, all others of a data set tested together, or why there is none; its
    pair; and the effect with spare images, where ``spare``. printed, tables: rows of each claim, and of its setting."""
    if not results.records:
        return [(NOT_RUN, None, {})] * len(claims)
    chosen = {False: wording.all_took_part(selected(real, rule), results), True: selected(real, rule, unseen=True)}

    @cache
    def here(unseen: bool, run_on: str, site: str, sites: str):
        return on_site(on_federation(chosen[unseen], results, run_on), site, sites)

    @cache
    def side(label: str, *where):
        return one_setting(runs_of(here(*where), label), label)

    def pair(there, table, claim: dict) -> Pair | str:
        """The two sides of a claim, or why they cannot be compared. Where they were tested at two or more of the
        printed sites alone, and the table's rows there say the same, they are compared on these."""
        both, unseen, run_on = (claim["better"], claim["worse"]), of_unseen(there), there["run_on"].iloc[0]
        sides = [side(label, unseen, run_on, claim["site"], there["sites"].iloc[0]) for label in both]
        if not any(rows.empty for rows in sides):
            return NOT_RUN if set(sides[0]["key"]) & set(sides[1]["key"]) else Pair(*sides, claim["site"])
        if claim["site"] != "average":
            return NOT_RUN
        sides = [side(label, unseen, run_on, "average", "") for label in both]
        if any(rows.empty for rows in sides):
            return NOT_RUN
        here, also = (set(tested(rows).split(", ")) for rows in sides)
        fewer = here == also and 1 < len(here) and here < set(there["sites"].iloc[0].split(", "))
        return Pair(*sides) if fewer and _difference(_over(table, here), claim) > 0 else OTHER_SITES

    measured: list[tuple] = []
    together = defaultdict(list)  # pairs that share spreads and level, with their places
    for place, (there, table, claim) in enumerate(zip(printed, tables, claims, strict=True)):
        own = pair(there, table, claim)
        measured.append((own, None, {}))
        if isinstance(own, Pair):
            family = 1 if claim["primary"] else papers.family(paper, claim["federation"])
            together[of_unseen(there), family].append((place, own))
    for (unseen, family), places in together.items():
        rows, spreads = alike(results, rule, unseen, protocol.rules()["seeds"])
        pairs = [own for _, own in places]
        effects = effects_of(pairs, results, spreads, protocol.rules()["level"] / family)
        more = spare_effects(pairs, results, rows) if spare else [{}] * len(pairs)
        for (place, own), each, with_spare in zip(places, effects, more, strict=True):
            measured[place] = each, own, with_spare
    return measured


def on_site(chosen, site: str, sites: str):
    """The runs that were tested at the site; for an average those over all the printed sites and no others. Runs that
    left out one site each stand for their unseen sites together."""
    kept = []
    for _, rows in chosen.groupby("key" if chosen["took_part"].all() else ["run", "seed"]):
        over = tested(rows)
        if sites in ("", over) if site == "average" else site in over.split(", "):
            kept += list(rows.index)
    return chosen.loc[kept]


def runs_of(chosen, side: str):
    """The rows of the runs that are a claim's side."""
    runs = [run for run in chosen["run"].unique() if labels.printed_for(run, [side])]
    exact = [run for run in runs if labels.options(run) == labels.options(side)]
    return chosen[chosen["run"].isin(exact or runs)]
