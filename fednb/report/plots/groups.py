"""Accuracies: dots in rows for each site or setting."""

from fednb.report import labels, wording
from fednb.report.comparison import tested
from fednb.report.intervals import alike, of_settings
from fednb.report.plots._axes import of_paper, printed_values
from fednb.report.plots.rows import Dot, rows_of_dots


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
    of_images, known = None, None
    if results is not None:
        of_images, known = wording.scored(chosen, results), alike(results, chosen["rule"].iloc[0])[1]
    if x == "client":
        parts = {(x, label): rows for label, rows in wording.with_seeds(chosen).items()}
    else:
        parts = {(at, label): rows for at, part in chosen.groupby(x) for label, rows in wording.settings(part)}
    values, runs = {}, {}  # values: of a group (a site, or a value of x), the number of each label
    for ((at, label), rows), found in zip(parts.items(), of_settings(parts.values(), of_images, known), strict=True):
        runs[label] = rows["run"].iloc[0]
        for group, own in found.items() if x == "client" else [(at, found["average"])]:
            values.setdefault(group, {})[label] = own[:3]
    order = (lambda group: group == "average") if x == "client" else None
    groups, marked, theirs = sorted(values, key=order, reverse=x in wording.DOWNWARDS), wording.mark(chosen), {}
    if printed is not None and not marked:
        same = printed["federation"].isin(chosen["federation"]) & printed["sites"].isin(["", tested(chosen)])
        theirs = {label: printed_values(printed[same], run, x, groups) for label, run in runs.items()}
    panels = {}
    for group in groups:
        name = f"{wording.spaced(x)} {group}"
        if x in ("client", "federation"):
            name = labels.site(labels.federation(group))
        panels[name] = {
            label: Dot(run, *values[group][label], printed=theirs.get(label, {}).get(group))
            for label, run in runs.items()
            if label in values[group]
        }
    what = f"test {wording.measure(chosen)} (%)"
    if x != "client":
        seeds = sorted({rows["seed"].nunique() for rows in parts.values()})
        what += ", mean over clients" + (f", {seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else "")
    return rows_of_dots(panels, what, title, marked, theirs=of_paper(results))
