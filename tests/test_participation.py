"""Sites left out in turn: what is selected without them, and their scores beside those of sites that took part."""

import pytest
from made_results import IMAGES, mean_accuracy, results, run, scoreboard

from fednb import papers
from fednb.report import comparison, effects, selected, table
from fednb.report.scores import image_scores
from participation import participation

TWO = {"a": 10, "b": 100}
# Right answers at each site of the run that left out the one named: unseen 50, 40, 25 and 100 * 20 / 59 per cent.
RIGHT = {
    "amazon": (96, 150, 20, 40),
    "caltech": (120, 90, 24, 50),
    "dslr": (130, 140, 8, 45),
    "webcam": (125, 160, 22, 20),
}
UNSEEN = (96, 90, 8, 20)
SEEN = (125, 150, 22, 45)  # means of three runs


def in_turn(label="fedavg", more=0, seeds=(0,), sites=tuple(RIGHT)):
    """Runs that leave out one site each; ``more`` right answers at all sites, and one more with each seed."""
    return [
        run(label, [tuple(right + more + seed for right in RIGHT[site])], seed=seed, unseen=(site,))
        for seed in seeds
        for site in sites
    ]


def test_a_site_that_was_left_out_chooses_no_round_and_has_rows_of_its_own():
    """Validation of ``a`` is best in round 2, its test in round 3; with ``b`` it would be rounds 1 and 2."""
    frame = run("fedavg", [(4, 60), (6, 99), (7, 50)], [(20, 50), (30, 0), (10, 50)], images=TWO, unseen=("b",))
    for rule, number, right in (("best_validation", 2, (6, 99)), ("best_test", 3, (7, 50)), ("last", 3, (7, 50))):
        for unseen, client in ((False, "a"), (True, "b")):
            rows = selected(frame, rule, unseen)
            assert rows[["client", "round", "correct"]].values.tolist() == [[client, number, right[unseen]]]
    assert selected(frame.assign(took_part=True), unseen=True).empty


def test_images_of_a_site_that_several_runs_of_a_seed_saw_have_their_mean():
    made = results(*in_turn())
    records = {record.key: record for record in made.records}
    (scores,) = image_scores(selected(made.frame), records)["dslr"].values()
    assert scores[:20].tolist() == [100] * 20 and scores[24:].tolist() == [0] * 8
    assert scores[20:24].tolist() == pytest.approx([200 / 3] * 2 + [100 / 3] * 2)
    (alone,) = image_scores(selected(made.frame, unseen=True), records)["dslr"].values()
    assert alone.sum() == 800


def test_seen_and_unseen_stand_apart():
    shown = participation(results(*in_turn(), run("fedavg", [(192, 225, 32, 59)], seed=1)))
    found = shown.frame.set_index("client")
    for site, *rights in zip(IMAGES, UNSEEN, SEEN, strict=True):
        own = [100 * right / IMAGES[site] for right in rights]
        assert found.loc[site, ["unseen", "seen"]].tolist() == pytest.approx(own)
    average = found.loc["average"]
    assert average["ours"] == pytest.approx(mean_accuracy(SEEN) - mean_accuracy(UNSEEN))
    assert average["low"] < average["ours"] < average["high"] and average["direction"] == "one seed"
    assert shown.cells.loc["FedAvg", "DSLR (32)"] == "25.0 | 68.8"
    twice = participation(results(*in_turn(seeds=(0, 1)))).frame.set_index("client").loc["average"]
    assert twice["seeds"] == 2 and twice["direction"] == "above"


def test_sites_that_were_never_left_out_have_no_gap():
    found = participation(results(*in_turn(sites=("amazon", "dslr")))).frame
    assert list(found["client"]) == ["amazon", "dslr", "average"]
    assert found.loc[2, "seen"] == pytest.approx((100 * 130 / 192 + 100 * 20 / 32) / 2)
    assert participation(results(run("fedavg", [(1, 1, 1, 1)]))).frame.empty and participation(results()).frame.empty


def test_printed_numbers_of_unseen_sites_stand_beside_runs_that_left_each_out():
    printed = papers.printed("fedfa", "table4", "office_caltech10")
    whole = run("fedavg", [(192, 225, 32, 59)])
    frame = comparison(results(*in_turn(), whole), printed).set_index(["row", "site"])
    assert frame.loc[("FedAvg", "dslr"), ["paper", "ours"]].tolist() == [71.9, 25.0]
    average = frame.loc[("FedAvg", "average")]
    assert average["ours"] == pytest.approx(mean_accuracy(UNSEEN))
    assert average["difference"] == pytest.approx(mean_accuracy(UNSEEN) - 60.4)
    caption = "\n".join(table(results(*in_turn(sites=("amazon", "dslr"))), printed).caption)
    assert "Averages not compared: " in caption and "in which it was unseen" in caption
    assert comparison(results(whole), printed)["ours"].isna().all()


def test_a_claim_on_unseen_clients_rests_on_runs_that_left_each_out():
    claim = "FedFA is 3.9 points above FedAvg on Office-Caltech-10 at unseen clients."

    def row(*frames):
        return scoreboard(results(*frames), "fedfa", table="table4").frame.set_index("claim").loc[claim]

    better = in_turn("fedavg+fedfa", more=8)
    found = row(*in_turn(), *better)
    gain = mean_accuracy([right + 8 for right in UNSEEN]) - mean_accuracy(UNSEEN)
    assert found["ours"] == pytest.approx(gain) and found["verdict"] == "one seed"
    assert effects(results(*in_turn(), *better), "fedavg", unseen=True).frame["ours"].item() == pytest.approx(gain)
    twice = row(*in_turn(seeds=(0, 1)), *in_turn("fedavg+fedfa", more=8, seeds=(0, 1)))
    assert twice["verdict"] == "above" and twice["p"] < 0.05 and twice["setting"] == "small"
    some = ("amazon", "dslr")
    fewer = row(*in_turn(sites=some), *in_turn("fedavg+fedfa", sites=some))
    assert fewer["verdict"] == "one seed" and "average over Amazon, DSLR" in fewer["deviations"]
    assert row(*in_turn(sites=some), *in_turn("fedavg+fedfa", sites=("amazon", "webcam")))["verdict"] == "other sites"
    assert row(run("fedavg", [(1, 1, 1, 1)]), run("fedavg+fedfa", [(2, 2, 2, 2)]))["verdict"] == "not run"
