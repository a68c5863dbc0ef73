"""Differences between runs that a notebook asks for, as a table; a pair that is a claim has the claim's verdict."""

from pandas import DataFrame

from fednb import papers
from fednb.papers import protocol
from fednb.report import wording
from fednb.report.board import shown
from fednb.report.claims import judged, runs_of
from fednb.report.effects import EFFECT, SPARE, Pair, columns, effects_of, one_setting, spare_effects
from fednb.report.intervals import alike
from fednb.report.labels import pretty, site
from fednb.report.selection import selected
from fednb.report.tables import Table

WAYS = {"reproduced": "above", "larger": "above", "smaller": "above", "opposite": "below"}  # of a claim's verdict
TURNED = {"above": "below", "below": "above"}


def effects(
    results,
    pairs,
    by: str | None = None,
    rule: str | None = None,
    client: str = "average",
    unseen: bool = False,
    claims: bool = True,
) -> Table:
    """What one run scores more than another, in points, with its interval and one word for each.

    A pair that the paper of the study claims something of, or any paper where the study has none, has the numbers and
    the word of ``fednb.report.claims.judged``, gates included; all pairs of the table are tested together else.

    pairs: a list of two labels of runs each, or one label, which all others are held against. by: a varied field, such
    as "local_epochs": pairs are made within each of its values. rule: the protocol's unless given; by another one
    nothing is said of claims. client: a site instead of the average. unseen: at the sites that were in no round.
    claims: off, a claim is a pair like all others.

    Its frame holds better, worse, the value of ``by``, ``EFFECT``, direction (a word of ``fednb.report.verdicts``) and
    why. A pair that was not run is left out. RecipeError where a label has several settings.
    """
    everything, rule = wording.frame_of(results), rule or protocol.rules()["selection"]
    chosen = selected(everything, rule, unseen)
    groups, by = [("", chosen)], by if by in chosen else None
    if by:
        groups = sorted(chosen.groupby(by), key=lambda each: each[0], reverse=by in wording.DOWNWARDS)
    if isinstance(pairs, str):
        pairs = [(run, pairs) for run in chosen["run"].unique() if run != pairs]
    about, compared, verdicts, rows = [], [], {}, []
    for value, part in groups:
        rows_of = {label: one_setting(part[part["run"] == label], label) for each in pairs for label in each}
        for better, worse in pairs:
            if len(rows_of[better]) and len(rows_of[worse]):
                compared.append(Pair(rows_of[better], rows_of[worse], client))
                row = f"{wording.spaced(by)} {value}: " if by else ""
                row += wording.minus(pretty(better), pretty(worse))
                about.append({"row": row, "better": better, "worse": worse, by or "by": value})
        if claims and rule == protocol.rules()["selection"]:
            for paper in papers.names() if results.paper is None else [results.paper]:
                verdicts = _of_claims(results, paper, part, set(rows_of)) | verdicts
    known, spreads = alike(results, rule, unseen)
    more = spare_effects(compared, results, known)
    for one, pair, each, spare in zip(about, compared, effects_of(compared, results, spreads), more, strict=True):
        sides = (frozenset(side.loc[side["seed"].isin(protocol.rules()["seeds"]), "key"]) for side in pair[:2])
        numbers = columns(each) | spare | {"direction": each.direction, "why": ""}
        rows.append(one | numbers | verdicts.get((*sides, client), {}))
    names = ["row", "better", "worse", by or "by", *EFFECT, *(SPARE if any(more) else ()), "direction", "why"]
    frame = DataFrame(rows, columns=names)
    cells = shown(frame, {"verdict": frame["direction"]}, {"why": frame["why"]}, frame["row"], "points")
    over = "unseen sites" if unseen else "sites" if everything["took_part"].all() else "sites that took part"
    where = f"average over {over}" if client == "average" else site(client)
    marked = wording.mark(chosen)
    caption = (
        *([wording.stand_in_line(chosen, "the paper's images")] if marked else []),
        f"Differences in test {wording.measure(chosen)}, points, {where}, in the seeds that both have; "
        f"{wording.rule_words(rule, chosen)}.",
    )
    return Table(frame.drop(columns="row"), caption, cells, tuple(wording.effect_lines(frame)), mark=marked)


def _of_claims(results, paper: str, part, asked: set[str]) -> dict[tuple, dict]:
    """What the scoreboard says of the paper's claims on the runs that are asked for, either way round: columns by the
    runs of both sides and the site. part: the rows of all runs, among which a claim's side is found."""
    on, found = set(part["federation"]), {}

    def ran(claim: dict) -> bool:
        sides = [set(runs_of(part, claim[side])["run"]) for side in ("better", "worse")]
        return all(side and side <= asked for side in sides)

    claims = [claim for claim in papers.claims(paper) if claim["federation"] in on and ran(claim)]
    frame = judged(results, paper, claims=claims, keys=set(part["key"])) if claims else DataFrame()
    for claim, row in zip(claims, frame.to_dict("records"), strict=True):
        if row["sides"]:
            word = WAYS.get(row["verdict"], row["verdict"])
            told = {name: row[name] for name in (*EFFECT, "why")} | {"direction": word}
            turned = {"ours": -row["ours"], "direction": TURNED.get(word, word)}
            for low, high in (("low", "high"), ("together_low", "together_high")):
                turned |= {low: -row[high], high: -row[low]}
            better, worse = row["sides"]
            found |= {(worse, better, claim["site"]): told | turned, (better, worse, claim["site"]): told}
    return found
