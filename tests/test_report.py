import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy
import pandas
import pytest
from loaders import NAMES
from made_results import mean_accuracy, results, run
from scipy.stats import t

import fednb
from fednb import papers
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.report import (
    STAND_IN,
    claims,
    comparison,
    cross_site,
    effects,
    gates,
    rules_table,
    runs_table,
    scoreboard,
    sentences,
    table,
    wording,
)
from fednb.report.claims import verdict
from fednb.report.deviations import other_options
from fednb.report.effects import EFFECT, Effect
from fednb.report.gates import measured
from fednb.report.intervals import Measured, Spread, spreads_of, wilson
from fednb.report.selection import selected
from fednb.report.sentences import _points, paired_difference
from fednb.report.tables import joined
from fednb.report.wording import OTHER_DATA, number, signed

# 52.60, 44.89, 65.62, 86.44 per cent: FedAvg's row of Table 1, but for one image of Amazon.
FEDAVG = (101, 101, 21, 51)
FEDRDN = (117, 103, 27, 52)


def printed(number="table1"):
    frame = papers.printed("fedrdn", number, "office_caltech10")
    return frame[frame["algorithm"] == "fedavg"]


def stand_in(**other):
    other = {"images": {"plain": 157, "tinted": 158}, "federation": "shifted_digits"} | other
    return run("fedavg", [(100, 50)], [(30, 30)], stand_in=True, **other)


def cell(frame, row, site):
    return frame[(frame["row"] == row) & (frame["site"] == site)].iloc[0]


SHOWN = Path(__file__).with_name("shown_tables.txt")


def shown() -> str:
    """Each kind of table as text, of small made results: captions, settings, marks, numbers; then sentences."""
    seeds = [*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE, (1, -1, 0)), run("fedbn", [FEDAVG])]
    made, few = results(*seeds), results(*seeds[:3])
    curves = [[FEDAVG, FEDRDN, FEDAVG], [(10, 10, 10, 10), (9, 9, 9, 9), (8, 8, 8, 8)]]
    differ = results(run("fedavg", *curves), run("fedprox(mu=0.1)", [FEDAVG], [(9, 9, 9, 9)]))
    board, differences = scoreboard(made, "fedrdn", table="table1"), effects(made, "fedavg")
    tables = {
        "table": table(made, printed(), title="Table 1", caption="Accuracy"),
        "table, another rule": table(few, printed(), rule="best_test"),
        "table of nothing": table(results(), printed()),
        "table of a stand-in": table(results(stand_in()), printed()),
        "table of settings": table(on_cifar10(dealt("fedavg", 10, (80, 82)), dealt("fedavg", 5, (60, 62))), TABLE1),
        "table by model": table(across(), printed("table3")),
        "table over other sites": table(
            on_digits(("fedavg", (90, 90, 90))), papers.printed("fraug", "table2", "digits")
        ),
        "runs": runs_table(made),
        "runs, one seed of a stand-in": runs_table(results(stand_in())),
        "rules": rules_table(differ, title="Runs"),
        "rules of nothing": rules_table(results()),
        "claims": board,
        "differences": differences,
    }
    texts = {name: each.text() for name, each in tables.items()}
    texts |= {"sentences on claims": sentences(board), "sentences on differences": sentences(differences)}
    return "\n\n".join(f"## {name}\n\n{text}" for name, text in texts.items()) + "\n"


def test_tables_read_as_before():
    """After a change that is meant: ``python tests/test_report.py``, and read the difference."""
    assert shown() == SHOWN.read_text(encoding="utf-8")


def test_a_cell_has_paper_ours_interval_images_and_difference():
    frame = comparison(results(run("fedavg", [FEDAVG])), printed())
    amazon, average = (cell(frame, "FedAvg", site) for site in ("amazon", "average"))
    assert (amazon["ours"], amazon["low"], amazon["high"]) == wilson(101, 192)
    assert (amazon["paper"], amazon["images"], amazon["seeds"], amazon["outside"]) == (53.12, 192, 1, False)
    assert amazon["difference"] == pytest.approx(100 * 101 / 192 - 53.12)
    assert average["ours"] == pytest.approx(mean_accuracy(FEDAVG))
    assert average["images"] == 508 and average["paper"] == 62.51
    both = comparison(results(run("fedavg", [FEDAVG]), run("fedavg", [FEDRDN], seed=1)), printed())
    dslr = cell(both, "FedAvg", "dslr")
    assert (dslr["ours"], dslr["seeds"], dslr["images"]) == (pytest.approx(100 * 24 / 32), 2, 32)


def test_only_a_difference_that_the_spread_of_runs_does_not_explain_is_marked():
    # Amazon 60/192 = 31 % against 53.12: below; Webcam 59/59 against 86.44: above; the others as printed.
    seeds = [run("fedavg", [(60 + seed, 101 + seed, 21 + seed, 59)], seed=seed) for seed in (0, 1, -1)]
    made = results(*seeds)
    marked = comparison(made, printed()).query("outside")
    assert marked["site"].tolist() == ["amazon", "webcam"]
    assert table(made, printed()).cells.loc["FedAvg", "Amazon (192)"] == "31.3! | 53.1"
    assert not comparison(results(seeds[0]), printed())["outside"].any()
    made.paper = "fedrdn"  # whose setting has 256 x 256 pixels: levels of others are not compared
    assert "!" not in table(made, printed()).cells.to_string()


def test_halves_are_rounded_away_from_zero():
    """As floats some of these lie above their halves and some below."""
    assert [number(value) for value in (43.55, 83.05, 64.45, 0.05, pandas.Series([81.35])[0])] == [
        *("43.6", "83.1", "64.5", "0.1", "81.4")
    ]
    assert [signed(value) for value in (66.05 - 63.0, 1.05, -1.05, 0.04, -0.04)] == [
        *("+3.1", "+1.1", "-1.1", "+0.0", "-0.0")
    ]
    assert number(float("nan")) == signed(float("nan")) == "" and signed(-float("inf")) == "-inf"


def test_one_rule_gives_the_numbers_of_tables_and_sentences():
    """The mean of the last rounds unless another is asked for, rounded once."""
    made = results(*(run(label, [FEDRDN] + [right] * 29) for label, right in (("fedavg", BELOW), ("fedbn", ABOVE))))
    rows = {row: mean_accuracy(right) for row, right in (("FedAvg", BELOW), ("FedBN", ABOVE))}
    tables = comparison(made, printed()).query("site == 'average'").set_index("row")["ours"]
    runs = runs_table(made).frame.query("client == 'average'").set_index("row")["value"]
    for row, value in rows.items():
        assert tables[row] == pytest.approx(value) == runs[row]
    points = effects(made, [("fedbn", "fedavg")]).frame["ours"][0]
    assert points == pytest.approx(rows["FedBN"] - rows["FedAvg"])


