"""The report as a site: built once from the committed notebooks and a made one, then read as a browser would."""

import base64
import importlib.util
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pandas
import pytest
from made_results import mean_accuracy, run

from fednb import catalogue, datasets, papers
from fednb.commands import folder, methods, notebooks
from fednb.commands import scoreboard as judging
from fednb.errors import DataError, NotebookError
from fednb.report import by_paper, plots
from fednb.report.tables import Table
from fednb.report.verdicts import TESTED, UNTESTED, VERDICTS
from fednb.site import book, formulas, notebook_page, paper_page, pointer, scoreboard, sources
from fednb.site.pages import Entry

# Sphinx and its extensions give each other notice of their own later versions.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("DeprecationWarning", "PendingDeprecationWarning")
]

ELSEWHERE = re.compile(r"(https?:)?//")
CLAIMS = pandas.DataFrame(
    {
        "of": ["fedrdn", "fedrdn", "fedfa"],
        "claim": ["A is 2.0 points above B.", "A is 3.0 points above C.", "D is 1.0 points above E."],
        "table": "table1",
        "federation": ["pacs", "pacs", "bioid"],
        "paper": [2.0, 3.0, 1.0],
        "ours": [1.5, None, -40.0],
        "effect": ["A - B", "A - C", "D - E"],
        "low": [0.5, None, -45.0],
        "high": [2.5, None, -35.0],
        "together_low": [0.1, None, -48.0],
        "together_high": [2.9, None, -32.0],
        "fixed_low": [0.4, None, -46.0],
        "fixed_high": [2.6, None, -34.0],
        "p": [0.01, None, 0.01],
        "smallest": [1.8, None, 9.0],
        "why": "",
        "deviations": ["size 128 (paper: 256)", "", ""],
        "exploratory": [True, False, False],
        "seeds": [3, 0, 3],
        "verdict": ["reproduced", "not run", "opposite"],
        "other_rules": ["best validation: not told", "", ""],
        "setting": ["small", "", "as printed"],
        "notebook": ["fedrdn/made", "fedrdn/made", "fedfa/nowhere"],
    }
)
CURVES = pandas.DataFrame(
    {
        "of": "fedrdn",
        "figure": "fig2",
        "claim": ["A > B at x 1, 2.", "A falls over x 1, 2."],
        "federation": "pacs",
        "verdict": ["otherwise than in print", "not run"],
        "why": ["1 of 2 steps told, 1 of them the other way", "0 of 1 steps told, 1 not run"],
        "setting": ["small", ""],
        "notebook": ["fedrdn/made", "fedrdn/nowhere"],
    }
)
DOCS = Path(__file__).parents[1] / "docs"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JUDGED = Table(CLAIMS, ("Claims.",), CLAIMS[["verdict"]])
FILES = sorted((DOCS.parent / "results/pacs").glob("fedbn_s*.json"))[:4]
KEYS = [json.loads(file.read_text())["key"] for file in FILES]
ROWS = pandas.DataFrame({"average": "50.0"}, index=["<FedBN>, 2 seeds", "FedBN & co", "gone", "not run"])
RUNS = Table(
    ROWS, ("Runs.",), ROWS, records={"<FedBN>, 2 seeds": KEYS[:2], "FedBN & co": KEYS[1:3], "gone": ["0" * 12]}
)


def cell(source, *outputs, kind="code", tags=()):
    code = {"outputs": list(outputs), "execution_count": 1} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {"tags": [*tags]} if tags else {}, "source": source, **code}


def displayed(table):
    csv, metadata = table._repr_mimebundle_()
    data = {"text/html": table.html(), "text/plain": table.text(), "text/latex": table.latex()} | csv
    return {"output_type": "execute_result", "metadata": metadata, "execution_count": 1, "data": data}


def figure(**shown):
    data = {"image/png": base64.b64encode(PICTURE).decode(), "text/plain": "<Figure>"}
    return {"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": data | shown}


