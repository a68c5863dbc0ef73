"""Rules of selection, and what is computed of curves, by hand."""

from types import SimpleNamespace

import pandas
import pytest
from made_results import results, run
from small_runs import SMALL, record

from fednb import report
from fednb.errors import DataError, RecipeError
from fednb.report.convergence import common_seeds, first_near, late_rise, late_steps
from fednb.report.scores import image_scores
from fednb.report.selection import RULES, rounds_taken, selected
from fednb.study import Study
from learned import losses

TWO = {"a": 10, "b": 100}
# Means over clients: test 50, 60, 60, 55; validation 40, 30, 60, 60 per cent.
TESTS = [(4, 60), (6, 60), (7, 50), (5, 60)]
VALIDATIONS = [(20, 20), (10, 20), (30, 30), (35, 25)]


def made(**other):
    return run("fedavg", TESTS, VALIDATIONS, images=TWO, **other)


def taken(frame, rule):
    (rounds,) = rounds_taken(frame, rule).values()
    return list(rounds)


def of_right(right, label="fedavg", **other):
    """Right answers of b in per cent, of a the same share."""
    return run(label, [(each / 10, each) for each in right], images=TWO, **other)


def test_each_rule_picks_its_own_round_the_earliest_of_ties_whatever_the_order_of_rows():
    for frame in (made(), made().iloc[::-1]):
        assert {rule: taken(frame, rule) for rule in RULES} == {
            "last": [4],
            "best_validation": [3],
            "best_test": [2],
            "mean_of_last": [4],
        }
    frame = run("fedavg", [(1, 20), (3, 0)], images=TWO)
    frame.loc[frame["round"] == 2, "accuracy"] += 1e-12  # by rounding alone
    assert taken(frame, "best_test") == [1]


def test_the_mean_over_clients_is_unweighted_and_of_those_with_images():
    # Of 110 images 64, 67, 60, 66 are right, so round 2 would win; the unweighted means are 50, 65, 75, 60.
    assert taken(run("fedavg", [(4, 60), (7, 60), (10, 50), (6, 60)], images=TWO), "best_test") == [3]
    empty = made().assign(client="c", images=0, correct=0, accuracy=float("nan"))
    assert taken(pandas.concat([made(), empty]), "best_validation") == [3]


def test_selected_has_test_rows_of_each_runs_own_round():
    other = run("fedavg", TESTS[:3], VALIDATIONS[:3], images=TWO, seed=1)
    rows = selected(pandas.concat([made(), other]), "last")
    assert rows[["seed", "round", "correct"]].values.tolist() == [[0, 4, 5], [0, 4, 60], [1, 3, 7], [1, 3, 50]]
    assert set(rows["split"]) == {"test"} and set(rows["rule"]) == {"last"}


def test_an_unknown_rule_and_one_without_images_are_errors():
    for frame in (run("fedavg", TESTS, images=TWO), made().assign(images=0, accuracy=float("nan"))):
        with pytest.raises(DataError, match="no validation accuracy is recorded for fedavg; expected"):
            selected(frame, "best_validation")
    with pytest.raises(RecipeError, match='did you mean "best_validation"'):
        selected(made(), "best_valid")


@pytest.mark.parametrize(("rounds", "first"), [(1, 1), (10, 10), (11, 10), (40, 37), (100, 91), (120, 111)])
def test_the_last_rounds_are_ten_or_a_tenth(rounds, first):
    assert taken(of_right([50] * rounds).iloc[::-1], "mean_of_last") == list(range(first, rounds + 1))


def test_the_mean_over_rounds_is_a_row_for_each_client_and_has_its_images_scores():
    frame = run("fedavg", [(5, 50)] * 10 + [(4, 60), (8, 70)], images=TWO)
    rows = selected(frame, "mean_of_last")
    assert rows[["client", "round", "correct", "accuracy"]].values.tolist() == [["a", 12, 6, 60], ["b", 12, 65, 65]]
    assert rows["rounds_taken"].tolist() == [(11, 12)] * 2
    (record,) = results(frame).records
    scores = image_scores(rows, {record.key: record})
    assert scores["a"][0].tolist() == [100] * 4 + [50] * 4 + [0] * 2 and scores["b"][0].mean() == 65
    (record,) = results(frame, scores=lambda rows: {2: [[1.0] * 10, [1.0] * 100]}).records
    assert image_scores(selected(frame), {record.key: record}) == {}  # of another round


