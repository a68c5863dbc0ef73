"""The same runs in one process and over Flower: curves, bytes and seconds next to each other."""

import json

from pandas import DataFrame

from fednb.report.plots._axes import as_written, decorate, new_figure
from fednb.report.style import BLUE, ORANGE

LOOKS = (
    {"color": ORANGE, "linewidth": 6, "alpha": 0.5},
    {"color": BLUE, "linestyle": "none", "marker": "o", "markersize": 5, "markerfacecolor": "white"},
)


def equal(here, there) -> list[str]:
    """How many rounds have equal losses and counts, seconds a round, and what is missing there and how to record it."""
    pairs = [(here.found[recipe], record) for recipe, record in there.found.items() if record]
    rounds = [one == other for own, its in pairs for one, other in zip(own.rounds, its.rounds, strict=True)]
    seconds = [sum(record.origin["seconds"] for record in side) / len(rounds) for side in zip(*pairs, strict=True)]
    return [
        f"{sum(rounds)} of {len(rounds)} rounds are equal, loss for loss and image for image",
        *(["{:.1f} seconds a round in one process, {:.1f} over Flower".format(*seconds)] if seconds else []),
        *(f"not recorded: fednb federate '{json.dumps(recipe.short)}'" for recipe in there.missing),
    ]


def figure(here, there, title: str):
    """Test accuracy and the clients' loss over the rounds, of the first seed: two panels, both ways in each."""
    figure, panels = new_figure(2, width=9, height=3.4)
    for label, look, found in zip(("in one process", "over Flower"), LOOKS, (here, there), strict=True):
        for record in found.records[:1]:
            rounds = [each["round"] for each in record.rounds]
            losses = [sum(each["loss"].values()) / len(each["loss"]) for each in record.rounds]
            rows = found.frame.query("split == 'test' and key == @record.key")
            panels[0].plot(rows.groupby("round")["accuracy"].mean(), label=label, **look)
            panels[1].plot(rounds, losses, label=label, **look)
    for axes, what in zip(
        panels, ("test accuracy (%), mean over sites", "training loss, mean over clients"), strict=True
    ):
        decorate(axes, "round", "", what)
    panels[0].legend(frameon=False, loc="lower right")
    figure.suptitle(title, fontsize=11)
    return as_written(figure)


def costs(here, there) -> DataFrame:
    """Bytes and seconds of a round, all clients together. Counted: the arrays of training's messages. On the wire: what
    Flower's messages hold, without the headers of HTTP and TLS."""
    rows = {}
    for label, found in (("in one process", here), ("over Flower", there)):
        for record in found.records[:1]:
            count, wire, row = len(record.rounds), record.origin.get("wire", {}), {}
            for way in ("down", "up"):
                counted = sum(sum(each[way].values()) for each in record.rounds)
                row[f"bytes {way}, counted"] = f"{counted / count:,.0f}"
                for kind, words in {"work": "on the wire", "test": "on the wire for tests"}.items():
                    row[f"bytes {way}, {words}"] = f"{wire[kind][way] / count:,.0f}" if wire else "-"
            rows[label] = row | {"seconds": f"{record.origin['seconds'] / count:.1f}"}
    return DataFrame(rows)