ROUNDS = [(60, 70, 10, 30), (101, 101, 21, 51), (117, 103, 27, 52)]
CONVERGENCE = plots.convergence(
    pandas.concat([run("fedavg", ROUNDS), run("fedavg", ROUNDS, seed=1), run("fedavg+fedrdn", ROUNDS[::-1])]),
    title="</script>",
)
MADE = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        cell("# A made notebook\n\nSee [the task](../../fednb/methods/task.py).", kind="markdown"),
        cell('scores = report.scoreboard(results, "fedprox")\nscores', displayed(JUDGED), tags=["nbval-check-output"]),
        cell(
            "for note in results.notes:\n    print(note)",
            {"output_type": "stream", "name": "stdout", "text": ["Images of <a> are copies.\n"]},
        ),
        cell(
            "print(table.text())",
            {
                "output_type": "stream",
                "name": "stdout",
                "text": ["Setting: federation BioID (size 64), model lenet5.\n"],
            },
        ),
        cell(
            "HTML(page)",
            {"output_type": "stream", "name": "stdout", "text": ["before  1\n"]},
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/html": "<p>ran</p><script src='far'></script>"},
            },
            {"output_type": "stream", "name": "stdout", "text": ["after  2\n"]},
        ),
        cell("runs", displayed(RUNS)),
        cell("display(another)\ndisplay(curves)", figure(), figure(**CONVERGENCE._repr_mimebundle_())),
    ],
}


