"""Bars in groups, panels of dots where the bars would be too many, and lines from taking part to being left out."""

from fednb.report.comparison import tested
from fednb.report.intervals import alike, of_settings
from fednb.report.labels import federation, site
from fednb.report.plots._axes import (
    MOST,
    as_written,
    decorate,
    diamonds,
    new_figure,
    of_paper,
    printed_rows,
    printed_values,
    wrapped,
)
from fednb.report.plots.rows import Dot, rows_of_dots
from fednb.report.style import HATCHES, styles
from fednb.report.wording import DOWNWARDS, mark, measure, scored, settings, told_seeds


def bars(chosen, x: str = "client", printed=None, title: str = "", results=None):
    """Test accuracy or Dice with 95 % intervals, one group of bars for each value of ``x``, one bar per method.

    More than six methods are dots in rows instead, one panel for each value of ``x``.

    chosen: rows of ``fednb.report.selection.selected``.
    x: ``"client"`` for one group per site and one for their average; or a varied field, for example
        ``"local_epochs"`` as in FedRDN's Fig. 2: groups show the average over clients.
    printed: rows of ``fednb.papers.printed``: the paper's numbers as white diamonds, under the settings that the values
        of ``x`` make. A stand-in and other data are never drawn beside them, nor averages over other sites. Where the
        runs of ``results`` are at another setting than the paper's, the legend says so.
    results: of the study whose runs these are. All that is recorded of their settings moderates the intervals, as in
        tables, and the images' scores give Dice its own; without it the drawn rows alone do, and Dice's are too wide.
    """
    marked = mark(chosen)
    of_images = known = None
    if results is not None:
        of_images, known = scored(chosen, results), alike(results, chosen["rule"].iloc[0])[1]
    parts = {}  # (value of x, label) -> its rows
    for value, part in [(None, chosen)] if x == "client" else chosen.groupby(x):
        told = dict(settings(part))
        parts |= {(value, label): rows for label, rows in (told_seeds(told) if x == "client" else told).items()}
    heights, runs, seeds = {}, {}, set()  # heights: label -> {value of x: Interval}
    for ((value, label), rows), found in zip(parts.items(), of_settings(parts.values(), of_images, known), strict=True):
        seeds.add(rows["seed"].nunique())
        heights.setdefault(label, {}).update(found if x == "client" else {value: found["average"]})
        runs[label] = rows["run"].iloc[0]
    groups = list(dict.fromkeys(group for found in heights.values() for group in found))
    groups = sorted(groups, key=lambda group: group == "average" if x == "client" else group, reverse=x in DOWNWARDS)
    theirs = {}
    if printed is not None and not marked:
        printed = printed[
            printed["federation"].isin(chosen["federation"]) & printed["sites"].isin(["", tested(chosen)])
        ]
        theirs = {label: printed_values(printed_rows(printed, run), x, groups) for label, run in runs.items()}
    below = "average: the mean of the sites" if x == "client" else x.replace("_", " ")
    where = "" if x == "client" else ", mean over clients"
    where += f", {min(seeds)} to {max(seeds)} seeds" if x != "client" and len(seeds) > 1 else ""
    what = f"test {measure(chosen)} (%){where}"
    if len(heights) > MOST:
        panels = {_called(group) if x in ("client", "federation") else f"{below} {group}": {} for group in groups}
        for label, found in heights.items():
            for panel, group in zip(panels, groups, strict=True):
                if group in found:
                    panels[panel][label] = Dot(runs[label], *found[group][:3], printed=theirs.get(label, {}).get(group))
        return rows_of_dots(panels, what, title, marked, theirs=of_paper(results))
    figure, (axes,) = new_figure(1, width=max(8.4, 0.3 * len(groups) * (len(heights) + 1)))
    width, looks = min(0.25, 0.8 / len(heights)), styles(runs)
    for number, (label, found) in enumerate(heights.items()):
        places = {group: groups.index(group) + (number - (len(heights) - 1) / 2) * width for group in found}
        values = [interval.value for interval in found.values()]
        reach = [[i.value - i.low for i in found.values()], [i.high - i.value for i in found.values()]]
        fill = {"color": looks[label]["color"], "edgecolor": "w", "hatch": HATCHES[number]}
        axes.bar(places.values(), values, width, label=label, alpha=0.55, **fill)
        axes.errorbar(places.values(), values, reach, fmt="none", ecolor="0.1", elinewidth=1, capsize=2)
        diamonds(axes, places, theirs.get(label, {}), of_paper(results))
    axes.set_xticks(range(len(groups)), [wrapped(_called(group)) for group in groups])
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylim=(0, min(100, axes.get_ylim()[1])))
    decorate(axes, below, what, title, marked)
    handles, texts = axes.get_legend_handles_labels()
    unique = dict(zip(texts, handles, strict=True))  # the paper's diamonds are drawn once per method
    axes.legend(unique.values(), unique.keys(), frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return as_written(figure)


def _called(group):
    """A site or a data set by its name; a number as it is."""
    return site(federation(group))


def seen_and_unseen(panels: dict, title: str = ""):
    """What each method loses at each site: a line from its score where the site took part, a full marker, to that
    where it was left out, a hollow one; in per cent.

    panels: ``{title: table of fednb.report.participation}``, one below the other; those without rows are left out.
    """
    from matplotlib.lines import Line2D

    panels = {name: table for name, table in panels.items() if len(table.frame)}
    count = max(1, len(panels))
    figure, every = new_figure(count, width=9.0, height=2.6 * count + 0.8, columns=1, common=False)
    looks = styles({row.row: row.run for table in panels.values() for row in table.frame.itertuples()})
    looks = {row: look | {"linestyle": "-"} for row, look in looks.items()}
    for axes, (name, table) in zip(every, panels.items(), strict=False):
        sites = table.frame[table.frame["client"] != "average"]
        names, rows = (list(dict.fromkeys(sites[column])) for column in ("client", "row"))
        for number, row in enumerate(rows):
            look = looks[row]
            for one in sites[sites["row"] == row].itertuples():
                place = names.index(one.client) + 0.8 * ((number + 0.5) / len(rows) - 0.5)
                axes.plot([place] * 2, [one.seen, one.unseen], **look, markevery=[0])
                axes.plot(place, one.unseen, marker=look["marker"], color=look["color"], markerfacecolor="white")
        decorate(axes, "", "test (%)", name, table.mark)
        axes.set_xticks(range(len(names)), [wrapped(_called(name)) for name in names])
    shown = [Line2D([], [], **look, label=row) for row, look in looks.items()]
    figure.legend(handles=shown, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return as_written(figure)