def test_a_label_names_every_option_so_that_no_two_runs_share_one():
    released = run("fedavg+fedrdn(variant=released)", [FEDAVG])
    frame = comparison(results(run("fedavg+fedrdn", [FEDRDN]), released), printed())
    assert list(frame["row"].unique())[-2:] == ["FedAvg + FedRDN", "FedAvg + FedRDN, as released"]
    assert cell(frame, "FedAvg + FedRDN, as released", "amazon")["paper"] == 60.93
    alone = comparison(results(run("fedavg+fedrdn(x=1, stages=[1, 2])", [FEDAVG])), printed())
    assert "FedAvg + FedRDN (x = 1, stages {1, 2})" in set(alone["row"])  # other tables have other values
    assert alone.set_index("run")["fedrdn.stages"].dropna().unique().tolist() == [(1, 2)]
    made = results(run("fedavg", [FEDAVG], rounds=1), run("fedavg", [FEDRDN, FEDRDN], rounds=2))
    assert list(comparison(made, printed())["row"].unique())[:2] == ["FedAvg, rounds 1", "FedAvg, rounds 2"]


def test_two_sources_are_joined_where_each_row_has_a_partner():
    ours, theirs = (pandas.DataFrame({name: [1.0, 2.0]}, ["fedavg", "fedbn"]) for name in ("ours", "paper"))
    assert joined(ours[:1], theirs).to_dict("index") == {"fedavg": {"ours": 1.0, "paper": 1.0}}
    with pytest.raises(RecipeError, match="fedbn: no such row among FedAvg, FedBN"):
        joined(ours[1:], theirs.set_axis(["FedAvg", "FedBN"]))


def test_fedfa_as_an_augmentation_meets_fedfa_as_the_paper_names_it():
    frame = papers.printed("fedrdn", "table1", "office_caltech10")
    ours = comparison(results(run("fedavg+fedfa+fedmix", [FEDAVG])), frame)
    assert cell(ours, "FedAvg + FedFA + FedMix", "amazon")["paper"] == 56.25


def other_data(**other):
    frame = run("fedavg", [(15, 20)], images={"DRIVE": 20, "HRF": 21}, federation="retinal_vessels", stand_in=True)
    return results(frame.assign(**other))


def test_a_stand_in_is_never_compared_and_other_data_do_not_stand_beside_the_paper():
    for rows in (stand_in(), stand_in().assign(stand_in=False)):  # another federation is one without the mark, too
        made = table(results(rows), printed())
        assert made.caption[0].startswith(STAND_IN) and made.frame["difference"].isna().all()
    assert f'<strong style="color: #a40000">{STAND_IN}' in table(results(stand_in()), printed()).html()
    rules = rules_table(results(stand_in()))
    assert rules.caption[0].startswith(STAND_IN) and all(STAND_IN in name for name in rules.cells.columns)
    made = table(other_data(), papers.printed("fedrdn", "table2"))
    assert not any("paper" in column for column in made.cells.columns) and "FedRDN" not in made.text()
    for each in (made, rules_table(other_data()), effects(other_data(), "fedavg")):
        assert each.caption[0].startswith(OTHER_DATA) and each.mark
    board = scoreboard(other_data(), "fedrdn", table="table2")
    assert set(board.frame["verdict"]) == {"not run"} and f"Results on {OTHER_DATA} are left out" in board.text()
    real = results(run("fedavg", [FEDAVG]))
    for each in (table(real, printed()), rules_table(real), scoreboard(real, "fedrdn")):
        assert STAND_IN not in each.text() + each.html() and not each.mark


def test_a_wrong_printed_number_has_a_star_and_several_federations_are_refused():
    made = table(results(), papers.printed("fedrdn", "table2", "prostate_mri"))
    assert made.cells.loc["FedAvg", "average"] == "- | 90.0*"
    assert any(line.startswith("* FedAvg, average: The six cells average 84.52.") for line in made.setting)
    with pytest.raises(RecipeError, match="expected one"):
        table(results(run("fedavg", [FEDAVG])), papers.printed("fedrdn", "table1"))


def test_html_is_stable_text_with_the_setting_folded_and_names_escaped():
    made = results(*(run("fedavg", [[100]], images={"<i>": 192}, made_by=name) for name in ("<b>", "<u>")))
    page = table(made, printed(), title="<s>", caption="Accuracy")
    assert page.html() == table(made, printed(), title="<s>", caption="Accuracy").html() == page._repr_html_()
    assert repr(page) == page.text() and not any(tag in page.html() for tag in ("<b>", "<u>", "<i>", "<s>"))
    assert all(f"&lt;{tag}&gt;" in page.html() for tag in "bis")
    page = runs_table(results(run("fedavg", [[5] * len(NAMES)], images=dict.fromkeys(NAMES, 10)))).html()
    heads = re.findall(r'<th [^>]*class="col_heading[^>]*>(.*?)</th>', page, re.DOTALL)
    assert {html.unescape(head) for head in heads} == {"average", *(f"{name} (10 images)" for name in NAMES)}
    assert "<b>" not in page and 'class="mathjax_ignore tex2jax_ignore"' in page
    page = runs_table(results(*seeds_of("fedavg+fedrdn", ABOVE))).html()
    caption = page.partition("<caption>")[2].partition("</caption>")[0]
    assert "Test accuracy" in caption.partition("<details>")[0] and "Setting: " in caption.partition("<details>")[2]
    # an interval is text, also where a notebook that is not trusted loses its styles
    assert ">93.2 (82.9 to 99.1)</td>" in page and "mathjax" not in page


def across():
    """Amazon's model gets 10 images right at every site, DSLR's 20."""
    rows = run("fedavg", [FEDAVG, FEDAVG])
    return results(rows, cross_site={"amazon": [10, 10, 10, 10], "dslr": [20, 20, 20, 20]})


