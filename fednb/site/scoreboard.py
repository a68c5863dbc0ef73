"""The scoreboard of a report's first page: every claim that an executed notebook judged, with its verdict."""

import csv
import html
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fednb.site.pages import Entry

WIDTH, HEIGHT = 160, 18  # of the picture of an effect, in pixels
ORDER = ("reproduced", "larger", "smaller", "no effect", "opposite", "one seed", "other setting", "older code")


@dataclass(frozen=True)
class Judged:
    """One claim: its notebook, the effect that is printed and ours with its interval, in points; None without."""

    notebook: str
    paper: str
    data: str
    claim: str
    printed: float
    ours: tuple[float, float, float] | None
    seeds: str
    verdict: str


def judged(entries: list[Entry]) -> list[Judged]:
    """The claims of all scoreboards that executed notebooks show, each once."""
    found = {}
    for entry in entries:
        for row in _rows(entry.content or {"cells": []}):
            numbers = [row[name] for name in ("ours", "low", "high")]
            ours = tuple(map(float, numbers)) if all(numbers) else None
            one = Judged(
                entry.name,
                row.get("of") or entry.about.get("paper", ""),
                entry.about.get("data", "").partition(" (")[0],
                row["claim"],
                float(row["paper"]),
                ours,
                row["seeds"],
                row["verdict"],
            )
            found.setdefault((one.paper, row["table"], one.claim), one)
    return list(found.values())


def _rows(content: dict) -> Iterator[dict]:
    """The rows of every table of claims that the notebook shows, read from its text/csv."""
    outputs = (output.get("data", {}) for cell in content["cells"] for output in cell.get("outputs", []))
    for data in outputs:
        table = csv.DictReader(io.StringIO("".join(data.get("text/csv", ""))))
        if {"claim", "paper", "ours", "low", "high", "seeds", "verdict"} <= set(table.fieldnames or ()):
            yield from table


def counted(claims: list[Judged]) -> str:
    """How many claims have which verdict, as a sentence."""
    counts = Counter(claim.verdict for claim in claims)
    told = [
        f"{counts.pop(verdict)} {verdict}"
        for verdict in (*ORDER, *sorted(set(counts) - set(ORDER)))
        if verdict in counts
    ]
    return f"{len(claims)} claims: {', '.join(told)}." if claims else "No executed notebook judges a claim."


def board(claims: list[Judged]) -> str:
    """The claims as an HTML table with a filter for paper, data and verdict; effects are dots on one axis."""
    reach = max((abs(end) for one in claims for end in (one.printed, *(one.ours or ()))), default=1.0)
    filters = "".join(_filter(name, claims) for name in ("paper", "data", "verdict"))
    rows = "\n".join(_row(one, reach) for one in claims)
    heads = (
        "claim",
        "the paper claims",
        "ours",
        f"−{reach:.0f} to +{reach:.0f} points",
        "seeds",
        "verdict",
        "notebook",
    )
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f'<div class="filters">{filters}</div>\n<div class="wide"><table class="scoreboard table">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _filter(name: str, claims: list[Judged]) -> str:
    values = sorted({getattr(claim, name) for claim in claims})
    options = "".join(f"<option>{html.escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(one: Judged, reach: float) -> str:
    marked = " ".join(f'data-{name}="{html.escape(getattr(one, name))}"' for name in ("paper", "data", "verdict"))
    ours = f"{one.ours[0]:+.1f}" if one.ours else ""
    word = f'<span class="verdict {one.verdict.replace(" ", "-")}">{html.escape(one.verdict)}</span>'
    link = f'<a href="notebooks/{one.notebook}.html">{html.escape(one.notebook)}</a>'
    numbers = f'<td class="number">{one.printed:+.1f}</td><td class="number">{ours}</td>'
    return (
        f'<tr {marked}><td>{html.escape(one.claim)}</td>{numbers}<td class="effect">{_picture(one, reach)}</td>'
        f"<td>{one.seeds}</td><td>{word}</td><td>{link}</td></tr>"
    )


def _picture(one: Judged, reach: float) -> str:
    """The printed effect as a diamond, ours as a dot with its interval, around zero."""

    def at(points: float) -> float:
        return round(WIDTH * (0.5 + 0.46 * points / reach), 1)

    middle, told = HEIGHT / 2, f"the paper {one.printed:+.1f}"
    shapes = f'<path d="M{at(0)} 0V{HEIGHT}" stroke="currentColor" opacity=".4"/>'
    if one.ours:
        value, low, high = one.ours
        told += f", ours {value:+.1f}, {low:+.1f} to {high:+.1f}"
        shapes += f'<path d="M{at(low)} {middle}H{at(high)}" stroke="currentColor" stroke-width="2"/>'
        shapes += f'<circle cx="{at(value)}" cy="{middle}" r="4" fill="currentColor"/>'
    diamond = f"M{at(one.printed)} {middle - 5}l5 5l-5 5l-5 -5z"
    shapes += f'<path d="{diamond}" fill="#fff" stroke="#b2182b" stroke-width="1.5"/>'
    return f'<svg role="img" aria-label="{told}" width="{WIDTH}" height="{HEIGHT}">{shapes}</svg>'
