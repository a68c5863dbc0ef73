"""`fednb report`: the site of README, docs/ and the executed notebooks, by Sphinx; docs/conf.py says how it looks."""

import contextlib
import importlib.util
import io
import re
import shutil
import tempfile
from pathlib import Path

from fednb.commands import notebooks
from fednb.errors import NotebookError
from fednb.files import write_text

TOOLS = ("sphinx", "myst_nb", "sphinx_book_theme", "math_core", "itables")
FORWARD = '<!DOCTYPE html><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">the report</a>\n'


def build(home: Path, report: Path) -> list[str]:
    """Makes ``report/site`` in the place of what was there, and ``report/index.html``, which leads to it.

    home: a folder with README.md, docs/ and notebooks/; a notebook that was executed into ``report/notebooks`` is shown
    as it is there. Returns what Sphinx warns of. Raises NotebookError where there is no docs/conf.py, a tool is not
    installed, or Sphinx fails.
    """
    if not (home / "docs" / "conf.py").is_file():
        raise NotebookError(f"{home / 'docs/conf.py'} is not there; what was executed lies in {report / 'notebooks'}.")
    if absent := [name for name in TOOLS if importlib.util.find_spec(name) is None]:
        raise NotebookError(
            f'{", ".join(absent)} cannot be found: pip install -c constraints.txt -e ".[site]" installs what makes the '
            f"site. What was executed lies in {report / 'notebooks'}."
        )
    from sphinx.cmd.build import build_main

    report.mkdir(parents=True, exist_ok=True)
    warned = io.StringIO()
    with tempfile.TemporaryDirectory(dir=report, prefix=".site-") as folder:
        source, made = Path(folder, "source"), Path(folder, "site")
        _lay_out(home, report / "notebooks", source)
        given = ["-q", "-c", str(source / "docs"), "-d", str(Path(folder, "trees")), str(source), str(made)]
        with contextlib.redirect_stderr(warned):
            failed = build_main(given)
        warnings = [line.replace(f"{source}/", "") for line in warned.getvalue().splitlines() if line]
        if failed:
            raise NotebookError(f"Sphinx made no site: {' '.join(warnings)}")
        shutil.rmtree(report / "site", ignore_errors=True)
        made.rename(report / "site")
    write_text(report / "index.html", FORWARD.format("site/index.html"))
    return warnings


def _lay_out(home: Path, executed: Path, source: Path) -> None:
    """The folders of the repository as Sphinx reads them, with README.md as the first page: pages are copied, as it
    would follow a link out of the folder, and what they link to besides is linked."""
    hidden = shutil.ignore_patterns(".*", "__pycache__")
    for name in ("docs", "notebooks", "examples"):
        if (home / name).is_dir():
            shutil.copytree(home / name, source / name, ignore=hidden)
    if executed.is_dir():
        shutil.copytree(executed, source / "notebooks", ignore=hidden, dirs_exist_ok=True)
    for page in (*home.glob("*.md"), *home.glob("results/README.md")):
        (source / page.relative_to(home)).parent.mkdir(exist_ok=True)
        shutil.copy(page, source / page.relative_to(home))
    names = ("fednb", "figures", "tests", "tools", "LICENSE", "CITATION.cff", ".github", "*.txt", "*.toml", "*.yml")
    for path in (path for name in names for path in home.glob(name)):
        (source / path.name).symlink_to(path)
    (source / "docs" / "contents").rename(source / "contents")
    contents, gallery = (source / "contents" / "index.md").read_text(encoding="utf-8"), ""
    if (shown := source / "notebooks" / "README.md").is_file():  # on the first page, too
        gallery = shown.read_text(encoding="utf-8").replace("\n## ", "\n### ").replace("# Gallery", "## Gallery")
        gallery = re.sub(r"\]\(([^)\s]+\.ipynb)\)", r"](notebooks/\1)", gallery).replace("../figures/", "figures/")
    with (source / "README.md").rename(source / "index.md").open("a", encoding="utf-8") as first_page:
        first_page.write(f"\n{gallery}\n{contents}")


def main(options) -> int:
    if options.readme:
        return notebooks.tool("readme").update()
    home = notebooks.home()
    report = notebooks.report_folder(options.report)
    for warning in build(home, report):
        print(warning)
    print(f"report: {report / 'index.html'}")
    return 0
