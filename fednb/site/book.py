"""The report as a small site, made by Sphinx: a page for each notebook, method and data set, and the reference.

Everything lies in the folder of the site: no page fetches anything from elsewhere, formulas are MathML.
"""

import ast
import html
import importlib.util
import inspect
import io
import json
import pkgutil
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from importlib.resources import as_file, files
from pathlib import Path

import fednb
from fednb import catalogue, papers
from fednb.errors import NotebookError
from fednb.report import names
from fednb.site import scoreboard
from fednb.site.pages import CHECKED, Entry, without_scripts

TOOLS = ("sphinx", "myst_nb", "sphinx_book_theme", "math_core")
OWN_PAGES = ("algorithms", "augment", "data")  # not in the reference a second time
INNER = ("command", "cli", "site", "__main__")
CODE, TEXT = "code", "markdown"
SOURCE = re.compile(r"\]\(\.\./\.\./fednb/(\w+)/(\w+)\.py\)")
SETTINGS = {
    "project": "fednb",
    "extensions": ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "fednb.site.formulas"],
    "html_theme": "sphinx_book_theme",
    "html_theme_options": {"home_page_in_toc": True, "use_download_button": False, "collapse_navbar": True},
    "html_title": "fednb",
    "html_static_path": ["static"],
    "html_css_files": ["site.css"],
    "html_js_files": [("filters.js", {"defer": "defer"})],
    "html_math_renderer": "mathml",
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "html_permalinks": False,
    "exclude_patterns": ["files"],
    "nb_execution_mode": "off",
    "nb_merge_streams": True,
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "myst_enable_extensions": ["dollarmath"],
    "autodoc_member_order": "bysource",
    "autodoc_default_options": {"ignore-module-all": True},  # a name is told where it is defined
    "python_maximum_signature_line_length": 80,
    "suppress_warnings": ["docutils"],  # our docstrings' lists of arguments are plain text
    "source_suffix": {".md": "myst-nb", ".ipynb": "myst-nb"},
}


def absent() -> list[str]:
    """Which of the tools are not installed."""
    return [name for name in TOOLS if importlib.util.find_spec(name) is None]


def build(place: Path, entries: list[Entry], methods: Sequence, summary: list[str]) -> list[str]:
    """Make the site in the folder ``place``, in the place of what was there; returns what Sphinx warns of.

    entries: every notebook, with its executed JSON. methods: what ``fednb list --methods`` tells. summary: what the
    last command did. NotebookError where Sphinx fails.
    """
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.console import nocolor

    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".site-") as folder:
        source, made = Path(folder, "source"), Path(folder, "html")
        for name, text in _pages(entries, methods, summary).items():
            page = source / name
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8") if isinstance(text, str) else page.write_bytes(text)
        with as_file(files("fednb.site") / "static") as static:
            shutil.copytree(static, source / "static")
        warned = io.StringIO()
        nocolor()
        try:
            Sphinx(source, None, made, Path(folder, "trees"), "html", SETTINGS, status=None, warning=warned).build()
        except SphinxError as error:
            raise NotebookError(
                f"Sphinx made no site: {error} constraints.txt has versions that go together."
            ) from error
        if place.exists():
            shutil.rmtree(place)
        made.rename(place)
        return [line.replace(f"{source}/", "") for line in warned.getvalue().splitlines() if line]


def _pages(entries: list[Entry], methods: Sequence, summary: list[str]) -> dict[str, str | bytes]:
    """Path -> text of every source of the site."""
    shown = {entry.name: entry for entry in entries if entry.content}
    used = {name: _names_in(entry.content) for name, entry in shown.items()}
    pages = {
        "index.md": _start(entries, summary),
        "reading.md": (files("fednb.site") / "reading.md").read_text("utf-8"),
    }
    rooms = dict.fromkeys(entry.name.partition("/")[0] for entry in entries)
    for room in rooms:
        pages[f"notebooks/{room}/index.md"] = _room(room, [e for e in entries if e.name.startswith(f"{room}/")])
    for name, entry in shown.items():
        pages |= _notebook(entry, [method for method in methods if method.name in used[name]])
    for method in methods:
        pages[f"methods/{method.name}.md"] = _method(method, [name for name in shown if method.name in used[name]])
    pages["methods/index.md"] = _methods(methods)
    federations = catalogue.names("data")
    for name in federations:
        pages[f"data/{name}.md"] = _data(name, [book for book in shown if name in used[book]])
        if picture := _picture(name):
            pages[f"data/{name}.png"] = picture
    pages["data/index.md"] = _list("Data sets", federations, lambda name: _first_line(catalogue.file("data", name)))
    modules = _modules()
    for room, within in modules.items():
        pages[f"reference/{room}.md"] = _reference(room, within)
    pages["reference/index.md"] = _list(
        "The package", modules, lambda room: _first_line(importlib.import_module(f"fednb.{room}"))
    )
    return pages