def test_each_local_model_is_compared_on_the_other_sites():
    rows = cross_site(across()).set_index(["source", "client"])
    assert len(rows) == 8 and set(rows["round"]) == {2}
    assert rows.loc[("dslr", "webcam"), "accuracy"] == pytest.approx(100 * 20 / 59)
    frame = comparison(across(), printed("table3"))
    near, far = (cell(frame, "FedAvg, model of Amazon", site) for site in ("dslr", "webcam"))
    assert near["paper"] == 46.87 and near["ours"] == 100 * 10 / 32
    assert far["paper"] == 77.96 and far["ours"] == pytest.approx(100 * 10 / 59)
    assert pandas.isna(cell(frame, "FedAvg, model of Caltech", "dslr")["ours"])
    assert "average" not in set(frame["site"])
    with pytest.raises(RecipeError, match='take "last"'):
        table(across(), printed("table3"), rule="best_test")


def test_rules_table_names_the_round_of_every_seed_and_says_whether_a_curve_still_rises():
    validations = [(10, 10, 10, 10), (9, 9, 9, 9), (8, 8, 8, 8)]
    rising = [
        run("fedavg", rounds, validations, seed=seed) for seed, rounds in enumerate(([FEDAVG] * 2 + [FEDRDN],) * 2)
    ]
    made = rules_table(results(*rising, run("fedbn", [FEDAVG], [(10, 10, 10, 10)], seed=0)))
    assert made.cells.index.tolist() == ["FedAvg, 2 seeds"]  # on the other the rules agree
    assert made.cells["best validation"].item().endswith("(round 1)") and "FedBN, 1 seed" in set(made.frame["row"])
    assert made.frame["rise"][0] == pytest.approx(mean_accuracy(FEDRDN) - mean_accuracy(FEDAVG))
    assert made.frame["spread"][0] == 0 and pandas.isna(made.frame["spread"].iloc[-1])
    without = rules_table(results(run("fedavg", [FEDAVG, FEDRDN])))
    assert set(without.frame["rule"]) == {"last", "best_test", "mean_of_last"}


def found(value, untested="", seeds=3, spread=3.0, error=2.0, level=0.05):
    """Of 20 degrees of freedom: 2.086 standard errors either way at 5 %."""
    bounds = value - 2.086 * error, value + 2.086 * error
    return Effect(Measured(value, *bounds, seeds, Spread(spread**2, 20), 0.01, error, 20), untested, level)


def test_verdicts_follow_the_written_rules():
    assert verdict(7.29, "not run", "as printed") == "not run"
    assert verdict(7.29, found(6, untested="one seed"), "small") == "one seed"
    # Within 4.17 points either way.
    for value, small, printed in (
        (-5, "below", "opposite"),
        (4.1, "not told", "not told"),
        (4.2, "above", "reproduced"),
    ):
        assert verdict(7.29, found(value), "small") == small
        assert verdict(7.29, found(value), "as printed") == printed
    # Three runs and a printed one: the difference has a standard error of 3 * sqrt(4 / 3) = 3.46, and 2.086 of them
    # (20 degrees of freedom) are 7.23 points.
    told = {value: verdict(7.29, found(value, error=0.01), "as printed") for value in (0.05, 3.7, 14.5, 14.6)}
    assert list(told.values()) == ["no effect as printed", "reproduced", "reproduced", "larger"]
    assert verdict(20.0, found(10.1, error=0.01), "as printed") == "smaller"
    # Half of the printed effect is 3.645: inside there is none, whether or not zero is left out, on either board.
    for board in ("small", "as printed"):
        assert verdict(7.29, found(1.0, error=1.2), board) == verdict(7.29, found(2.0, error=0.1), board)
        assert verdict(7.29, found(2.0, error=0.1), board) == "no effect as printed"
        assert verdict(0.8, found(0.1, error=0.2), board) == "no effect as printed"  # a point at least
        assert verdict(0.5, found(0.5, error=0.2), board) != "no effect as printed"  # the printed one is inside


def test_those_that_are_tested_together_need_more_each():
    alone, together = found(5), found(5, level=0.05 / 40)
    assert alone.direction == "above" and together.direction == "not told"
    assert together.together.low < 0 < alone.together.low == pytest.approx(alone.measured.low, abs=1e-3)
    # At 80 % power: 2.086 + 0.860 standard errors.
    assert alone.measured.smallest_told(0.05) == pytest.approx(2 * (2.0860 + 0.8600), abs=1e-3)


def test_a_printed_mean_of_three_runs_has_less_chance_than_one_run():
    # 2.086 times 3 * sqrt(1 / 3 + 1 / 3) are 5.11 points.
    assert verdict(15, found(9.0, error=1), "as printed") == "reproduced"
    assert verdict(15, found(9.0, error=1), "as printed", 3) == "smaller"
    # Amazon 98/192 is 2.1 points below the printed number; with two degrees of freedom 2.6 and 1.8 count.
    seeds = results(*seeds_of("fedavg", (98, *FEDAVG[1:])))
    for runs, coloured in ((1, False), (3, True)):
        assert cell(comparison(seeds, printed().assign(runs=runs)), "FedAvg", "amazon")["outside"] == coloured


def seeds_of(label, right, shifts=(0, 1, -1), **other):
    """Three seeds of a run, with so many images more or fewer at each site."""
    rounds = [[tuple(count + shift for count in right)] for shift in shifts]
    return [run(label, tests, seed=seed, **other) for seed, tests in enumerate(rounds)]


BELOW, ABOVE = (60, 70, 10, 30), (150, 170, 28, 55)


def test_scoreboard_has_printed_effect_ours_interval_and_verdict():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE, (1, -1, 0)))
    rows = scoreboard(made, "fedrdn", table="table1").frame.set_index("claim")
    row = rows.loc["FedRDN is 7.29 points above FedAvg on Office-Caltech-10."]
    assert row["paper"] == pytest.approx(7.29) and row["verdict"] == "above" and row["seeds"] == 3
    expected = mean_accuracy(ABOVE) - mean_accuracy(BELOW)
    assert row["ours"] == pytest.approx(expected) and row["p"] < 1e-6
    assert row["together_low"] < row["low"] < expected < row["high"] < row["together_high"]
    assert row["setting"] == "small" and "size 128 (paper: 256); rounds 1 (paper: 100)" in row["deviations"]
    turned = results(*seeds_of("fedavg+fedrdn", BELOW), *seeds_of("fedavg", ABOVE))
    assert scoreboard(turned, "fedrdn").frame["verdict"][0] == "below"
    assert rows.loc["FedProx + FedRDN is 7.87 points above FedProx on Office-Caltech-10."]["verdict"] == "not run"
    assert set(rows["table"]) == {"table1"} and set(rows["other_rules"]) == {""}


