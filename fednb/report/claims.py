"""The scoreboard: every claim of a paper, its printed effect, ours, and one verdict by ``fednb/papers/protocol.toml``.

When the rules were made: those of the protocol after 127 claims had verdicts by earlier ones. So all records are
exploratory but those of runs that the protocol declared before they were made.
"""

from functools import cache

from fednb import papers
from fednb.errors import DataError, RecipeError
from fednb.report import names
from fednb.report.board import effect
from fednb.report.comparison import of_unseen, on_federation, tested
from fednb.report.effects import (
    COLUMNS,
    Effect,
    Pair,
    columns,
    effects_of,
    one_setting,
    short_and_wide,
    spare_effects,
    spreads_of,
    told_between,
    told_bounds,
    told_with_spare,
)
from fednb.report.gates import gate
from fednb.report.selection import selected
from fednb.report.sentences import PRINTED, SMALL, claimed
from fednb.report.tables import Table
from fednb.report.words import (
    AVERAGE,
    METHODS_AND_SEEDS,
    all_took_part,
    effect_lines,
    frame_of,
    from_size,
    mark,
    rule_words,
    setting_lines,
    signed,
    spaced,
    standing,
)

NOT_RUN, OTHER_SITES = "not run", "other sites"


def verdict(printed: float, found: Effect | str, board: str, runs: int = 1) -> str:
    """What is said of a claim.

    printed: the printed effect e > 0, better minus worse, in points. found: ours, or why there is none. board:
        ``PRINTED`` where both sides ran at the paper's setting, else ``SMALL``. runs: of how many runs of each side the
        printed effect is the mean.

    - not run: one side has no recorded run of its own on the claim's federation under the printed setting, such as
      DisTrans' heterogeneity, or at its site. A stand-in does not count.
    - other sites: both sides were run so, and their averages are over other sites than the paper's.
    - older code: a side's methods, network or data behave otherwise today.
    - not paired: a record has no scores of its images, or the two have other images or no seed in common.
    - one seed: the two have one seed in common, so nothing is known of the chance of a run.
    - not testable: a gate is shut, see ``fednb.report.gates``.

    By the interval of ours at which all distinct pairs that the paper prints on the data set are tested together:

    - no effect as printed: it lies within half of the printed effect, or a point, of zero, and below what is printed.
    - not told: it holds zero.
    - at another setting than the paper's: above, below. No word about what the paper found.
    - at the paper's: opposite, where it is below zero; smaller, larger or reproduced, where it is above, and the
      printed effect is above, below or not told from ours with the chance of our runs and of the printed ones (all see
      the same images).
    """
    if isinstance(found, str):
        return found
    if found.untested:
        return found.untested
    rules, together = papers.protocol(), found.together
    margin = max(rules["margin"] * printed, rules["least_margin"])
    if -margin < together.low and together.high < min(margin, printed):
        return "no effect as printed"
    if board == SMALL or found.direction == "not told":
        return found.direction
    if found.direction == "below":
        return "opposite"
    difference = found.measured.against(printed, runs)
    return "smaller" if difference.high < 0 else "larger" if difference.low > 0 else "reproduced"


