"""The claims of the papers as HTML: a bar for each paper, and a table of all with a picture of each effect."""

import html
from collections.abc import Container
from math import copysign, sqrt
from typing import TYPE_CHECKING

from fednb.report import labels
from fednb.report.verdicts import CLAIM, PRINTED, SMALL, TESTED, VERDICTS

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH, HEIGHT = 150, 20  # of the picture of an effect, in pixels
HEADS = ("claim", "verdict", "printed", "ours", "effect", "seeds", "board", "notebook")
CURVE_HEADS = ("claim", "verdict", "why", "board", "notebook")
FILTERS = {"paper": "of", "data": "federation", "board": "setting", "verdict": "verdict"}  # what is chosen: its column
TICKS = (1, 5, 10, 20, 50)  # points
LEGEND = (
    "Effects are in points, one method minus another, of the average unless a claim names a site; an average is the "
    "mean of the sites, each counted alike. The diamond is the paper's, the dot ours; the thick line is its 95 % "
    "interval, the thin one the simultaneous interval of all pairs that the paper prints on the data set, which "
    "decides. The axis is a square root's, so that small effects are seen beside large ones."
)
CURVE_LEGEND = (
    "A step is a difference that the claim states to be above zero; all steps of a claim are tested together. As in "
    "print: every step is told above zero. Otherwise than in print: some step is told below it. Not told: in between. "
    "Not testable: no step passes the gates."
)


def bars(claims: "DataFrame") -> str:
    """A bar for each paper: its claims by their verdicts, that at the paper's setting where there are two."""
    first = claims.drop_duplicates(["of", *CLAIM])
    rows = []
    for paper, own in first.groupby("of"):
        counts = own["verdict"].value_counts()
        told = [(word, counts[word]) for word in VERDICTS if word in counts]
        parts = "".join(
            f'<span class="verdict {_class(word)}" style="flex-grow: {count}" title="{count} {word}">'
            f"{VERDICTS[word].sign}&nbsp;{count}</span>"
            for word, count in told
        )
        words, called = ", ".join(f"{count} {word}" for word, count in told), labels.printed(paper)
        rows.append(
            f'<div class="bar" role="img" aria-label="{called}: {words}"><b>{called}</b><div>{parts}</div></div>'
        )
    legend = "".join(
        f'<span><i class="verdict {_class(word)}">{verdict.sign}</i> {word}</span>'
        for word, verdict in VERDICTS.items()
        if word in set(first["verdict"])
    )
    return f'<div class="bars">{"".join(rows)}<div class="key">{legend}</div></div>'


def board(claims: "DataFrame", shown: Container[str]) -> str:
    """The claims as HTML tables with filters and sorting, what is not tested folded.

    claims: rows of ``fednb.commands.scoreboard.claims``. shown: the notebooks that have a page.
    """
    tested = claims["verdict"].isin(TESTED)
    reach = _reach(claims[tested])
    filters = "".join(_filter(name, claims[column]) for name, column in FILTERS.items())
    others = _table(claims[~tested], reach, shown)
    return (
        f'<div class="filters">{filters}<span role="status">{len(claims)} rows</span></div>\n'
        f"{_table(claims[tested], reach, shown)}\n"
        f"<details><summary>Not tested: {(~tested).sum()}</summary>\n{others}\n</details>"
    )


def _table(claims: "DataFrame", reach: float, shown: Container[str]) -> str:
    """Those at the paper's setting first, then those that were run at another."""
    keys = {"board": claims["setting"].map({PRINTED: 0, SMALL: 1}).fillna(2), "size": -claims["paper"]}
    ordered = claims.assign(**keys).sort_values(["board", "of", "size"])
    rows = "\n".join(_row(one, reach, shown) for one in ordered.itertuples())
    heads = "".join(f'<th><button type="button">{head}</button></th>' for head in HEADS)
    heads = heads.replace("effect</button>", f"points</button>{_axis(reach)}")
    head, body = f"<thead><tr>{heads}</tr></thead>", f"<tbody>\n{rows}\n</tbody>"
    return f'<div class="wide"><table class="scoreboard table">{head}\n{body}</table></div>'


def curves(claims: "DataFrame", shown: Container[str], up: str = "") -> str:
    """The claims on orders and curves as an HTML table, without filters: rows of ``fednb.report.curves.COLUMNS``.

    up: from the page to the site's folder, such as ``"../"``.
    """
    rows = []
    for one in claims.itertuples():
        texts = (html.escape(one.claim), verdict(one.verdict), html.escape(one.why), one.setting)
        rows.append(f"<tr>{_cells(CURVE_HEADS, (*texts, _notebook(one.notebook, shown, up)))}</tr>")
    heads = "".join(f"<th>{head}</th>" for head in CURVE_HEADS)
    body = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>"
    return f'<div class="wide"><table class="scoreboard table">{body}</table></div>'


