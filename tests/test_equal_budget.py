"""The same budget for every method: what is drawn, what is chosen, effects and ranks of made runs."""

from types import SimpleNamespace

import numpy
import pytest
from made_results import IMAGES, mean_accuracy, results, seeds_of
from pandas import DataFrame
from small_runs import record

import budget
import budget_board
import budget_words
import fednb
from budget_figure import front
from fednb.errors import RecipeError
from fednb.study import Results
from ranks import drawn, intervals

BASE = budget.bases(2, ["Shifted digits"])["Shifted digits"]
LOW, HIGH = (96, 100, 16, 30), (120, 140, 20, 40)


@pytest.mark.parametrize("run", budget.METHODS)
def test_six_configurations_of_which_one_is_the_default_and_five_lie_each_in_its_fifth(run):
    ranges, _ = budget.METHODS[run]
    default, *drawn = budget.tries(BASE, run, ranges)
    assert default.label == run and default.learning_rate == 0.01 and {each.seed for each in drawn} == {100}
    assert len({each.key for each in (default, *drawn)}) == budget.TRIES
    for name, values in ({"learning_rate": budget.RATES} | ranges).items():
        own = [{**(each.full["augmentations"] or [each.full["algorithm"]])[-1], **each.full}[name] for each in drawn]
        if isinstance(values, list):
            assert {*own} == {*values}
        else:
            shares = numpy.log(numpy.array(own) / values[0]) / numpy.log(values[1] / values[0])
            assert numpy.sort(5 * shares) == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5], abs=0.52)  # of three digits


def test_a_method_joins_with_the_ranges_of_its_file(monkeypatch):
    mine = {"probability": (0.1, 1.0), "variant": ["paper"]}
    files = {("augmentations", "mine"): SimpleNamespace(RANGES=mine), ("algorithms", "plain"): SimpleNamespace()}
    monkeypatch.setattr(budget.registry, "file", lambda *place: files[place])
    assert budget.entrants("smoke", "fedavg+mine")["fedavg+mine"] == mine
    assert budget.entrants("smoke", "plain")["plain"] == {} and len(budget.entrants("quick", "")) == 20
    for mine["probability"] in (0.1, (1, 0.1), (0, 1), [], ("a", "b")):
        with pytest.raises(RecipeError, match="fedavg\\+mine joins with probability from .*; expected two numbers"):
            budget.entrants("quick", "fedavg+mine")


def test_the_choice_is_by_validation_and_needs_all_tries():
    entrants = budget.entrants("smoke", "")
    every = {run: budget.tries(BASE, run, ranges) for run, ranges in entrants.items()}
    found = {recipe: record(recipe) for own in every.values() for recipe in own}
    best = every["fedbn"][3]
    found[best].rounds[-1]["validation"][:] = [2, 3]
    assert budget.chosen(BASE, entrants, Results(found))["fedbn"] == best
    found[every["fedavg"][5]] = None
    assert "fedavg" not in budget.chosen(BASE, entrants, Results(found))
    both = {"fedbn": best, "fedproto": BASE.with_(algorithm="fedproto")}
    runs = budget.runs("Shifted digits", BASE, both, [0, 1], [0])
    assert [len(own) for own in runs.values()] == [4, 4, 4]
    assert {recipe.learning_rate for recipe in runs["unseen"]} == {best.learning_rate}
    assert budget.runs("Label-skewed CIFAR-10", BASE, both, [0], [0])["unseen"] == []


@pytest.fixture
def made():
    """Two methods at rates of their own, three seeds each, as a study returns them; what was chosen of each."""
    chosen = {"fedavg": BASE.with_(learning_rate=0.1), "fedbn": BASE.with_(algorithm="fedbn", learning_rate=0.002)}
    frames = []
    for (run, recipe), right in zip(chosen.items(), (LOW, HIGH), strict=True):
        for frame, own in zip(seeds_of(run, right), recipe.vary(seed=[0, 1, 2]), strict=True):
            frames.append((own, frame.assign(key=own.key, learning_rate=own.learning_rate)))
    found = results(*(frame for _, frame in frames))
    found.found = {own: next(r for r in found.records if r.key == own.key) for own, _ in frames}
    return found, chosen


def test_effects_between_methods_that_have_rates_of_their_own(made):
    found, chosen = made
    rows = budget_board.rows_of(found, chosen)
    table = budget_board.effects([("fedbn", "fedavg"), ("fedavg", "fedbn")], rows, rows, found)
    assert table["ours"].tolist() == pytest.approx([gain := mean_accuracy(HIGH) - mean_accuracy(LOW), -gain])
    assert table["direction"].tolist() == ["above", "below"] and (table["together_low"] < table["low"]).all()
    assert budget_board.over_defaults(found, found, chosen, chosen).empty


def test_ranks_and_their_intervals(made):
    """A method that has every image right that another has is first in each draw; two that are alike share a rank."""
    found, chosen = made
    rows = budget_board.rows_of(found, chosen)
    two = budget_board.drawn_ranks(found, chosen)
    assert intervals(two).T.to_dict("list") == {"fedavg": [2, 2, 2], "fedbn": [1, 1, 1]}
    alike = drawn({"fedavg": rows["fedbn"], "b": rows["fedbn"], "fedbn": rows["fedavg"]}, found)
    assert intervals(alike)["rank"].tolist() == [1.5, 1.5, 3]
    said = budget_words.mean_ranks({"one": two, "other": alike[["fedavg", "fedbn"]]})
    assert said == "mean rank over 2 federations: FedAvg 1.8 (1.8 to 1.8), FedBN 2.0 (2.0 to 2.0)"


def test_intervals_of_ranks_hold_images_and_seeds():
    """Of images alone: with a thousand times as many the ranks of two near methods would be certain."""
    draws = numpy.random.default_rng(1)

    def scores(rows):
        return {n: [draws.random(count) < 0.5 for count in IMAGES.values()] for n in rows["round"].unique()}

    found = results(*seeds_of("fedavg", LOW), *seeds_of("fedbn", LOW), scores=scores)
    rows = fednb.report.selected(found.frame, "last")
    near = drawn({run: rows[rows["run"] == run] for run in ("fedavg", "fedbn")}, found, seeds=False)
    assert intervals(near)[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]


def test_the_front_is_what_none_beats_for_less():
    board = DataFrame({"mean": [70, 80, 75, 80], "seconds": [1.0, 2.0, 3.0, 2.5]}, index=["a", "b", "c", "d"])
    assert [*front(board, "seconds").index] == ["a", "b"]


@pytest.mark.parametrize(("second", "who"), [("above", "MOON on Digits"), ("inconclusive", "none")])
def test_the_answer_names_who_is_above_both_references(second, who):
    rows = [
        ("moon", "fedbn", "above", 2.0),
        ("moon", "fedavg+own_statistics", second, 1.0),
        ("fedprox", "fedbn", "above", 3.0),
        ("fedprox", "fedavg+own_statistics", "inconclusive", 0.5),
    ]
    frame = DataFrame(rows, columns=["better", "worse", "direction", "ours"])
    frame[["together_low", "together_high"]] = -1.0, 4.0
    first, best = budget_words.answer({"Digits": frame})
    assert first.startswith(f"tuned alike, {who} of 2 others is significantly above both") and "to +4.0" in first
    assert best == "Digits: the best other is MOON, +1.0 (-1.0 to +4.0) over FedAvg + own statistics"
