import pytest
from made_results import run

from fednb.errors import DataError, RecipeError
from fednb.report.selection import best_test, best_validation, last, selected

TWO = {"a": 10, "b": 100}
# Means over clients: test 50, 60, 60, 55; validation 40, 30, 60, 60 per cent.
TESTS = [(4, 60), (6, 60), (7, 50), (5, 60)]
VALIDATIONS = [(20, 20), (10, 20), (30, 30), (35, 25)]


def made(**other):
    return run("fedavg", TESTS, VALIDATIONS, images=TWO, **other)


def test_each_rule_picks_its_own_round():
    assert (last(made()), best_validation(made()), best_test(made())) == (4, 3, 2)


def test_the_mean_over_clients_is_unweighted():
    # Of 110 images 64, 67, 60, 66 are right, so round 2 would win; the unweighted means are 50, 65, 75, 60.
    tests = [(4, 60), (7, 60), (10, 50), (6, 60)]
    assert best_test(run("fedavg", tests, images=TWO)) == 3


def test_ties_go_to_the_earliest_round_whatever_the_order_of_rows():
    assert best_test(made().iloc[::-1]) == 2
    assert best_validation(made().iloc[::-1]) == 3


def test_selected_has_test_rows_of_each_runs_own_round():
    import pandas

    other = run("fedavg", TESTS[:3], VALIDATIONS[:3], images=TWO, seed=1)
    rows = selected(pandas.concat([made(), other]), "last")
    assert rows[["seed", "round", "client", "correct"]].values.tolist() == [
        [0, 4, "a", 5],
        [0, 4, "b", 60],
        [1, 3, "a", 7],
        [1, 3, "b", 50],
    ]
    assert set(rows["split"]) == {"test"} and set(rows["rule"]) == {"last"}


def test_a_client_without_images_does_not_count():
    frame = made()
    empty = frame.assign(client="c", images=0, correct=0, accuracy=float("nan"))
    import pandas

    assert best_validation(pandas.concat([frame, empty])) == 3


def test_no_validation_images_is_an_error_that_names_the_run():
    with pytest.raises(DataError, match="no validation accuracy is recorded for fedavg"):
        best_validation(run("fedavg", TESTS, images=TWO))
    with pytest.raises(DataError, match="expected validation images at some site"):
        best_validation(made().assign(images=0, accuracy=float("nan")))


def test_an_unknown_rule_is_an_error():
    with pytest.raises(RecipeError, match='did you mean "best_validation"'):
        selected(made(), "best_valid")