def scoreboard(results, paper: str, rule: str | None = None, table: str | None = None) -> Table:
    """Every claim of the paper that compares two runs of a printed table: printed effect, ours, verdict.

    A side is the run with the claim's own options; where there is none, a run of its methods with more options
    (``fedprox(mu=0.1)`` for ``fedprox``). ``rule`` decides the numbers and the verdict that are shown, the protocol's
    unless given; where the paper's own rule gives another verdict, a column says so.
    ``table`` keeps the claims of one printed table. RecipeError if a side was run in several settings: keep one.
    """
    import pandas

    rule = rule or papers.protocol()["selection"]
    everything = frame_of(results)
    real = everything[~everything["stand_in"].astype(bool)]
    claims = [claim for claim in papers.claims(paper) if table in (None, claim["table"])]
    there = [_printed_rows(paper, claim) for claim in claims]
    said = [_printed_effect(rows, claim) for rows, claim in zip(there, claims, strict=True)]
    differing = deviations(results.records, paper)
    declared = declared_runs(results.records, paper)
    by_rule = {}
    for name in dict.fromkeys((rule, papers.own_rule(paper))):
        try:
            chosen = {False: all_took_part(selected(real, name), results), True: selected(real, name, unseen=True)}
            by_rule[name] = _found(results, chosen, there, claims, paper, name)
        except DataError:  # the runs have no validation images
            if name == rule:
                raise
    rows = []
    for number, claim in enumerate(claims):
        own, sides, more = by_rule[rule][number]
        deviating = dict.fromkeys(text for key in sides for text in differing[key])
        board = "" if isinstance(own, str) else SMALL if deviating else PRINTED
        words = {
            name: verdict(said[number], found[number][0], board, there[number]["runs"].iloc[0])
            for name, found in by_rule.items()
        }
        shut = "" if isinstance(own, str) or own.untested else gate(results, paper, claim, sides, rule)
        others_say = {} if shut else {spaced(name): word for name, word in words.items() if word != words[rule]}
        rows.append(
            {
                "claim": claimed(claim, there[number]["value"], said[number]),
                "table": claim["table"],
                "effect": effect(claim),
                "paper": said[number],
                **columns(None if isinstance(own, str) else own),
                **more,
                "verdict": "not testable" if shut else words[rule],
                "why": shut,
                "other_rules": "; ".join(f"{name}: {word}" for name, word in others_say.items()),
                "setting": board,
                "deviations": "; ".join(deviating),
                "exploratory": not declared.issuperset(sides),
            }
        )
    frame = pandas.DataFrame(rows)
    numbers = [name for name in COLUMNS if name != "seeds"]
    frame[numbers] = frame[numbers].astype(float)
    shown = {
        "verdict": frame["verdict"],
        "paper": frame["paper"].map(signed),
        "ours": frame["ours"].map(signed),
        "interval": told_bounds(frame),
        "all together": told_between(frame, "together"),
        "images fixed": told_between(frame, "fixed"),
        **told_with_spare(frame),
        "could be told": frame["smallest"].map(from_size),
        "seeds": frame["seeds"].map(lambda count: str(count) if count else ""),
        "why": frame["why"],
        "by the paper's rule": frame["other_rules"],
        "setting": standing(frame),
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
    deviating = dict.fromkeys(text for texts in frame["deviations"] for text in texts.split("; ") if text)
    made = (
        *effect_lines(frame),
        *([f"Otherwise than the paper's setting: {'; '.join(deviating)}."] if deviating else []),
        *setting_lines(results),
    )
    return Table(frame, caption, cells, made, wide)


def declared_runs(records, paper: str) -> set[str]:
    """The keys of those that the protocol declares, made under its rules of today; the others are exploratory.

    So is a record of a changed copy of the code ("-dirty"), of which nobody can say what it declared.
    """
    rules, found = papers.protocol(), set()
    under = [
        record
        for record in records
        if record.origin.get("protocol") == papers.protocol_hash() and not record.origin["code"].endswith("-dirty")
    ]
    for entry in rules["runs"]:
        if entry["paper"] == paper:
            differing = deviations(under, paper, entry["profile"])
            found |= {
                record.key
                for record in under
                if record.recipe["federation"]["name"] == entry["federation"]
                and record.recipe["seed"] in entry["seeds"]
                and not differing[record.key]
            }
    return found


def deviations(records, paper: str, profile: str = "paper") -> dict[str, list[str]]:
    """In what each recorded run differs from a profile of the paper, by key: ``["rounds 40 (paper: 100)"]``."""
    from fednb.recipe import Recipe

    rules, found = papers.protocol(), {}

    @cache
    def printed(federation: str) -> dict:
        return Recipe(**papers.recipe(paper, profile, federation), algorithm="fedavg").full

    for record in records:
        own, federation = record.recipe, record.recipe["federation"]["name"]
        if federation not in papers.profiles_on(paper):
            found[record.key] = [f"no profile of the paper's is for {federation}"]
            continue
        told = []
        for name, wanted in printed(federation).items():
            if name in (*METHODS_AND_SEEDS, "unseen", *rules["as_printed"]) or name not in own:
                continue
            if name in ("federation", "model"):
                varied = _varied(paper, federation) if name == "federation" else ()
                options = dict.fromkeys((*own[name], *wanted))
                pairs = [(o, own[name].get(o), wanted.get(o)) for o in options if o not in ("seed", "spare", *varied)]
            else:
                pairs = [(name, own[name], wanted)]
            told += [
                f"{spaced(option) if option != 'name' else name} {here} (paper: {there})"
                for option, here, there in pairs
                if here != there
            ]
        found[record.key] = told
    return found


def _varied(paper: str, federation: str) -> set[str]:
    """The options of a federation that make what the paper prints rows under."""
    made_by = papers.settings(paper).get("setting", {}).get(federation, {})
    return {option for options in made_by.values() for option in options}


def _printed_effect(there, claim: dict) -> float:
    """RecipeError, naming the claim, where its two sides are one run, a side is no printed row, or the table does not
    print the one above the other."""
    rows = ["+".join(filter(None, row)) for row in zip(there["algorithm"], there["augmentation"], strict=True)]
    missing = [side for side in (claim["better"], claim["worse"]) if side not in rows]
    if missing or claim["better"] == claim["worse"]:
        wrong = f"{missing[0]} is not printed there" if missing else "they are the same run"
        raise RecipeError(
            f"a claim is of {claim['better']} and {claim['worse']} in {claim['table']} on {claim['federation']}: "
            f"{wrong}. Expected two of {', '.join(rows)}; mend it in claims.csv."
        )
    effect = _printed_value(there, claim["better"]) - _printed_value(there, claim["worse"])
    if effect <= 0:
        raise RecipeError(
            f"a claim is of {claim['better']} above {claim['worse']} in {claim['table']} on {claim['federation']}, and "
            f"the difference that is printed is {effect:.2f}. Leave it out of claims.csv, or turn it round."
        )
    return effect


def _printed_rows(paper: str, claim: dict):
    there = papers.printed(paper, claim["table"], claim["federation"], claim["setting"])
    return there[there["site"] == claim["site"]]


def _found(results, chosen: dict, printed: list, claims: list[dict], paper: str, rule: str) -> list[tuple]:
    """Ours for each claim, all that the paper prints on a data set tested together, or why there is none; the keys of
    its runs; and the effect with spare images.

    chosen: by whether they are of unseen sites, the rows that a claim may rest on. printed: the rows of each claim.
    """
    if not results.records:
        return [(NOT_RUN, (), {})] * len(claims)

    @cache
    def side(label: str, unseen: bool, run_on: str, site: str, sites: str):
        return one_setting(_runs_of(here(unseen, run_on, site, sites), label), label)

    @cache
    def here(unseen: bool, run_on: str, site: str, sites: str):
        return on_site(on_federation(chosen[unseen], results, run_on), site, sites)

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
    everything = frame_of(results.alike)

    @cache
    def alike(unseen: bool) -> tuple:
        rows = selected(everything, rule, unseen)
        return rows, spreads_of(rows)

    measured = []
    for there, claim, own in zip(printed, claims, found, strict=True):
        if isinstance(own, Pair):
            level = papers.protocol()["level"] / papers.family(paper, claim["federation"])
            keys = tuple(dict.fromkeys((*own.better["key"], *own.worse["key"])))
            rows, spreads = alike(of_unseen(there))
            (more,) = spare_effects([own], results.records, rows, results.alike.records)
            measured.append((*effects_of([own], results.records, spreads, level), keys, more))
        else:
            measured.append((own, (), {}))
    return measured


def on_site(chosen, site: str, sites: str):
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
