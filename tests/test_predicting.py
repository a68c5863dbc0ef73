"""What the meters predict: rank correlations against scipy's, the nearest settings, and the recorded readings."""

import numpy
import pandas
import pytest
import torch
from scipy.stats import spearmanr, ttest_1samp

import dial
import federations
import fednb
import meters
import predicting
from fednb.report import labels
from fednb.report.wording import setting


@pytest.fixture
def made(monkeypatch):
    """Gains of all runs and readings at the settings of the dial, drawn: the first run's go with site accuracy."""
    draws, names = numpy.random.default_rng(1), [*dial.settings()]
    read = pandas.DataFrame(draws.uniform(0, 100, (len(names), 3)), names, [*meters.METERS])
    monkeypatch.setattr(predicting, "readings", lambda: read)
    gains = {run: draws.normal(size=len(names)) for run in dial.RUNS} | {dial.RUNS[0]: read["site_accuracy"] ** 3}
    rows = [
        {"federation": name, "run": run, "gain": value, "low": -1.0, "high": 1.0}
        for run, values in gains.items()
        for name, value in zip(names, values, strict=True)
    ]
    return predicting.measured(pandas.DataFrame(rows))


def test_the_dial_has_42_settings_and_level_0_once():
    settings = dial.settings()
    assert len(settings) == 42 and settings["digits, 0"]["level"] == 0
    assert settings["cifar10, blur 3"] == {"name": "shift_dial", "images": "cifar10", "factor": "blur", "level": 3}


def test_rank_correlations_are_scipys(made):
    found = predicting.correlations(made)
    assert len(found) == len(dial.RUNS) * 3
    for row in found.itertuples():
        own = made[made["run"] == row.run]
        assert row.correlation == pytest.approx(spearmanr(own["gain"], own[row.meter]).statistic)
    assert (found["low"] <= found["high"]).all()
    first = found[(found["run"] == dial.RUNS[0]) & (found["meter"] == "site_accuracy")]
    assert first[["correlation", "low", "high"]].to_numpy() == pytest.approx(1)
    others = found[found["run"] != dial.RUNS[0]]
    assert (others["low"] < 0).mean() > 0.7 and (others["high"] - others["low"]).median() > 0.3


def test_an_interval_resamples_factors_as_wholes(made):
    """Were the four levels of a factor four settings apart from others, the interval would be as wide as for one."""
    alike = made.copy()
    pair = alike["federation"].str.rpartition(" ")[0]
    for column in ("gain", *meters.METERS):
        alike[column] = alike.groupby([pair, "run"])[column].transform("mean")
    predicting.readings().update(alike.drop_duplicates("federation").set_index("federation")[[*meters.METERS]])
    wide, narrow = (predicting.correlations(rows).eval("high - low").median() for rows in (alike, made))
    assert wide > 1.3 * narrow


def test_the_nearest_settings_are_five_and_all_as_near_as_the_fifth(made):
    for reading in (0, 50, 100):
        known = made.drop_duplicates("federation").set_index("federation")["site_accuracy"]
        near = predicting.nearest(made, reading)
        assert {*near["federation"]} == {*(known - reading).abs().sort_values().index[:5]}
    made["site_accuracy"] = made["site_accuracy"].clip(upper=60)
    assert (predicting.nearest(made, 90)["site_accuracy"] == 60).all()
    assert predicting.nearest(made, 90)["federation"].nunique() > 5


def test_a_gain_is_predicted_by_the_mean_of_the_nearest(made):
    other = pandas.DataFrame({"federation": "mine", "run": dial.RUNS[:1], "gain": 7.0, "site_accuracy": 40.0})
    [row] = predicting.predictions(made, other).itertuples()
    own = made[made["run"] == dial.RUNS[0]]
    near = own.iloc[(own["site_accuracy"] - 40).abs().argsort()[:5]]
    assert row.predicted == pytest.approx(near["gain"].mean()) and row.plain == pytest.approx(own["gain"].mean())


def test_held_out_gains_are_ranked_with_their_federations_as_wholes(made):
    guessed = made.assign(predicted=made["gain"] + made["site_accuracy"], plain=made["gain"] - made["site_accuracy"])
    for (found, low, high), by in zip(predicting.held_out(guessed), ("predicted", "plain"), strict=True):
        assert found == pytest.approx(spearmanr(guessed["gain"], guessed[by]).statistic) and low < found < high
    one = predicting.held_out(guessed[guessed["federation"] == "digits, 0"])[0]
    assert one[0] == pytest.approx(one[1]) == pytest.approx(one[2])


