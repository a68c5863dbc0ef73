"""The scoreboard as a table that a reader sorts, searches and filters, and counted by paper."""

import pandas
from IPython.display import HTML
from itables import JavascriptCode, init_notebook_mode
from itables.javascript import to_html_datatable

from fednb import papers
from fednb.report import TESTED, labels
from fednb.report.sentences import untested
from fednb.report.verdicts import CLAIM


def sortable(claims):
    """The claims of ``fednb.report.recorded_board`` as a sortable table, offline, by itables; a static one where no
    script runs. A page's address with ``#FedRDN larger`` opens it with that search."""
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
        "marks": claims["marks"],
        "table": claims["table"].str.replace("table", ""),
    }
    options = {"layout": {"top1": "searchBuilder"}, "pageLength": 25, "classes": "compact"}
    options |= {"display_logo_when_loading": False, "style": "width: 100%"}
    options["search"] = {"search": JavascriptCode("decodeURIComponent(location.hash.slice(1))")}
    tested = claims["verdict"].map({word: place for place, word in enumerate(TESTED)}).fillna(len(TESTED))
    shown = claims.assign(**columns).loc[tested.sort_values(kind="stable").index, [*columns]]
    return HTML(to_html_datatable(shown, table_id="board", connected=False, maxBytes=0, showIndex=False, **options))


def by_paper(claims):
    """How many claims of ``fednb.report.recorded_board`` of each paper, and of all, have which verdict, how many one on
    both boards, and how many none."""
    tested = claims[claims["verdict"].isin(TESTED)]
    counts = pandas.crosstab(tested["of"], tested["verdict"]).reindex(columns=TESTED, fill_value=0)
    every, told = (rows.drop_duplicates(["of", *CLAIM])["of"].value_counts() for rows in (claims, tested))
    counts = counts.reindex(sorted(every.index), fill_value=0)
    counts.insert(0, "claims", every)
    counts["on both boards"] = counts[list(TESTED)].sum(axis=1) - told.reindex(counts.index, fill_value=0)
    counts["not tested"] = untested(claims)["of"].value_counts().reindex(counts.index, fill_value=0)
    counts.loc["all"] = counts.sum()
    called = {paper: labels.printed(paper) for paper in papers.names()}
    return counts.rename(index=called).rename_axis(index=None, columns=None)
