"""The site, by Sphinx and MyST-NB: README, docs/, the executed notebooks, and the package from its docstrings.

``fednb report`` builds it from a copy of the repository's folders, so that links lead where they do there.
"""

import json
import re
import sys
from pathlib import Path

import itables
from itables.javascript import generate_init_offline_itables_html

project = html_title = "fednb"
sys.path.insert(0, str(Path(__file__).parent))  # of formulas.py
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "formulas"]
exclude_patterns = ["fednb", "tests", "tools", "figures", ".github", "docs/_*", "contents/index.md"]
exclude_patterns += ["**/figures/README.md", "examples/*/results"]
templates_path = [str(Path(__file__).parent / "_templates")]
suppress_warnings = ["docutils", "ref.python", "myst.header", "mystnb.unknown_mime_type"]

nb_execution_mode = "off"
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_mock_imports = ["flwr"]
autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
python_maximum_signature_line_length = 80

html_theme = "sphinx_book_theme"
html_theme_options = {"home_page_in_toc": True, "use_download_button": True, "collapse_navbar": True}
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = html_domain_indices = False


def setup(app) -> None:
    """Sphinx calls this. Code that shows something is folded; a page with a sortable table gets its script,
    from a file of the site."""
    app.connect("source-read", _fold_code)
    app.connect("html-page-context", _add_script)
    app.connect("build-finished", _write_script)


def _fold_code(app, page, source) -> None:
    if page.startswith("notebooks/") and not page.endswith("README"):
        content = json.loads(source[0])
        for cell in content["cells"]:
            if cell.get("outputs"):
                cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
        source[0] = json.dumps(content)


def _add_script(app, page, template, context, doctree) -> None:
    if "new ITable(" in context.get("body", ""):
        app.add_js_file("itables.js")


def _write_script(app, error) -> None:
    bundle = Path(itables.__file__).parent / "html" / "dt_bundle.js"
    script = re.search("<script>(.*?)</script>", generate_init_offline_itables_html(bundle), re.DOTALL)[1]
    Path(app.outdir, "_static", "itables.js").write_text(script, encoding="utf-8")