class Page(HTMLParser):
    """What a page links to, what it loads, its pictures and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.images, self.anchors = [], [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, found):
        attributes = dict(found)
        self.anchors.add(attributes.get("id"))
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(attributes["href"])
        elif "src" in attributes:
            self.loads.append(attributes["src"])
        if tag == "img":
            self.images.append(attributes)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("sphinx")
    place = tmp_path_factory.mktemp("report") / "site"
    about = {"claim": "A beats B.", "result": "Table 1", "paper": "fedrdn", "data": "made"}
    entries = [Entry(each.name, each.about, each.content, None) for each in notebooks.found()]
    failed = "as told of $\\frac$, *a*\n\n# <b>"  # a folder may be called so
    damaged = tmp_path_factory.mktemp("results") / "fedbn_s0_000000.json"
    damaged.write_text("{}")
    entries += [Entry("fedrdn/made", about, MADE, failed, frozenset({"fedbn"}), (*FILES, damaged))]
    entries += [Entry("fedrdn/other", about, None, None)]
    summary = ["runs: 7 <recorded>", "", "# $\\frac$"]
    told = ["3 claims.", "Of those tested: 1 reproduced."]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDNB_METHODS", str(Path(__file__).parents[1] / "examples"))
        pictures = {"shifted_digits": PICTURE}
        of_first = {"summary": summary, "told": told, "claims": CLAIMS, "curves": CURVES}
        return place, book.build(place, book.pages(DOCS, entries, methods.told(), pictures, **of_first))


@pytest.fixture(scope="module")
def site(built):
    return built[0]


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_sphinx_has_nothing_to_complain_of(built):
    assert built[1] == []


def test_there_is_a_page_for_each_notebook_method_and_data_set(site):
    expected = [f"notebooks/{each.name}" for each in notebooks.found()]
    expected += [f"methods/{method.name}" for method in methods.told()]
    expected += [f"data/{name}" for name in catalogue.names("datasets")]
    expected += [f"docs/{path.stem}" for path in DOCS.glob("*.md")]
    expected += [f"papers/{paper}" for paper in papers.names()]
    expected += ["index", "search", "reference/doors", "reference/recipe", "notebooks/fedrdn/made"]
    assert not [name for name in expected if not (site / f"{name}.html").is_file()]
    assert not (site / "notebooks/fedrdn/other.html").exists()


def test_a_method_from_outside_has_a_page(site):
    page = (site / "methods/fedadam.html").read_text()
    assert "folder examples" in page and "The file fedadam.py" in page


def test_a_methods_page_has_what_it_costs(site):
    (fedrdn,) = (method for method in methods.told() if method.name == "fedrdn")
    assert fedrdn.cost and f"<p>{fedrdn.cost}</p>" in (site / "methods/fedrdn.html").read_text()


def test_no_link_leads_nowhere(site, pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            anchor = "" if target.name == "board.html" and "=" in anchor else anchor  # what is chosen there
            if not target.is_file() or (anchor and target.suffix == ".html" and anchor not in pages[target].anchors):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert not wrong


def test_the_pages_of_docs_are_shown_as_they_are(site, pages):
    page = site / "docs/reading.html"
    words = " ".join(re.sub("<[^>]+>", "", page.read_text()).split())
    assert "One seed gives a number and never a verdict." in words and "fednb/papers/protocol.toml" in words
    linked = {"../reference/report.html", "../notebooks/together/vessels_looked_into.html", "stale.html"}
    assert linked <= set(pages[page].links)
    assert "docs/reading.html" in pages[site / "index.html"].links


def test_links_to_files_lead_to_what_stands_for_them():
    text = "[a](../fednb/methods/augmentations/fedfa.py) [b](../notebooks/x/y.ipynb) "
    text += "[c](../../docs/data.md#layout) [d](../z.toml)"
    assert sources.linked(text, {"x/y"}) == (
        "[a](/methods/fedfa.md) [b](/notebooks/x/y.ipynb) [c](/docs/data.md#layout) d (`z.toml`)"
    )
    assert sources.linked("[b](../x/y.ipynb)", {"x/y"}) == "[b](/notebooks/x/y.ipynb)"
    assert sources.linked("[b](../notebooks/x/y.ipynb)", ()) == "b (`notebooks/x/y.ipynb`)"
    assert sources.linked("[e](other.md) [f](https://x.org/y)", ()) == "[e](other.md) [f](https://x.org/y)"


def words(page: Path) -> str:
    return " ".join(re.sub("<[^>]+>", " ", page.read_text()).split())


def test_a_papers_page_counts_as_the_scoreboard_does(site):
    page = site / "papers/fedrdn.html"
    assert "2 claims. At the paper’s setting: none. At a smaller one: 1 reproduced. Not tested: 1 not run." in words(
        page
    )
    row = page.read_text().partition("<td><p>all</p></td>")[2].partition("</tr>")[0]
    told = dict(zip(paper_page.COUNTS, map(int, re.findall(r"<p>(\d+)</p>", row)), strict=True))
    assert told == dict(zip(paper_page.COUNTS, (2, 0, 1, 0, 0, 1, 0), strict=True))
    assert "size 128 (paper: 256)" in words(page) and "not run: 1 (PACS 1)" in words(page)
    assert (site / "_images/fedrdn.svg").exists() and "../board.html#paper=fedrdn" in Page(page).links
    assert "papers/fedrdn.html" in Page(site / "index.html").links


def test_a_claim_is_counted_once_whatever_became_of_it_on_either_board():
    rows = [
        ("both", "reproduced", "as printed"),
        ("both", "above", "small"),
        ("one", "not told", "as printed"),
        ("one", "not testable", "small"),
        ("none", "one seed", "as printed"),
        ("none", "not testable", "small"),
        ("gated", "not testable", "small"),
        ("waiting", "not run", ""),
    ]
    claims = pandas.DataFrame(rows, columns=["claim", "verdict", "setting"])
    claims = claims.assign(of="fedrdn", table="table1", federation="pacs", effect=claims["claim"])
    told = dict(zip(paper_page.COUNTS, paper_page.counts(claims), strict=True))
    assert told == dict(zip(paper_page.COUNTS, (5, 2, 1, 1, 1, 1, 1), strict=True))
    board = by_paper(claims).loc["FedRDN"]
    assert [told["claims"], told["on both boards"]] == [board["claims"], board["on both boards"]]
    assert told["as printed"] + told["small"] == board[list(TESTED)].sum()
    assert told["not testable"] + told["not run"] + told["no verdict"] == board["not tested"] == 3
    assert "Not tested: 1 not testable, 1 one seed, 1 not run." in sources.outcome(claims)


def test_a_papers_page_has_its_settings_and_its_runs_or_says_that_there_are_none(site):
    for paper in papers.names():
        told, page = papers.settings(paper), words(site / f"papers/{paper}.html")
        assert f"{len(told['not_printed'])} settings that decide a run are not printed" in page
        assert f"Printed numbers that contradict others of the paper: {len(papers.inconsistencies(paper))}" in page
        ran = "4 recorded runs stand behind its notebooks" if paper == "fedrdn" else "No run of this paper is recorded."
        assert ran in page
        assert ("No claim is tested yet." in page) == (paper not in ("fedfa", "fedrdn"))


@pytest.mark.parametrize("paper", papers.names())
def test_what_cannot_be_computed_of_a_paper_is_short_and_has_three_parts(paper):
    lines = papers.report(paper).splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings == ["## What was easy", "## What was difficult", "## What we would ask the authors"]
    assert len(lines) <= 25 and all(lines.index(one) < len(lines) - 2 for one in headings)
    asked = [line for line in lines[lines.index(headings[2]) :] if line.startswith("- ")]
    assert asked and all(re.match(r"- (Tables?|Sec\.|Eq\.|Fig\.) \d", line) for line in asked)


def test_nothing_is_fetched_from_elsewhere(site, pages):
    assert not [load for page in pages.values() for load in page.loads if ELSEWHERE.match(load)]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert styles and not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", styles)


def test_every_picture_says_what_it_shows(pages):
    images = [image for page in pages.values() for image in page.images]
    assert len(images) > 20 and all(len(image.get("alt", "")) > 10 for image in images)


def test_a_data_sets_page_has_its_picture_and_its_source(site):
    page = (site / "datasets/shifted_digits.html").read_text()
    assert 'alt="The first images of each site of shifted_digits' in page and "classification" in page
    assert (site / "_images/shifted_digits.png").read_bytes() == PICTURE
    far = (site / "datasets/office_caltech10.html").read_text()
    assert "office_caltech_10/&lt;domain&gt;/" in far and "No picture: the images were not at hand" in far
    assert "No picture" not in page
    assert "../notebooks/fedrdn/made.html" in (site / "data/bioid.html").read_text()
    assert "&lt;train|test&gt;" in (site / "datasets/cifar10.html").read_text().partition("No picture")[0]


def test_pictures_of_the_data_sets_at_hand_are_drawn_and_kept(tmp_path, monkeypatch):
    def load(name):
        if name == "pacs":
            raise DataError("damaged")
        loaded.append(name)
        return real(name="shifted_strokes")

    loaded, real, there = [], datasets.load, ["digits", "pacs", "shifted_digits"]
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "images"))
    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setattr(datasets, "available", lambda name: None if name in there else "not there")
    made = folder._pictures(tmp_path / "report")
    assert sorted(made) == loaded == ["digits", "shifted_digits"] and made["digits"].startswith(b"\x89PNG")
    assert folder._pictures(tmp_path / "report") == made and len(loaded) == 2
    (tmp_path / "images").mkdir()
    (tmp_path / "images/one.png").write_bytes(b"another")
    there.remove("digits")
    assert list(folder._pictures(tmp_path / "report")) == ["shifted_digits"] and len(loaded) == 3


def test_formulas_are_drawn_without_a_script(site):
    page = (site / "methods/fedfa.html").read_text()
    assert page.count("<math") >= 2 and r"\frac" not in page.partition("The file fedfa.py")[0]
    assert formulas.mathml(r"x \tag{3}", block=True).endswith('<span class="tag">(3)</span>')
    assert "<mfrac" in formulas.mathml(r"\frac12")
    with pytest.raises(ValueError, match="no formula"):
        formulas.mathml(r"\frac{1}")


def test_a_notebooks_page_has_its_paper_its_methods_and_its_tables_as_files(site):
    page = (site / "notebooks/fedrdn/made.html").read_text()
    assert (
        f"https://arxiv.org/abs/{papers.settings('fedrdn')['arxiv']}" in page
        and r"as told of $\frac$, *a* # &lt;b&gt;" in page
    )
    assert "../../methods/fedbn.html" in page and "../../reference/doors.html" in page
    assert "../../papers/fedrdn.html" in page
    assert "../../methods/fedprox.html" not in page  # named in its code, and not run
    assert page.index("before  1") < page.index("<p>ran</p>") < page.index("after  2")
    assert (
        "jupyter lab notebooks/fedrdn/made.ipynb" in re.sub("<[^>]+>", "", page)
        and "<p>ran</p>" in page
        and "far" not in page
    )
    assert page.count("Claims.") == 1 and "✓\xa0reproduced</span> 1 · " in page.replace("&nbsp;", "\xa0")
    assert page.count("tag_prose") == 1
    assert "<li>Images of &lt;a&gt; are copies.</li>" in page
    offered = {path.name: path.read_text() for path in (site / "_downloads").rglob("made*")}
    assert offered["made-1.csv"] == JUDGED.csv() and r"\toprule" in offered["made-1.tex"] and "made.ipynb" in offered


def test_a_row_of_a_table_leads_to_its_runs_and_to_no_others(site):
    page = (site / "notebooks/fedrdn/made.html").read_text()
    links = dict(re.findall(r'<a href="#(runs-\d+)">(.*?)</a>', page))
    assert links == {"runs-1": "&lt;FedBN&gt;, 2 seeds", "runs-2": "FedBN &amp; co"}  # of "gone" there is no file
    listed = page.partition("Its 4 recorded runs</summary>")[2].partition("</details>")[0]
    lists = dict(zip(re.findall("<b>(.*?)</b>", listed), re.findall("<ul>(.*?)</ul>", listed), strict=True))
    expected = {links["runs-1"]: FILES[:2], links["runs-2"]: FILES[1:3], "Others": FILES[3:]}
    assert list(lists) == list(expected)
    for label, files in expected.items():
        found = re.findall(r'<a href="../../records/(.*?)">', lists[label])
        assert found == [f"pacs/{file.name}" for file in files]
    for file in FILES:
        assert (site / "records/pacs" / file.name).read_bytes() == file.read_bytes()
    record = json.loads(FILES[3].read_text())
    made, rounds = record["origin"], record["recipe"]["rounds"]
    on = f" on {made['processor']}" if "processor" in made else ""
    assert lists["Others"].startswith(
        f"<li>PACS, seed 0, {rounds} rounds, code {made['code']}, cpu{on}, {made['seconds']:.0f} s: <a "
    )


def test_records_are_those_of_the_rows_of_any_study(tmp_path, monkeypatch):
    for name in ("pacs/fedbn_s0_abcdef.json", "pacs/fedbn_s0_abc000.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path))
    table = Table(ROWS, ("Runs.",), ROWS, records={"gone": ["abcdef012345", KEYS[0]]})
    assert set(folder._behind({"cells": [cell("table", displayed(table))]})) == {
        tmp_path / "pacs/fedbn_s0_abcdef.json",
        FILES[0],
    }


def test_curves_are_offered_as_numbers_and_their_scripts_loaded_once_and_where_they_are(site, pages):
    pytest.importorskip("vl_convert")
    loading = [path for path, page in pages.items() if any("vega.js" in load for load in page.loads)]
    drawn = [path for path in pages if 'type="application/json" class="curves"' in path.read_text()]
    assert loading == drawn and site / "notebooks/fedrdn/made.html" in drawn
    page = pages[site / "notebooks/fedrdn/made.html"]
    assert len([load for load in page.loads if "_static/curves.js" in load]) == 1 and len(page.images) == 2
    (numbers,) = (path for path in (site / "_downloads").rglob("made-curves-1.csv"))
    assert numbers.read_text() == CONVERGENCE._repr_mimebundle_()[pointer.MIME]["data"]["values"]
    assert numbers.read_text().startswith('method,round,value,lowest,highest\n"FedAvg, 2 seeds",1,')


def test_without_vega_a_page_has_the_still_figure_alone(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pointer.library.cache_clear()
    made = notebook_page.page(Entry("fedrdn/made", {}, MADE, None), [], (), CLAIMS[:0])
    pointer.library.cache_clear()
    shown = json.loads(made["notebooks/fedrdn/made.ipynb"])
    assert "static/vega.js" not in made and "<script" not in "".join(
        cell["source"] for cell in shown["cells"] if cell["cell_type"] == "markdown"
    )
    assert "notebooks/fedrdn/made-curves-1.csv" in made
    assert not any(
        pointer.MIME in output.get("data", {}) for each in shown["cells"] for output in each.get("outputs", ())
    )


def test_methods_are_those_of_the_runs_and_not_the_words_of_the_code():
    """Office-Caltech-10's split is called "fedbn"; FedAvg is a recipe's default, which no code names."""
    (book_of_runs,) = (each for each in notebooks.found() if each.name == "fedrdn/fig3_tsne")
    ran, records = folder._runs(book_of_runs)
    assert ran == {"fedavg", "fedrdn"} and all(path.name.startswith("fedavg") for path in records)
    (without,) = (each for each in notebooks.found() if each.name == "distrans/fig2_toy_offsets")
    assert folder._runs(without) == (None, ())


def test_the_first_page_says_what_was_found_and_leads_on(site):
    page = (site / "index.html").read_text()
    assert "Of 3 claims of 2 papers, 1 could be tested at the paper’s own setting: 1 opposite." in page
    assert "runs: 7 &lt;recorded&gt;" in page and "<h1># $" not in page and r"# $\frac$</pre>" in page
    assert 'aria-label="FedRDN: 1 reproduced, 1 not run"' in page and 'href="board.html#paper=fedrdn"' in page
    told = page.partition("<strong>FedRDN</strong>, 2 claims. ")[2]
    assert told.startswith("At the paper’s setting: ") and "At a smaller one: " in told
    assert "Failed: fedrdn/made." in page and len(Page(site / "index.html").images) == 3
    doors = ("board.html", "docs/install.html", "docs/writing.html", "notebooks/together/quickstart.html")
    assert set(doors) <= set(Page(site / "index.html").links)
    listed = (site / "notebooks" / "index.html").read_text()
    assert "Not executed." in listed and "Failed." in listed and "the paper claims" in listed


def test_the_scoreboard_has_every_claim_and_offers_its_numbers(site):
    page = (site / "board.html").read_text()
    row = re.search(r"<tr [^>]*>(?:(?!</tr>).)*A is 2.0 points above B.*?</tr>", page, re.DOTALL)[0]
    assert 'data-paper="fedrdn" data-data="pacs" data-board="small" data-verdict="reproduced"' in row
    assert ">+2.0<" in row and ">+1.5<" in row and "✓&nbsp;reproduced" in row and "notebooks/fedrdn/made.html" in row
    assert 'aria-label="the paper +2.0, ours +1.5, +0.5 to +2.5, simultaneous +0.1 to +2.9"' in row
    assert "</span><br><small>best validation: not told</small></td>" in row
    assert (
        '<option value="bioid">BioID</option><option value="pacs">PACS</option>' in page
        and "<summary>Not tested: 1</summary>" in page
    )
    files = [unquote(link) for link in Page(site / "board.html").links if link.endswith((".csv", ".tex"))]
    numbers, latex = ((site / file).read_text() for file in files)
    assert numbers.startswith("of,claim,") and latex.startswith(r"\begin{tabular}")


def test_the_scoreboard_has_the_claims_on_orders_and_curves(site):
    page = (site / "board.html").read_text()
    row = re.search(r"<tr><td[^>]*>A &gt; B at x 1, 2.*?</tr>", page)[0]
    assert "✕&nbsp;otherwise than in print<" in row and "1 of them the other way" in row
    assert "fedrdn/made.html" in row
    assert "href" not in re.search(r"<tr><td[^>]*>A falls over x.*?</tr>", page)[0] and "Not told: in between." in page


def test_a_claim_without_a_run_has_no_picture_and_one_without_a_page_no_link():
    rows = re.findall(r"<tr .*?</tr>", scoreboard.board(CLAIMS, {"fedrdn/made"}))
    far, silent = rows[0], rows[-1]
    assert "<svg" not in silent and ">–&nbsp;not run<" in silent and 'href="notebooks/fedrdn/made.html"' in silent
    assert "href" not in far and ">fedfa/<wbr>nowhere</td>" in far


def test_no_dot_lies_off_the_axis_and_an_interval_that_goes_on_ends_in_an_arrow():
    shown = scoreboard.board(CLAIMS, ())
    rows = re.findall(r"<tr .*?</tr>", shown)
    edge = scoreboard.WIDTH * 0.04  # ours of -40 sets the axis
    assert f'<circle cx="{edge:.1f}"' in rows[0] and f"M{edge:.1f} 6.0l-5.0 4l5.0 4z" in rows[0]
    assert "l5.0 4" not in rows[1] and ">+50<" not in shown and ">-20<" in shown and ">0<" in shown


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium or playwright's own, driven by playwright; skipped where one of the two is not there."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: apt-get install chromium, or python -m playwright install chromium: {error}")
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test where it logs an error or asks for something from elsewhere."""
    page, wrong = browser.new_page(viewport={"width": 1280, "height": 900}), []
    page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda asked: wrong.append(asked.url) if not asked.url.startswith(("file:", "data:", "about:")) else None,
    )
    yield page
    page.close()
    assert not wrong


