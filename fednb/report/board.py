"""The scoreboard of all papers: every claim with the printed effect, ours and its verdict."""

from typing import TYPE_CHECKING

from fednb import papers
from fednb.report import effects, names, words
from fednb.report.effects import short_and_wide, told_between, told_bounds, told_with_spare
from fednb.report.sentences import TESTED
from fednb.report.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

# of: the paper. effect: the claim in short. why: of a claim that is not testable. other_rules: the paper's own where it
# gives another verdict, "best validation: not told". setting: the board, fednb.report.sentences.PRINTED or SMALL, ""
# without a run. deviations: from the paper's setting. exploratory: a run was not declared before it was made.
COLUMNS = ("of", "table", "claim", "federation", "effect", "paper", *effects.COLUMNS, "verdict", "why", "other_rules")
COLUMNS += ("setting", "deviations", "exploratory", "notebook")
CLAIM = ("table", "federation", "claim")  # which a row is of; one that ran on both boards has two


def effect(claim: dict) -> str:
    """A claim in short: ``"FedRDN - FedAvg"``, with its setting and its site where it has such."""
    short = [names.short(claim[name]) for name in ("better", "worse")]
    site = "" if claim["site"] == "average" else claim["site"]
    return ", ".join(filter(None, (words.minus(*short), claim["setting"], site)))


def by_paper(claims: "DataFrame") -> "DataFrame":
    """How many claims of each paper have which verdict, on either board, and how many have none; and of all.

    claims: what the verdicts and "not tested" are counted of. distinct comparisons: a pair of runs on the same data,
    setting and site that stands in several tables is one of them, and several claims. on both boards: claims that are
    tested at either setting, and so have two verdicts.
    """
    import pandas

    tested = claims[claims["verdict"].isin(TESTED)]
    counts = pandas.crosstab(tested["of"], tested["verdict"]).reindex(columns=TESTED, fill_value=0)
    every, told = (rows.drop_duplicates(["of", *CLAIM])["of"].value_counts() for rows in (claims, tested))
    counts = counts.reindex(sorted(every.index), fill_value=0)
    counts.insert(0, "claims", every)
    counts.insert(
        1, "distinct comparisons", claims.drop_duplicates(["of", "federation", "effect"])["of"].value_counts()
    )
    counts["on both boards"] = counts[list(TESTED)].sum(axis=1) - told.reindex(counts.index, fill_value=0)
    counts["not tested"] = counts["claims"] - told.reindex(counts.index, fill_value=0)
    counts.loc["all"] = counts.sum()
    return counts.rename(index=_called).rename_axis(index=None, columns=None)


def _called(paper: str) -> str:
    return names.printed(paper) if paper in papers.names() else paper


def board(claims: "DataFrame") -> Table:
    """The claims as a table, verdicts first; its frame is all of them, unrounded."""

    shown = {
        "verdict": claims["verdict"],
        "the paper claims": claims["paper"].map(words.signed),
        "ours": claims["ours"].map(words.signed),
        "interval": told_bounds(claims),
        "all together": told_between(claims, "together"),
        "images fixed": told_between(claims, "fixed"),
        **told_with_spare(claims),
        "could be told": claims["smallest"].map(words.from_size),
        "seeds": claims["seeds"].map(lambda count: str(count) if count else ""),
        "why": claims["why"],
        "by the paper's rule": claims["other_rules"],
        "setting": words.standing(claims),
        "notebook": claims["notebook"],
    }
    cells, wide = short_and_wide(shown, claims["claim"], "ours")
    about = f"Effects in points, of the average unless a claim names a site. {words.AVERAGE}"
    caption = "Claims of the papers that compare two runs.", about
    return Table(claims, caption, cells, tuple(words.effect_lines(claims)), wide)


def curve_board(claims: "DataFrame") -> Table:
    """The rows of ``fednb.command.scoreboard.curves`` as a table: claims on orders and curves."""
    shown = claims.assign(setting=words.standing(claims)).set_index("claim")
    cells = shown[["verdict", "why", "setting", "notebook"]].rename_axis(None)
    about = "A step is a difference that the claim states to be above zero; all steps of a claim are tested together."
    return Table(claims, ("Claims of the papers on orders and curves.", about), cells)
