"""All claims of the papers: from recorded runs of the notebooks of their tables, counted, in sentences."""

import json
from types import SimpleNamespace

import numpy
import pandas
import pytest
from made_results import IMAGES, results, run

import fednb
from fednb import papers, report
from fednb.commands import scoreboard
from fednb.records.store import Store
from fednb.report.sentences import claimed, effect
from fednb.report.verdicts import TESTED, VERDICTS

RIGHT = {"fedavg": (100, 110, 16, 30), "fedavg+fedrdn": (150, 160, 24, 45)}


def claims(verdicts, **columns):
    ran = [word not in ("not run", "other sites") for word in verdicts]
    numbers = {"ours": numpy.where(ran, 2.0, numpy.nan), "low": numpy.where(ran, 1.0, numpy.nan)}
    about = {
        "of": "fedrdn",
        "effect": "A - B",
        "table": "table1",
        "claim": "A is above B.",
        "federation": "office_caltech10",
        "paper": 2.5,
    }
    numbers |= {"high": 3 * numbers["low"], "together_low": -numbers["low"], "together_high": 5 * numbers["low"]}
    numbers |= {"smallest": 4 * numbers["low"], "setting": numpy.where(ran, "small", "")}
    frame = pandas.DataFrame({"verdict": verdicts, **numbers})
    told = {"p": 0.01, "seeds": 3, "notebook": "fedrdn/table1_main", "other_rules": "", "why": "", "deviations": ""}
    return frame.assign(**told, **about).assign(**columns)


def test_without_a_record_every_claim_is_there_and_not_run(tmp_path):
    frame = scoreboard.claims(Store(tmp_path))
    assert len(frame) == sum(len(papers.claims(paper)) for paper in papers.names())
    assert set(frame["verdict"]) == {"not run"} and set(frame["setting"]) == {""} and frame["ours"].isna().all()
    of = frame.set_index(["of", "table"])["notebook"]
    assert set(of["fedfa", "table16"]) == {"fedfa/fig2_data_size"}
    assert set(of["fraug", "table2"]) == {"fraug/table2_main"}


@pytest.fixture
def two_profiles(tmp_path, monkeypatch):
    """Makes claims() see one notebook, whose runs are as told for each profile."""
    monkeypatch.setattr(papers, "names", lambda: ["fedrdn"])
    (tmp_path / "office_caltech10").mkdir()
    (tmp_path / "office_caltech10/a.json").write_text(json.dumps({}))

    def judge(paper, quick):
        told = {"paper": paper, "quick": quick}

        def judged(book, federation, profile, table, store, judge):
            frame = judge(told[profile], book.about["paper"], table)
            board = {"paper": "as printed", "quick": "small"}[profile]
            return frame.assign(setting=frame["ours"].notna().map({True: board, False: ""}))

        monkeypatch.setattr(scoreboard, "_judged", judged)
        frame = scoreboard.claims(Store(tmp_path)).query("of == 'fedrdn' and table == 'table1'")
        return frame[(frame["effect"] == "FedRDN - FedAvg") & (frame["federation"] == "office_caltech10")]

    return judge


def seeds(count):
    return results(*(run(label, [right], seed=seed) for label, right in RIGHT.items() for seed in range(count)))


@pytest.mark.parametrize(("paper", "quick"), [(1, 2), (2, 2), (1, 1), (0, 1), (2, 0)])
def test_a_claim_has_a_row_on_each_board_that_it_ran_for_the_papers_first(two_profiles, paper, quick):
    rows = two_profiles(seeds(paper), seeds(quick))
    expected = [("as printed", paper), ("small", quick)]
    assert list(zip(rows["setting"], rows["seeds"], strict=True)) == [each for each in expected if each[1]]
    assert (rows["verdict"] == "one seed").tolist() == [count == 1 for _, count in expected if count]


def test_a_claim_that_ran_nowhere_has_one_row(two_profiles):
    assert two_profiles(seeds(0), seeds(0))[["setting", "verdict"]].values.tolist() == [["", "not run"]]


def test_a_claim_run_over_other_sites_is_not_called_not_run(two_profiles):
    here = results(*(run(label, [right[:3]], images=dict(list(IMAGES.items())[:3])) for label, right in RIGHT.items()))
    assert two_profiles(seeds(0), here)["verdict"].tolist() == ["other sites"]