def claims_shown(page) -> list[str]:
    rows = page.locator("table.scoreboard:has(button) tbody tr:not([hidden]) td:first-child")
    return [text.partition(" is ")[0] for text in rows.all_text_contents()]


def test_in_a_browser_a_filter_and_an_order_stay_in_the_address(site, page):
    page.goto(f"{(site / 'index.html').as_uri()}")
    with page.expect_navigation():
        page.locator('a[href="board.html#paper=fedrdn"]').click()
    assert page.url.endswith("board.html#paper=fedrdn") and claims_shown(page) == ["A", "A"]
    page.get_by_label("verdict").select_option("not run")
    assert page.url.endswith("#paper=fedrdn&verdict=not+run") and page.get_by_role("status").inner_text() == "1 rows"
    page.goto("about:blank")
    page.goto(f"{(site / 'board.html').as_uri()}#sort=3-")
    assert claims_shown(page)[:2] == ["A", "D"]
    head = page.get_by_role("button", name="printed").first
    head.click()
    assert claims_shown(page)[:2] == ["D", "A"] and page.url.endswith("#sort=2")
    page.reload()
    assert claims_shown(page)[:2] == ["D", "A"]
    head.click()
    assert claims_shown(page)[:2] == ["A", "D"] and page.url.endswith("#sort=2-")


