"""The scoreboard: every claim of a paper, its printed effect, ours, and a verdict by rules written first."""

from fednb import papers
from fednb.errors import RecipeError
from fednb.report import names
from fednb.report.comparison import on_federation, tested
from fednb.report.intervals import Interval, effect
from fednb.report.selection import selected
from fednb.report.tables import Table
from fednb.report.words import STAND_IN, all_took_part, bounds, frame_of, rule_words, setting_lines, settings, signed


def scoreboard(results, paper: str, rule: str = "last", table: str | None = None) -> Table:
    """Every claim of the paper that compares two runs of a printed table: printed effect, ours, verdict.

    The rules, written before any verdict. Let e > 0 be the printed effect (better minus worse, in points) and
    [low, high] the 95 % interval of ours (``fednb.report.intervals.effect``):

    - not run: one side has no recorded run on the claim's own federation, setting and sites. A stand-in does
      not count, nor does an average over other sites than the paper's.
    - opposite: high < 0.
    - no effect outside its interval: low <= 0 <= high, however large our own effect is.
    - same direction, smaller: low > 0 and high < e.
    - reproduced: low > 0 and e <= high: as large as printed, or larger.

    A side is the run with the claim's own options; where there is none, a run of its methods with more options
    (``fedprox(mu=0.1)`` for ``fedprox``). A verdict holds for the setting in the caption, which need not be the
    paper's. ``table`` keeps the claims of one printed table. RecipeError if a side was run in several settings:
    keep one of them.
    """
    import pandas

    everything = all_took_part(frame_of(results), results)
    real = everything[~everything["stand_in"].astype(bool)]
    chosen = selected(real, rule)
    rows = []
    for claim in papers.claims(paper):
        if table not in (None, claim["table"]):
            continue
        there = papers.printed(paper, claim["table"], claim["federation"], claim.get("setting"))
        there = there[there["site"] == claim["site"]]
        said = _printed_value(there, claim["better"]) - _printed_value(there, claim["worse"])
        here = _on_site(on_federation(chosen, results, there["run_on"].iloc[0]), claim["site"], there["sites"].iloc[0])
        sides = [_one_setting(here, claim[side]) for side in ("better", "worse")]
        ours = None if any(side.empty for side in sides) else effect(*sides, client=claim["site"])
        about = {"claim": claim["statement"].format(effect=said), "table": claim["table"], "paper": said}
        numbers = ours._asdict() if ours else dict.fromkeys(Interval._fields)
        seeds = min(side["seed"].nunique() for side in sides)
        rows.append({**about, **numbers, "seeds": seeds, "verdict": verdict(said, ours)})
    frame = pandas.DataFrame(rows).rename(columns={"value": "ours"})
    frame[["ours", "low", "high"]] = frame[["ours", "low", "high"]].astype(float)
    shown = {
        "table": frame["table"],
        "paper": frame["paper"].map(signed),
        "ours": frame["ours"].map(signed),
        "interval": bounds(frame, signed),
        "seeds": frame["seeds"].map(lambda count: str(count) if count else ""),
        "verdict": frame["verdict"],
    }
    cells = pandas.DataFrame(shown).set_axis(frame["claim"], axis="index").rename_axis(None)
    left_out = [f"Results on a {STAND_IN} are left out: they say nothing about the paper."]
    caption = (
        f"Claims of {paper} that compare two runs; effects in points. Selection: {rule_words(rule, everything)}.",
        *(left_out if len(real) < len(everything) else []),
        *setting_lines(results),
    )
    return Table(frame, caption, cells)


def verdict(printed: float, ours: Interval | None) -> str:
    """One of the five words of ``scoreboard``; ``printed`` > 0, ``ours`` None where it was not run."""
    if ours is None:
        return "not run"
    if ours.high < 0:
        return "opposite"
    if ours.low <= 0:
        return "no effect outside its interval"
    return "reproduced" if printed <= ours.high else "same direction, smaller"


def _on_site(chosen, site: str, sites: str):
    """The runs that were tested at the site; for an average those over all the printed sites and no others."""
    over = {key: tested(rows) for key, rows in chosen.groupby("key")}
    if site == "average":
        keys = [key for key, clients in over.items() if sites in ("", clients)]
    else:
        keys = [key for key, clients in over.items() if site in clients.split(", ")]
    return chosen[chosen["key"].isin(keys)]


def _one_setting(chosen, side: str):
    """The rows of the one run that is a claim's side."""
    runs = [run for run in chosen["run"].unique() if names.printed_for(run, [side])]
    exact = [run for run in runs if names.options(run) == names.options(side)]
    rows = chosen[chosen["run"].isin(exact or runs)]
    labels = [label for label, _ in settings(rows)]
    if len(labels) > 1:
        raise RecipeError(f"{side} was run in several settings: {'; '.join(labels)}. Keep one.")
    return rows


def _printed_value(printed, side: str) -> float:
    algorithm, _, augmentation = side.partition("+")
    same = (printed["algorithm"] == algorithm) & (printed["augmentation"] == augmentation)
    return printed.loc[same, "value"].item()
