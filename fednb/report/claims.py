"""The scoreboard: every claim of a paper, its printed effect, ours, and a verdict by rules written first."""

from functools import cache

from fednb import papers
from fednb.errors import DataError
from fednb.report import names
from fednb.report.board import effect
from fednb.report.comparison import of_unseen, on_federation, tested
from fednb.report.effects import Effect, Pair, columns, effects_of, one_setting, short_and_wide, told_bounds
from fednb.report.selection import RULES, selected
from fednb.report.sentences import TESTED
from fednb.report.tables import Table
from fednb.report.words import (
    AVERAGE,
    all_took_part,
    effect_lines,
    frame_of,
    mark,
    rule_words,
    setting_lines,
    signed,
    spaced,
)

NOT_RUN, OTHER_SITES = "not run", "other sites"
AGAINST = (
    "The printed effect is held against ours on the same images, with the spread of our runs and of the paper's own. "
    "So it can lie a little outside the interval and not be told from ours, or inside and be told."
)


def verdict(printed: float, found: Effect | str, runs: int = 1) -> str:
    """What is said of a claim.

    printed: the printed effect e > 0, better minus worse, in points. found: ours, or one of the first two words. runs:
        of how many runs of each side the printed effect is the mean.

    - not run: one side has no recorded run of its own on the claim's federation under the printed setting, such as
      DisTrans' heterogeneity, or at its site. A stand-in does not count.
    - other sites: both sides were run so, and their averages are over other sites than the paper's.
    - older code: a side's methods, network or data behave otherwise today.
    - not paired: a record has no scores of its images, or the two have other images or no seed in common.
    - one seed: the two have one seed in common, so nothing is known of the chance of a run.
    - opposite: zero is left out, when all claims of one table on one data set are tested together (Holm, 5 %), on the
      other side than the printed effect.
    - smaller, larger, reproduced: zero is left out so on the printed side, and the printed effect is above, below or
      inside the 95 % interval of ours, with the chance of our runs and of the printed ones (all see the same images).
    - no effect: zero is not left out so, and the printed effect is above that interval.
    - undecided: zero is not left out so, and the printed effect is not above that interval: runs or images are too few
      to say.

    A verdict holds for the setting in the caption, which need not be the paper's.
    """
    if isinstance(found, str):
        return found
    if found.untested:
        return found.untested
    if found.clear and found.measured.value < 0:
        return "opposite"
    difference = found.measured.against(printed, runs)
    if difference.high < 0:
        return "smaller" if found.clear else "no effect"
    if not found.clear:
        return "undecided"
    return "larger" if difference.low > 0 else "reproduced"


def scoreboard(results, paper: str, rule: str = "last", table: str | None = None) -> Table:
    """Every claim of the paper that compares two runs of a printed table: printed effect, ours, verdict.

    A side is the run with the claim's own options; where there is none, a run of its methods with more options
    (``fedprox(mu=0.1)`` for ``fedprox``). ``rule`` decides the numbers and the verdict that are shown; where another
    rule of ``fednb.report.selection`` gives another verdict, a column says so.
    ``table`` keeps the claims of one printed table. RecipeError if a side was run in several settings: keep one.
    """
    import pandas

    everything = frame_of(results)
    real = everything[~everything["stand_in"].astype(bool)]
    claims = [claim for claim in papers.claims(paper) if table in (None, claim["table"])]
    there = [_printed_rows(paper, claim) for claim in claims]
    said = [_printed_effect(rows, claim) for rows, claim in zip(there, claims, strict=True)]
    runs = [rows["runs"].iloc[0] for rows in there]
    by_rule = {}
    for name in dict.fromkeys((rule, *RULES)):
        try:
            chosen = {False: all_took_part(selected(real, name), results), True: selected(real, name, unseen=True)}
            by_rule[name] = _found(results, chosen, there, claims)
        except DataError:  # the runs have no validation images
            if name == rule:
                raise
    verdicts = {name: list(map(verdict, said, found, runs)) for name, found in by_rule.items()}
    rows = []
    for number, claim in enumerate(claims):
        own = by_rule[rule][number]
        words = {name: own[number] for name, own in verdicts.items()}
        others_say = {spaced(name): word for name, word in words.items() if word != words[rule]}
        rows.append(
            {
                "claim": claim["statement"].format(effect=said[number]),
                "table": claim["table"],
                "effect": effect(claim),
                "paper": said[number],
                **columns(None if isinstance(own, str) else own),
                "verdict": words[rule],
                "other_rules": "; ".join(f"{name}: {word}" for name, word in others_say.items()),
            }
        )
    frame = pandas.DataFrame(rows)
    frame[["ours", "low", "high", "p"]] = frame[["ours", "low", "high", "p"]].astype(float)
    shown = {
        "verdict": frame["verdict"],
        "paper": frame["paper"].map(signed),
        "ours": frame["ours"].map(signed),
        "interval": told_bounds(frame),
        "seeds": frame["seeds"].map(lambda count: str(count) if count else ""),
        "by other rules": frame["other_rules"],
        "table": frame["table"],
    }
    cells, wide = short_and_wide(shown, frame["claim"], "ours")
    left_out = [f"Results on {mark(everything)} are left out: they say nothing about the paper."]
    caption = (
        f"Claims of {paper} that compare two runs; effects in points, in the seeds that both have, of the average "
        "unless a claim names a site. "
        f"{AVERAGE} Selection: {rule_words(rule, everything)}.",
        *(left_out if len(real) < len(everything) else []),
    )
    made = (
        *effect_lines(frame),
        *([AGAINST] if frame["verdict"].isin({*TESTED} - {"opposite"}).any() else []),
        *(f"{spaced(name)} is not looked at: some runs have no such images." for name in RULES if name not in by_rule),
        *setting_lines(results),
    )
    return Table(frame, caption, cells, made, wide)


