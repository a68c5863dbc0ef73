"""The scoreboard of a report's first page: every claim of the papers, with its verdict and a picture of the effect."""

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from pandas import DataFrame

WIDTH, HEIGHT = 130, 18  # of the picture of an effect, in pixels
HEADS = ("the paper claims", "verdict", "printed", "ours", "points", "seeds", "notebook")
CURVE_HEADS = ("the paper claims, of several runs", "verdict", "why", "board", "notebook")
CURVE_LEGEND = (
    "Claims on several runs: an order, the place of a maximum, a curve that rises or falls. A step is a difference "
    "that the claim states to be above zero; all steps of a claim are tested together. As in print: every step is "
    "told above zero. Otherwise than in print: some step is told below it. Not told: in between."
)
LEGEND = (
    "Effects are in points, one method minus another, of the average unless a claim names a site; an average is the "
    "mean of the sites, each counted alike. The diamond is the paper's, the dot ours; the thick line is its 95 % "
    "interval, the thin one is as wide as all pairs that the paper prints on the data set need when they are tested "
    "together, and decides; an arrow points beyond the axis. As printed: the paper's claim at its setting. Small: the "
    "effect at a smaller setting, which says nothing of what the paper found. No effect as printed: the thin line lies "
    "within half of the printed effect, or a point. Not told: it holds zero; below stands the smallest effect that "
    "would be detected in 80 of 100 cases. Not testable: for the reason below. Declared: the protocol named "
    "the runs before they were made."
)
FILTERS = {
    "paper": "of",
    "data": "federation",
    "board": "setting",
    "verdict": "verdict",
}  # what is chosen, and its column


def board(claims: "DataFrame", shown: "Container[str]") -> str:
    """The claims as an HTML table with a filter for paper, data and verdict, those of two seeds first, then those of
    one; effects are dots on one axis.

    claims: rows of ``fednb.command.scoreboard.claims``. shown: the notebooks that have a page.
    """
    filters = "".join(_filter(name, claims[column]) for name, column in FILTERS.items())
    reach = _reach(claims)
    order = claims["ours"].isna().astype(int) + (claims["seeds"] < 2)
    ordered = claims.loc[order.sort_values(kind="stable").index]
    rows = "\n".join(_row(one, reach, shown) for one in ordered.itertuples())
    heads = "".join(f"<th>{head}</th>" for head in HEADS).replace("points", f"−{reach:.0f} to +{reach:.0f} points")
    return (
        f'<div class="filters">{filters}<span role="status">{len(claims)} claims</span></div>\n'
        f'<div class="wide"><table class="scoreboard table"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def curves(claims: "DataFrame", shown: "Container[str]") -> str:
    """The claims on orders and curves as an HTML table, without filters: rows of ``fednb.report.curves.COLUMNS``."""
    rows = "\n".join(
        f'<tr><td>{html.escape(one.claim)}</td><td><span class="verdict">{one.verdict}</span></td>'
        f"<td>{html.escape(one.why)}</td><td>{one.setting}</td>{_notebook(one.notebook, shown)}</tr>"
        for one in claims.itertuples()
    )
    heads = "".join(f"<th>{head}</th>" for head in CURVE_HEADS)
    body = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    return f'<div class="wide"><table class="table">{body}</table></div>'


def _reach(claims: "DataFrame") -> float:
    """Where the axis of effects ends: beyond nine tenths of them, a multiple of 5."""
    sizes = claims[claims["ours"].notna()][["paper", "ours"]].abs().stack()
    return 5.0 * -(-sizes.quantile(0.9) // 5) if len(sizes) else 10.0


def _filter(name: str, values) -> str:
    options = "".join(f"<option>{html.escape(value)}</option>" for value in sorted(set(values)))
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(one, reach: float, shown: "Container[str]") -> str:
    marked = " ".join(f'data-{name}="{html.escape(getattr(one, column))}"' for name, column in FILTERS.items())
    ran = one.ours == one.ours
    numbers = (f"{one.paper:+.1f}", f"{one.ours:+.1f}" if ran else "")
    word = one.verdict.replace(" ", "-")
    detectable = f"detectable: {one.smallest:.1f}" if one.verdict == "not told" else ""
    others = "".join(
        f"<br><small>{html.escape(text)}</small>" for text in (one.why, detectable, one.other_rules) if text
    )
    cells = [f"<td>{html.escape(one.claim)}</td>"]
    cells.append(f'<td><span class="verdict {word}">{one.verdict}</span>{others}</td>')
    cells += [f'<td class="number">{text}</td>' for text in numbers]
    cells.append(f'<td class="effect verdict {word}">{_picture(one, reach) if ran else ""}</td>')
    declared = "declared" if one.setting and not one.exploratory else ""
    cells.append(f"<td>{', '.join(filter(None, (str(one.seeds or ''), one.setting, declared)))}</td>")
    return f"<tr {marked}>{''.join(cells)}{_notebook(one.notebook, shown)}</tr>"


def _notebook(name: str, shown: "Container[str]") -> str:
    escaped = html.escape(name)
    told = escaped.replace("/", "/<wbr>").replace("_", "_<wbr>")
    return f'<td><a href="notebooks/{escaped}.html">{told}</a></td>' if name in shown else f"<td>{told}</td>"


def _picture(one, reach: float) -> str:
    """The printed effect as a diamond, ours as a dot with its interval, around zero; an arrow for what lies beyond."""

    def at(points: float) -> float:
        return round(WIDTH * (0.5 + 0.46 * min(max(points, -reach), reach) / reach), 1)

    middle = HEIGHT / 2
    told = f"the paper {one.paper:+.1f}, ours {one.ours:+.1f}, {one.low:+.1f} to {one.high:+.1f}"
    told += f", together {one.together_low:+.1f} to {one.together_high:+.1f}" * (one.smallest == one.smallest)
    shapes = f'<path d="M{at(0)} 0V{HEIGHT}" stroke="currentColor" opacity=".4"/>'
    for low, high, thick in ((one.low, one.high, 3), (one.together_low, one.together_high, 1)):
        if low == low:
            shapes += f'<path d="M{at(low)} {middle}H{at(high)}" stroke="currentColor" stroke-width="{thick}"/>'
    dot = f'<circle cx="{at(one.ours)}" cy="{middle}" r="4" fill="currentColor"/>'
    diamond = f'<path d="M{at(one.paper)} {middle - 5}l5 5l-5 5l-5 -5z" class="printed"/>'
    for value, shape, look in ((one.ours, dot, 'fill="currentColor"'), (one.paper, diamond, 'class="printed"')):
        way = 6 if value > 0 else -6
        arrow = f'<path d="M{at(value)} {middle - 5}l{way} 5l{-way} 5z" {look}/>'
        shapes += arrow if abs(value) > reach else shape
    return f'<svg role="img" aria-label="{told}" width="{WIDTH}" height="{HEIGHT}">{shapes}</svg>'
