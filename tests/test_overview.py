"""Runs side by side, without a printed table."""

import numpy
import pytest

from fednb.recipe import Recipe
from fednb.records.store import Record
from fednb.report import tables as overview
from fednb.report import wording
from fednb.report.intervals import wilson
from fednb.study import Results


def results(paper=None, **varied):
    recipes = Recipe(rounds=1).vary(**varied)
    images = {split: [20, 40] for split in ("train", "validation", "test")}

    def record(recipe):
        rounds = [{"round": 1, "loss": {}, "validation": [10, 10], "test": [15, 30], "up": {}, "down": {}}]
        origin = {"code": "x", "torch": "2", "device": "cpu"}
        return Record(recipe.full, recipe.key, ["a", "b"], images, {}, rounds, "0", [], origin)

    return Results({recipe: record(recipe) for recipe in recipes}, paper)


SIZES = [{"name": "shifted_digits", "size": size} for size in (32, 48)]


@pytest.mark.parametrize(
    ("varied", "rows"),
    [
        ({"algorithm": ["fedavg", "fedbn"]}, ["FedAvg", "FedBN"]),
        ({"seed": [0, 1, 2]}, ["FedAvg"]),
        ({"federation": SIZES}, ["FedAvg, size 32", "FedAvg, size 48"]),
        ({"federation": ["shifted_digits", "shifted_strokes"]}, ["FedAvg, Shifted digits", "FedAvg, Shifted strokes"]),
    ],
)
def test_a_row_for_each_setting_with_wilsons_interval(varied, rows):
    table = overview.runs_table(results(**varied))
    low, high = wilson(15, 20)[1:]
    assert list(table.cells.index) == rows and f"seeds per row: {len(varied.get('seed', '1'))}" in table.caption[0]
    assert table.frame.query("client == 'average'")["value"].tolist() == pytest.approx([75.0] * len(rows))
    assert "seed" in varied or table.cells.loc[rows[-1], "a (20 images)"] == f"75.0 ({low:.1f} to {high:.1f})"


def test_mean_and_deviation_over_seeds_with_the_best_in_bold():
    made = [results(algorithm=["fedavg"], seed=[0, 1]), results(algorithm=["fedbn"])]
    found = Results(made[0].found | made[1].found, None)
    for record, right in zip(found.records, ([15, 30], [17, 30], [16, 36]), strict=True):
        record.rounds[-1]["test"] = right
    table = overview.runs_table(found, deviations=True, bold=True)
    assert table.cells["a (20 images)"].tolist() == ["80.0 ± 7.1", "80.0"] and "standard deviation" in table.caption[0]
    assert table.cells["b (40 images)"].tolist() == ["75.0 ± 0.0", "90.0"]
    assert table.bold.to_numpy().tolist() == [[False, True, False], [True, True, True]]
    assert "\\bfseries 90.0" in table.latex() and "font-weight: bold" in table.html()
    assert "bold" not in overview.runs_table(found).html()


def test_of_many_clients_the_average_alone_is_shown(monkeypatch):
    monkeypatch.setattr(overview, "MOST_CLIENTS", 1)
    table = overview.runs_table(results(algorithm=["fedavg", "fedbn"]))
    assert list(table.cells.columns) == ["average"] and set(table.frame["client"]) == {"average"}


def test_a_client_that_has_other_images_in_other_rows_has_all_their_numbers_in_its_head():
    made = results(federation=SIZES)
    object.__setattr__(made.records[1], "images", made.records[1].images | {"test": [25, 40]})
    assert list(overview.runs_table(made).cells.columns) == ["average", "a (20/25 images)", "b (40 images)"]


def test_scores_of_masks_are_called_dice():
    table = overview.runs_table(results(federation=["retinal_vessels"], model=["unet"], algorithm=["fedavg", "fedbn"]))
    assert table.caption[0].startswith("Test Dice in per cent with its 95 % interval of the test images (one seed)")
    best = overview.runs_table(results(federation=["retinal_vessels"], model=["unet"]), "best_test")
    assert "round of the best average test Dice (it looks at the test images)" in best.caption[0]
    assert "accuracy" not in best.text()


def test_dice_has_the_interval_of_its_images_where_they_are_recorded():
    made = results(federation=["retinal_vessels"], model=["unet"])
    (record,) = made.records
    values = numpy.linspace(0.7, 0.8, 20), numpy.linspace(0.7, 0.8, 40)
    object.__setattr__(record, "scores", lambda: {1: list(values)})
    frame = overview.runs_table(made).frame.set_index("client")
    assert frame.loc["a", "high"] - 75 == pytest.approx(2.093024 * 100 * values[0].std(ddof=1) / 20**0.5, rel=1e-5)
    object.__setattr__(record, "scores", dict)
    assert overview.runs_table(made).frame.set_index("client").loc["a", "high"] == wilson(15, 20).high


def test_scores_of_both_tasks_side_by_side_have_both_names():
    both = results(federation=["shifted_digits"]).found | results(federation=["retinal_vessels"], model=["unet"]).found
    assert wording.measure(Results(both).frame) == "accuracy / Dice"
    assert wording.measure(wording.frame_of(Results({}))) == "accuracy"