def _start(entries: list[Entry], summary: list[str]) -> str:
    claims = scoreboard.judged(entries)
    rooms = dict.fromkeys(entry.name.partition("/")[0] for entry in entries)
    said = html.escape("\n".join(summary))
    return f"""# fednb

Federated learning on images that look different at each site: four methods, their rivals, and one notebook for each
table and figure of their papers, with the paper's numbers beside ours.

## Scoreboard

{scoreboard.counted(claims)} Effects are in points, one method less another; the diamond is the paper's, the dot ours
with its 95 % interval. [What the words mean](reading.md).

{scoreboard.board(claims) if claims else ""}

## Notebooks

{_table_of(entries)}

<details><summary>The last command</summary><pre>{said}</pre></details>

{_tree("Notebooks", [f"notebooks/{room}/index" for room in rooms])}

{_tree("What it is made of", ["reading", "methods/index", "data/index", "reference/index"])}
"""


def _table_of(entries: list[Entry]) -> str:
    rows = ["| | claim |", "|---|---|"]
    for entry in entries:
        room, _, name = entry.name.partition("/")
        result = f"{names.printed(room)} {entry.about.get('result', name)}" if room in papers.names() else name
        link = f"[{result}](/notebooks/{entry.name}.ipynb)" if entry.content else result
        state = " **Failed.**" if entry.error else "" if entry.content else " *Not executed.*"
        claim = entry.about.get("claim", "").replace("|", r"\|")
        rows.append(f"| {link} | {claim}{state} |")
    return "\n".join(rows)


def _tree(caption: str, pages: Iterable[str]) -> str:
    return "\n".join(("```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```"))


def _list(title: str, pages: Iterable[str], told) -> str:
    rows = "\n".join(f"| [{name}]({name}.md) | {told(name)} |" for name in pages)
    return f"# {title}\n\n| | |\n|---|---|\n{rows}\n\n{_tree('', pages)}\n"


def _room(room: str, entries: list[Entry]) -> str:
    """The page of one folder of notebooks: a paper's, or those of all together."""
    title, about = room.capitalize(), ""
    if room in papers.names():
        told, title = papers.settings(room), names.printed(room)
        about = f"*{told['title']}*, [arXiv:{told['arxiv']}](https://arxiv.org/abs/{told['arxiv']}). "
        about += f"The method: [{title}](../../methods/{room}.md)."
    pages = [entry.name.partition("/")[2] for entry in entries if entry.content]
    return f"# {title}\n\n{about}\n\n{_table_of(entries)}\n\n{_tree('', pages)}\n"


def _notebook(entry: Entry, methods: Sequence) -> dict[str, str]:
    """The page of a notebook and the files that it offers: itself, and each table as CSV and LaTeX."""
    room, _, name = entry.name.rpartition("/")
    folder = f"notebooks/{room}"
    content = json.loads(json.dumps(entry.content))
    original = f"files/{entry.name}.ipynb"
    pages, cells, displayed = {original: json.dumps(content)}, [], []
    for cell in content["cells"]:
        cells.append(cell)
        if cell["cell_type"] != CODE:
            cell["source"] = SOURCE.sub(_page_of, "".join(cell["source"]))
            continue
        tags = cell["metadata"].setdefault("tags", [])
        tags.append("hide-input")
        if CHECKED in tags and _printed(cell) in displayed:
            tags.append("remove-cell")  # what nbval compares, already shown as a table
        if alt := _alternative(entry, "".join(cell["source"])):
            cell["metadata"]["mystnb"] = {"image": {"alt": alt}}
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = without_scripts("".join(data["text/html"]))
            displayed.append("".join(data.get("text/plain", "")).strip())
            offered = []
            for mime, suffix in (("text/csv", "csv"), ("text/latex", "tex")):
                if mime in data:
                    number = 1 + sum(path.endswith(f".{suffix}") for path in pages)
                    pages[f"{folder}/{name}-{number}.{suffix}"] = "".join(data.pop(mime))
                    offered.append(f"{{download}}`{suffix.upper()} <{name}-{number}.{suffix}>`")
            if offered:
                cells.append(_text(f"This table as {', '.join(offered)}"))
    links = [f"[{method.printed}](../../methods/{method.name}.md)" for method in methods]
    told = [f"**failed:** {entry.error}"] if entry.error else []
    told += [f"**{entry.about['claim']}**"] if entry.about.get("claim") else []
    if room in papers.names():
        arxiv = papers.settings(room)["arxiv"]
        told.append(f"{entry.about['result']} of [arXiv:{arxiv}](https://arxiv.org/abs/{arxiv}).")
    told += [f"Methods: {', '.join(links)}."] if links else []
    told.append(f"Open it: {{download}}`{name}.ipynb </{original}>`, or `jupyter lab notebooks/{entry.name}.ipynb`.")
    cells.insert(1, _text("  \n".join(told)))
    content["cells"] = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    pages[f"{folder}/{name}.ipynb"] = json.dumps(content)
    return pages