def test_at_the_papers_setting_a_claim_is_held_against_the_printed_effect():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE))
    for record in made.records:
        record.recipe = {"federation": record.recipe["federation"] | {"size": 256}, "precision": "bf16", "seed": 0}
    row = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
    assert (row["setting"], row["verdict"], row["deviations"]) == ("as printed", "larger", "")
    gap = scoreboard(made, "fedrdn", table="table1").cells["ours - paper"].iloc[0]
    assert gap == f"{row['gap_low']:+.1f} to {row['gap_high']:+.1f}" and row["gap_low"] > 0
    assert row["gap_low"] < row["ours"] - row["paper"] < row["gap_high"]


def test_a_shut_gate_is_the_reason_that_is_shown(monkeypatch):
    made = results(*seeds_of("fedavg", (20, 23, 4, 6)), *seeds_of("fedavg+fedrdn", ABOVE))
    row = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
    assert row["verdict"] == "not testable" and re.match(
        "FedAvg is not distinguished from a constant answer", row["why"]
    )
    rounds = [(50, 60, 8, 20), (60, 70, 10, 30), (60, 70, 10, 30), (100, 110, 16, 40)]
    rising = [run("fedavg", rounds, seed=seed) for seed in (0, 1)]
    made = results(*rising, *(run("fedavg+fedrdn", [ABOVE] * 4, seed=seed) for seed in (0, 1)))
    row = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
    assert row["verdict"] == "not testable" and re.match(r"FedAvg is not level: \+\d", row["why"])
    needed = [{"paper": "fedrdn", "federation": "office_caltech10", "better": "fedavg", "worse": "fedbn"}]
    rules = protocol.rules() | {"precondition": needed}
    monkeypatch.setattr(protocol, "rules", lambda: rules)
    made = [*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE)]
    row = scoreboard(results(*made), "fedrdn", table="table1").frame.iloc[0]
    assert row["why"] == "FedAvg above FedBN is needed, and not run"
    row = scoreboard(results(*made, *seeds_of("fedbn", ABOVE)), "fedrdn", table="table1").frame.iloc[0]
    assert row["why"].startswith("FedAvg is not above FedBN here (3") and row["verdict"] == "not testable"
    row = scoreboard(results(*made, *seeds_of("fedbn", (50, 50, 5, 10))), "fedrdn", table="table1").frame.iloc[0]
    assert row["why"] == "" and row["verdict"] == "above"
    elsewhere = seeds_of("fedbn", (50, 50, 5, 10), alpha=2) + seeds_of("fedavg", ABOVE, alpha=2)
    made = results(*(rows.assign(alpha=1) for rows in made), *elsewhere)
    row = claims.judged(made, "fedrdn", keys={key for key in made.frame["key"] if "alpha" not in key}).iloc[0]
    assert row["why"] == "FedAvg above FedBN is needed, and not run"  # in this setting


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [
        ("fedavg", "fedavg", "the difference that is printed is 0.00"),
        ("fedavg", "nobody", "its rows are fedavg, "),
        ("fedavg", "fedavg+fedrdn", "the difference that is printed is -7.29"),
    ],
)
def test_a_claim_that_its_table_does_not_print_is_refused_by_name(monkeypatch, better, worse, said):
    claim = papers.claims("fedrdn")[0] | {"better": better, "worse": worse}
    monkeypatch.setattr(papers, "claims", lambda paper: [claim])
    with pytest.raises(RecipeError, match=f"is of {re.escape(f'{better} above {worse}')} in table1 .*, and {said}"):
        scoreboard(results(run("fedavg", [BELOW])), "fedrdn")


def test_a_gate_without_its_constant_answer_is_shut_and_says_what_to_do():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE))
    for record in made.records:
        record.recipe = record.recipe | {"federation": {"name": "office_caltech10", "size": 7}}
    row = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
    assert row["verdict"] == "not testable" and row["ours"] > 0
    said = "no constant answer is known on this office_caltech10: python tools/trivial.py adds it"
    assert row["why"] == said


def test_an_option_that_is_off_is_one_that_older_records_lack():
    older, newer = (results(*seeds_of("fedavg", BELOW)) for _ in range(2))
    for record in newer.records:
        record.recipe = record.recipe | {"federation": record.recipe["federation"] | {"spare": False}}
    assert gates.trivial(newer.records[0]) == gates.trivial(older.records[0]) is not None
    assert wording.setting(newer) == wording.setting(older)


def test_a_constant_answer_is_each_clients_most_frequent_class():
    data = fednb.load("shifted_digits")
    known = measured(data)
    for site in data.sites:
        most = max(range(10), key=site.train.targets.tolist().count)
        assert known["clients"][site.name] == pytest.approx(
            100 * site.test.targets.tolist().count(most) / len(site.test)
        )
    assert known == json.loads(gates.TRIVIAL.read_text())['{"name": "shifted_digits", "size": 32}']


def test_one_seed_has_a_number_and_no_verdict():
    made = scoreboard(results(run("fedavg", [BELOW]), run("fedavg+fedrdn", [ABOVE])), "fedrdn", table="table1")
    first = made.frame.iloc[0]
    assert first["verdict"] == "one seed" and first["ours"] > 30 and first["low"] > 0
    assert made.cells["95 %"].iloc[0].endswith("(images only)")
    assert made.setting[0].startswith("Images only: one seed")
    # The same images are right but for those that one of the two has more of: the interval is a paired one.
    unpaired = scoreboard(
        results(run("fedavg", [BELOW]), run("fedavg+fedrdn", [ABOVE]), scores=lambda rows: {}), "fedrdn"
    )
    other = unpaired.frame.iloc[0]
    assert other["ours"] == pytest.approx(first["ours"]) and other["high"] - other["low"] > first["high"] - first["low"]


def test_one_seed_without_scores_of_its_images_rests_on_counts_and_says_so():
    made = results(run("fedavg", [BELOW]), run("fedavg+fedrdn", [ABOVE]), scores=lambda rows: {})
    for shown in (scoreboard(made, "fedrdn", table="table1"), effects(made, "fedavg")):
        assert shown.cells.iloc[0].iloc[0] == "not paired"
        assert shown.cells["95 %"].iloc[0].endswith("(counts only)") and "images only" not in shown.text()
        assert any(line.startswith("Counts only") for line in shown.setting)


def test_seeds_count_in_which_both_saw_the_same_images():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE))
    told = []
    for record in made.records[:3]:
        record.fingerprint = "1" * 16
        first = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
        told.append((first["verdict"], first["seeds"]))
    assert told == [("above", 2), ("one seed", 1), ("not paired", 3)]
    for record in made.records[3:5]:  # two seeds of one set of images, and one of another
        record.fingerprint = "1" * 16
    assert scoreboard(made, "fedrdn", table="table1").frame["seeds"][0] == 2


