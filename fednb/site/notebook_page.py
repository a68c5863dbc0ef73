"""One executed notebook as a page of the site, with its paper, its methods, and its tables as files."""

import ast
import html
import json
import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from fednb import catalogue, papers
from fednb.report.labels import federation
from fednb.site import pointer, records, scoreboard
from fednb.site.pages import Entry, notes, without_scripts
from fednb.site.sources import linked, literal

if TYPE_CHECKING:
    from pandas import DataFrame

FILES = {"text/csv": "csv", "text/latex": "tex"}


def names_in(content: dict) -> set[str]:
    """The quoted words in the notebook's code, which names methods and data sets by such, and the federations that its
    tables say they are of."""
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    outputs = [output for cell in cells for output in cell["outputs"]]
    printed = "\n".join("".join(each.get("text", each.get("data", {}).get("text/plain", ""))) for each in outputs)
    told = " ".join(re.findall(r"Setting: federation (.+?), model ", printed))
    federations = {name for name in catalogue.names("datasets") if re.search(rf"\b{federation(name)}(?= |$)", told)}
    return {*re.findall(r"""["'](\w+)["']""", code), *federations}


def page(entry: Entry, methods: Sequence, books: Container[str], claims: "DataFrame") -> dict[str, str]:
    """The page of a notebook and the files that it offers: itself, its records, and each table as CSV and LaTeX.

    methods: that it runs. books: the notebooks that have a page. claims: those that it shows.
    """
    room, _, name = entry.name.rpartition("/")
    folder = f"notebooks/{room}"
    content = json.loads(json.dumps(entry.content))
    original = f"files/{entry.name}.ipynb"
    pages, cells, tables, curves = {original: json.dumps(content)}, [], 0, 0
    runs = records.Runs(entry.records)
    for cell in content["cells"]:
        cells.append(cell)
        if cell["cell_type"] != "code":
            cell["source"] = linked("".join(cell["source"]), books)
            continue
        tags = cell["metadata"].setdefault("tags", [])
        tags.append("hide-input")
        if printed := notes({"cells": [cell]}):
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stdout"]
            listed = "".join(f"<li>{html.escape(line)}</li>" for line in printed)
            cells.append(_text(f"<details><summary>Notes: {len(printed)}</summary><ul>{listed}</ul></details>"))
        if _is_prose(cell):
            tags.append("prose")
        cell["metadata"]["mystnb"] = {"image": {"alt": _alternative(entry, "".join(cell["source"]))}}
        if drawing := pointer.drawn(cell):
            cells.append(_text(drawing))
            pages["static/vega.js"] = pointer.library()
        for output in cell["outputs"]:
            data = output.get("data", {})
            if spec := data.pop(pointer.MIME, None):
                curves += 1
                pages[f"{folder}/{name}-curves-{curves}.csv"] = spec["data"]["values"]
                cells.append(_text(f"These curves: {{download}}`{name}-curves-{curves}.csv`"))
            if "text/html" in data:
                shown = without_scripts("".join(data["text/html"]))
                data["text/html"] = runs.linked(shown, records.rows_of(output))
            tables += "text/csv" in data
            offered = {f"{name}-{tables}.{suffix}": data.pop(mime) for mime, suffix in FILES.items() if mime in data}
            pages |= {f"{folder}/{file}": "".join(text) for file, text in offered.items()}
            if offered:
                cells.append(_text("This table: " + ", ".join(f"{{download}}`{file}`" for file in offered)))
    links = [f"[{method.printed}](../../methods/{method.name}.md)" for method in methods]
    told = [f"**failed:** {literal(entry.error)}"] if entry.error else []
    told += [f"**{html.escape(entry.about['claim'])}**"] if entry.about.get("claim") else []
    counts = claims["verdict"].value_counts()
    if len(counts):
        words = " · ".join(f"{scoreboard.verdict(word)} {counts[word]}" for word in scoreboard.SIGNS if word in counts)
        told.append(f'Its claims: {words}. <a href="../../board.html#paper={room}">Each of them</a>')
    if room in papers.names():
        arxiv = papers.settings(room).get("arxiv")
        where = f"[arXiv:{arxiv}](https://arxiv.org/abs/{arxiv})" if arxiv else papers.settings(room)["title"]
        report = f"[the report on the paper](../../papers/{room}.md)"
        told.append(f"{entry.about.get('result', name)} of {where}; {report}.")
    told += [f"Methods: {', '.join(links)}."] if links else []
    told.append(f"Open it: {{download}}`{name}.ipynb </{original}>`, or `jupyter lab notebooks/{entry.name}.ipynb`.")
    if "static/vega.js" in pages:
        cells.append(_text(pointer.SCRIPTS))
    if runs.records:
        copies = {name: record.path.read_text(encoding="utf-8") for name, record in runs.records.items()}
        pages |= {f"extra/records/{name}": text for name, text in copies.items()}
        cells.append(_text(runs.listed()))
    title, _, text = "".join(cells[0]["source"]).partition("\n") if cells else ("", "", "")
    if not title.startswith("# "):
        title, text = f"# {entry.name}", ""
    else:
        cells = cells[1:]
    answer = "  \n".join(told)
    cells = [_text(f"{title}\n\n{answer}\n\n{text}"), *cells]
    content["cells"] = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    pages[f"{folder}/{name}.ipynb"] = json.dumps(content)
    return pages


def _is_prose(cell: dict) -> bool:
    """Whether what a cell prints is sentences, which wrap, and no columns."""
    lines = [line.strip() for output in cell["outputs"] for line in "".join(output.get("text", "")).splitlines()]
    return any(lines) and not any("  " in line for line in lines)


def _text(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _alternative(entry: Entry, source: str) -> str:
    """What a cell's figure shows, in words: the title that the cell gives it."""
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except SyntaxError:  # a magic of Jupyter's
        calls = []
    for call in calls:
        if ast.unparse(call.func).startswith("plots."):
            titles = [word.value for word in call.keywords if word.arg == "title"] or call.args[-1:]
            title = next((node.value for node in titles if isinstance(node, ast.Constant)), "")
            return f"{call.func.attr} of {entry.name}: {title}".rstrip(": ")
    return f"figure of {entry.name}"
