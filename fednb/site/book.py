"""The report as a small site, made by Sphinx: docs/, the reference, a page for each paper, notebook, method, data set.

Everything lies in the folder of the site: no page fetches anything from elsewhere, formulas are MathML.
"""

import importlib.util
import io
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from fednb import catalogue
from fednb.errors import NotebookError
from fednb.report import board, plots
from fednb.report.verdicts import TESTED
from fednb.site import notebook_page, paper_page, sources
from fednb.site.pages import Entry, figures
from fednb.site.sources import HEADLINE

if TYPE_CHECKING:
    from pandas import DataFrame

TOOLS = ("sphinx", "myst_nb", "sphinx_book_theme", "math_core")
SETTINGS = {
    "project": "fednb",
    "extensions": ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "fednb.site.formulas"],
    "html_theme": "sphinx_book_theme",
    "html_theme_options": {
        "home_page_in_toc": True,
        "use_download_button": False,
        "collapse_navbar": True,
        "footer_content_items": "",
    },
    "html_title": "fednb",
    "html_context": {"default_mode": "auto"},
    "html_static_path": ["static"],
    "html_extra_path": ["extra"],
    "html_css_files": ["site.css"],
    "html_js_files": [("board.js", {"defer": "defer"})],
    "html_math_renderer": "mathml",
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "html_permalinks": False,
    "html_domain_indices": False,
    "exclude_patterns": ["files", "extra"],
    "nb_execution_mode": "off",
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "myst_enable_extensions": ["dollarmath"],
    "autodoc_member_order": "bysource",
    "autodoc_mock_imports": ["flwr"],  # an extra of its own environment; its page needs none of it
    "autodoc_default_options": {"ignore-module-all": True},  # a name is told where it is defined
    "python_maximum_signature_line_length": 80,
    # our docstrings' lists of arguments are plain text; a type named in one may be in several rooms
    "suppress_warnings": ["docutils", "ref.python"],
    "source_suffix": {".md": "myst-nb", ".ipynb": "myst-nb"},
}


def absent() -> str:
    """Why there is no site and what to install; empty where all tools are there."""
    names = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    how = 'pip install -c constraints.txt -e ".[site]" makes it a site.'
    return f"This report is a page of links, as {', '.join(names)} cannot be found; {how}" if names else ""


def build(place: Path, pages: dict[str, str | bytes]) -> list[str]:
    """Make the site of these sources in the folder ``place``, in the place of what was there; returns what Sphinx warns
    of. NotebookError where Sphinx fails.
    """
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.console import nocolor

    warned = io.StringIO()
    nocolor()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".site-") as folder:
            source, made = Path(folder, "source"), Path(folder, "html")
            (source / "extra").mkdir(parents=True)
            for name, text in pages.items():
                page = source / name
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(text, encoding="utf-8") if isinstance(text, str) else page.write_bytes(text)
            with as_file(files("fednb.site") / "static") as static:
                shutil.copytree(static, source / "static", dirs_exist_ok=True)
            Sphinx(source, None, made, Path(folder, "trees"), "html", SETTINGS, status=None, warning=warned).build()
            if place.exists():
                shutil.rmtree(place)
            made.rename(place)
    except (SphinxError, OSError) as error:
        raise NotebookError(f"Sphinx made no site: {error} constraints.txt has versions that go together.") from error
    return [line.replace(f"{source}/", "") for line in warned.getvalue().splitlines() if line]


def pages(
    docs: Path,
    entries: list[Entry],
    methods: Sequence,
    pictures: dict[str, bytes],
    *,
    claims: "DataFrame",
    curves: "DataFrame",
    told: list[str],
    summary: list[str],
    project: str = "",
) -> dict[str, str | bytes]:
    """Path -> text of every source of the site.

    docs: the folder of Markdown that is shown as it is. entries: every notebook, with its executed JSON. methods: what
    ``fednb list --methods`` tells. pictures: PNGs of data sets. claims, curves: of ``fednb.commands.scoreboard``;
    told: what is said of claims, in sentences. summary: what the last command did.
    project: what it is called, "" of fednb itself.
    """
    shown = {entry.name: entry for entry in entries if entry.content}
    used = {name: notebook_page.names_in(entry.content) for name, entry in shown.items()}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(docs.glob("*.md"))}
    pages = {
        "index.md": sources.start(entries, list(texts), claims, summary, project),
        "board.md": sources.board(claims, curves, told, shown, texts),
        "notebooks/index.md": sources.books(entries),
        "board.csv": claims.to_csv(index=False, float_format="%.6g"),
        "board.tex": board(claims).latex(),
    }
    for paper in claims.loc[claims["verdict"].isin(TESTED), "of"].unique():
        file = io.StringIO()
        plots.claims(claims, paper).savefig(file, format="svg")
        pages[f"{paper}.svg"] = file.getvalue()
    if HEADLINE in shown:
        pages["headline.png"] = figures(shown[HEADLINE].content)[0]
    pages |= {f"docs/{name}.md": sources.linked(text, shown) for name, text in texts.items()}
    for room in dict.fromkeys(entry.name.partition("/")[0] for entry in entries):
        within = [entry for entry in entries if entry.name.startswith(f"{room}/")]
        pages[f"notebooks/{room}/index.md"] = sources.room(room, within)
    ran = {name: used[name] if entry.methods is None else entry.methods for name, entry in shown.items()}
    for name, entry in shown.items():
        judged = claims[claims["notebook"] == name]
        pages |= notebook_page.page(entry, [method for method in methods if method.name in ran[name]], shown, judged)
    for paper in sources.reported(entries):
        own = [entry for entry in entries if entry.name.startswith(f"{paper}/")]
        pages[f"papers/{paper}.md"] = paper_page.page(paper, own, claims, curves, methods)
    pages["methods/index.md"] = sources.methods(methods)
    for method in methods:
        books = [name for name in shown if method.name in ran[name]]
        pages[f"methods/{method.name}.md"] = sources.method(method, books)
    federations, rooms = catalogue.names("datasets"), sources.modules()
    pages["data/index.md"] = sources.listed("Data sets", federations, partial(catalogue.file, "datasets"))
    for name in federations:
        books = [book for book in shown if name in used[book]]
        pages[f"data/{name}.md"] = sources.data_set(name, books, f"{name}.png" if name in pictures else "")
    pages |= {f"data/{name}.png": picture for name, picture in pictures.items()}
    pages["reference/index.md"] = sources.listed("The package", rooms, lambda room: import_module(f"fednb.{room}"))
    for room, within in rooms.items():
        pages[f"reference/{room}.md"] = sources.reference(room, within)
    return pages
