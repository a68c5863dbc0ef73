from types import SimpleNamespace

import pytest
from made_results import results, run

from fednb.errors import DataError, RecipeError
from fednb.report import convergence
from fednb.report.convergence import common_seeds, first_near, late_rise, late_steps, losses
from fednb.report.scores import image_scores
from fednb.report.selection import rounds_taken, selected

TWO = {"a": 10, "b": 100}
# Means over clients: test 50, 60, 60, 55; validation 40, 30, 60, 60 per cent.
TESTS = [(4, 60), (6, 60), (7, 50), (5, 60)]
VALIDATIONS = [(20, 20), (10, 20), (30, 30), (35, 25)]


def made(**other):
    return run("fedavg", TESTS, VALIDATIONS, images=TWO, **other)


def last(frame):
    return taken(frame, "last")


def best_validation(frame):
    return taken(frame, "best_validation")


def best_test(frame):
    return taken(frame, "best_test")


def mean_of_last(frame):
    return taken(frame, "mean_of_last")


def taken(frame, rule):
    (rounds,) = rounds_taken(frame, rule).values()
    return list(rounds)


def test_each_rule_picks_its_own_round():
    assert (last(made()), best_validation(made()), best_test(made())) == ([4], [3], [2])


def test_the_mean_over_clients_is_unweighted():
    # Of 110 images 64, 67, 60, 66 are right, so round 2 would win; the unweighted means are 50, 65, 75, 60.
    tests = [(4, 60), (7, 60), (10, 50), (6, 60)]
    assert best_test(run("fedavg", tests, images=TWO)) == [3]


def test_ties_go_to_the_earliest_round_whatever_the_order_of_rows():
    assert best_test(made().iloc[::-1]) == [2]
    assert best_validation(made().iloc[::-1]) == [3]


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


def test_rounds_that_differ_by_rounding_alone_are_tied():
    """0.1 + 0.2 and 0.3: the earliest of both, as whoever keeps the scores of its images decides."""
    frame = run("fedavg", [(1, 20), (3, 0)], images=TWO)
    frame.loc[frame["round"] == 2, "accuracy"] += 1e-12
    assert best_test(frame) == [1]


def test_a_client_without_images_does_not_count():
    frame = made()
    empty = frame.assign(client="c", images=0, correct=0, accuracy=float("nan"))
    import pandas

    assert best_validation(pandas.concat([frame, empty])) == [3]


def test_no_validation_images_is_an_error_that_names_the_run():
    with pytest.raises(DataError, match="no validation accuracy is recorded for fedavg"):
        best_validation(run("fedavg", TESTS, images=TWO))
    with pytest.raises(DataError, match="expected validation images at some site"):
        best_validation(made().assign(images=0, accuracy=float("nan")))


def test_an_unknown_rule_is_an_error():
    with pytest.raises(RecipeError, match='did you mean "best_validation"'):
        selected(made(), "best_valid")


def test_the_last_rounds_are_ten_or_a_tenth():
    def frame(rounds):
        return run("fedavg", [(5, 50)] * rounds, images=TWO)

    assert mean_of_last(frame(1)) == [1] and mean_of_last(frame(10)) == [10]
    assert mean_of_last(frame(11)) == [10, 11] and mean_of_last(frame(40)) == [37, 38, 39, 40]
    assert mean_of_last(frame(100)) == mean_of_last(frame(100).iloc[::-1]) == list(range(91, 101))
    assert mean_of_last(frame(120)) == list(range(111, 121))


def test_the_mean_over_rounds_is_a_row_for_each_client_and_has_its_images_scores():
    frame = run("fedavg", [(5, 50)] * 10 + [(4, 60), (8, 70)], images=TWO)
    rows = selected(frame, "mean_of_last")
    assert rows[["client", "round", "correct", "accuracy"]].values.tolist() == [["a", 12, 6, 60], ["b", 12, 65, 65]]
    assert rows["rounds_taken"].tolist() == [(11, 12)] * 2
    (record,) = results(frame).records
    scores = image_scores(rows, {record.key: record})
    assert list(scores) == ["a", "b"] and list(scores["a"]) == [0]
    assert scores["a"][0].tolist() == [100] * 4 + [50] * 4 + [0] * 2
    assert scores["b"][0].mean() == 65