def _page_of(link: re.Match) -> str:
    """The page that stands for a file of the package, in the place of a link to it."""
    room, name = link.groups()
    page = {"algorithms": f"methods/{name}", "augment": f"methods/{name}", "data": f"data/{name}"}.get(room)
    return f"](/{page or f'reference/{room}'}.md)"


def _text(source: str) -> dict:
    return {"cell_type": TEXT, "metadata": {}, "source": source}


def _printed(cell: dict) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"]).strip()


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


def _names_in(content: dict) -> set[str]:
    """The quoted words in the notebook's code: it names methods and data sets by such."""
    code = "\n".join("".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == CODE)
    return set(re.findall(r"""["'](\w+)["']""", code))


def _methods(methods: Sequence) -> str:
    rows = "\n".join(f"| [{m.printed}]({m.name}.md) | {m.paper} | {m.changes} | {m.tasks} |" for m in methods)
    heads = "| method | from | changes | tasks |\n|---|---|---|---|"
    return f"# Methods\n\n{heads}\n{rows}\n\n{_tree('', [method.name for method in methods])}\n"


def _method(method, books: list[str]) -> str:
    told = {"from": method.paper, "changes": method.changes, "sends": method.sends, "keeps": method.keeps}
    return _described(method.printed, told | {"tasks": method.tasks}, books, f"fednb.{method.room}.{method.name}")


def _data(name: str, books: list[str]) -> str:
    loader = catalogue.file("data", name)
    told = {"task": catalogue.task(name), "source": loader.NEEDS or "embedded in the package"}
    return _described(name, told, books, f"fednb.data.{name}", picture=f"{name}.png" if _picture(name) else "")


def _described(title: str, told: dict, books: list[str], module: str, picture: str = "") -> str:
    links = ", ".join(f"[{book}](../notebooks/{book}.ipynb)" for book in books)
    rows = "\n".join(f"| {name} | {text} |" for name, text in {**told, "notebooks": links}.items() if text)
    image = f"![The first images of each site of {title}, a row for each site]({picture})\n\n" if picture else ""
    code = inspect.getsource(importlib.import_module(module))
    file = f"<details><summary>The file {module.replace('.', '/')}.py</summary>\n\n~~~~python\n{code}~~~~\n\n</details>"
    return f"# {title}\n\n| | |\n|---|---|\n{rows}\n\n{image}{_automodule(module)}\n\n{file}\n"


def _automodule(module: str) -> str:
    return f"```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :show-inheritance:\n```"


def _picture(name: str) -> bytes:
    """The first images of each site of an embedded data set; nothing for one that needs files."""
    if catalogue.file("data", name).NEEDS:
        return b""
    from fednb.report import plots

    file = io.BytesIO()
    plots.samples(fednb.load(name)).savefig(file, dpi=100)
    return file.getvalue()


def _modules() -> dict[str, list[str]]:
    """Room -> its public modules with their dotted names, the room itself first."""
    rooms = {}
    for module in pkgutil.walk_packages(fednb.__path__, "fednb."):
        room, *rest = module.name.split(".")[1:]
        if room not in (*OWN_PAGES, *INNER) and not any(part.startswith("_") for part in rest):
            rooms.setdefault(room, []).append(module.name)
    return rooms


def _reference(room: str, modules: list[str]) -> str:
    parts = [f"## `{module}`\n\n{_automodule(module)}" for module in modules]
    return f"# {room}\n\n" + "\n\n".join(parts) + "\n"


def _first_line(thing) -> str:
    return inspect.getdoc(thing).partition("\n")[0]