def by_seed(*sides, seeds=3):
    """Runs whose partition is that of their seed: of each site other images in each, whose scores are drawn.

    sides: a label and the share of right answers.
    """
    draws, runs, scores = numpy.random.default_rng(7), [], {}
    for label, right in sides:
        for seed in range(seeds):
            images = {"client_0": 30 + 5 * seed, "client_1": 40} | ({"client_2": 20} if seed != 1 else {})
            own = [draws.random(count) < right - 0.05 * seed for count in images.values()]
            counts = [tuple(int(site.sum()) for site in own)]
            rows = run(label, counts, seed=seed, images=images, federation="cifar10", dealt_by_seed=True)
            scores[rows["key"].iloc[0]] = [1.0 * site for site in own]
            runs.append(rows)
    made = results(*runs, scores=lambda rows: {1: scores[rows["key"].iloc[0]]})
    for record in made.records:
        seed = int(record.key.split()[1])
        record.recipe |= {"federation": {"name": "cifar10", "seed": "run"}, "seed": seed}
        record.fingerprint = str(seed)
    return made, scores


def test_an_effect_of_seeds_with_partitions_of_their_own():
    """Against another computation, in double precision, from the scores of the images; client_1 has as many in all."""
    made, scores = by_seed(("fedavg", 0.5), ("fedavg+fedrdn", 0.6), ("fedprox", 0.55))
    [row] = effects(made, [("fedavg+fedrdn", "fedavg")]).frame.itertuples()
    keys = [[key for key in scores if key.split()[0] == name] for name in ("fedavg+fedrdn", "fedavg")]
    differences = [
        [100 * (a - b) / len(scores[better]) for a, b in zip(scores[better], scores[worse], strict=True)]
        for better, worse in zip(*keys, strict=True)
    ]
    values = [sum(site.mean() for site in seed) for seed in differences]
    assert row.ours == pytest.approx(numpy.mean(values), rel=1e-12) and row.seeds == 3
    sites = [[seed[k] for seed in differences if k < len(seed)] for k in range(3)]
    apart = [sum(own.var(ddof=1) / len(own) for own in site) / 9 for site in sites]
    apart[1] = max(apart[1], numpy.mean(sites[1], axis=0).var(ddof=1) / 40)
    parts = list(zip(apart, (29, 39, 19), strict=True))
    spreads = [spreads_of(selected(made.frame))[own[0]]["average"] for own in keys]
    if sum(own.variance for own in spreads) < numpy.var(values, ddof=1):
        spreads = [(numpy.var(values, ddof=1), 2)]
    parts += [(variance / 3, freedom) for variance, freedom in spreads]
    variance = sum(own for own, _ in parts)
    freedom = variance**2 / sum(own**2 / each for own, each in parts)
    assert row.high - row.ours == pytest.approx(t.ppf(0.975, freedom) * variance**0.5, rel=1e-9)
    assert row.p == pytest.approx(2 * t.sf(abs(row.ours) / variance**0.5, freedom), rel=1e-9)


def test_with_partitions_of_their_own_both_sides_of_a_seed_need_the_same_images():
    sides = ("fedavg", 0.5), ("fedavg+fedrdn", 0.6)
    assert effects(by_seed(*sides)[0], "fedavg").frame["direction"][0] in ("not told", "above")
    turned, _ = by_seed(*sides)
    for left in (2, 1):
        turned.records[2 - left].fingerprint = "another"
        assert effects(turned, "fedavg").frame["seeds"][0] == left
    turned.records[2].fingerprint = "another"
    assert effects(turned, "fedavg").frame["direction"][0] == "not paired"
    one_partition = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE))
    assert effects(one_partition, "fedavg").frame["direction"][0] == "above"
    for record in one_partition.records:
        record.fingerprint = record.key.split()[1]
    assert effects(one_partition, "fedavg").frame["direction"][0] == "one seed"


def test_a_constant_answer_is_that_of_the_seeds_partition(monkeypatch):
    federation = {"name": "cifar10", "seed": "run"}
    known = {
        json.dumps({"name": "cifar10", "seed": seed}, sort_keys=True): {"chance": 10.0, "clients": {"a": value}}
        for seed, value in ((0, 20.0), (1, 50.0))
    }
    monkeypatch.setattr(gates, "_known", lambda project: known)
    records = [SimpleNamespace(recipe={"federation": federation, "seed": seed}) for seed in (0, 1, 2)]
    assert [gates.trivial(record) for record in records] == [20.0, 50.0, None]
    made, _ = by_seed(("fedavg", 0.5), ("fedavg+fedrdn", 0.6), seeds=2)
    claim = {"site": "average", "federation": "cifar10"}
    keys = tuple(record.key for record in made.records)
    assert (
        gates.gate(made, "fedrdn", claim, keys, "last", spreads_of(selected(made.frame)))
        == "FedAvg is not distinguished from a constant answer (35.0 %)"
    )


def test_of_older_code_too_the_seeds_that_both_have_are_compared():
    more = run("fedavg+fedrdn", [FEDAVG], seed=1, stale=True)
    made = results(run("fedavg", [BELOW]), run("fedavg+fedrdn", [ABOVE], stale=True), more)
    row = effects(made, [("fedavg+fedrdn", "fedavg")]).frame.iloc[0]
    assert row["seeds"] == 1 and row["ours"] == pytest.approx(mean_accuracy(ABOVE) - mean_accuracy(BELOW))


def test_older_code_has_no_verdict_and_says_so_in_every_table():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE, stale=True))
    assert scoreboard(made, "fedrdn", table="table1").frame["verdict"][0] == "older code"
    assert "FedAvg + FedRDN, older code" in runs_table(made).cells.index
    rows = comparison(made, printed())
    assert "FedAvg + FedRDN, older code" in rows["row"].tolist() and rows["ours"].notna().any()
    assert not rows.loc[rows["row"] == "FedAvg + FedRDN, older code", "outside"].any()
    assert effects(made, [("fedavg+fedrdn", "fedavg")]).frame["direction"][0] == "older code"


def test_a_verdict_that_changes_with_the_papers_rule_says_so():
    def curve(label, first, second):
        for seed, shift in enumerate((0, 1, -1)):
            tests = [tuple(count + shift for count in right) for right in (first, second)]
            yield run(label, tests, [(8, 8, 8, 8), (9, 9, 9, 9)], seed=seed)

    made = results(*curve("fedavg", BELOW, BELOW), *curve("fedavg+fedrdn", ABOVE, BELOW))
    rules = protocol.rules() | {"level_curve": 99.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "rules", lambda: rules)
        row = scoreboard(made, "fedrdn", table="table1").frame.iloc[0]
        assert row["verdict"] == "not told" and row["other_rules"] == "best test: above"


