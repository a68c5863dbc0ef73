"""All claims of the papers: from recorded runs of the notebooks of their tables, counted, in sentences."""

from pathlib import Path

import numpy
import pandas
import pytest
import readme
from made_results import claims, results, run
from pandas.testing import assert_frame_equal

import fednb
from fednb import papers, report
from fednb.records.store import Store
from fednb.report import judging
from fednb.report.sentences import claimed, effect
from sortable import by_paper

RIGHT = {"fedavg": (100, 110, 16, 30), "fedavg+fedrdn": (150, 160, 24, 45)}


def test_the_committed_boards_are_what_the_committed_records_say(tmp_path):
    folder = Path(fednb.__file__).parents[1] / "results"
    readme.write_board(Store(folder), tmp_path)
    for then, now in zip(judging.read_board(folder), judging.read_board(tmp_path), strict=True):
        assert_frame_equal(then, now, rtol=1e-9, atol=1e-9)


def test_without_a_record_every_comparison_is_there_once_and_not_run(tmp_path):
    frame = judging.claims(Store(tmp_path))
    on = {(paper, claim["federation"]) for paper in papers.names() for claim in papers.claims(paper)}
    assert len(frame) == sum(len(papers.claims(paper)) for paper in papers.names())
    assert len(frame) - frame["primary"].sum() == sum(papers.family(*each) for each in on)
    assert set(frame["verdict"]) == {"not run"} and set(frame["setting"]) == {""} and frame["ours"].isna().all()
    several = frame[frame["table"].str.contains(",")]
    assert "table1, table5, table6" in set(several.query("of == 'fedfa'")["table"])
    curves = judging.curves(Store(tmp_path))
    assert len(curves) == sum(len(papers.curves(paper)) for paper in papers.names())
    assert set(curves["verdict"]) == {"not run"} and set(curves["setting"]) == {""}


def test_of_several_profiles_the_one_that_is_tested_nearest_to_the_paper_counts_on_each_board():
    def frame(verdict, setting, ours, more="x 1 (paper: 2); y 1 (paper: 2)"):
        return pandas.DataFrame({"verdict": [verdict], "setting": [setting], "ours": [ours], "deviations": [more]})

    ran = [
        frame("not testable", "small", 1.0),
        frame("above", "small", 2.0),
        frame("below", "small", 3.0, "x 1 (paper: 2)"),
    ]
    at_work = [frame("above", "small", 5.0).assign(activity=number) for number in (0.005, 0.02)]
    for tested, ours in ((at_work[0], 3.0), (at_work[1], 5.0)):  # one that is shown to be active comes first
        assert [row["ours"] for row in judging._chosen([*ran, tested], 1, "fedrdn", "pacs")] == [ours]
    nothing, printed = frame("not run", "", numpy.nan), frame("reproduced", "paper", 4.0)
    chosen = judging._chosen([nothing, *ran, printed], 1, "fedrdn", "pacs")
    assert [row["ours"] for row in chosen] == [4.0, 3.0] and chosen[0]["of"] == "fedrdn"
    assert [row["verdict"] for row in judging._chosen([nothing], 1, "fedrdn", "pacs")] == ["not run"]
    assert [row["ours"] for row in judging._chosen([nothing, ran[0]], 1, "fedrdn", "pacs")] == [1.0]


def test_sentences_of_a_summary_add_up():
    verdicts = ["reproduced", "below", "below", "one seed", "not run", "not run", "older code", "not testable"]
    verdicts = [*verdicts, "not testable"]  # at the small setting, of the claim that is reproduced
    others = ["best test: larger", *[""] * 5, "last: above", "", ""]
    named = [f"{letter} is above." for letter in "ABCDEFGHA"]
    boards = ["paper", *["small"] * 8]
    frame = claims(verdicts, other_rules=others, claim=named, setting=boards)
    first, found, others, turned = report.summary(frame)
    assert first == "At the paper's setting we tested 1 of FedRDN's 8 pairwise claims: 1 reproduced."
    assert found.endswith("we tested 2: 2 below.") and turned.startswith("1 verdict changes by the paper's own rule")
    assert others == "Not tested: 2 not run, 1 not testable here, 1 run with one seed only, 1 run by older code only."
    assert report.summary(frame[4:6].assign(of=["distrans", "fedfa"])) == [
        "None of 2 pairwise claims of two papers was tested at the paper's setting.",
        "Not tested: 2 not run.",
    ]


def test_counts_by_paper_are_of_claims_and_have_a_row_of_all():
    named = ["A is above.", "A is above.", "B is above.", "C is above."]
    verdicts, of = ["reproduced", "above", "not run", "one seed"], ["fedfa", "fedfa", "fedrdn", "fedrdn"]
    counts = by_paper(claims(verdicts, of=of, claim=named))
    assert counts.loc["FedRDN"].to_dict()["not tested"] == 2 and counts.loc["all"].to_dict()["claims"] == 3
    fedfa = counts.loc["FedFA"]  # one claim, on both boards
    assert (fedfa["claims"], fedfa["reproduced"], fedfa["above"], fedfa["not tested"]) == (1, 1, 1, 0)
    assert list(counts.index) == ["FedFA", "FedRDN", "all"]


def test_sentences_of_effects_take_no_side_without_a_verdict():
    for seeds, said in (((0,), "against FedAvg, one seed and no verdict: +2"), ((0, 1), "is above FedAvg: +2")):
        made = results(*(run(label, [right], seed=seed) for label, right in RIGHT.items() for seed in seeds))
        assert report.sentences(report.effects(made, "fedavg")).startswith(f"FedAvg + FedRDN {said}")
    assert report.sentences(report.effects(made, [("fedbn", "fedavg")])) == "No pair was run."


@pytest.mark.parametrize(
    ("where", "better", "worse", "said"),
    [
        (("cifar10", "40 %", "average"), "distrans", "", "DisTrans is 2.5 points above FedAvg on CIFAR-10 at DH 40 %."),
        (("prostate_mri", "1/6", "BMC"), "fedfa", "mixup", "of Dice above mixup on ProstateMRI at BMC with 1/6 of the"),
        (("rxrx1", "8 clients", "average"), "fraug", "fraug(ema=False)", "FRAug (without EMA) on RxRx1 with 8 clients"),
        (("domainnet", "unseen client", "average"), "mixup", "normalise", "FedAvg + norm. on DomainNet at unseen cl"),
        (("prostate_mri", "1", "average"), "fedfa", "", "above FedAvg on ProstateMRI with all of the training"),
        (("cifar10", "Dir(0.3)", "average"), "fedfa", "", "FedAvg on CIFAR-10 at Dir(0.3)."),
    ],
)
def test_a_claim_is_one_sentence(where, better, worse, said):
    sides = {"better": f"fedavg+{better}", "worse": f"fedavg+{worse}".rstrip("+")}
    claim = sides | dict(zip(("federation", "setting", "site"), where, strict=True))
    assert said in claimed(claim, [60.0, 62.5], 2.5)
    assert said.replace("2.5", "2.50") in claimed(claim, [60.0, 62.25], 2.5)


@pytest.mark.parametrize("paper", papers.names())
def test_claims_in_short_differ_within_a_table(paper):
    every = papers.claims(paper)
    short = [(claim["table"], claim["federation"], effect(claim)) for claim in every]
    assert len(set(short)) == len(short)