def _printed_effect(there, claim: dict) -> float:
    return _printed_value(there, claim["better"]) - _printed_value(there, claim["worse"])


def _printed_rows(paper: str, claim: dict):
    there = papers.printed(paper, claim["table"], claim["federation"], claim.get("setting"))
    return there[there["site"] == claim["site"]]


def _found(results, chosen: dict, printed: list, claims: list[dict]) -> list[Effect | str]:
    """Ours for each claim, those of one printed table and data set tested together; or why there is none.

    chosen: by whether they are of unseen sites, the rows that a claim may rest on. printed: the rows of each claim.
    """
    if not results.records:
        return [NOT_RUN] * len(claims)

    @cache
    def side(label: str, unseen: bool, run_on: str, site: str, sites: str):
        return one_setting(_runs_of(here(unseen, run_on, site, sites), label), label)

    @cache
    def here(unseen: bool, run_on: str, site: str, sites: str):
        return _on_site(on_federation(chosen[unseen], results, run_on), site, sites)

    def pair(there, claim: dict) -> Pair | str:
        """The two sides of a claim, or why they cannot be compared."""
        labels, unseen = (claim["better"], claim["worse"]), of_unseen(there)
        where = unseen, there["run_on"].iloc[0], claim["site"], there["sites"].iloc[0]
        sides = [side(label, *where) for label in labels]
        if not any(rows.empty for rows in sides):
            return NOT_RUN if set(sides[0]["key"]) & set(sides[1]["key"]) else Pair(*sides, claim["site"])
        ran = [len(_runs_of(on_federation(chosen[unseen], results, where[1]), label)) for label in labels]
        return OTHER_SITES if all(ran) and claim["site"] == "average" else NOT_RUN

    found = [pair(*each) for each in zip(printed, claims, strict=True)]
    families = [(claim["table"], claim["federation"]) for claim in claims]
    for family in dict.fromkeys(families):
        numbers = [n for n, own in enumerate(found) if isinstance(own, Pair) and families[n] == family]
        measured = effects_of([found[number] for number in numbers], results.records)
        for number, own in zip(numbers, measured, strict=True):
            found[number] = own
    return found


def _on_site(chosen, site: str, sites: str):
    """The runs that were tested at the site; for an average those over all the printed sites and no others.

    Runs that left out one site each stand for their unseen sites together.
    """
    kept = []
    for _, rows in chosen.groupby("key" if chosen["took_part"].all() else ["run", "seed"]):
        over = tested(rows)
        if sites in ("", over) if site == "average" else site in over.split(", "):
            kept += list(rows.index)
    return chosen.loc[kept]


def _runs_of(chosen, side: str):
    """The rows of the runs that are a claim's side."""
    runs = [run for run in chosen["run"].unique() if names.printed_for(run, [side])]
    exact = [run for run in runs if names.options(run) == names.options(side)]
    return chosen[chosen["run"].isin(exact or runs)]


def _printed_value(printed, side: str) -> float:
    algorithm, _, augmentation = side.partition("+")
    same = (printed["algorithm"] == algorithm) & (printed["augmentation"] == augmentation)
    return printed.loc[same, "value"].item()
