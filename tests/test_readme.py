"""The generated parts of README and docs/, and the numbers that README quotes."""

import re
from types import SimpleNamespace

import gallery
import pytest
import readme
import recording

from fednb.commands.notebooks import checkout, select
from fednb.errors import NotebookError
from fednb.records.record import read
from fednb.report import judging


def test_generated_tables_are_up_to_date():
    claims, _ = judging.read_board(checkout() / "results")
    texts = {page: (checkout() / page).read_text() for page in readme.PAGES}
    again = {page: readme.filled(page, text, claims) for page, text in texts.items()}
    assert again == texts, "write them again: fednb report --readme"


def test_the_gallery_is_up_to_date():
    """Every notebook is in one track, with its outcome; each thumbnail is of a notebook that is there."""
    every, page = select(), (checkout() / "notebooks" / "README.md").read_text()
    assert gallery.page(every) == page, "write it again: fednb report --readme"
    assert [page.count(f"[**{notebook.name}**]") for notebook in every] == [1] * len(every)
    marked = {each.name for each in every if gallery.outcome_of(each).startswith(("OTHER DATA: ", "STAND-IN: "))}
    assert {"fedrdn/table2_prostate", "fedfa/table2_mini_prostate"} <= marked and "fedrdn/table1_main" not in marked
    shown = {path.relative_to(checkout() / "figures/gallery") for path in checkout().glob("figures/gallery/**/*.png")}
    assert {path.with_suffix("").as_posix() for path in shown} <= {notebook.name for notebook in every}


@pytest.mark.parametrize(
    ("strip", "outcome"),
    [
        ("ran at  Digits\nfound   below A: B -1\n        above A: C +1", "below A: B -1"),
        ("found  At one:\n       A +1\n       B +2", "At one: A +1"),
        ("ran at  Shifted digits, 1 rounds\nfound   above", "embedded digits: above"),
        ("ran at  Shifted digits, 1 rounds\n        PACS\nfound   above", "above"),
        ("STAND-IN: nothing here speaks of the paper.\nran at  Shifted digits, 1\nfound   x", "STAND-IN: x"),
    ],
)
def test_an_outcome_is_the_first_line_found_and_says_on_which_data(strip, outcome):
    cell = {"outputs": [{"data": {"text/plain": strip}}]}
    told = gallery.outcome_of(SimpleNamespace(content={"cells": [cell]}))
    assert " ".join(told.split()) == outcome


def test_recording_takes_the_generated_pages_for_its_own():
    tables = {f"results/{name}" for name in ("README.md", *judging.BOARDS)} | {"notebooks/README.md"}
    assert {*readme.PAGES} | tables == {*recording.GENERATED}


def test_readme_is_short():
    """What is longer has a page in docs/."""
    assert len((checkout() / "README.md").read_bytes()) <= 6_000


def test_the_page_of_recorded_runs_is_up_to_date():
    folder = checkout() / "results"
    text = (folder / "README.md").read_text()
    assert readme.recorded(folder) == text, "write it again: fednb report --readme"
    counts = [int(row.split(" | ")[5]) for row in text.splitlines() if row.startswith("| ") and "federation" not in row]
    assert sum(counts) == len(list(folder.rglob("*.json")))


def test_the_page_of_recorded_runs_reads_a_record_without_the_package(monkeypatch):
    monkeypatch.chdir(checkout())
    (code,) = re.findall(r"```python\n(.*?)```", (checkout() / "results" / "README.md").read_text(), re.DOTALL)
    found = {}
    exec(code, found)
    made = read(found["path"])
    images = made.images["test"]
    assert found["accuracy"].tolist() == [
        [100 * right / count for right, count in zip(values["test"], images, strict=True)] for values in made.rounds
    ]
    assert list(found["scores"]["rounds"]) == list(made.scores()) and "earlier" in found["rounds"]


def test_a_page_without_markers_is_refused(monkeypatch):
    monkeypatch.setitem(readme.PAGES, "README.md", {"one": lambda _: "1"})
    begin, end = readme.BEGIN.format("one"), readme.END.format("one")
    for text in ("# fednb\n", begin, f"{end}\n{begin}"):
        with pytest.raises(NotebookError, match="README.md has no two lines"):
            readme.filled("README.md", text, None)
    assert readme.filled("README.md", f"a\n{begin}\nold\n{end}\nb", None) == f"a\n{begin}\n1\n{end}\nb"
