"""Dots in rows for each site or setting, and lines from taking part to being left out."""

from fednb.report.comparison import tested
from fednb.report.intervals import alike, of_settings
from fednb.report.labels import federation, site
from fednb.report.plots._axes import (
    of_paper,
    printed_rows,
    printed_values,
)
from fednb.report.plots.rows import Dot, rows_of_dots
from fednb.report.wording import DOWNWARDS, mark, measure, scored, settings, spaced, told_seeds


def scores(chosen, x: str = "client", printed=None, title: str = "", results=None):
    """Test accuracy or Dice with 95 % intervals: dots in rows, one for each method, a panel for each value of ``x``.

    chosen: rows of ``fednb.report.selection.selected``.
    x: ``"client"`` for a panel of each site and one of their average; or a varied field, for example
        ``"local_epochs"`` as in FedRDN's Fig. 2: panels show the average over clients.
    printed: rows of ``fednb.papers.printed``: the paper's numbers as white diamonds, under the settings that the values
        of ``x`` make. A stand-in and other data are never drawn beside them, nor averages over other sites. Where the
        runs of ``results`` are at another setting than the paper's, the legend says so.
    results: of the study whose runs these are. All that is recorded of their settings moderates the intervals, as in
        tables, and the images' scores give Dice its own; without it the drawn rows alone do, and Dice's are too wide.
    """
    marked, of_images, known = mark(chosen), None, None
    if results is not None:
        of_images, known = scored(chosen, results), alike(results, chosen["rule"].iloc[0])[1]
    parts = {}  # (value of x, label) -> its rows
    for value, part in [(None, chosen)] if x == "client" else chosen.groupby(x):
        of = dict(settings(part))
        parts |= {(value, label): rows for label, rows in (told_seeds(of) if x == "client" else of).items()}
    values, runs = {}, {}  # values: label -> {value of x: its number}
    for ((value, label), rows), found in zip(parts.items(), of_settings(parts.values(), of_images, known), strict=True):
        values.setdefault(label, {}).update(found if x == "client" else {value: found["average"]})
        runs[label] = rows["run"].iloc[0]
    groups = list(dict.fromkeys(group for found in values.values() for group in found))
    groups = sorted(groups, key=lambda group: group == "average" if x == "client" else group, reverse=x in DOWNWARDS)
    theirs = {}
    if printed is not None and not marked:
        same = printed["federation"].isin(chosen["federation"]) & printed["sites"].isin(["", tested(chosen)])
        theirs = {label: printed_values(printed_rows(printed[same], run), x, groups) for label, run in runs.items()}
    named = x in ("client", "federation")
    panels = {
        _called(group) if named else f"{spaced(x)} {group}": {
            label: Dot(runs[label], *found[group][:3], printed=theirs.get(label, {}).get(group))
            for label, found in values.items()
            if group in found
        }
        for group in groups
    }
    seeds = sorted({rows["seed"].nunique() for rows in parts.values()})
    what = f"test {measure(chosen)} (%)" + ("" if x == "client" else ", mean over clients")
    what += f", {seeds[0]} to {seeds[-1]} seeds" if x != "client" and len(seeds) > 1 else ""
    return rows_of_dots(panels, what, title, marked, theirs=of_paper(results))


def _called(group):
    """A site or a data set by its name; a number as it is."""
    return site(federation(group))
