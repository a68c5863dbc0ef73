"""README, CONTRIBUTING and the pages of docs/: their links lead somewhere, their Python runs, their commands exist."""

import re
import shlex
from pathlib import Path

import pytest

from fednb import cli

ROOT = Path(__file__).parents[1]
NAMED = ("README.md", "CONTRIBUTING.md", "results/README.md", "examples/niid_bench/README.md")
PAGES = [*(ROOT / page for page in NAMED), *sorted(ROOT.glob("docs/*.md"))]
SMALLER = {  # than what readers run
    "rounds=10": "rounds=1",
    "seed=[0, 1, 2]": "seed=[0]",
    "jobs=2": "jobs=1",
    'model="digits_cnn"': 'model={"name": "digits_cnn", "channels": 4, "width": 32}',
}
LINK = re.compile(r"\]\(([^)\s]+)\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What GitHub calls a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_no_link_leads_nowhere(page):
    wrong = []
    for link in LINK.findall(page.read_text()):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if re.match(r"https?://", link):
            continue
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def test_every_page_is_named_in_readme():
    named = set(LINK.findall((ROOT / "README.md").read_text()))
    assert not [page.name for page in ROOT.glob("docs/*.md") if f"docs/{page.name}" not in named]


@pytest.mark.parametrize(
    ("page", "code"),
    [(page, code) for page in PAGES for code in blocks(page, "python")],
    ids=lambda part: part.name if isinstance(part, Path) else "",
)
def test_python_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path / "runs"))
    for theirs, ours in SMALLER.items():
        code = code.replace(theirs, ours)
    exec(compile(code, str(page), "exec"), {"__name__": "example"})


@each_page
def test_commands_exist(page):
    """Each line with `fednb` is understood, in blocks and between backticks; a verb alone is one of ours."""
    told = "\n".join(blocks(page, "sh") + blocks(page, "bash")).replace("\\\n", " ")
    lines = [*told.splitlines(), *re.findall(r"`([^`\n]*fednb [^`\n]*)`", page.read_text())]
    for line in lines:
        words = shlex.split(line, comments=True)
        at = next((number for number, word in enumerate(words) if Path(word).name == "fednb"), None)
        if at is not None and len(words) == at + 2:
            with pytest.raises(SystemExit, match="0"):
                cli.parse([words[-1], "--help"])
        elif at is not None:
            cli.parse(words[at + 1 :])


@each_page
def test_scripts_of_commands_are_there(page):
    told = "\n".join((*blocks(page, "sh"), *re.findall(r"`([^`\n]+)`", page.read_text())))
    named = re.findall(r"python ((?:tests|tools)/\S+\.py)", told)
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_nobody_is_told_to_install_a_name_that_is_not_ours():
    """fednb is on no package index: who took its name there would be installed."""
    told = [*PAGES, *ROOT.glob("fednb/**/*.py"), *ROOT.glob("fednb/**/*.in"), *ROOT.glob("tools/*.py")]
    by_name = re.compile(r"\bfednb\[[\w,]+\](?! @)|install fednb\b")
    assert not [path for path in told if by_name.search(path.read_text())]