def test_scores_that_are_not_recorded_are_none_at_all():
    frame = run("fedavg", [(5, 50)] * 3, images=TWO)
    (record,) = results(frame, scores=lambda rows: {2: [[1.0] * 10, [1.0] * 100]}).records
    assert image_scores(selected(frame), {record.key: record}) == {}


def test_common_seeds_are_those_that_every_run_has():
    import pandas

    rows = [run(label, [(1, 20)], images=TWO, seed=seed) for label, seed in (("a", 0), ("a", 1), ("b", 1))]
    shared = common_seeds(pandas.concat(rows))
    assert set(shared["seed"]) == {1} and set(shared["run"]) == {"a", "b"}
    assert common_seeds(pandas.concat([rows[0], rows[2]])).empty
    assert common_seeds(pandas.concat(rows), ["run", "client"]).equals(shared)


def test_first_near_is_the_round_that_comes_near_a_curves_own_end_or_that_of_another(monkeypatch):
    import pandas

    fast, slow = [10, *[40] * 11], [10, 20, *[60] * 9, 75]
    frames = [run(name, [(n / 10, n) for n in each], images=TWO) for name, each in (("fedavg", fast), ("fedbn", slow))]
    both = pandas.concat(frames)
    assert first_near(both).to_dict() == {"fedavg": 2, "fedbn": 3}
    assert first_near(both, "fedavg")["fedbn"] == 3
    assert first_near(both, "fedbn").isna().to_dict() == {"fedavg": True, "fedbn": False}
    monkeypatch.setattr(convergence, "NEAR", 20)
    assert first_near(both, "fedavg")["fedbn"] == 2


def test_losses_are_means_over_the_clients_that_trained():
    rounds = [{"round": 1, "loss": {"a": 1.0, "b": 3.0}}, {"round": 2, "loss": {"b": 0.5}}]
    found = losses(SimpleNamespace(records=[SimpleNamespace(key="k", rounds=rounds)]))
    assert found.name == "loss" and found.to_dict() == {("k", 1): 2.0, ("k", 2): 0.5}
    assert losses(SimpleNamespace(records=[])).empty


def test_late_steps_are_of_each_seeds_own_curve():
    import pandas

    up, down = [50, 50, 50, 50, 60, 60], [50, 50, 50, 50, 40, 40]  # opposite steps, which a mean curve would not have
    curves = [[(correct / 10, correct) for correct in each] for each in (up, down)]
    both = pandas.concat([run("fedavg", curve, images=TWO, seed=seed) for seed, curve in enumerate(curves)])
    assert late_steps(both)["fedavg"] == pytest.approx(50**0.5)  # of steps 10 and 0, or -10 and 0
    assert late_steps(both, ["run", "seed"])["fedavg", 1] == pytest.approx(50**0.5)
    assert late_steps(made()).isna().tolist() == [True]


def test_late_rise_is_of_each_runs_own_last_rounds():
    import pandas

    shorter = run("fedavg", TESTS[:3], images=TWO, seed=1)
    assert late_rise(made(), 2)["fedavg"] == pytest.approx((60 + 55) / 2 - (50 + 60) / 2)
    both = late_rise(pandas.concat([made(), shorter]), 1)
    assert both["fedavg"] == pytest.approx((55 + 60) / 2 - (60 + 60) / 2)
    assert late_rise(made(), 1, ["run", "seed"])["fedavg", 0] == pytest.approx(55 - 60)
    assert late_rise(made(), 4).isna().tolist() == [True]
    long = run("fedavg", [(n / 10, n) for n in (10, 10, 10, 10, 20, 40, 50, 70)], images=TWO)
    assert late_rise(long)["fedavg"] == pytest.approx((50 + 70) / 2 - (20 + 40) / 2)
    assert late_rise(run("fedavg", TESTS, images=TWO, unseen=("b",)), 1)["fedavg"] == pytest.approx(50 - 70)