def four(first, shifts=(-2, 0, 2)):
    """Four pairs on 100 images: the first better by so many, the others by none, each seed shifted by a little."""
    pairs = [("fedprox", "fedprox+fedrdn"), ("scaffold", "scaffold+fedrdn"), ("fednova", "fednova+fedrdn")]
    pairs = [("fedavg", "fedavg+fedrdn"), *pairs]
    site = {"images": {"here": 100}}
    return [
        [run(label, [(50 + better * number + shift,)], seed=seed, **site) for seed, shift in enumerate(order)]
        for better, (plain, method) in zip((first, 0, 0, 0), pairs, strict=True)
        for number, (label, order) in enumerate([(plain, shifts), (method, shifts[::-1])])
    ]


def test_effects_of_one_table_are_tested_together():
    """Clear alone, none among four: p is above 0.05 / 4."""
    pairs = [(f"{name}+fedrdn", name) for name in ("fedavg", "fedprox", "scaffold", "fednova")]
    for first, told in ((7, ["not told"] * 4), (9, ["above"] + ["not told"] * 3)):
        runs = [run for runs_of in four(first) for run in runs_of]
        made = effects(results(*runs), pairs).frame
        assert made["direction"].tolist() == told and made["p"][0] < 0.05
        assert (made["p"][0] < 0.0125) == (told[0] == "above") == (made["together_low"][0] > 0)
        [alone] = effects(results(*runs), pairs[:1]).frame["direction"]
        assert alone == "above"


