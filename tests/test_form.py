"""The form of notebooks and the words of pages: the answer first, little code, short sentences in the field's words."""

import ast
import re
from pathlib import Path

import pytest

from fednb.commands import notebooks

ROOT = Path(__file__).parents[1]
ALL = notebooks.select()
each = pytest.mark.parametrize("notebook", ALL, ids=lambda notebook: notebook.name)
MOST = {"claim in words": 80, "lines of code": 35, "lines of a cell": 15, "kilobytes": 300, "words of a sentence": 35}
# House words, and the field's in their place.
WORDS = {
    r"not told": "inconclusive",
    r"\btold\b": "significant",
    r"late rise": "still rising",
    r"not level|is level|level at (its|their) end": "converged",
    r"\bbeside\b": "next to",
    r"at hand": "available",
    r"\bdoors?\b": "hooks",
    r"\blaws?\b": "conformance tests",
}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def sentences(markdown: str) -> list[str]:
    """Without code, tables, formulas, headings and the parts that a machine writes."""
    text = re.sub(r"<!-- (\S+?):.*?<!-- /\1 -->|```.*?```|\$\$.*?\$\$|<[^>]+>", "", markdown, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$|\[([^\]]*)\]\([^)]*\)|`[^`]*`", lambda found: found[1] or "x", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "!"))]
    blocks = re.split(r"\n\s*\n|\n(?=\s*[-*\d])", "\n".join(lines))
    return [part for block in blocks for part in re.split(r"(?<=[.:;!?])\s+", block) if len(part.split()) > 2]


def words(text: str) -> list[str]:
    return [f"{found[0]} (say {better})" for word, better in WORDS.items() if (found := re.search(word, text, re.I))]


def code(notebook) -> list[list[str]]:
    return [
        [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        for _, source, tags in notebook.code
        if "parameters" not in tags
    ]


@each
def test_a_notebook_has_the_form(notebook):
    cells = notebook.content["cells"]
    first = re.sub(r"\$\$.*?\$\$", "", "".join(cells[0]["source"]), flags=re.DOTALL)
    claim = [line for line in first.splitlines() if line and not line.startswith("#") and "](" not in line]
    lines, shown = code(notebook), [output for cell in cells for output in cell.get("outputs", [])]
    learns = notebook.name.startswith("methods/") or notebook.name == "together/quickstart"  # pictures come first
    wrong = []
    if len(" ".join(claim).split()) > MOST["claim in words"]:
        wrong.append(f"the claim has {len(' '.join(claim).split())} words")
    if sum(map(len, lines)) > MOST["lines of code"] * (2 if learns else 1):
        wrong.append(f"{sum(map(len, lines))} lines of code")
    if max(map(len, lines)) > MOST["lines of a cell"]:
        wrong.append(f"a cell of {max(map(len, lines))} lines")
    if notebook.path.stat().st_size > 1000 * MOST["kilobytes"]:
        wrong.append(f"{notebook.path.stat().st_size // 1000} KB")
    if not learns and not re.match(r"(\w[^\n]*\n)?claim ", "".join(shown[0].get("data", {}).get("text/plain", ""))):
        wrong.append("the first output is no answer: end the study's cell with page.answer()")
    if "".join(cells[-1]["source"]) != "page.footer()":
        wrong.append("the last cell is not page.footer()")
    if any(isinstance(node, ast.FunctionDef) for _, source, _ in notebook.code for node in ast.walk(ast.parse(source))):
        wrong.append("it defines a function")
    assert not wrong


@each
def test_a_notebook_speaks_the_fields_words(notebook):
    cells = [cell for cell in notebook.content["cells"] if cell["cell_type"] == "markdown"]
    said = "\n\n".join("".join(cell["source"]) for cell in cells)
    shown = [output for cell in notebook.content["cells"] for output in cell.get("outputs", [])]
    texts = ["".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in shown]
    assert not [*words(said), *words("\n".join(texts))]
    assert not [part for part in sentences(said) if len(part.split()) > MOST["words of a sentence"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_short_sentences_in_the_fields_words(page):
    parts = sentences(page.read_text())
    assert not words("\n".join(parts))
    assert not [part for part in parts if len(part.split()) > MOST["words of a sentence"]]
    assert sum(len(part.split()) for part in parts) / len(parts) <= 16
