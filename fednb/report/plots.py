"""Figures in one style, in which a method looks the same everywhere (``fednb.report.looks``).

All functions take data frames or arrays, never a trainer, and return a closed matplotlib Figure: a notebook
shows it once, as the value of a cell.
"""

import importlib.util
import textwrap
from itertools import cycle, islice

import numpy

from fednb.report import names
from fednb.report.intervals import of_settings
from fednb.report.looks import CLASSES, HATCHES, LINES, MARKERS, VERDICTS, colour, style
from fednb.report.sentences import TESTED
from fednb.report.words import DOWNWARDS, STAND_IN, counted, mark, measure, settings, told_seeds

MOST = len(HATCHES)  # settings in one panel
WIDEST = 10.0  # inches, a thousand pixels


def convergence(frame, client: str = "average", split: str = "test", title: str = "", printed=None):
    """Accuracy or Dice over rounds, a line per method, as in FedRDN's Fig. 1; a band from lowest to highest seed.

    More than six methods have a panel each, with FedAvg (else the first) in grey behind.

    frame: rows of ``Results.frame``. client: a site, or ``"average"``, the unweighted mean over all that took part.
    printed: rows of ``fednb.papers.printed``: up to six curves then have their names, their ends and the paper's
        numbers beside them, which are diamonds too. A stand-in and other data are never drawn beside these.
    """
    shown = frame[frame["split"] == split]
    shown = shown[shown["took_part"] if client == "average" else shown["client"] == client]
    curves = {
        label: (rows["run"].iloc[0], rows.groupby(["round", "seed"], as_index=False)["accuracy"].mean())
        for label, rows in told_seeds(dict(settings(shown))).items()
    }
    marked, what = mark(frame), f"{split} {measure(frame)} (%)"
    where = "mean over clients" if client == "average" else client
    if len(curves) <= MOST:
        figure, (axes,) = _figure(1, width=7.6)
        for label, curve in curves.items():
            _curve(axes, label, *curve)
        _decorate(axes, "round", f"{what}, {where}", title, marked)
        if printed is None or marked:
            axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        else:
            _ends(
                axes, curves, {label: _printed_values(printed, run).get(client) for label, (run, _) in curves.items()}
            )
    else:
        behind = next((label for label, (run, _) in curves.items() if run == "fedavg"), next(iter(curves)))
        own = {label: curve for label, curve in curves.items() if label != behind}
        figure, every = _figure(len(own), width=10, height=2 * -(-len(own) // 4), columns=4)
        for number, (axes, (label, curve)) in enumerate(zip(every, own.items(), strict=True)):
            axes.plot(_mean(curves[behind][1]), color="0.7", linewidth=2.5)
            _curve(axes, label, *curve)
            lowest = number + 4 >= len(own)
            _decorate(axes, "round" if lowest else "", "" if number % 4 else what, label, marked)
            axes.tick_params(labelbottom=lowest)
        figure.suptitle(f"{title} ({where}; grey: {behind})".strip(), fontsize=11)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _curve(axes, label: str, run: str, by_seed) -> None:
    import seaborn

    look = style(run) | {"markevery": max(1, by_seed["round"].nunique() // 10), "markersize": 5, "markeredgewidth": 0}
    band = {"errorbar": ("pi", 100), "err_kws": {"alpha": 0.15, "linewidth": 0}}
    band = band if by_seed["seed"].nunique() > 1 else {"errorbar": None}
    seaborn.lineplot(by_seed, x="round", y="accuracy", label=label, legend=False, ax=axes, **look, **band)


def _mean(by_seed):
    return by_seed.groupby("round")["accuracy"].mean()


def _ends(axes, curves: dict, printed: dict) -> None:
    """Beside each curve its name, where it ends, and the printed number, which is a diamond as well."""
    last = max(by_seed["round"].max() for _, by_seed in curves.values())
    ends = {label: float(_mean(by_seed).iloc[-1]) for label, (_, by_seed) in curves.items()}
    values = [value for value in (*ends.values(), *printed.values()) if value is not None]
    axes.set_ylim(top=max(axes.get_ylim()[1], max(values) + 2))
    low, high = axes.get_ylim()
    places = []
    for value in sorted(ends.values()):  # one above the other, none on another
        places.append(max(value, places[-1] + (high - low) / 11 if places else low))
    down = max(0, places[-1] - high)
    for place, (label, value) in zip(places, sorted(ends.items(), key=lambda end: end[1]), strict=True):
        own, theirs = style(curves[label][0])["color"], printed[label]
        told = f"{label}\n{value:.1f} %" + ("" if theirs is None else f", the paper {theirs:.1f} ◇")
        look = {
            "xytext": (1.05 * last, place - down),
            "fontsize": 8,
            "annotation_clip": False,
            "verticalalignment": "center",
        }
        axes.annotate(told, (last, value), color=own, arrowprops={"arrowstyle": "-", "color": "0.8"}, **look)
        if theirs is not None:
            axes.scatter(last, theirs, marker="D", s=26, color="white", edgecolors=own, zorder=4, clip_on=False)
    axes.set_xlim(right=last)


def bars(chosen, x: str = "client", printed=None, title: str = "", records=()):
    """Test accuracy or Dice with 95 % intervals, one group of bars for each value of ``x``, one bar per method.

    More than six methods are dots in rows instead, one panel for each value of ``x``.

    chosen: rows of ``fednb.report.selection.selected``.
    x: ``"client"`` for one group per site and one for their average; or a varied field, for example
        ``"local_epochs"`` as in FedRDN's Fig. 2: groups show the average over clients.
    printed: with ``x="client"``, rows of ``fednb.papers.printed``: the paper's numbers as white diamonds. A
        stand-in and other data are never drawn beside them.
    records: those of the runs, whose images' scores give Dice its intervals; without them these are far too wide.
    """
    marked = mark(chosen)
    of_images = None if counted(chosen) else {record.key: record for record in records}
    heights = {}  # label -> {value of x: Interval}
    runs, seeds = {}, set()
    for value, part in [(None, chosen)] if x == "client" else chosen.groupby(x):
        parts = dict(settings(part))
        parts = told_seeds(parts) if x == "client" else parts
        for (label, rows), found in zip(parts.items(), of_settings(parts.values(), of_images), strict=True):
            seeds.add(rows["seed"].nunique())
            heights.setdefault(label, {}).update(found if x == "client" else {value: found["average"]})
            runs[label] = rows["run"].iloc[0]
    groups = list(dict.fromkeys(group for found in heights.values() for group in found))
    groups = sorted(groups, key=lambda group: group == "average" if x == "client" else group, reverse=x in DOWNWARDS)
    theirs = {label: _printed_values(printed, run) for label, run in runs.items()} if printed is not None else {}
    theirs = {} if marked else theirs
    below = "average: the mean of the sites" if x == "client" else x.replace("_", " ")
    where = "" if x == "client" else ", mean over clients"
    where += f", {min(seeds)} to {max(seeds)} seeds" if x != "client" and len(seeds) > 1 else ""
    what = f"test {measure(chosen)} (%){where}"
    if len(heights) > MOST:
        panels = {group if x == "client" else f"{below} {group}": {} for group in groups}
        for label, found in heights.items():
            for panel, group in zip(panels, groups, strict=True):
                if group in found:
                    value, low, high = found[group][:3]
                    panels[panel][label] = (runs[label], value, low, high, True, theirs.get(label, {}).get(group))
        return _rows_of_dots(panels, what + ("; white diamonds: the paper" if theirs else ""), title, marked)
    figure, (axes,) = _figure(1, width=max(8.4, 0.3 * len(groups) * (len(heights) + 1)))
    width = min(0.25, 0.8 / len(heights))
    for number, (label, found) in enumerate(heights.items()):
        places = {group: groups.index(group) + (number - (len(heights) - 1) / 2) * width for group in found}
        values = [interval.value for interval in found.values()]
        reach = [[i.value - i.low for i in found.values()], [i.high - i.value for i in found.values()]]
        fill = {"color": style(runs[label])["color"], "edgecolor": "w", "hatch": HATCHES[number]}
        axes.bar(places.values(), values, width, label=label, alpha=0.55, **fill)
        axes.errorbar(places.values(), values, reach, fmt="none", ecolor="0.1", elinewidth=1, capsize=2)
        _diamonds(axes, places, theirs.get(label, {}))
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylim=(0, min(100, axes.get_ylim()[1])))
    _decorate(axes, below, what, title, marked)
    handles, texts = axes.get_legend_handles_labels()
    unique = dict(zip(texts, handles, strict=True))  # the paper's diamonds are drawn once per method
    axes.legend(unique.values(), unique.keys(), frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def claims(rows, title: str = ""):
    """The tested claims of all papers: dots in rows with 95 % intervals, a panel for each paper, on one axis.

    A diamond is the printed effect, a dot is ours in the colour of its verdict. What lies beyond the axis is an arrow
    at its end. What is not tested is counted in the panels' titles.

    rows: of ``fednb.report.board.COLUMNS``; of more than 60 of a paper those with the largest printed effect.
    """
    from matplotlib.lines import Line2D

    tested = rows[rows["verdict"].isin(TESTED)]
    panels = {paper: own.nlargest(60, "paper").sort_values(["table", "paper"]) for paper, own in tested.groupby("of")}
    reach = _reach(tested[["paper", "ours", "low", "high"]].to_numpy())
    heights = [max(1, len(own)) for own in panels.values()] or [1]
    figure, every = _stacked(heights, width=9.0)
    for axes, (paper, own) in zip(every, panels.items(), strict=False):
        places = range(len(own))
        for place, row in zip(places, own.itertuples(), strict=True):
            look = VERDICTS[row.verdict]
            axes.plot(numpy.clip([row.low, row.high], -reach, reach), [place] * 2, color=look["color"], linewidth=1.5)
            for end in (end for end in (row.low, row.high) if abs(end) > reach):
                _dot(axes, end, place, reach, color=look["color"], markersize=4)
            _dot(axes, row.ours, place, reach, **look, markersize=6)
            _dot(axes, row.paper, place, reach, marker="D", color="k", markerfacecolor="white", markersize=4.5)
        count = (rows["of"] == paper).sum()
        _decorate(axes, "", "", f"{names.printed(paper)}: {len(own)} of {count} claims, tested")
        axes.axvline(0, color="0.4", linewidth=1, zorder=0)
        axes.grid(axis="x", color="0.9", linewidth=0.8)
        where = own["table"].str.replace("table", "Table ")
        several = own.groupby("table")["federation"].transform("nunique") > 1
        where = where.mask(several, where + ", " + own["federation"])
        labels = where + ": " + own["effect"]
        axes.set_yticks(places, labels, fontsize=7)
        axes.set(ylim=(len(own) - 0.5, -0.5), xlim=(-1.04 * reach, 1.04 * reach))
    every[-1].set_xlabel("points: the first of each row less the second")
    shown = [Line2D([], [], linestyle="none", label=word, **look) for word, look in VERDICTS.items()]
    shown.append(Line2D([], [], linestyle="none", marker="D", color="k", markerfacecolor="white", label="the paper"))
    look = {"title": title if len(tested) else f"{title}: no claim is tested yet", "ncols": 6, "fontsize": 8}
    figure.legend(handles=shown, loc="outside upper center", frameon=False, **look)
    return figure


def _reach(values) -> float:
    """Where an axis around zero ends, a multiple of 5: beyond all values, or beyond nine tenths of them where the
    largest is more than twice as far."""
    sizes = numpy.abs(values[~numpy.isnan(values)])
    most, usual = (sizes.max(), numpy.quantile(sizes, 0.9)) if sizes.size else (1, 1)
    return float(5 * numpy.ceil((most if most <= 2 * usual else usual) / 5))


def _dot(axes, value: float, place: float, reach: float, **look) -> None:
    """A marker, or an arrow at the end of the axis that it lies beyond."""
    beyond = abs(value) > reach
    look |= {"marker": ">" if value > 0 else "<"} if beyond else {}
    axes.plot(numpy.clip(value, -reach, reach), place, linestyle="none", clip_on=False, **look)


def _stacked(heights: list[int], width: float):
    """A figure and its axes, one above the other, with so many rows each and one axis across."""
    from matplotlib import pyplot

    look = {"layout": "constrained", "sharex": True, "squeeze": False, "height_ratios": [rows + 2 for rows in heights]}
    size = (width, 1.6 + 0.17 * sum(rows + 2 for rows in heights))
    figure, axes = pyplot.subplots(len(heights), 1, figsize=size, **look)
    pyplot.close(figure)
    return figure, list(axes.flat)


def seen_and_unseen(panels: dict, title: str = ""):
    """A dot per method and site, with a line to the site's mean, where its name stands.

    panels: ``{title: table of fednb.report.participation}``. Across: the site took part; upwards: it was left out; on
    the line both are equal. Of two rows that look alike (one method with other options) the second is hollow.
    """
    from matplotlib.patheffects import withStroke

    panels = {name: table for name, table in panels.items() if len(table.frame)}
    figure, every = _figure(max(1, len(panels)), width=3.8 * max(1, len(panels)) + 0.8)
    looks = {}
    for axes, (name, table) in zip(every, panels.items(), strict=False):
        sites = table.frame[table.frame["client"] != "average"]
        for row, part in sites.groupby("row", sort=False):
            look = style(part["run"].iloc[0])
            look = {"marker": look["marker"], "edgecolors": look["color"], "facecolors": look["color"]}
            if look in (own for other, own in looks.items() if other != row):
                look["facecolors"] = "none"
            axes.scatter(part["seen"], part["unseen"], label=row, **looks.setdefault(row, look))
        look = {"color": "0.2", "fontsize": 7, "horizontalalignment": "center", "verticalalignment": "center"}
        look["path_effects"] = [withStroke(linewidth=2, foreground="white")]
        for client, own in sites.groupby("client")[["seen", "unseen"]].mean().iterrows():
            axes.annotate(client, (own["seen"], own["unseen"]), **look)
            for dot in sites[sites["client"] == client].itertuples():
                ends = (own["seen"], dot.seen), (own["unseen"], dot.unseen)
                axes.plot(*ends, color="0.75", linewidth=0.7, zorder=0.8)
        axes.margins(0.12)
        axes.autoscale_view()
        ends = axes.get_xlim(), axes.get_ylim()
        axes.axline((50, 50), slope=1, color="0.7", linewidth=1, zorder=0)
        axes.set(xlim=ends[0], ylim=ends[1])
        _decorate(axes, "took part (%)", "left out (%)", name, table.mark)
    shown = {text: dots for axes in every for dots, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def effects(tables, title: str = ""):
    """What one run scores more than another, in points: dots in rows around zero, with their 95 % intervals.

    A dot is filled where the table tells its effect from none.

    tables: of ``fednb.report.effects``, or ``{title of a panel: table}``.
    """
    tables = tables if isinstance(tables, dict) else {"": tables}
    panels = {}
    for name, table in tables.items():
        told = table.frame["direction"].isin(["above", "below"])
        rows = zip(table.cells.index, table.frame.itertuples(), told, strict=True)
        panels[name] = {row: (own.better, own.ours, own.low, own.high, full, None) for row, own, full in rows}
    marked = next((table.mark for table in tables.values() if table.mark), "")
    figure = _rows_of_dots(panels, "points (filled: told from zero, all tested together)", title, marked)
    for axes in figure.axes:
        axes.axvline(0, color="0.4", linewidth=1, zorder=0)
    return figure


def _rows_of_dots(panels: dict, x: str, title: str, marked: str):
    """One panel for each ``{title: {row: (run, value, low, high, filled, printed or None)}}``, rows alike in all."""
    rows = list(dict.fromkeys(row for found in panels.values() for row in found))
    texts = [textwrap.fill(row, 40) for row in rows]
    alone = "" in panels
    figure, every = _figure(
        len(panels), width=min(2.6 + 2.3 * max(2, len(panels)), WIDEST), height=1.4 + 0.3 * len(rows)
    )
    for axes, (name, found) in zip(every, panels.items(), strict=True):
        for row, (run, value, low, high, filled, theirs) in found.items():
            look, place = style(run), rows.index(row)
            fill = {"color": look["color"], "markerfacecolor": look["color"] if filled else "white"}
            axes.plot([low, high], [place, place], color=look["color"], linewidth=1.5)
            axes.plot(value, place, marker=look["marker"], markersize=6, linestyle="none", label=row, **fill)
            _diamonds(axes, {row: theirs}, {row: place} if theirs is not None else {})
        _decorate(axes, x if axes is every[len(every) // 2] else "", "", name or title, marked if alone else "")
        axes.grid(axis="x", color="0.9", linewidth=0.8)
        axes.set_yticks(range(len(rows)), texts if axes is every[0] else [""] * len(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
    if not alone:
        text, colour = _told(title, marked)
        figure.suptitle(text, fontsize=11, color=colour)
    return figure


def embedding(
    features,
    labels,
    sites,
    site_names=None,
    class_names=None,
    title: str = "",
    seed: int = 0,
    stand_in=False,
    told=None,
    ways=("t-SNE", "UMAP"),
):
    """Test features in the plane, t-SNE and UMAP side by side: a colour for each site, a marker for each class.

    Where each class is at one site of its own, colours are of the classes as well.

    Where umap-learn is not installed the figure has t-SNE alone, and says so.

    features: ``[n, d]``, or ``{title of a row: [n, d]}`` for the same images under several models. Two
        columns are drawn as they are, side by side.
    labels, sites: class and site number of each image, ``[n]``; names are shown where they are given.
    seed: of both. stand_in: whether the features come from a stand-in, which is then written on the figure.
    told: ``{title of a row: what is measured on its features}``, written beside the title.
    """
    import pandas
    import seaborn

    panels = features if isinstance(features, dict) else {"": features}
    frame = pandas.DataFrame({"site": _names(sites, site_names), "class": _names(labels, class_names)})
    coloured, numbers, given = "site", sites, site_names
    if len(frame.drop_duplicates()) == frame["site"].nunique() == frame["class"].nunique():
        coloured, numbers, given = "class", labels, class_names  # of one site each: one look tells both
    shown = {"hue": coloured, "hue_order": _names(numpy.unique(numbers), given)}
    shown |= {"style": "class", "style_order": _names(numpy.unique(labels), class_names)}
    shown |= {"markers": [*islice(cycle(CLASSES), len(shown["style_order"]))]}
    shown |= {"palette": seaborn.color_palette("colorblind", len(shown["hue_order"])), "legend": "full"}
    look = {"s": 22, "edgecolor": "k", "linewidth": 0.3, "alpha": 0.85, "snap": True}  # whole pixels make small files
    flat = all(numpy.shape(rows)[1] == 2 for rows in panels.values())
    absent = not flat and "UMAP" in ways and importlib.util.find_spec("umap") is None
    ways = ("",) if flat else tuple(way for way in ways if way != "UMAP" or not absent)
    across = len(panels) if flat else len(ways)
    rows = len(panels) * len(ways) // across
    size = {"width": 4.2 * across + 1.4, "height": 3.6 * rows + 0.6}
    figure, every = _figure(len(panels) * len(ways), **size, columns=across, common=False)
    drawn = ((name, way, numpy.asarray(own)) for name, own in panels.items() for way in ways)
    for axes, (name, way, own) in zip(every, drawn, strict=True):
        points = PLANES[way](own, seed) if way else own
        frame["x"], frame["y"] = points.T
        seaborn.scatterplot(frame, x="x", y="y", ax=axes, **shown, **look)
        key = axes.get_legend_handles_labels()
        axes.get_legend().remove()
        head = ", ".join(filter(None, (name or title, way))) + (f"\n{told[name]}" if told and name in told else "")
        _decorate(axes, "", "", head, STAND_IN if stand_in else "")
        axes.set(xticks=[], yticks=[])
        axes.spines[["left", "bottom"]].set_color("0.8")
    missing = "t-SNE alone: umap-learn is not installed" if absent else ""
    figure.suptitle("; ".join(filter(None, (title if "" not in panels else "", missing))), fontsize=11)
    figure.legend(*key, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _names(numbers, given) -> list[str]:
    return [given[number] if given else str(number) for number in numbers]


def lines(curves: dict, x: str, y: str, title: str = "", log: bool = False, joined: bool = True):
    """One line for each ``{label: (values of x, values of y)}``, or points alone where they are of several things.

    log: both axes logarithmic.
    """
    figure, (axes,) = _figure(1, width=6.4)
    for number, (label, (across, up)) in enumerate(curves.items()):
        line = LINES[number % len(LINES)] if joined else "none"
        look = {"color": colour(number), "linestyle": line}
        marker = MARKERS[number % len(MARKERS)] if len(across) < 30 or not joined else None
        axes.plot(across, up, label=label, marker=marker, markersize=5, **look)
    _decorate(axes, x, y, title)
    if log:
        axes.set(xscale="log", yscale="log")
    axes.legend(frameon=False)
    return figure


def over_rounds(panels: dict, title: str = "", log: tuple = ()):
    """One panel for each ``{what is drawn: {label: its values, one a round}}``; a label looks the same in all.

    log: the panels with a logarithmic axis.
    """
    figure, every = _figure(len(panels), width=min(4 * len(panels), WIDEST))
    labels = list(dict.fromkeys(label for curves in panels.values() for label in curves))
    for axes, (name, curves) in zip(every, panels.items(), strict=True):
        for label, values in curves.items():
            number = labels.index(label)
            look = {"color": colour(number), "linestyle": LINES[number % len(LINES)]}
            axes.plot(range(1, len(values) + 1), values, label=label, **look)
        _decorate(axes, "round", name, "")
        axes.set_yscale("log" if name in log else "linear")
        axes.xaxis.get_major_locator().set_params(integer=True)
    shown = {text: line for axes in every for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=len(shown), frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def heatmaps(panels: dict, x: str, y: str, title: str = ""):
    """One panel for each ``{title: matrix}``, rows downwards; all on one scale of grey from 0 to the largest value."""
    import seaborn

    figure, every = _figure(len(panels), width=min(2.4 * len(panels) + 0.8, WIDEST), height=3)
    most = max(float(numpy.max(matrix)) for matrix in panels.values())
    for axes, (name, matrix) in zip(every, panels.items(), strict=True):
        seaborn.heatmap(matrix, cmap="Greys", vmin=0, vmax=most, square=True, cbar=False, ax=axes)
        axes.set_xlabel(x)
        axes.set_title(name, fontsize=10)
    every[0].set_ylabel(y)
    figure.colorbar(every[0].collections[0], ax=every, shrink=0.6)
    figure.suptitle(title, fontsize=11)
    return figure


def _figure(panels: int, width: float, height: float = 4.2, columns: int | None = None, common: bool = True):
    """A figure and its axes; in several rows where ``columns`` is given, then on common axes unless these are off."""
    from matplotlib import pyplot

    across, shared = columns or panels, common and columns is not None
    shape = (-(-panels // across), across)
    look = {"squeeze": False, "layout": "constrained", "sharex": shared, "sharey": shared}
    figure, axes = pyplot.subplots(*shape, figsize=(width, height), **look)
    pyplot.close(figure)
    for unused in axes.flat[panels:]:
        unused.remove()
    return figure, list(axes.flat[:panels])


def _decorate(axes, x: str, y: str, title: str, marked: str = "") -> None:
    """The one look of all axes."""
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    text, colour = _told(title, marked)
    axes.set_title(text, fontsize=10, color=colour, loc="left")


def _told(title: str, marked: str) -> tuple[str, str]:
    """A title and its colour; other data than the paper's are told in red."""
    return (f"{title}\n{marked}: not the paper's images".strip(), "#a40000") if marked else (title, "black")


def _printed_values(printed, run: str) -> dict:
    labels = printed["algorithm"].str.cat(printed["augmentation"], sep="+")
    rows = printed[labels == names.printed_for(run, labels)]
    return dict(zip(rows["site"], rows["value"], strict=True))


def _diamonds(axes, places: dict, values: dict) -> None:
    at = {places[site]: values[site] for site in places if site in values}
    look = {"marker": "D", "s": 20, "color": "white", "edgecolors": "k", "zorder": 3}
    if at:
        axes.scatter(at.keys(), at.values(), label="paper", **look)


def _tsne(rows, seed: int):
    from sklearn.manifold import TSNE

    perplexity = min(30, (len(rows) - 1) / 3)
    return TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(rows)


def _umap(rows, seed: int):
    from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1, n_neighbors=min(15, len(rows) - 1)).fit_transform(rows)


PLANES = {"t-SNE": _tsne, "UMAP": _umap}
