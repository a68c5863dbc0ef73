"""The scoreboard, of one paper and of all: every claim with the printed effect, ours and its verdict, as tables."""

from typing import TYPE_CHECKING

from fednb import papers
from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.claims import judged
from fednb.report.effects import SPARE
from fednb.report.sentences import untested
from fednb.report.tables import Table
from fednb.report.verdicts import CLAIM, TESTED

if TYPE_CHECKING:
    from pandas import DataFrame


def scoreboard(results, paper: str, rule: str | None = None, table: str | None = None) -> Table:
    """Every claim of the paper that compares two runs of a printed table: printed effect, ours, verdict.

    rule and errors: as in ``fednb.report.claims.judged``, whose columns its frame has. table: the claims of one alone.
    """
    claims = [claim for claim in papers.claims(paper) if table is None or table in claim["tables"]]
    frame = judged(results, paper, rule, claims)
    everything = wording.frame_of(results)
    cells = shown(frame, _verdicts(frame), {**_standing(frame), "table": frame["table"]}, frame["claim"])
    chosen_by = wording.rule_words(rule or protocol.rules()["selection"], everything)
    stand_ins = wording.mark(everything)
    caption = (
        f"Claims of {_called(paper)} that compare two runs; effects in points, in the seeds that both have, of the "
        f"average unless a claim names a site. {wording.AVERAGE} Selection: {chosen_by}.",
        *([f"Results on {stand_ins} are left out: they say nothing about the paper."] if stand_ins else []),
    )
    deviating = dict.fromkeys(text for texts in frame["deviations"] for text in texts.split("; ") if text)
    made = (
        *wording.effect_lines(frame),
        *([f"Otherwise than the paper's setting: {'; '.join(deviating)}."] if deviating else []),
        *wording.setting_lines(results),
    )
    return Table(frame.drop(columns="sides"), caption, cells, made)


def board(claims: "DataFrame") -> Table:
    """The claims of all papers, rows of ``fednb.report.recorded_board``, as a table; its frame is all of them,
    unrounded."""
    last = {**_standing(claims), "table": claims["table"]}
    cells = shown(claims, _verdicts(claims), last, claims["claim"])
    about = f"Effects in points, of the average unless a claim names a site. {wording.AVERAGE}"
    caption = "Claims of the papers that compare two runs.", about
    return Table(claims, caption, cells, tuple(wording.effect_lines(claims)))


def curve_board(claims: "DataFrame") -> Table:
    """The curves of ``fednb.report.recorded_board`` as a table: claims on orders and curves."""
    rows = claims.set_index("claim")
    cells = rows[["verdict", "why", "setting", "figure"]].rename_axis(None)
    about = "A step is a difference that the claim states to be above zero; all steps of a claim are tested together."
    return Table(claims, ("Claims of the papers on orders and curves.", about), cells)


def _verdicts(frame: "DataFrame") -> dict:
    return {"verdict": frame["verdict"], "paper": frame["paper"].map(wording.signed)}


def _standing(frame: "DataFrame") -> dict:
    why, others = frame["why"], frame["other_rules"]
    return {"why": why, "by the paper's rule": others, "setting": frame["setting"]}


def shown(frame: "DataFrame", first: dict, last: dict, rows, value: str = "ours") -> "DataFrame":
    """Effects as the cells of a table.

    frame: with ``fednb.report.effects.COLUMNS``. first, last: columns before and after, ``last`` where they say
    something. rows: their labels.
    """
    import pandas

    def between(low: str, high: str):
        bounds = frame[["ours"]].assign(low=frame[low], high=frame[high])
        return wording.bounds(bounds, wording.signed).where(bounds["low"].notna(), "")

    texts = {
        **first,
        value: frame["ours"].map(wording.signed),
        "95 %": wording.told_bounds(frame),
        "simultaneous": between("together_low", "together_high"),
        "detectable": frame["smallest"].where(frame["smallest"] > 0).map(wording.number),
        "seeds": frame["seeds"].map(lambda count: str(count) if count else ""),
    }
    if "gap_low" in frame and frame["gap_low"].notna().any():
        last = {"ours - paper": between("gap_low", "gap_high"), **last}
    if SPARE[0] in frame and frame[SPARE[0]].notna().any():
        bounds = frame[list(SPARE)].set_axis(["ours", "low", "high"], axis=1)
        spare = bounds["ours"].map(wording.signed) + ", " + wording.bounds(bounds, wording.signed)
        last = {"with spare images": spare.where(bounds["ours"].notna(), ""), **last}
    texts |= {name: column for name, column in last.items() if (column != "").any()}
    return pandas.DataFrame(texts).set_axis(rows, axis="index").rename_axis(None)


def sortable(claims: "DataFrame"):
    """The claims of ``fednb.report.recorded_board`` as a table that a reader sorts, searches and filters, offline, by
    itables; a static table where no script runs. A page's address with ``#FedRDN larger`` opens it with that search."""
    from IPython.display import HTML
    from itables import JavascriptCode, init_notebook_mode
    from itables.javascript import to_html_datatable

    init_notebook_mode(all_interactive=False, connected=False)
    columns = {
        "paper": claims["of"].map(labels.printed),
        "data": claims["federation"].map(labels.federation),
        "claim": claims["effect"],
        "at": claims["setting"].replace("", "not run"),
        "verdict": claims["verdict"],
        "printed": claims["paper"].round(2),
        "ours": claims["ours"].round(1),
        "low": claims["together_low"].round(1),
        "high": claims["together_high"].round(1),
        "seeds": claims["seeds"],
        "table": claims["table"].str.replace("table", ""),
    }
    options = {"layout": {"top1": "searchBuilder"}, "pageLength": 25, "classes": "compact"}
    options |= {"display_logo_when_loading": False, "style": "width: 100%"}
    options["search"] = {"search": JavascriptCode("decodeURIComponent(location.hash.slice(1))")}
    tested = claims["verdict"].map({word: place for place, word in enumerate(TESTED)}).fillna(len(TESTED))
    shown = claims.assign(**columns).loc[tested.sort_values(kind="stable").index, [*columns]]
    return HTML(to_html_datatable(shown, table_id="board", connected=False, maxBytes=0, showIndex=False, **options))


def by_paper(claims: "DataFrame") -> "DataFrame":
    """How many claims of each paper have which verdict, on either board, and how many have none; and of all.

    claims: of ``fednb.report.recorded_board``, in which a pair of runs is one row in whatever tables it stands. on both
    boards: claims that are tested at either setting, and so have two verdicts.
    """
    import pandas

    tested = claims[claims["verdict"].isin(TESTED)]
    counts = pandas.crosstab(tested["of"], tested["verdict"]).reindex(columns=TESTED, fill_value=0)
    every, told = (rows.drop_duplicates(["of", *CLAIM])["of"].value_counts() for rows in (claims, tested))
    counts = counts.reindex(sorted(every.index), fill_value=0)
    counts.insert(0, "claims", every)
    counts["on both boards"] = counts[list(TESTED)].sum(axis=1) - told.reindex(counts.index, fill_value=0)
    counts["not tested"] = untested(claims)["of"].value_counts().reindex(counts.index, fill_value=0)
    counts.loc["all"] = counts.sum()
    return counts.rename(index=_called).rename_axis(index=None, columns=None)


def _called(paper: str) -> str:
    return labels.printed(paper) if paper in papers.names() else paper
