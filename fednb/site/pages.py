"""A report without Sphinx: one page with every table and figure of the executed notebooks, and what became of each."""

import base64
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fednb.site import scoreboard

if TYPE_CHECKING:
    from pandas import DataFrame

CHECKED = "nbval-check-output"
NOTES = "results.notes"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child, .contents th, .contents td { text-align: left; vertical-align: top; }
.wide { overflow-x: auto; }
.scoreboard td:last-child { text-align: left; }
.scoreboard svg { display: block; }
.scoreboard .printed { fill: #fff; stroke: #1a1a1a; stroke-width: 1.5; }
.verdict { font-weight: 600; white-space: nowrap; }
.reproduced { color: #1b7837; } .larger { color: #0b5cad; } .smaller { color: #9a6700; } .opposite { color: #b2182b; }
pre { background: #f5f5f5; padding: .6rem; overflow-x: auto; white-space: pre-wrap; }
.failed { color: #a40000; font-weight: 600; }
"""


@dataclass(frozen=True)
class Entry:
    """One notebook in a report: its name, what it says about itself, its executed JSON (or None),
    the page to link to, what went wrong (None if nothing did), and the methods that it runs (None where that is not
    known: then those that its code names)."""

    name: str
    about: dict
    content: dict | None
    link: str | None
    error: str | None
    methods: frozenset[str] | None = None


def shown(content: dict) -> Iterator[tuple[str, str]]:
    """("table", HTML), ("figure", PNG in base64) and ("text", of checked cells and notes) of an executed notebook."""
    for cell in content["cells"]:
        told = CHECKED in cell["metadata"].get("tags", []) or NOTES in "".join(cell["source"])
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                yield "figure", "".join(data["image/png"]).replace("\n", "")
            elif "text/html" in data:
                yield "table", without_scripts("".join(data["text/html"]))
            elif told and output["output_type"] in ("stream", "execute_result", "display_data"):
                yield "text", "".join(output.get("text", data.get("text/plain", "")))


def figures(content: dict) -> list[bytes]:
    """The PNG files of an executed notebook, in the order of its cells."""
    return [base64.b64decode(value) for kind, value in shown(content) if kind == "figure"]


def notes(content: dict) -> list[str]:
    """The lines that an executed notebook prints where it prints the notes of its results."""
    cells = [cell for cell in content["cells"] if NOTES in "".join(cell["source"])]
    printed = [output for cell in cells for output in cell.get("outputs", []) if output.get("name") == "stdout"]
    return [line for output in printed for line in "".join(output["text"]).splitlines()]


def failure(content: dict) -> str | None:
    """The error at which an executed notebook stopped, or None."""
    outputs = (output for cell in content["cells"] for output in cell.get("outputs", []))
    return next((f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"), None)


def index(entries: list[Entry], summary: list[str], claims: "DataFrame", curves: "DataFrame", told: list[str]) -> str:
    """The whole page: the scoreboard, a list of the notebooks, then each one's results.

    summary, claims, curves, told: see ``fednb.site.book.build``.
    """
    rows = "\n".join(_row(entry) for entry in entries)
    lines = "\n".join(html.escape(line) for line in summary)
    sections = "\n".join(_section(entry) for entry in entries)
    shown = {entry.name for entry in entries if entry.link}
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>fednb: report</title><style>{STYLE}</style></head>
<body>
<h1>fednb: report</h1>
<p>{html.escape(" ".join(told))}</p>
<p>{html.escape(scoreboard.LEGEND)} <a href="#notebooks">To the notebooks</a></p>
{scoreboard.table(claims, shown)}
<p>{html.escape(scoreboard.CURVE_LEGEND)}</p>
{scoreboard.curves(curves, shown)}
<h2 id="notebooks">Notebooks</h2>
<div class="wide"><table class="contents">
<tr><th>notebook</th><th>result</th><th>the paper claims</th></tr>
{rows}
</table></div>
<details><summary>The last command</summary><pre>{lines}</pre></details>
{sections}
</body>
</html>
"""


def forward(link: str) -> str:
    """A page that leads to another one, by itself."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}"><title>fednb: report</title></head>
<body><a href="{link}">the report</a></body>
</html>
"""


def _row(entry: Entry) -> str:
    said = [html.escape(f"{entry.about.get('paper', '')} {entry.about.get('result', '')}".strip())]
    state = (
        ' <span class="failed">Failed.</span>' if entry.error else "" if entry.content else " <em>Not executed.</em>"
    )
    said.append(html.escape(entry.about.get("claim", "")) + state)
    name = f'<a href="#{html.escape(entry.name)}">{html.escape(entry.name)}</a>'
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in (name, *said)) + "</tr>"


def _section(entry: Entry) -> str:
    name = html.escape(entry.name)
    parts = [f'<h2 id="{name}">{name}</h2>', f"<p>{html.escape(entry.about.get('claim', ''))}</p>"]
    if entry.link:
        parts.append(f'<p><a href="{html.escape(entry.link)}">the whole notebook</a></p>')
    if entry.error:
        parts.append(f'<p class="failed">failed: {html.escape(entry.error)}</p>')
    for number, (kind, value) in enumerate(shown(entry.content) if entry.content else (), 1):
        if kind == "figure":
            parts.append(f'<img alt="{name}, output {number}" src="data:image/png;base64,{value}">')
        elif kind == "table":
            parts.append(f'<div class="wide">{value}</div>')
        else:
            parts.append(f"<pre>{html.escape(value)}</pre>")
    return "\n".join(parts)


def notebook(path: Path) -> str:
    """The notebook as one page without scripts or anything fetched from elsewhere."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="lab", exclude_input_prompt=True, exclude_output_prompt=True)
    exporter.log.setLevel("ERROR")
    return without_scripts(exporter.from_filename(str(path))[0])


def without_scripts(page: str) -> str:
    """The HTML without its scripts: a report is read offline and runs nothing."""
    return re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL | re.IGNORECASE)
