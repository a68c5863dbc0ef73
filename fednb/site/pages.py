"""What a report takes from executed notebooks, and its first page: a door to the site, or links where there is none."""

import base64
import html
import re
from dataclasses import dataclass
from pathlib import Path

NOTES = "results.notes"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">{head}
<title>fednb: report</title></head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Entry:
    """One notebook in a report: its name, what it says about itself, its executed JSON (or None), what went wrong (None
    if nothing did), the methods that it runs (None where that is not known: then those that its code names), and the
    files of its recorded runs."""

    name: str
    about: dict
    content: dict | None
    error: str | None
    methods: frozenset[str] | None = None
    records: tuple[Path, ...] = ()


def figures(content: dict) -> list[bytes]:
    """The PNG files of an executed notebook, in the order of its cells."""
    shown = (output.get("data", {}) for cell in content["cells"] for output in cell.get("outputs", []))
    return [base64.b64decode("".join(data["image/png"])) for data in shown if "image/png" in data]


def notes(content: dict) -> list[str]:
    """The lines that an executed notebook prints where it prints the notes of its results."""
    cells = [cell for cell in content["cells"] if NOTES in "".join(cell["source"])]
    printed = [output for cell in cells for output in cell.get("outputs", []) if output.get("name") == "stdout"]
    return [line for output in printed for line in "".join(output["text"]).splitlines()]


def failure(content: dict) -> str | None:
    """The error at which an executed notebook stopped, or None."""
    outputs = (output for cell in content["cells"] for output in cell.get("outputs", []))
    return next((f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"), None)


def forward(link: str) -> str:
    """A page that leads to another one, by itself."""
    head = f'<meta http-equiv="refresh" content="0; url={link}">'
    return PAGE.format(head=head, body=f'<a href="{link}">the report</a>')


def links(entries: list[Entry], summary: list[str], told: list[str], why: str) -> str:
    """A page without a site: what is said of all claims, and a link to each executed notebook.

    summary, told: see ``fednb.site.book.build``. why: there is no site.
    """
    body = ["<h1>fednb: report</h1>", f"<p>{html.escape(why)}</p>", f"<p>{html.escape(' '.join(told))}</p>", "<ul>"]
    for entry in entries:
        name, claim = html.escape(entry.name), html.escape(entry.about.get("claim", ""))
        link = f'<a href="notebooks/{name}.ipynb">{name}</a>' if entry.content else f"{name} <em>Not executed.</em>"
        failed = f" <strong>failed: {html.escape(entry.error)}</strong>" if entry.error else ""
        body.append(f"<li>{link}{failed} {claim}</li>")
    lines = html.escape("\n".join(summary))
    return PAGE.format(head="", body="\n".join([*body, "</ul>", f"<pre>{lines}</pre>"]))


def without_scripts(page: str) -> str:
    """The HTML without its scripts: a report is read offline and runs nothing."""
    return re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL | re.IGNORECASE)