@pytest.mark.parametrize(
    ("near", "words"), [(1, "are better than"), (3, "are worse than"), (2, "not shown to be better")]
)
def test_the_answer_is_by_the_interval_of_errors_over_federations(made, near, words):
    """Of errors that are nearly 2 without a meter, and nearly ``near`` with one."""
    noise = numpy.random.default_rng(0).normal(scale=0.1, size=len(made))
    guessed = made.assign(predicted=made["gain"] + near + noise, plain=made["gain"] - 2 + numpy.roll(noise, 7))
    lines = predicting.in_words(predicting.correlations(made), guessed)
    assert words in lines[0]
    found = predicting.excess_error(guessed)
    own = (guessed["predicted"] - guessed["gain"]).abs() - (guessed["plain"] - guessed["gain"]).abs()
    interval = ttest_1samp(own.groupby(guessed["federation"]).mean(), 0).confidence_interval()
    assert found == pytest.approx((own.mean(), *interval))
    assert all(labels.short(run) in line for run in dial.RUNS for line in lines[3:6])


def test_the_run_that_is_predicted_best_is_held_against_the_best():
    rows = [("a", "fedbn", 3.0, 9.0, 1.0), ("a", "fedavg+fedfa", 5.0, 1.0, 0.0), ("b", "fedbn", 4.0, 9.0, 1.0)]
    guessed = pandas.DataFrame(rows, columns=["federation", "run", "gain", "predicted", "plain"])
    assert predicting.choice(guessed).endswith("FedBN: it is the best on 1 of 2, and at most 2.0 points below the best")


@pytest.mark.parametrize("name", ["digits, 0", "digits, blur 3"])
def test_recorded_readings_are_what_the_meters_read(name, monkeypatch):
    monkeypatch.setattr(meters.models, "lacks", lambda *_: "no weights")
    found = meters.meters(fednb.load(**dial.settings()[name]))
    assert found == pytest.approx(predicting.readings().loc[name, [*found]].to_dict(), rel=1e-4)
    assert {*predicting.readings().index} == {*dial.settings(), *federations.bases("quick", 40)}


def test_squeezenet_sees_images_one_by_one():
    """A dark and a bright image, in any order and number, have features of their own: 512, none negative."""
    images = torch.stack([torch.full((3, 8, 8), value, dtype=torch.uint8) for value in (10, 200)])
    network = fednb.models.build({"name": "squeezenet1_1"}, (3, meters.SIZE, meters.SIZE), 2).eval()
    found = meters.of_squeezenet(images, network)
    assert found.shape == (2, 512) and (found >= 0).all() and not torch.equal(found[0], found[1])
    torch.testing.assert_close(meters.of_squeezenet(images.flip(0).repeat(60, 1, 1, 1), network)[:2], found.flip(0))


def test_two_sites_are_needed():
    federation = fednb.load("shifted_digits")
    [line] = predicting.of_federation(federation.only(federation.sites[0].name))
    assert line == "The meters need two sites of 5 training images."


def test_the_hint_names_each_run_with_its_range_at_the_nearest_recorded_settings(monkeypatch):
    """At a reading of 100: the settings of colour, which are all as near, of the records that lie in results/."""
    points, correlated, off, saturated, caveat = predicting.hint(100)
    assert "The dial's 6 nearest settings (6 of colour; readings 100 to 100 %)" in points
    [line] = [part for part in points.split(": ")[1].split("), ") if part.startswith("FedRDN ")]
    at = {name: own for name, own in dial.settings(["digits"], ["colour"]).items() if own["level"]}
    found = {name: dial.recorded(federations.base(20).with_(federation=own)) for name, own in at.items()}
    own = dial.gains(found).query("run == 'fedavg+fedrdn'")["gain"]
    for value in (own.min(), own.max()):
        assert f"{value:+.1f}" in line
    assert [run in points for run in ("FedFA", "FRAug", "DisTrans", "own statistics", "FedBN")] == [True] * 5
    assert correlated.startswith("Rank correlation of site accuracy") and "not a result" in caveat
    assert "100 %" in saturated and len(predicting.hint(50)) == 4
    assert off.startswith("On held-out federations the mean absolute error of such hints is")
    monkeypatch.setattr(predicting, "settings", dict)
    assert predicting.hint(100) == ["No hint: no run on the shift dial is recorded here."]


def test_methods_without_a_meaning_for_masks_are_left_out():
    vessels = federations.bases("quick", 40)["Retinal vessels"]
    assert federations.methods(dial.METHODS, vessels) == [["fedrdn"], ["fedfa"], ["own_statistics"]]
    assert federations.methods(dial.METHODS, federations.base(1)) == [[name] for name in dial.METHODS]
    office = federations.bases("quick", 40)["Office-Caltech-10"]
    assert federations.methods(["fedfa"], office) == [[{"name": "fedfa", "stages": [1, 2, 3, 4]}]]


def test_many_federations_are_named_by_the_values_of_their_options():
    at = [federations.base(20).with_(federation=own) for own in dial.settings(["digits"]).values()]
    factors = "factor colour / contrast / blur / noise / rotation, level 0 / 1 / 2 / 3 / 4"
    named = setting(fednb.Study(at).recorded())
    assert f"federation Shift dial (images digits, {factors}, seed 0), model" in named