def verdict(word: str) -> str:
    """A verdict with its sign: colour never says it alone."""
    return f'<span class="verdict {_class(word)}">{VERDICTS[word].sign}&nbsp;{word}</span>'


def _class(word: str) -> str:
    return word.replace(" ", "-")


def _filter(name: str, values) -> str:
    called = {value: labels.federation(value) for value in sorted({*values} - {""})}
    options = "".join(f'<option value="{value}">{html.escape(text)}</option>' for value, text in called.items())
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(one, reach: float, shown: Container[str]) -> str:
    marked = " ".join(f'data-{name}="{html.escape(getattr(one, column))}"' for name, column in FILTERS.items())
    ran = one.ours == one.ours
    detectable = f"detectable: {one.smallest:.1f}" if one.verdict == "not told" else ""
    notes = filter(None, (one.why, detectable, one.other_rules))
    declared = "declared" if one.setting and not one.exploratory else ""
    texts = (
        html.escape(one.claim),
        verdict(one.verdict) + "".join(f"<br><small>{html.escape(text)}</small>" for text in notes),
        f"{one.paper:+.1f}",
        f"{one.ours:+.1f}" if ran else "",
        _picture(one, reach) if ran else "",
        str(one.seeds or ""),
        ", ".join(filter(None, (one.setting, declared))),
        _notebook(one.notebook, shown),
    )
    return f"<tr {marked}>{_cells(HEADS, texts)}</tr>"


def _cells(heads: tuple[str, ...], texts: tuple[str, ...]) -> str:
    """Cells that name their column, for a screen on which each row is a card."""
    each = zip(heads, texts, strict=True)
    return "".join(f'<td data-head="{head}">{text}</td>' if text else f"<td>{text}</td>" for head, text in each)


def _notebook(name: str, shown: Container[str], up: str = "") -> str:
    escaped = html.escape(name)
    told = escaped.replace("/", "/<wbr>").replace("_", "_<wbr>")
    return f'<a href="{up}notebooks/{escaped}.html">{told}</a>' if name in shown else told


def _reach(claims: "DataFrame") -> float:
    """Where the axis of effects ends: beyond each of them, a multiple of 5."""
    sizes = claims[["paper", "ours"]].abs().stack()
    return 5.0 * -(-sizes.max() // 5) if len(sizes) else 10.0


def _at(points: float, reach: float) -> float:
    """Where so many points lie in a picture: square roots on either side of zero, cut at the ends."""
    share = min(1.0, sqrt(abs(points) / reach))
    return round(WIDTH * (0.5 + copysign(0.46 * share, points)), 1)


def _axis(reach: float) -> str:
    shapes = "".join(
        f'<path d="M{_at(tick, reach)} {HEIGHT - 5}v5" stroke="currentColor"/>'
        f'<text x="{_at(tick, reach)}" y="{HEIGHT - 8}">{f"{tick:+d}" if tick else 0}</text>'
        for most in [[tick for tick in TICKS if tick <= reach]]
        for tick in (*(-tick for tick in most[1::2]), 0, *most[1::2])
    )
    return f'<svg class="axis" aria-hidden="true" width="{WIDTH}" height="{HEIGHT}">{shapes}</svg>'


def _picture(one, reach: float) -> str:
    """The printed effect as a diamond, ours as a dot with its intervals, around zero; an arrow where these go on."""
    middle = HEIGHT / 2
    told = f"the paper {one.paper:+.1f}, ours {one.ours:+.1f}, {one.low:+.1f} to {one.high:+.1f}"
    told += f", simultaneous {one.together_low:+.1f} to {one.together_high:+.1f}" * (one.smallest == one.smallest)
    shapes = f'<path d="M{_at(0, reach)} 0V{HEIGHT}" stroke="currentColor" opacity=".4"/>'
    for low, high, thick in ((one.low, one.high, 3), (one.together_low, one.together_high, 1)):
        if low == low:
            ends = f"M{_at(low, reach)} {middle}H{_at(high, reach)}"
            shapes += f'<path d="{ends}" stroke="currentColor" stroke-width="{thick}"/>'
    for end in (one.together_low, one.together_high):
        if abs(end) > reach:
            way = copysign(5, end)
            shapes += f'<path d="M{_at(end, reach)} {middle - 4}l{way} 4l{-way} 4z" fill="currentColor"/>'
    shapes += f'<circle cx="{_at(one.ours, reach)}" cy="{middle}" r="4" fill="currentColor"/>'
    shapes += f'<path d="M{_at(one.paper, reach)} {middle - 5}l5 5l-5 5l-5 -5z" class="printed"/>'
    colour = f"verdict {_class(one.verdict)}"
    return f'<svg role="img" aria-label="{told}" class="{colour}" width="{WIDTH}" height="{HEIGHT}">{shapes}</svg>'
