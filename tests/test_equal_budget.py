"""The same budget for every method: what is drawn, what is chosen, effects and ranks of made runs."""

from types import SimpleNamespace

import numpy
import pytest
from made_results import IMAGES, mean_accuracy, results, seeds_of
from pandas import DataFrame
from scipy.stats import norm, t
from small_runs import record

import budget
import budget_board
import budget_words
import fednb
from budget_figure import front
from choices import choices
from draws import interval, means, ranks
from fednb.errors import RecipeError
from fednb.records.record import Record
from fednb.study import Results

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


def test_ranks_and_their_intervals(made):
    """A method that has every image right that another has is first in each draw; two that are alike share a rank."""
    found, chosen = made
    rows = budget_board.rows_of(found, chosen)
    two = means(rows, found)
    assert two.loc[0].tolist() == pytest.approx([mean_accuracy(LOW), mean_accuracy(HIGH)])
    assert interval(ranks(two)).T.to_dict("list") == {"fedavg": [2, 2, 2], "fedbn": [1, 1, 1]}
    alike = means({"fedavg": rows["fedbn"], "b": rows["fedbn"], "fedbn": rows["fedavg"]}, found)
    assert interval(ranks(alike))["value"].tolist() == [1.5, 1.5, 3]
    said = budget_words.mean_ranks({"one": two, "other": alike})
    assert said == "mean rank over 2 federations: FedAvg 1.8 (1.8 to 1.8), FedBN 2.0 (2.0 to 2.0)"


def test_draws_hold_seeds_and_images():
    """Of seeds alone, with all images alike: as wide as Student's interval. Of images alone: two near methods change
    places, which they would not with a thousand times as many."""
    draws, values = numpy.random.default_rng(1), [0.2, 0.5, 0.9]

    def of_seed(rows):
        return {
            n: [numpy.full(k, values[rows["seed"].iloc[0]]) for k in IMAGES.values()] for n in rows["round"].unique()
        }

    def of_chance(rows):
        return {n: [draws.random(count) < 0.5 for count in IMAGES.values()] for n in rows["round"].unique()}

    for scores in (of_seed, of_chance):
        found = results(*seeds_of("fedavg", LOW), *seeds_of("fedbn", LOW), scores=scores)
        rows = fednb.report.selected(found.frame, "last")
        rows = {run: rows[rows["run"] == run] for run in ("fedavg", "fedbn")}
        both, images = (means(rows, found, seeds)[1:] for seeds in (True, False))
        if scores is of_seed:
            wide = t.ppf(0.975, 2) / norm.ppf(0.975) * 100 * numpy.std(values, ddof=1) / numpy.sqrt(3)
            assert both["fedavg"].std() == pytest.approx(wide, rel=0.05) and images["fedavg"].std() < 1e-9
        else:
            assert (images["fedavg"] < images["fedbn"]).mean() == pytest.approx(0.5, abs=0.47)


def scores(made, split="test"):
    """Of each image of two sites, the first of which are right."""
    counts = made.images["test"]
    return {
        own["round"]: [1.0 * (numpy.arange(n) < r) for n, r in zip(counts, own["test"], strict=True)]
        for own in made.rounds
    }


def test_the_boards_of_one_federation(monkeypatch):
    """Right answers of 5 and 10 images at two sites, one more in odd seeds, one fewer with the defaults. Local training
    has a row, but no rank and no part in the tests of others; a method that lacks a run has no row."""
    monkeypatch.setattr(Record, "scores", scores)
    monkeypatch.setattr(budget, "SITES", {"Shifted digits": ("a", "b")})
    right = {"single": 2, "fedavg": 1, "scaffold": 2, "fedbn": 3, "fedavg+own_statistics": 4}
    entrants, found = dict.fromkeys(right, {}), {}
    every = {run: budget.tries(BASE, run, {}) for run in right}
    tried = Results({recipe: record(recipe) for own in every.values() for recipe in own})
    for own in every.values():
        tried.found[own[2]].rounds[-1]["validation"][:] = [2, 3]
    chosen = budget.chosen(BASE, entrants, tried)
    assert chosen == {run: own[2] for run, own in every.items()}
    for kind, recipes in budget.runs("Shifted digits", BASE, chosen, [0, 1, 2], [0]).items():
        counts = {recipe: right[recipe.label] + recipe.seed % 2 - (kind == "default") for recipe in recipes}
        found[kind] = Results({recipe: record(recipe, right=count) for recipe, count in counts.items()})
    tuned, default, unseen = found.values()
    rows = budget_board.rows_of(tuned, chosen)
    board = budget_board.board(rows, tuned, unseen, chosen)
    places = {"fedavg+own_statistics": 1, "fedbn": 2, "scaffold": 3, "fedavg": 4}
    assert board["rank"].dropna().to_dict() == places and len(board) == 5
    gains = budget_board.over_defaults(rows, tuned, default, chosen, budget.defaults(BASE, chosen))
    assert [*gains.each["ours"], gains.mean] == pytest.approx([15] * 5) and gains.low < 15 < gains.high
    assert budget_board.over_defaults(rows, tuned, tuned, chosen, chosen).each.empty
    against = budget_board.against(budget_board.REFERENCES, rows, tuned)
    assert against.equals(budget_board.against(budget_board.REFERENCES, budget_board.ranked(rows), tuned))
    over = budget_board.against(("single",), rows, tuned)
    assert "of 4 methods 0 are significantly above it, 0 below" in budget_words.local({"A": over}, {"A": board})[0]
    shown = budget_board.table("A", board, chosen, gains, tuned).cells.loc["Single (local training)"]
    assert [*shown[["rank (95 %)", "unseen site", "over its default"]]] == ["", "no model", ""]
    sure = choices(BASE, entrants, chosen, tried, tuned)
    assert sure.loc["fedbn"].tolist() == [25, 25, 0, True, 8] and "single" not in sure.index
    assert budget_words.cost([tried, *found.values()]).startswith("tries, choices, defaults and unseen sites: 68 runs")
    tuned.found[chosen["fedbn"].with_(seed=1)] = None
    rows = budget_board.rows_of(tuned, chosen)
    boards = {"A": budget_board.board(rows, tuned, unseen, chosen)}
    assert budget_words.missing(entrants, boards) == ["A: not on the board, as runs of them are missing: FedBN"]
    fewer = {"A": budget_board.against(budget_board.REFERENCES, rows, tuned)}
    assert budget_words.answer(fewer, {}, boards) == ["FedBN and FedAvg + own statistics are recorded on no federation"]


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
    means = {"moon": 7, "fedprox": 2, "fedbn": 3, "fedavg+own_statistics": 4, "single": 6, "scaffold": 5}
    board = DataFrame({"mean": means, "idle": dict.fromkeys(means, False) | {"scaffold": True}})
    first, best = budget_words.answer({"Digits": frame}, {"Digits": frame}, {"Digits": board})
    assert first.startswith(f"{who} of 2 others is significantly above both") and "(95 % bounds: up to +4.0)" in first
    assert first.endswith(f"above and below local training: MOON on Digits, {2 + (second == 'above')} and 0")
    board.loc["single", "mean"], board.loc["moon", "idle"] = 8, True
    first, best_active = budget_words.answer({"Digits": frame}, {}, {"Digits": board})
    assert first.startswith("none of 1 others is") and first.endswith("local training on Digits")
    assert best_active.startswith("Digits: the best other is FedProx, +0.5")
    assert best == "Digits: the best other is MOON, +1.0 (-1.0 to +4.0) over FedAvg + own statistics"