@pytest.mark.parametrize("counts", ["fedrdn/one", "fedrdn/other"])
@pytest.mark.parametrize(
    "others", [{"verdict": "not testable"}, {"deviations": "rounds 3 (paper: 9); width 7 (paper: 9)"}]
)
def test_of_several_notebooks_of_a_table_the_one_that_is_tested_nearest_to_the_paper_counts(
    tmp_path, monkeypatch, counts, others
):
    about = {"paper": "fedrdn", "result": "Table 1"}
    books = [SimpleNamespace(name=name, about=about) for name in ("fedrdn/one", "fedrdn/other")]
    monkeypatch.setattr(scoreboard.notebooks, "inside", lambda home: books)
    monkeypatch.setattr(papers, "names", lambda: ["fedrdn"])
    (tmp_path / "office_caltech10").mkdir()
    (tmp_path / "office_caltech10/a.json").write_text(json.dumps({}))

    def judged(book, federation, profile, table, store, judge):
        frame = judge(seeds(2), book.about["paper"], table).assign(setting="small", deviations="rounds 3 (paper: 9)")
        return frame if book.name == counts else frame.assign(**others)

    monkeypatch.setattr(scoreboard, "_judged", judged)
    frame = scoreboard.claims(Store(tmp_path)).query("table == 'table1' and federation == 'office_caltech10'")
    ran = frame[frame["effect"] == "FedRDN - FedAvg"]
    assert list(ran["notebook"]) == [counts] * len(ran) and len(ran) and "not testable" not in set(ran["verdict"])


def test_claims_rest_on_the_first_precision_of_each_federation():
    base, other = fednb.Recipe(precision="bf16"), fednb.Recipe(federation="shifted_strokes", model="unet")
    beside = [base.with_(precision="fp32"), base.with_(augmentations=[{"name": "fedfa", "variant": "released"}])]
    assert scoreboard._of_claims([base, *beside, other]) == [base, other] and other.precision == "fp32"


def test_four_sentences_add_up():
    verdicts = ["reproduced", "below", "below", "one seed", "not run", "not run", "older code", "not testable"]
    verdicts = [*verdicts, "not testable"]  # at the small setting, of the claim that is reproduced
    others = ["best test: larger", *[""] * 5, "last: above", "", ""]
    named = [f"{letter} is above." for letter in "ABCDEFGHA"]
    boards = ["as printed", *["small"] * 8]
    first, found, others, why = report.told(claims(verdicts, other_rules=others, claim=named, setting=boards))
    assert first == (
        "8 claims of 1 papers compare two runs; a pair that stands in several tables is one. At the paper's setting "
        "1 are tested: 1 reproduced."
    )
    assert found == (
        "At a smaller setting, which says nothing of what the paper found, 2 are tested: 2 below. On the two boards "
        "together 1 have another verdict by the paper's own rule of selection."
    )
    assert (
        others
        == "Tested at neither: 2 not run, 1 not testable here, 1 run with one seed only, 1 run by older code only."
    )
    assert why == "Of those not run, 2 are on data of which others are run (Office-Caltech-10 2)."
    nothing = report.told(claims(["not run"], ours=[float("nan")]))[3]
    assert nothing == "Of those not run, 1 are on data of which no claim is run yet (Office-Caltech-10 1)."
    assert report.told(claims(["above"]))[3] == "Every claim was run."


def test_counts_by_paper_are_of_claims_and_have_a_row_of_all():
    named = ["A is above.", "A is above.", "B is above.", "C is above."]
    verdicts, of = ["reproduced", "above", "not run", "one seed"], ["fedfa", "fedfa", "fedrdn", "fedrdn"]
    counts = report.by_paper(claims(verdicts, of=of, claim=named))
    assert counts.loc["FedRDN"].to_dict()["not tested"] == 2 and counts.loc["all"].to_dict()["claims"] == 3
    fedfa = counts.loc["FedFA"]  # one claim, on both boards
    assert (fedfa["claims"], fedfa["reproduced"], fedfa["above"], fedfa["not tested"]) == (1, 1, 1, 0)
    assert list(counts.index) == ["FedFA", "FedRDN", "all"]


def test_a_pair_that_stands_in_several_tables_is_one_row(tmp_path):
    frame = scoreboard.claims(Store(tmp_path))
    assert not frame.duplicated(["of", "federation", "effect"]).any()
    assert "table1, table5, table6" in set(frame["table"])
    assert report.by_paper(frame).loc["all", "claims"] == len(frame) == 473