def test_on_paper_the_scoreboard_is_its_tested_claims_without_what_one_clicks(site, page):
    page.goto((site / "board.html").as_uri())
    shown = {"table.scoreboard >> nth=0": True, ".filters": False, ".bd-sidebar-primary": False, "details": False}
    assert all(page.locator(each).first.is_visible() for each in (".filters", "details"))
    page.emulate_media(media="print")
    assert {each: page.locator(each).first.is_visible() for each in shown} == shown


def test_in_a_browser_a_rows_link_opens_the_list_of_runs(site, page):
    page.goto((site / "notebooks/fedrdn/made.html").as_uri())
    runs = page.locator("#runs-2")
    assert not runs.is_visible()
    page.get_by_role("link", name="FedBN & co").click()
    runs.wait_for()
    assert page.url.endswith("#runs-2")


def test_in_a_browser_a_small_screen_has_cards_and_no_page_is_wider_than_it(site, page):
    page.set_viewport_size({"width": 400, "height": 800})
    for name in (
        "index.html",
        "board.html",
        "notebooks/index.html",
        "notebooks/fedrdn/made.html",
        "papers/fedrdn.html",
    ):
        page.goto((site / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.goto((site / "board.html").as_uri())
    row = page.locator("table.scoreboard tbody tr").first
    assert row.evaluate("row => getComputedStyle(row).display") == "block"
    assert row.locator("td").nth(1).evaluate("cell => getComputedStyle(cell, '::before').content") == '"verdict: "'


def test_in_a_browser_curves_tell_their_points_and_a_click_in_the_legend_fades_the_others(site, page):
    pytest.importorskip("vl_convert")
    page.goto((site / "notebooks/fedrdn/made.html").as_uri())
    drawing, stills = page.locator(".curves:has(svg)"), page.locator(".cell_output img")
    drawing.wait_for()
    assert drawing.get_attribute("aria-label") == stills.nth(1).get_attribute("alt") == "figure of fedrdn/made"
    assert [stills.nth(number).is_visible() for number in (0, 1)] == [True, False]
    drawing.scroll_into_view_if_needed()
    area = drawing.locator("path.background").first.bounding_box()
    page.mouse.move(area["x"] + area["width"] - 2, area["y"] + 2)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    mean = f"{mean_accuracy(ROUNDS[2]):.2f}"
    cells = tooltip.locator("td").all_text_contents()
    assert dict(zip(cells[::2], cells[1::2], strict=True)) == {
        "method": "FedAvg, 2 seeds",
        "round": "3",
        "value": mean,
        "lowest": mean,
        "highest": mean,
    }
    lines = drawing.locator(".mark-line path")
    opacities = "lines => lines.map((line) => Number(getComputedStyle(line).opacity))"
    assert lines.evaluate_all(opacities) == [1, 1]
    drawing.get_by_text("FedAvg + FedRDN, 1 seed").click()
    page.mouse.move(area["x"] + area["width"] - 2, area["y"] + 2)
    tooltip.get_by_text("FedAvg + FedRDN, 1 seed").wait_for()  # what is faded is not told
    assert lines.evaluate_all(opacities) == [0.12, 1]
    drawing.get_by_text("FedAvg + FedRDN, 1 seed").click()
    page.mouse.move(area["x"] + area["width"] - 2, area["y"] + 2)
    tooltip.get_by_text("FedAvg, 2 seeds").wait_for()
    assert lines.evaluate_all(opacities) == [1, 1]
    page.emulate_media(media="print")
    assert stills.nth(1).is_visible() and not drawing.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_a_browser_verdicts_can_be_read_on_either_ground(site, page, theme):
    """WCAG's contrast of at least 4.5 for each verdict."""
    page.emulate_media(color_scheme=theme)
    page.goto((site / "board.html").as_uri())
    script = """() => [...document.querySelectorAll("td .verdict")].map((one) => {
        const part = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        let ground = one;
        const behind = () => getComputedStyle(ground ?? document.body).backgroundColor;
        while (ground && /rgba\\(.*, 0\\)/.test(behind())) ground = ground.parentElement;
        return [part(getComputedStyle(one).color), part(behind())];
    })"""
    for pair in page.evaluate(script):
        darker, lighter = sorted(luminance(colour) for colour in pair)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def luminance(colour: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (own / 255 for own in colour)]
    return sum(weight * own for weight, own in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_verdict_has_a_sign():
    assert set(VERDICTS) >= {*TESTED, *UNTESTED} and len({own.sign for own in VERDICTS.values()}) == len(VERDICTS) - 2


def test_the_site_takes_the_place_of_the_old_one_and_the_index_forwards_to_it(made, tmp_path, monkeypatch):
    report = tmp_path / "report"
    built = []
    monkeypatch.setattr(book, "pages", lambda docs, entries, *_, **of_first: entries)
    monkeypatch.setattr(judging, "claims", lambda: CLAIMS)
    monkeypatch.setattr(judging, "curves", lambda: CURVES)
    monkeypatch.setattr(book, "TOOLS", ("json",))
    monkeypatch.setattr(book, "build", lambda place, entries: built.append((place, len(entries))))
    index = folder.write_page(report, [made("a/b", ["1"])], [], {})
    assert built == [(report / "site", 1)] and 'url=site/index.html"' in index.read_text()


def test_without_sphinx_the_page_has_links_and_says_what_to_install(made, tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "claims", lambda: CLAIMS)
    monkeypatch.setattr(judging, "curves", lambda: CURVES)
    report = tmp_path / "report"
    ran, silent = made("fedrdn/made", ["1"]), made("fedrdn/<b>", ["1"], about={"claim": "A < B"})
    copy = folder.executed(report, ran)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(ran.path.read_bytes())
    page = folder.write_page(report, [ran, silent], ["runs: <7>"], {}).read_text()
    assert "3 claims of 2 papers compare two runs." in page and "<pre>runs: &lt;7&gt;</pre>" in page
    assert '<li><a href="notebooks/fedrdn/made.ipynb">fedrdn/made</a> <strong>failed: its last execution' in page
    assert "<li>fedrdn/&lt;b&gt; <em>Not executed.</em> A &lt; B</li>" in page
    for told in (page, folder.writing()):
        assert "no tool of this name cannot be found; pip install" in told and ".[site]" in told
    monkeypatch.setattr(book, "TOOLS", ("json",))
    assert folder.writing() == "writing the report."


def test_what_sphinx_cannot_do_is_told_and_leaves_the_old_site(tmp_path, monkeypatch):
    pytest.importorskip("sphinx")
    old = tmp_path / "site/index.html"
    old.parent.mkdir()
    old.write_text("old")
    monkeypatch.setitem(book.SETTINGS, "html_theme", "no_theme")
    with pytest.raises(NotebookError, match="Sphinx made no site: .*no_theme"):
        book.build(tmp_path / "site", {"index.md": "# x\n"})
    assert old.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["site"]
