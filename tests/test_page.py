"""A notebook's page: it checks parameters, answers first from what was run, and says at the end how it was made."""

import pandas
import pytest
from made_results import mean_accuracy, results, run, seeds_of

import fednb
from fednb.commands import notebooks
from fednb.errors import NotebookError
from fednb.report import effects
from fednb.report.page import Lines, _in_sentences, _of_claims

FEDAVG, FEDRDN = (102, 124, 17, 33), (123, 142, 24, 45)
SPACE = {"PROFILE": "quick", "DATA": "", "DEVICE": "cpu", "SEEDS": [0, 1, 2], "JOBS": 1}


@pytest.fixture
def page(monkeypatch):
    """The page of FedRDN's Table 1, in its notebook's folder, where a kernel starts."""
    monkeypatch.chdir(notebooks.checkout() / "notebooks" / "fedrdn")
    monkeypatch.setenv("FEDNB_TRAIN", "0")
    return fednb.notebook("fedrdn/table1_main", SPACE.copy())


@pytest.fixture
def made():
    """FedAvg and FedRDN in three seeds each, at a smaller setting, with counts of their images."""
    return results(*seeds_of("fedavg", FEDAVG), *seeds_of("fedavg+fedrdn", FEDRDN))


def test_a_parameter_of_another_type_is_refused():
    with pytest.raises(NotebookError, match="SEEDS is 0, of type int; expected"):
        fednb.notebook("fedrdn/table1_main", {"SEEDS": 0, "__annotations__": {"SEEDS": list[int]}})


def test_lines_are_aligned_text_and_a_table():
    lines = Lines({"claim": ["A < B"], "found": ["one", "two"], "data": [""]}, mark="STAND-IN")
    assert repr(lines).splitlines() == [
        "STAND-IN: nothing here speaks of the paper.",
        "claim  A < B",
        "found  one",
        "       two",
    ]
    assert "A &lt; B" in lines._repr_html_() and "one<br>two" in lines._repr_html_() and "data" not in repr(lines)


def test_the_answer_says_what_was_found_of_the_papers_claims(page, made):
    page._kept(made)
    found = repr(page.answer())
    difference = mean_accuracy(FEDRDN) - mean_accuracy(FEDAVG)
    assert found.startswith(
        f"claim     {page.about['claim']}\nran at    Office-Caltech-10, 128 pixels, 1 rounds, seed 0"
    )
    assert f"at a smaller setting, FedRDN - FedAvg {difference:+.1f} points (95 %: " in found
    assert "printed +7.3: above\n" in found and f"of {len(page.claims[0])} claims: 1 above, " in found
    assert "how sure  508 test images, 3 seeds; " in found and "0.0 for 6 recorded runs, on cpu" in found


def told(*verdicts, **columns):
    """Lines on claims A, B, ... of the paper's table, as the answer and as the sentences have them."""
    numbers = {"ours": 2.0, "low": 1.0, "high": 3.0, "together_low": 1.0, "together_high": 3.0, "paper": 2.5}
    frame = pandas.DataFrame({"verdict": verdicts, "effect": list("ABC")[: len(verdicts)]})
    more = {"why": "", "marks": "", "setting": "small", "board": "small", "primary": False, "seeds": 3, "seeds_run": 3}
    frame = frame.assign(**numbers | more | columns)
    return _of_claims(frame), _in_sentences(frame)


def test_the_primary_claim_stands_for_the_outcome_else_the_papers_first():
    points = "+2.0 points (95 %: +1.0 to +3.0), printed +2.5"
    shut = told("not testable", "above", why=["why", ""])
    assert shut[0] == [
        f"at a smaller setting, A {points}: not testable (why)",
        f"at a smaller setting, B {points}: above",
        "of 2 claims: 1 above, 1 not testable here",
    ]
    assert shut[1][-1] == "Not testable here, 1 of 2: A (because why)."
    first, _, _ = told("above", "not run", "other sites", primary=[False, True, False], ours=[2.0, None, None])[0]
    assert first == "at a smaller setting, B: not run, printed +2.5"
    both = told("above", "above", primary=[False, True], marks="still rising", together_low=-1.0, seeds=2)[0]
    decided = "+2.0 points (simultaneous, which decides: -1.0 to +3.0; 95 %: +1.0 to +3.0), printed +2.5, 2 of 3 seeds"
    assert both == [f"at a smaller setting, B {decided}: above (still rising)", "of 2 claims: 2 above"]
    assert told("above") == (
        [f"at a smaller setting, A {points}: above"],
        [f"At a smaller setting, A is {points}: above."],
    )


def test_effects_and_texts_take_the_place_of_claims(page, made):
    page._kept(made)
    difference = mean_accuracy(FEDRDN) - mean_accuracy(FEDAVG)
    assert f"found     above FedAvg: FedRDN {difference:+.1f}\n" in repr(page.answer(effects(made, "fedavg")))
    assert "found     as it is\n" in repr(page.answer(effects(made, "fedavg"), found="as it is"))


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([FEDAVG], "too few rounds to say whether it converged"),
        ([FEDAVG] * 4, "1 seed; converged"),
        ([FEDRDN] * 3 + [FEDAVG], "not converged, points in the last quarter: FedAvg -"),
        ([FEDAVG] * 3 + [FEDRDN], "not converged, points in the last quarter: FedAvg +"),
    ],
)
def test_a_curve_that_rises_or_falls_at_its_end_has_not_converged(page, rounds, said):
    page._kept(results(run("fedavg", rounds)))
    assert said in repr(page.answer())


def test_a_run_that_has_not_converged_is_marked_among_effects_and_settings_are_told_apart(page):
    rising = results(run("fedavg", [FEDAVG] * 4), run("fedavg+fedrdn", [FEDAVG] * 3 + [FEDRDN]))
    page._kept(rising)
    assert "FedRDN +15.3 (still rising)" in repr(page.answer(effects(rising, "fedavg")))
    page._kept(results(run("fedavg", [FEDAVG])))
    found = repr(page.answer(found="it")).splitlines()
    assert [line[10:18] for line in found if "test images" in line] == ["4 rounds", "1 rounds"]


def test_results_are_kept_once_and_the_footer_names_settings_and_neighbours(page, made):
    page._kept(made), page._kept(made)
    footer = repr(page.footer())
    assert len(page.shown) == 1 and "fednb run --only fedrdn/table1_main --profile paper" in footer
    assert "Made by code abc, torch 2, device cpu." in footer and "next      table2_prostate" in footer


def test_runs_at_the_papers_setting_are_found_and_none_is_trained(page):
    recipes = page.base.vary(augmentations=[[], ["fedrdn"]], seed=[0])
    found = page.at_paper(recipes)
    settings = {(record.recipe["rounds"], record.recipe["federation"]["size"]) for record in found.records}
    assert settings == {(100, 256)} and {record.recipe["seed"] for record in found.records} >= {0, 1, 2}
    assert not page.at_paper(page.base.vary(learning_rate=[0.123])).records