def test_a_pair_has_one_verdict_whatever_else_was_run():
    """All pairs that the paper prints on the data set count, run or not; the spread is that of all that is known."""
    pair = [*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", (62, 72, 11, 31))]
    few, many = results(*pair), results(*pair, *seeds_of("fedprox", BELOW), *seeds_of("fedprox+fedrdn", ABOVE))
    few.alike = many.alike
    first, second = (scoreboard(made, "fedrdn", table="table1").frame.iloc[0] for made in (few, many))
    assert first.drop("other_rules").equals(second.drop("other_rules"))
    assert papers.family("fedrdn", "office_caltech10") == 30


def test_a_claim_is_not_held_against_itself():
    """Where one run alone could stand for both sides, nothing was run of one of them."""
    few = {"name": "fraug", "generator": "False", "ema": "False"}
    label = f"fedavg+fraug(generator={few['generator']}, ema={few['ema']})"
    made = results(
        *(
            run(label, [(90, 90, 90, 90)], seed=seed, images=DIGITS | {"svhn": 100}, federation="digits")
            for seed in (0, 1)
        )
    )
    assert set(scoreboard(made, "fraug", table="table5").frame["verdict"]) == {"not run"}


def test_a_pair_that_is_a_claim_has_the_claims_verdict_in_a_table_of_differences():
    """Numbers, word and gates are the scoreboard's, either way round; else it is a pair as any."""
    pairs = [("fedprox+fedrdn", "fedprox"), ("fedprox", "fedprox+fedrdn"), ("fedbn", "fedprox")]
    made = results(
        *seeds_of("fedprox", BELOW), *seeds_of("fedprox+fedrdn", ABOVE, (1, -1, 0)), *seeds_of("fedbn", BELOW)
    )
    made.paper = "distrans"  # which claims nothing of these
    alone = effects(made, pairs).frame
    made.paper = None  # then of any paper
    of_any = effects(made, pairs).frame
    made.paper = "fedrdn"
    assert effects(made, pairs).frame.equals(of_any)
    few = effects(made, pairs[1:2]).frame.iloc[0]  # whatever else is asked for
    assert few["together_low"] == of_any["together_low"][1]
    claim = scoreboard(made, "fedrdn", table="table1").frame.query("ours.notna()").iloc[0]
    first, turned, other = effects(made, pairs).frame.to_dict("records")
    for name in EFFECT:
        assert first[name] == claim[name]
    assert (first["direction"], turned["direction"]) == (claim["verdict"], {"above": "below"}.get(claim["verdict"]))
    assert turned["together_low"] == -first["together_high"] and turned["ours"] == -first["ours"]
    assert other["together_low"] == pytest.approx(alone["together_low"][2]) and other["direction"] != "not testable"
    assert first["together_low"] < alone["together_low"][0]
    by_its_own = effects(made, pairs[:1], rule="best_test").frame
    assert by_its_own["together_low"][0] > first["together_low"]
    shut = results(*seeds_of("fedavg", (20, 23, 4, 6)), *seeds_of("fedavg+fedrdn", ABOVE))
    shut.paper = "fedrdn"
    table = effects(shut, "fedavg")
    assert table.frame["direction"].tolist() == ["not testable"] and "constant answer" in table.cells["why"].iloc[0]
    assert "FedAvg + FedRDN against FedAvg, not testable, as FedAvg is not distinguished from a constant" in sentences(
        table
    )


def test_a_verdict_rests_on_the_seeds_that_the_protocol_has():
    pair = (("fedavg", BELOW), ("fedavg+fedrdn", ABOVE))
    shifts = {0: 0, 1: 1, 100: 8}  # a wild run on a seed that settings are chosen on
    made = [
        run(label, [tuple(count + shift for count in right)], seed=seed)
        for label, right in pair
        for seed, shift in shifts.items()
    ]
    more, few = results(*made), results(*(rows for rows in made if rows["seed"].iloc[0] < 100))
    rows = [scoreboard(own, "fedrdn", table="table1").frame.iloc[0] for own in (more, few)]
    assert rows[0]["seeds"] == 2 and rows[0]["together_low"] == rows[1]["together_low"]
    more.paper = "fedrdn"
    assert effects(more, "fedavg").frame["together_low"].tolist() == [rows[0]["together_low"]]


def test_an_option_that_one_table_has_of_its_own_is_the_papers_there():
    """FedRDN prints beta = 0.01 for FedAvgM on ProstateMRI, its Table 2, and 0.9 elsewhere."""
    assert other_options("fedrdn", "fedavgm(beta=0.01)", "fedavgm", "table2") == []
    assert other_options("fedrdn", "fedavgm(beta=0.01)", "fedavgm", "table1") == ["FedAvgM (β = 0.01)"]
    assert other_options("fedrdn", "fedavgm", "fedavgm", "table1") == []


def test_an_option_that_is_not_the_papers_is_a_deviation():
    made = results(*seeds_of("fedprox(mu=0.5)", BELOW), *seeds_of("fedprox(mu=0.5)+fedrdn", ABOVE))
    for record in made.records:
        record.recipe = {"federation": record.recipe["federation"] | {"size": 256}, "precision": "bf16", "seed": 0}
    row = scoreboard(made, "fedrdn", table="table1").frame.query("ours.notna()").iloc[0]
    assert row["setting"] == "small" and row["deviations"] == "FedProx (μ = 0.5)"


def test_sides_of_different_settings_are_refused():
    made = results(*seeds_of("fedavg", BELOW, alpha=1), *seeds_of("fedavg+fedrdn", ABOVE, alpha=2))
    with pytest.raises(RecipeError, match="fedavg.fedrdn and fedavg were run in different settings"):
        effects(made, [("fedavg+fedrdn", "fedavg")])
    with pytest.raises(RecipeError, match="different settings"):
        scoreboard(made, "fedrdn", table="table1")


def test_effects_within_each_value_of_a_field():
    rows = [
        run(label, [(right,) * 2], seed=seed, images={"a": 100, "b": 50}, alpha=alpha)
        for label, right in (("fedavg", 20), ("fedavg+fedfa", 30))
        for seed in (0, 1)
        for alpha in (0.1, 0.5)
    ]
    made = effects(results(*rows), [("fedavg+fedfa", "fedavg"), ("fedavg+fedrdn", "fedavg")], by="alpha")
    assert made.cells.index.tolist() == ["alpha 0.1: FedAvg + FedFA - FedAvg", "alpha 0.5: FedAvg + FedFA - FedAvg"]
    assert made.frame["ours"].tolist() == pytest.approx([15, 15]) and set(made.frame["direction"]) == {"above"}
    assert made.frame["alpha"].tolist() == [0.1, 0.5]
    site = effects(results(*rows), [("fedavg+fedfa", "fedavg")], by="alpha", client="b")
    assert site.frame["ours"].tolist() == pytest.approx([20, 20])
    turned = effects(results(*rows), [("fedavg", "fedavg+fedfa")], by="alpha")
    assert set(turned.frame["direction"]) == {"below"}


def test_scoreboard_refuses_two_settings_of_one_side():
    made = results(run("fedavg", [FEDAVG], rounds=1), run("fedavg", [FEDAVG], rounds=2))
    with pytest.raises(RecipeError, match="rounds 1; FedAvg, rounds 2"):
        scoreboard(made, "fedrdn")


TABLE1 = papers.printed("distrans", "table1", "cifar10")
TABLE8 = papers.printed("fedfa", "table8", "office_caltech10")


def test_a_run_stands_beside_the_printed_row_with_its_options():
    runs = ("fedavg", "fedavg+fedfa(stages=[1, 2])", "fedavg+fedfa(stages=[1, 2], probability=1.0)", "fedavg+fedfa")
    frame = comparison(results(*(run(label, [FEDAVG]) for label in runs)), TABLE8)
    ran = frame[(frame["site"] == "average") & frame["ours"].notna()]
    assert ran[["row", "paper"]].values.tolist() == [
        ["FedAvg", 78.5],
        ["FedAvg + FedFA (stages {1, 2})", 80.0],
        ["FedAvg + FedFA (stages {1, 2}, p = 1)", 80.0],
        ["FedAvg + FedFA", 83.1],
    ]
    assert len(frame[frame["site"] == "average"]) == 17


def dealt(label, classes, right, **other):
    """A run on CIFAR-10 dealt to two clients with so many classes each, with 100 test images each."""
    about = {"images": {"client_0": 100, "client_1": 100}, "federation": "cifar10", "classes_per_client": classes}
    return run(label, [right], **(about | other))


def on_cifar10(*runs):
    made = results(*runs)
    classes = made.frame.groupby("key")["classes_per_client"].first()
    for record in made.records:
        federation = {"name": "cifar10", "clients": 10, "classes_per_client": int(classes[record.key])}
        record.recipe = record.recipe | {"federation": federation}
    return made


def test_runs_stand_under_the_printed_setting_that_their_federation_makes():
    made = on_cifar10(
        dealt("fedavg", 10, (80, 82)),
        dealt("fedavg", 6, (70, 72)),
        dealt("fedavg", 5, (60, 62)),
        dealt("fedavg+distrans", 6, (90, 92)),
    )
    frame = comparison(made, papers.printed("distrans", "table1", "cifar10"))
    iid, some = cell(frame, "FedAvg", "0 %"), cell(frame, "FedAvg", "40 %")
    assert (iid["paper"], iid["ours"], iid["images"]) == (80.9, 81.0, 200)
    assert (some["paper"], some["ours"]) == (78.2, 71.0) and some["difference"] == pytest.approx(-7.2)
    assert pandas.isna(cell(frame, "FedAvg", "60 %")["ours"])
    assert cell(frame, "FedAvg + DisTrans", "40 %")["ours"] == 91.0
    other = cell(frame, "FedAvg", "classes per client 5")
    assert other["ours"] == 61.0 and pandas.isna(other["paper"])
    made = table(made, papers.printed("distrans", "table1", "cifar10"))
    assert list(made.cells.columns)[:2] == ["0 % (200)", "40 % (200)"]
    assert made.cells.loc["FedAvg", "80 %"] == "- | 70.2"
    assert any(line.startswith("Columns are the paper's settings") for line in made.caption)


def test_the_spread_of_seeds_is_of_one_printed_setting():
    """Seeds lie 8 points apart at 0 % and nowhere else: the interval at 40 % is that of a table without 0 %."""
    even = [dealt("fedavg", 6, (70, 72), seed=seed) for seed in (0, 1)]
    both = on_cifar10(*even, dealt("fedavg", 10, (60, 62), seed=0), dealt("fedavg", 10, (68, 70), seed=1))
    printed = papers.printed("distrans", "table1", "cifar10")
    there, alone = (cell(comparison(made, printed), "FedAvg", "40 %") for made in (both, on_cifar10(*even)))
    assert (there["low"], there["high"]) == (alone["low"], alone["high"])


DIGITS = {"mnist": 100, "mnist_m": 100, "usps": 100}


def on_digits(*labels_and_rights, images=DIGITS):
    return results(*(run(label, [right], images=images, federation="digits") for label, right in labels_and_rights))


def test_averages_over_other_sites_than_the_papers_are_not_compared():
    made = on_digits(("fedavg", (90, 90, 90)))
    shown = table(made, papers.printed("fraug", "table2", "digits"))
    average = cell(shown.frame, "FedAvg", "average")
    assert average["paper"] == 85.62 and average["ours"] == 90 and pandas.isna(average["difference"])
    assert cell(shown.frame, "FedAvg", "usps")["difference"] == pytest.approx(90 - 97.62)
    said = "Averages not compared: the paper's are over MNIST, MNIST-M, SVHN, USPS, ours over MNIST, MNIST-M, USPS."
    assert said in shown.caption
    ablation = comparison(made, papers.printed("fraug", "table5", "digits"))  # names no site
    assert ablation["difference"].isna().all()
    everywhere = on_digits(("fedavg", (90, 90, 90, 90)), images=DIGITS | {"svhn": 100})
    frame = comparison(everywhere, papers.printed("fraug", "table2", "digits"))
    assert cell(frame, "FedAvg", "average")["difference"] == pytest.approx(90 - 85.62)


def test_a_claims_side_is_the_run_with_its_own_options():
    made = results(
        run("fedavg", [BELOW]),
        run("fedavg+fedfa", [ABOVE]),
        run("fedavg+fedfa(stages=[1])", [(60, 70, 10, 30)]),
        run("fedavg+fedfa(variant=released)", [(100, 100, 20, 40)]),
    )
    rows = scoreboard(made, "fedfa", table="table8").frame.set_index("claim")
    claim = rows.loc["FedFA is 4.3 points above FedFA (stages {1}) on Office-Caltech-10."]
    assert claim["ours"] == pytest.approx(mean_accuracy((150, 170, 28, 55)) - mean_accuracy((60, 70, 10, 30)))
    assert rows.loc["FedFA (stages {1}) is 0.3 points above FedAvg on Office-Caltech-10.", "ours"] == 0
    alone = results(run("fedavg", [FEDAVG]), run("fedavg+fedfa(variant=released)", [FEDRDN]))
    rows = scoreboard(alone, "fedfa", table="table1").frame.set_index("claim")
    assert rows.loc["FedFA is 4.6 points above FedAvg on Office-Caltech-10.", "seeds"] == 1


def test_a_claim_under_a_setting_takes_runs_on_it_alone():
    made = on_cifar10(
        dealt("fedavg", 10, (80, 82)),
        dealt("fedavg", 6, (30, 32)),
        dealt("fedavg+distrans", 6, (90, 92)),
        dealt("fedavg+distrans", 4, (10, 12)),
    )
    rows = scoreboard(made, "distrans", table="table1").frame.set_index("claim")
    there = rows.loc["DisTrans is 3.7 points above FedAvg on CIFAR-10 at DH 40 %."]
    assert there["ours"] == pytest.approx(60) and there["verdict"] == "one seed"
    others = rows["verdict"].drop("DisTrans is 3.7 points above FedAvg on CIFAR-10 at DH 40 %.")
    others_on_it = others[others.index.str.contains("above FedAvg on CIFAR-10 ")]
    told = {level: others_on_it[others_on_it.index.str.contains(f"DH {level} %")].item() for level in (0, 60, 80, 100)}
    assert set(told.values()) == {"not run"}  # one side at DH 0 and 60 %, none at the others
    assert set(others[~others.index.str.contains("CIFAR-10")]) == {"not run"}


def test_a_claim_on_an_average_needs_all_its_sites_and_one_on_a_site_that_site():
    made = on_digits(("fedavg", (50, 50, 50)), ("fedavg+fraug", (90, 90, 90)))
    rows = scoreboard(made, "fraug", table="table2").frame.set_index("claim")["verdict"]
    assert rows["FRAug is 3.97 points above FedAvg on Digits."] == "other sites"
    assert rows["FRAug is 8.14 points above FedAvg on Digits at MNIST-M."] == "one seed"
    assert rows["FRAug is 6.75 points above FedAvg on Digits at SVHN."] == "not run"


def test_a_run_with_unseen_sites_stands_in_no_row_and_behind_no_claim():
    made = results(run("fedavg", [(10, 10, 10, 10)]), run("fedavg+fedrdn", [(20, 20, 20, 20)]))
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    assert len(comparison(made, printed)["ours"].dropna()) == 10
    for record in made.records:
        record.recipe["unseen"] = ["dslr"]
    assert comparison(made, printed)["ours"].isna().all()
    assert set(scoreboard(made, "fedrdn").frame["verdict"]) == {"not run"}


def test_a_difference_is_told_where_its_interval_over_seeds_leaves_zero_out():
    # differences -9, -5, -13: deviation 4, t(0.975, 2) = 4.3027, so that the reach is 4.3027 * 4 / sqrt(3) = 9.94
    assert paired_difference([61, 63, 60], [70, 68, 73]) == "-9.0 points (-18.9 to +0.9), not told"
    assert paired_difference([61, 63, 62], [70, 71, 72]) == "-9.0 points (-11.5 to -6.5), below"
    assert paired_difference([70, 71, 72], [61, 63, 62], together=3) == "+9.0 points (+4.6 to +13.4), above"
    assert paired_difference([61], [70]) == "-9.0 points"
    with pytest.raises(ValueError, match="shorter"):
        paired_difference([61, 63], [70])


if __name__ == "__main__":
    SHOWN.write_text(shown(), encoding="utf-8")


def test_rows_at_the_level_of_a_constant_answer_are_said():
    """Of two classes in equal shares: 50 %."""
    split = fednb.federation.made(1, 10, (1, 4, 4), classes=2)
    frame = pandas.DataFrame({"row": ["FedAvg", "FedBN"] * 2, "client": ["average"] * 2 + ["a"] * 2})
    for low, said in (([40, 50], "Every row. Nothing was learned"), ([40, 60], "FedAvg."), ([51, 60], "No row.")):
        table = SimpleNamespace(frame=frame.assign(low=low + [0, 0]))
        assert gates.at_chance(table, split).startswith(
            f"At the level of a constant answer (50.0 %) by its interval: {said}"
        )


def test_an_interval_without_width_has_no_smallest_effect():
    row = {"ours": 0.0, "low": 0.0, "high": 0.0, "together_low": 0.0, "together_high": 0.0, "smallest": 0.0}
    assert _points(row) == "+0.0 points (+0.0 to +0.0, simultaneous +0.0 to +0.0)"
    assert "detectable: 2.0" in _points(row | {"together_low": -1.0, "smallest": 2.0})
