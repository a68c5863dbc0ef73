"""Runs side by side, without a printed table."""

import pandas
import pytest

from fednb.recipe import Recipe
from fednb.report import overview, words
from fednb.report.intervals import wilson
from fednb.runs.store import Record
from fednb.study import Results


def results(paper=None, **varied):
    recipes = Recipe(rounds=1).vary(**varied)
    images = {split: [20, 40] for split in ("train", "validation", "test")}

    def record(recipe):
        rounds = [{"round": 1, "loss": {}, "validation": [10, 10], "test": [15, 30], "up": {}, "down": {}}]
        origin = {"code": "x", "torch": "2", "device": "cpu"}
        return Record(recipe.full, recipe.key, ["a", "b"], images, {}, rounds, "0", [], origin)

    return Results({recipe: record(recipe) for recipe in recipes}, paper)


def test_a_row_for_each_setting_with_wilsons_interval():
    table = overview.runs_table(results(algorithm=["fedavg", "fedbn"]))
    assert list(table.cells.index) == ["FedAvg", "FedBN"]
    low, high = wilson(15, 20)[1:]
    assert table.cells.loc["FedBN", "a (20 images)"] == f"75.0 [{low:.1f}, {high:.1f}]"
    assert table.frame.query("client == 'average'")["value"].tolist() == pytest.approx([75.0, 75.0])


def test_seeds_are_one_row_and_are_counted():
    table = overview.runs_table(results(seed=[0, 1, 2]))
    assert len(table.cells) == 1
    assert "seeds per row: 3" in table.caption[0]


def test_an_option_of_the_data_that_varies_tells_rows_apart():
    sizes = [{"name": "shifted_digits", "size": size} for size in (32, 48)]
    table = overview.runs_table(results(federation=sizes))
    assert list(table.cells.index) == ["FedAvg, size 32", "FedAvg, size 48"]


def test_scores_of_masks_are_called_dice():
    table = overview.runs_table(results(federation=["retinal_vessels"], model=["unet"], algorithm=["fedavg", "fedbn"]))
    assert table.caption[0].startswith(
        "Test Dice in per cent with its 95 % interval (Wilson's, rather too wide for Dice)"
    )
    rules = overview.rules_table(results(federation=["retinal_vessels"], model=["unet"]))
    assert "Average test Dice in per cent under each selection rule." in rules.caption
    assert "best_test: round of the best average test Dice (it looks at the test images)." in rules.caption
    assert "rather too wide for Dice" in "".join(rules.caption) and "accuracy" not in "".join(rules.caption)


def test_scores_of_both_tasks_side_by_side_have_both_names():
    both = results(federation=["shifted_digits"]).found | results(federation=["retinal_vessels"], model=["unet"]).found
    assert words.measure(Results(both).frame) == "accuracy / Dice"
    assert words.measure(pandas.DataFrame({"federation": ["somebody's own"]})) == "accuracy"


def test_a_stand_in_is_said_first():
    table = overview.runs_table(results(paper="fedrdn"))
    assert table.loud and table.caption[0].startswith("STAND-IN")
    assert isinstance(table.frame, pandas.DataFrame)