def test_common_seeds_are_those_that_every_run_has():
    rows = [run(label, [(1, 20)], images=TWO, seed=seed) for label, seed in (("a", 0), ("a", 1), ("b", 1))]
    shared = common_seeds(pandas.concat(rows))
    assert set(shared["seed"]) == {1} and set(shared["run"]) == {"a", "b"}
    assert common_seeds(pandas.concat([rows[0], rows[2]])).empty


def test_first_near_is_the_round_that_comes_near_a_curves_own_end_or_that_of_another():
    both = pandas.concat([of_right([10, *[40] * 11]), of_right([10, 20, *[60] * 9, 75], "fedbn")])
    assert first_near(both).to_dict() == {"fedavg": 2, "fedbn": 3}
    assert first_near(both, "fedavg")["fedbn"] == 3
    assert first_near(both, "fedbn").isna().to_dict() == {"fedavg": True, "fedbn": False}


def test_losses_are_means_over_the_clients_that_trained():
    rounds = [{"round": 1, "loss": {"a": 1.0, "b": 3.0}}, {"round": 2, "loss": {"b": 0.5}}]
    found = losses(SimpleNamespace(records=[SimpleNamespace(key="k", rounds=rounds)]))
    assert found.name == "loss" and found.to_dict() == {("k", 1): 2.0, ("k", 2): 0.5}
    assert losses(SimpleNamespace(records=[])).empty


def test_late_steps_are_of_each_seeds_own_curve():
    up, down = [50, 50, 50, 50, 60, 60], [50, 50, 50, 50, 40, 40]  # opposite steps, which a mean curve would not have
    both = pandas.concat([of_right(up), of_right(down, seed=1)])
    assert late_steps(both)["fedavg"] == pytest.approx(50**0.5)  # of steps 10 and 0, or -10 and 0
    assert late_steps(both, ["run", "seed"])["fedavg", 1] == pytest.approx(50**0.5)
    assert late_steps(made()).isna().tolist() == [True]


def test_late_rise_is_of_each_runs_own_last_rounds():
    shorter = run("fedavg", TESTS[:3], images=TWO, seed=1)
    both = late_rise(pandas.concat([made(), shorter]))
    assert both["fedavg"] == pytest.approx((55 + 60) / 2 - (60 + 60) / 2)
    assert late_rise(made(), ["run", "seed"])["fedavg", 0] == pytest.approx(55 - 60)
    assert late_rise(made().query("round == 1")).isna().tolist() == [True]
    assert late_rise(of_right([10, 10, 10, 10, 20, 40, 50, 70]))["fedavg"] == pytest.approx(60 - 30)
    assert late_rise(run("fedavg", TESTS, images=TWO, unseen=("b",)))["fedavg"] == pytest.approx(50 - 70)


def test_the_best_recipe_by_validation_is_that_of_the_best_mean_over_seeds(store):
    """Right answers of 4 validation images in the only round: rate 0.1 has (4 + 0) / 2, 0.2 (3 + 3) / 2; in the test
    images it is the other way round. One site alone is not enough: with (4, 0) it is the mean over sites."""
    right = {(0.1, 0): [4, 4], (0.1, 1): [0, 0], (0.2, 0): [4, 2], (0.2, 1): [3, 3]}
    recipes = SMALL.with_(rounds=1).vary(learning_rate=[0.1, 0.2], seed=[0, 1])
    for recipe in recipes:
        made = record(recipe, right=1 if recipe.learning_rate == 0.2 else 5)
        made.rounds[0]["validation"] = right[recipe.learning_rate, recipe.seed]
        store.write(recipe, made)
    found = Study(recipes, store=store).recorded()
    assert report.best(found) == recipes[2]
    more = Study([*recipes, recipes[0].with_(seed=2)], store=store).recorded()
    with pytest.raises(DataError, match="seed 2 .* has no validation accuracy on record"):
        report.best(more)
