"""What all figures share: their axes, their titles, and the paper's numbers as white diamonds."""

import textwrap

from matplotlib import pyplot
from matplotlib.text import Text

from fednb.report import labels
from fednb.report.deviations import deviations

WIDEST = 10.0  # inches, a thousand pixels
PAPER = "the paper"  # what a diamond is, in all legends


def of_paper(results) -> str:
    """What diamonds are next to the runs of these results: the paper's numbers, and where they were made."""
    elsewhere = results is not None and results.paper and any(deviations(results.records, results.paper).values())
    return f"{PAPER}, at its own setting" if elsewhere else PAPER


def new_figure(panels: int, width: float, height: float = 4.2, columns: int | None = None, common: bool = True):
    """A figure and its axes; in several rows where ``columns`` is given, then on common axes unless these are off."""
    across, shared = columns or panels, common and columns is not None
    look = {"squeeze": False, "layout": "constrained", "sharex": shared, "sharey": shared}
    figure, axes = pyplot.subplots(-(-panels // across), across, figsize=(width, height), **look)
    pyplot.close(figure)
    for unused in axes.flat[panels:]:
        unused.remove()
    return figure, list(axes.flat[:panels])


def decorate(axes, x: str, y: str, title: str, marked: str = "", grid: str = "y") -> None:
    """The one look of all axes."""
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    text, colour = titled(title, marked)
    axes.set_title(text, fontsize=10, color=colour, loc="left")


def as_written(figure):
    """The figure, in which texts are shown as they are: a ``$`` in the name of a site or class begins no formula."""
    for text in figure.findobj(lambda each: isinstance(each, Text) and "$" in each.get_text()):
        text.set_parse_math(False)
    return figure


def wrapped(name) -> str:
    """A name in up to three lines, which leave room for the figure, whatever its length."""
    return textwrap.fill(str(name), 24, max_lines=3, placeholder="...")


def titled(title: str, marked: str) -> tuple[str, str]:
    """A title and its colour; other data than the paper's are told in red."""
    return (f"{title}\n{marked}: not the paper's images".strip(), "#a40000") if marked else (title, "black")


def printed_values(printed, run: str, x: str = "client", values=()) -> dict:
    """The printed numbers next to a run by site; by the values of another ``x`` the averages in the settings
    that they make."""
    labels_printed = printed["algorithm"].str.cat(printed["augmentation"], sep="+")
    rows = printed[labels_printed == labels.printed_for(run, labels_printed)]
    if x == "client":
        return dict(zip(rows["site"], rows["value"], strict=True))
    averages = rows[rows["site"] == "average"]
    made = [{option for _, option in labels.options(run_on)} for run_on in averages["run_on"]]
    numbers = [*zip(averages["value"], made, strict=True)]
    return {value: number for value in values for number, options in numbers if f"{x}={value}" in options}
