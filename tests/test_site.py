"""The site: built once from README, docs/ and three notebooks, then read as a browser would."""

import re
import shutil
from urllib.parse import unquote

import pytest

from fednb.commands import notebooks, report
from fednb.errors import NotebookError

ROOT = notebooks.checkout()
SHOWN = ("together/scoreboard", "fedrdn/report", "fedrdn/fig1_convergence")
# Sphinx and its extensions give each other notice of their own later versions.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("DeprecationWarning", "PendingDeprecationWarning")
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site, and what Sphinx warned of."""
    home, place = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("report")
    for path in ROOT.iterdir():
        if path.name not in ("notebooks", "report", ".git", ".venv"):
            (home / path.name).symlink_to(path)
    (home / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "README.md", home / "notebooks")
    for name in SHOWN:
        (home / "notebooks" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", home / "notebooks" / f"{name}.ipynb")
    return place / "site", report.build(home, place)


def test_sphinx_warns_of_nothing_but_notebooks_that_are_left_out(built):
    site, warnings = built
    absent = re.compile(r"notebooks/|didn't match any documents|does not match any documents")
    assert [warning for warning in warnings if not absent.search(warning)] == []
    assert 'url=site/index.html"' in (site.parent / "index.html").read_text()


def test_no_link_of_a_page_leads_nowhere(built):
    site, _ = built
    for page in (site / "index.html", *(site / "docs").glob("*.html"), *site.glob("notebooks/*/*.html")):
        for link in re.findall(r'<a [^>]*href="([^"#?]+)', page.read_text()):
            if not re.match(r"\w+:", link):
                target = (page.parent / unquote(link)).resolve()
                assert target.exists() or "notebooks/" in link, f"{page.relative_to(site)} links to {link}"


def test_a_methods_page_has_its_equations_without_a_script(built):
    site, _ = built
    text = (site / "contents/methods/fednb.methods.augmentations.fedrdn.html").read_text()
    assert "<math" in text and "(6)" in text and "mathjax" not in text.lower()


def test_the_board_is_sorted_by_a_script_of_the_site(built):
    site, _ = built
    board = (site / "notebooks/together/scoreboard.html").read_text()
    assert "itables.js" in board and (site / "_static/itables.js").stat().st_size > 500_000
    assert "itables.js" not in (site / "index.html").read_text()


def test_a_project_without_pages_is_told_where_its_notebooks_are(tmp_path):
    with pytest.raises(NotebookError, match="what was executed lies in"):
        report.build(tmp_path, tmp_path / "report")