def test_a_sentence_says_what_the_verdict_says():
    verdicts = ["below", "not told", "not testable", "not run", "other sites", "not run"]
    frame = claims(verdicts, why=["", "", "A is not level", "", "", ""])
    frame.loc[0, ["together_low", "together_high"]] = [1.0, 5.0]
    below, not_told, shut, not_run, others = report.sentences(report.board(frame)).split("\n\n")
    points = "- A is above B; here +2.0 points (+1.0 to +3.0, simultaneous"
    assert below == f"▽ Below, at another setting (1 of 6 claims)\n{points} +1.0 to +5.0)"
    assert not_told == f"? Not distinguished from zero (1 of 6 claims)\n{points} -1.0 to +5.0; detectable: 4.0)"
    assert shut.startswith("⊘ Not testable here (1 of 6 claims)\n- A is") and shut.endswith("; A is not level")
    assert (not_run, others) == ("– Not run: 2 claims", "≠ Run over other sites than the paper's: 1 claims")


@pytest.mark.parametrize("word", TESTED)
def test_every_verdict_has_an_outcome(word):
    heading, line = report.sentences(report.board(claims([word]))).splitlines()
    assert heading.startswith(VERDICTS[word].sign) and line.startswith("- A is above B; here +2.0 points")


def test_a_sentence_names_the_papers_rule_where_it_says_otherwise():
    table = report.board(claims(["above", "above"], other_rules=["best test: not told", ""]))
    _, first, second = report.sentences(table).splitlines()
    assert first.endswith("; by the paper's rule, best test: not told") and "rule" not in second
    assert table.cells["by the paper's rule"].tolist() == ["best test: not told", ""]


def test_sentences_of_effects_take_no_side_without_a_verdict():
    made = results(*(run(label, [right]) for label, right in RIGHT.items()))
    (told,) = report.sentences(report.effects(made, "fedavg")).splitlines()
    assert told.startswith("FedAvg + FedRDN against FedAvg, one seed and no verdict: +2")
    made = results(*(run(label, [right], seed=seed) for label, right in RIGHT.items() for seed in (0, 1)))
    assert "FedAvg + FedRDN is above FedAvg: +2" in report.sentences(report.effects(made, "fedavg"))
    assert report.sentences(report.effects(made, [("fedbn", "fedavg")])) == "No pair was run."


@pytest.mark.parametrize(
    ("where", "better", "worse", "said"),
    [
        (("cifar10", "40 %", "average"), "distrans", "", "DisTrans is 2.5 points above FedAvg on CIFAR-10 at DH 40 %."),
        (
            ("prostate_mri", "1/6", "BMC"),
            "fedfa",
            "mixup",
            "FedFA is 2.5 points of Dice above mixup on ProstateMRI at BMC with 1/6 of the training images.",
        ),
        (
            ("rxrx1", "8 clients", "average"),
            "fraug",
            "fraug(ema=False)",
            "FRAug is 2.5 points above FRAug (without EMA) on RxRx1 with 8 clients.",
        ),
        (
            ("domainnet", "unseen client", "average"),
            "mixup",
            "normalise",
            "Mixup is 2.5 points above FedAvg + norm. on DomainNet at unseen clients.",
        ),
        (
            ("prostate_mri", "1", "average"),
            "fedfa",
            "",
            "FedFA is 2.5 points of Dice above FedAvg on ProstateMRI with all of the training images.",
        ),
        (("emnist", "", "average"), "fedfa", "fedmix", "FedFA is 2.5 points above FedMix on EMNIST."),
        (
            ("cifar10", "Dir(0.3)", "average"),
            "fedfa",
            "",
            "FedFA is 2.5 points above FedAvg on CIFAR-10 at Dir(0.3).",
        ),
    ],
)
def test_a_claim_is_one_sentence(where, better, worse, said):
    sides = {"better": f"fedavg+{better}", "worse": f"fedavg+{worse}".rstrip("+")}
    claim = sides | dict(zip(("federation", "setting", "site"), where, strict=True))
    assert claimed(claim, [60.0, 62.5], 2.5) == said
    assert claimed(claim, [60.0, 62.25], 2.5) == said.replace("2.5", "2.50")


@pytest.mark.parametrize("paper", papers.names())
def test_claims_in_short_differ_within_a_table(paper):
    every = papers.claims(paper)
    short = [(claim["table"], claim["federation"], effect(claim)) for claim in every]
    assert len(set(short)) == len(short)
