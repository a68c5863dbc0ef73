"""What all figures share: their axes, their titles, and the paper's numbers as white diamonds."""

import textwrap

from fednb.report import names
from fednb.report.looks import HATCHES

MOST = len(HATCHES)  # settings in one panel
WIDEST = 10.0  # inches, a thousand pixels


def new_figure(panels: int, width: float, height: float = 4.2, columns: int | None = None, common: bool = True):
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


def stacked(heights: list[int], width: float):
    """A figure and its axes, one above the other, with so many rows each and one axis across."""
    from matplotlib import pyplot

    look = {"layout": "constrained", "sharex": True, "squeeze": False, "height_ratios": [rows + 2 for rows in heights]}
    size = (width, 1.6 + 0.17 * sum(rows + 2 for rows in heights))
    figure, axes = pyplot.subplots(len(heights), 1, figsize=size, **look)
    pyplot.close(figure)
    return figure, list(axes.flat)


def decorate(axes, x: str, y: str, title: str, marked: str = "") -> None:
    """The one look of all axes."""
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    text, colour = titled(title, marked)
    axes.set_title(text, fontsize=10, color=colour, loc="left")


def as_written(figure):
    """The figure, in which texts are shown as they are: a ``$`` in the name of a site or class begins no formula."""
    from matplotlib.text import Text

    for text in figure.findobj(lambda each: isinstance(each, Text) and "$" in each.get_text()):
        text.set_parse_math(False)
    return figure


def wrapped(name) -> str:
    """A name in up to three lines, which leave room for the figure, whatever its length."""
    return textwrap.fill(str(name), 24, max_lines=3, placeholder="...")


def titled(title: str, marked: str) -> tuple[str, str]:
    """A title and its colour; other data than the paper's are told in red."""
    return (f"{title}\n{marked}: not the paper's images".strip(), "#a40000") if marked else (title, "black")


def printed_values(printed, run: str) -> dict:
    labels = printed["algorithm"].str.cat(printed["augmentation"], sep="+")
    rows = printed[labels == names.printed_for(run, labels)]
    return dict(zip(rows["site"], rows["value"], strict=True))


def diamonds(axes, places: dict, values: dict) -> None:
    at = {places[site]: values[site] for site in places if site in values}
    look = {"marker": "D", "s": 20, "color": "white", "edgecolors": "k", "zorder": 3}
    if at:
        axes.scatter(at.keys(), at.values(), label="paper", **look)
