"""The generated part of README, and the numbers that it quotes."""

import pytest

from fednb import papers
from fednb.command import readme
from fednb.command.notebooks import checkout
from fednb.errors import NotebookError
from fednb.recipe import Recipe
from fednb.report.selection import selected
from fednb.runs.store import Store
from fednb.study import Study


def test_readme_is_up_to_date():
    text = (checkout() / "README.md").read_text()
    assert readme.filled(text) == text, "write it again: fednb report --readme"


def test_readme_without_markers_is_refused():
    with pytest.raises(NotebookError, match="README.md has no two lines"):
        readme.filled("# fednb\n")


def test_readme_quotes_the_recorded_and_the_printed_numbers():
    base = Recipe(**papers.recipe("fedrdn", "paper"))
    found = Study(base.vary(augmentations=[[], ["fedrdn"]]), store=Store(checkout() / "results")).recorded()
    ours = selected(found.frame).groupby("run")["accuracy"].mean()
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    printed = printed[(printed["algorithm"] == "fedavg") & (printed["site"] == "average")]
    printed = printed.set_index("augmentation")["value"]
    text = " ".join((checkout() / "README.md").read_text().split())
    assert f"FedAvg reaches {ours['fedavg']:.1f} % and FedAvg + FedRDN {ours['fedavg+fedrdn']:.1f} %" in text
    assert f"the paper prints {printed['']:.1f} and {printed['fedrdn']:.1f}" in text
