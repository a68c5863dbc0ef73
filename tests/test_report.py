"""Tables of ours and of the paper's numbers, effects, gates and verdicts, by made results."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy
import pandas
import pytest
from made_results import mean_accuracy, results, run, scoreboard, seeds_of
from scipy.stats import t

import fednb
from at_chance import at_chance
from fednb import papers, report
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.report import claims, comparison, effects, gates, runs_table, sentences, table, wording
from fednb.report.claims import verdict
from fednb.report.convergence import late_rise, not_converged
from fednb.report.deviations import _differing, other_options
from fednb.report.effects import EFFECT, Effect
from fednb.report.intervals import Measured, Spread, spreads_of, wilson
from fednb.report.selection import selected
from fednb.report.sentences import paired_difference
from fednb.report.tables import Table

FEDAVG = (101, 101, 21, 51)  # 52.60, 44.89, 65.62, 86.44 per cent: FedAvg's row of Table 1, but for one image of Amazon
FEDRDN = (117, 103, 27, 52)
BELOW, ABOVE = (60, 70, 10, 30), (150, 170, 28, 55)
TABLE1 = papers.printed("distrans", "table1", "cifar10")
SHOWN = Path(__file__).with_name("shown_tables.txt")
ALMOST = pytest.approx


def printed(number="table1"):
    frame = papers.printed("fedrdn", number, "office_caltech10")
    return frame[frame["algorithm"] == "fedavg"]


def pair(better=ABOVE, worse=BELOW, shifts=(0, 1, -1), **other):
    """Three seeds of FedRDN and of FedAvg."""
    return [*seeds_of("fedavg", worse, **other), *seeds_of("fedavg+fedrdn", better, shifts, **other)]


def first(made, paper="fedrdn", table="table1"):
    """The first claim of the table: FedRDN above FedAvg."""
    return scoreboard(made, paper, table=table).frame.iloc[0]


def told(made, paper, table):
    return scoreboard(made, paper, table=table).frame.set_index("claim")


def at_the_papers_setting(made):
    for record in made.records:
        record.recipe = {"federation": record.recipe["federation"] | {"size": 256}, "precision": "bf16", "seed": 0}
    return made


def stand_in():
    images = {"plain": 157, "tinted": 158}
    return run("fedavg", [(100, 50)], [(30, 30)], images=images, federation="shifted_digits", stand_in=True)


def across():
    """Amazon's model gets 10 images right at every site, DSLR's 20."""
    rows = run("fedavg", [FEDAVG, FEDAVG])
    return results(rows, cross_site={"amazon": [10, 10, 10, 10], "dslr": [20, 20, 20, 20]})


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


def on_digits(rights, **more):
    """So many of 100 images right at each of three sites and of those that are named."""
    images = {"mnist": 100, "mnist_m": 100, "usps": 100} | more
    runs = (run(label, [[right] * len(images)], images=images, federation="digits") for label, right in rights.items())
    return results(*runs)


def cell(frame, row, site):
    return frame[(frame["row"] == row) & (frame["site"] == site)].iloc[0]


def shown() -> str:
    """Each kind of table as text, of small made results: captions, settings, marks, numbers; then sentences."""
    seeds = [*pair(shifts=(1, -1, 0)), run("fedbn", [FEDAVG])]
    made, few = results(*seeds), results(*seeds[:3])
    curves = [[FEDAVG, FEDRDN, FEDAVG], [(10, 10, 10, 10), (9, 9, 9, 9), (8, 8, 8, 8)]]
    differ = results(run("fedavg", *curves), run("fedprox(mu=0.1)", [FEDAVG], [(9, 9, 9, 9)]))
    board, differences = scoreboard(made, "fedrdn", table="table1"), effects(made, "fedavg")
    digits = on_digits({"fedavg": 90})
    tables = {
        "table": table(made, printed(), caption="Accuracy"),
        "table, another rule": table(few, printed(), rule="best_test"),
        "table of nothing": table(results(), printed()),
        "table of a stand-in": table(results(stand_in()), printed()),
        "table of settings": table(on_cifar10(dealt("fedavg", 10, (80, 82)), dealt("fedavg", 5, (60, 62))), TABLE1),
        "table by model": table(across(), printed("table3")),
        "table over other sites": table(digits, papers.printed("fraug", "table2", "digits")),
        "runs": runs_table(made),
        "runs, one seed of a stand-in": runs_table(results(stand_in())),
        "runs, another rule": runs_table(differ, "best_test"),
        "claims": board,
        "differences": differences,
    }
    texts = {name: "\n".join((each.text(), *each.setting)) for name, each in tables.items()}
    texts["sentences on differences"] = sentences(differences)
    return "\n\n".join(f"## {name}\n\n{text}" for name, text in texts.items()) + "\n"


def test_tables_read_as_before():
    """A change that is meant: ``PYTHONPATH=notebooks/together python tests/test_report.py``; read what differs."""
    assert shown() == SHOWN.read_text(encoding="utf-8")


def test_a_cell_has_paper_ours_interval_images_and_difference():
    frame = comparison(results(run("fedavg", [FEDAVG]), run("fedavg", [FEDRDN], seed=1)), printed())
    dslr, average = (cell(frame, "FedAvg", site) for site in ("dslr", "average"))
    assert (dslr["paper"], dslr["ours"], dslr["seeds"], dslr["images"]) == (65.62, ALMOST(100 * 24 / 32), 2, 32)
    expected = (mean_accuracy(FEDAVG) + mean_accuracy(FEDRDN)) / 2
    assert average["ours"] == ALMOST(expected) and average["difference"] == ALMOST(expected - 62.51)
    amazon = cell(comparison(results(run("fedavg", [FEDAVG])), printed()), "FedAvg", "amazon")
    assert (amazon["ours"], amazon["low"], amazon["high"]) == ALMOST(wilson(101, 192))


def test_only_a_difference_that_the_spread_of_runs_does_not_explain_is_marked():
    # Amazon 60/192 = 31 % against 53.12: below; Webcam 59/59 against 86.44: above; the others as printed.
    seeds = [run("fedavg", [(60 + seed, 101 + seed, 21 + seed, 59)], seed=seed) for seed in (0, 1, -1)]
    made = results(*seeds)
    assert comparison(made, printed()).query("outside")["site"].tolist() == ["amazon", "webcam"]
    assert not comparison(results(seeds[0]), printed())["outside"].any()
    made.paper = "fedrdn"  # whose setting has 256 x 256 pixels: levels of others are not compared
    assert not comparison(made, printed())["outside"].any()
    # Amazon 98/192 is 2.1 points below the printed number; with two degrees of freedom 2.6 and 1.8 count.
    made = results(*seeds_of("fedavg", (98, *FEDAVG[1:])))
    for runs, outside in ((1, False), (3, True)):
        assert cell(comparison(made, printed().assign(runs=runs)), "FedAvg", "amazon")["outside"] == outside


def test_a_stand_in_is_never_compared_and_other_data_do_not_stand_beside_the_paper():
    for rows in (stand_in(), stand_in().assign(stand_in=False)):  # another federation is one without the mark, too
        made = table(results(rows), printed())
        assert made.caption[0].startswith(report.STAND_IN) and made.frame["difference"].isna().all()
    images = {"DRIVE": 20, "HRF": 21}
    other = results(run("fedavg", [(15, 20)], images=images, federation="retinal_vessels", stand_in=True))
    made = table(other, papers.printed("fedrdn", "table2"))
    assert not any("paper" in column for column in made.cells.columns)
    for each in (made, runs_table(other), effects(other, "fedavg")):
        assert each.caption[0].startswith(wording.OTHER_DATA) and each.mark
    assert set(scoreboard(other, "fedrdn", table="table2").frame["verdict"]) == {"not run"}


def test_a_table_has_latex_with_its_numbers_and_its_signs_escaped():
    made = runs_table(results(*seeds_of("fedavg", FEDAVG)))
    text = made.latex()
    assert text.startswith("\\begin{table}") and "\\toprule" in text and "per cent" in text
    assert made.cells.iloc[0, 0] in text and "FedAvg" in text
    odd = Table(made.frame, ("100 % of a_b",), pandas.DataFrame({"a_b": ["5 %"]}, ["x & y"])).latex()
    assert r"5 \% \\" in odd and r"x \& y" in odd and r"\caption{100 \% of a\_b}" in odd


def test_what_cannot_be_compared_is_refused():
    ours = results(run("fedavg", [FEDAVG]))
    with pytest.raises(RecipeError, match="expected one"):
        table(ours, papers.printed("fedrdn", "table1"))
    with pytest.raises(RecipeError, match='take "last"'):
        table(across(), printed("table3"), rule="best_test")


def test_html_is_stable_text_with_the_setting_folded_and_names_escaped():
    made = results(*(run("fedavg", [[100]], images={"<i>": 192}, made_by=name) for name in ("<b>", "<u>")))
    page, again = (table(made, printed(), caption="<s>") for _ in range(2))
    assert page.html() == again.html() == page._repr_html_() and repr(page) == page.text()
    assert all(f"&lt;{tag}&gt;" in page.html() for tag in "bis") and "<i>" not in page.html()
    caption, _, folded = page.html().partition("<caption>")[2].partition("</caption>")[0].partition("<details>")
    assert "Test accuracy" in caption and "Setting: " in folded


def found(value, untested="", seeds=3, spread=3.0, error=2.0, level=0.05):
    """Of 20 degrees of freedom: 2.086 standard errors either way at 5 %."""
    bounds = value - 2.086 * error, value + 2.086 * error
    return Effect(Measured(value, *bounds, seeds, Spread(spread**2, 20), 0.01, error, 20), untested, level)


def test_verdicts_follow_the_written_rules():
    assert verdict(7.29, "not run", "paper") == "not run"
    assert verdict(7.29, found(6, untested="one seed"), "small") == "one seed"
    # Within 4.17 points either way.
    for value, *words in (
        (-5, "below", "opposite"),
        (4.1, "inconclusive", "inconclusive"),
        (4.2, "above", "reproduced"),
    ):
        assert [verdict(7.29, found(value), board) for board in ("small", "paper")] == words
    # Three runs and a printed one: the difference has a standard error of 3 * sqrt(4 / 3) = 3.46, and 2.086 of them
    # (20 degrees of freedom) are 7.23 points.
    words = [verdict(7.29, found(value, error=0.01), "paper") for value in (0.05, 3.7, 14.5, 14.6)]
    assert words == ["no effect as printed", "reproduced", "reproduced", "larger"]
    assert verdict(20.0, found(10.1, error=0.01), "paper") == "smaller"
    # Of three printed runs 2.086 times 3 * sqrt(1 / 3 + 1 / 3) are 5.11 points.
    assert [verdict(15, found(9.0, error=1), "paper", runs) for runs in (1, 3)] == ["reproduced", "smaller"]
    # Half of the printed effect is 3.645: inside there is none, whether or not zero is left out, on either board.
    for board in ("small", "paper"):
        assert verdict(7.29, found(1.0, error=1.2), board) == "no effect as printed"
        assert verdict(7.29, found(2.0, error=0.1), board) == "no effect as printed"
        assert verdict(0.8, found(0.1, error=0.2), board) == "no effect as printed"  # a point at least
        assert verdict(0.5, found(0.5, error=0.2), board) != "no effect as printed"  # the printed one is inside


def test_at_the_papers_setting_a_claim_is_held_against_the_printed_effect():
    board = scoreboard(at_the_papers_setting(results(*pair())), "fedrdn", table="table1")
    row, gap = board.frame.iloc[0], board.cells["ours - paper"].iloc[0]
    assert (row["setting"], row["verdict"], row["deviations"]) == ("paper", "larger", "")
    assert gap == f"{row['gap_low']:+.1f} to {row['gap_high']:+.1f}"
    assert 0 < row["gap_low"] < row["ours"] - row["paper"] < row["gap_high"]
    other = results(*seeds_of("fedprox(mu=0.5)", BELOW), *seeds_of("fedprox(mu=0.5)+fedrdn", ABOVE))
    row = scoreboard(at_the_papers_setting(other), "fedrdn", table="table1").frame.query("ours.notna()").iloc[0]
    assert row["setting"] == "small" and row["deviations"] == "FedProx (μ = 0.5)"
    # FedRDN prints beta = 0.01 for FedAvgM on ProstateMRI, its Table 2, and 0.9 elsewhere
    assert other_options("fedrdn", "fedavgm(beta=0.01)", "fedavgm", "table2") == []
    assert other_options("fedrdn", "fedavgm(beta=0.01)", "fedavgm", "table1") == ["FedAvgM (β = 0.01)"]


def test_a_shut_gate_is_the_reason_that_is_shown(monkeypatch):
    rounds = [(50, 60, 8, 20), (60, 70, 10, 30), (60, 70, 10, 30), (100, 110, 16, 40)]
    curves = {"fedavg": rounds, "fedavg+fedrdn": [ABOVE] * 4}
    made = results(*(run(label, curve, seed=seed) for label, curve in curves.items() for seed in (0, 1)))
    small, at_paper = first(made), first(at_the_papers_setting(made))
    assert (small["verdict"], small["why"]) == ("above", "")
    assert small["marks"] == at_paper["why"] != "" and (at_paper["verdict"], at_paper["marks"]) == ("not testable", "")
    assert re.match(r"FedAvg has not converged: \+\d", small["marks"])
    ends = {seed: (100 + more, 110 + more, 16 + more // 8, 30 + more // 4) for seed, more in ((0, 1), (1, 20))}
    level = [(100, 110, 16, 30)] * 3  # of the last quarters one seed rises by 0.4 points, the other by 8.2
    unsure = results(*(run("fedavg", [*level, end], seed=seed) for seed, end in ends.items()))
    [rise] = late_rise(unsure.frame)
    assert rise > protocol.rules()["level_curve"] and not_converged(unsure.frame) == {}
    assert not_converged(unsure.frame.query("seed == 1")) == {
        "fedavg": ALMOST(late_rise(unsure.frame.query("seed == 1")).iloc[0])
    }
    needed = [{"paper": "fedrdn", "federation": "office_caltech10", "better": "fedavg", "worse": "fedbn"}]
    rules = protocol.rules() | {"precondition": needed}
    monkeypatch.setattr(protocol, "rules", lambda: rules)
    assert first(results(*pair()))["marks"] == "FedAvg above FedBN is needed, and not run"
    row = first(results(*pair(), *seeds_of("fedbn", ABOVE)))
    assert row["marks"].startswith("FedAvg is not above FedBN here (3") and row["verdict"] == "above"
    row = first(results(*pair(), *seeds_of("fedbn", (50, 50, 5, 10))))
    assert row["marks"] == row["why"] == "" and row["verdict"] == "above"
    elsewhere = seeds_of("fedbn", (50, 50, 5, 10), alpha=2) + seeds_of("fedavg", ABOVE, alpha=2)
    made = results(*(rows.assign(alpha=1) for rows in pair()), *elsewhere)
    row = claims.judged(made, "fedrdn", keys={key for key in made.frame["key"] if "alpha" not in key}).iloc[0]
    assert row["marks"] == "FedAvg above FedBN is needed, and not run"  # in this setting


def test_a_constant_answer_is_each_clients_most_frequent_class():
    data = fednb.load("shifted_digits")
    known = gates.measured(data)
    for site in data.sites:
        most = max(range(10), key=site.train.targets.tolist().count)
        assert known["clients"][site.name] == ALMOST(100 * site.test.targets.tolist().count(most) / len(site.test))
    assert known == json.loads(gates.TRIVIAL.read_text())['{"name": "shifted_digits", "size": 32}']


def test_one_seed_has_a_number_and_no_verdict():
    both = run("fedavg", [BELOW]), run("fedavg+fedrdn", [ABOVE])
    made, counts = results(*both), results(*both, scores=lambda rows: {})
    paired, other = first(made), first(counts)
    assert (paired["verdict"], other["verdict"]) == ("one seed", "not paired") and paired["low"] > 0
    # The same images are right but for those that one of the two has more of: a paired interval is narrower.
    assert other["ours"] == ALMOST(paired["ours"]) and other["high"] - other["low"] > paired["high"] - paired["low"]
    for own, word in ((made, "(images only)"), (counts, "(counts only)")):
        assert effects(own, "fedavg").cells["95 %"].iloc[0].endswith(word)
    assert sentences(effects(made, [("fedbn", "fedavg")])) == "No pair was run."


def test_seeds_count_in_which_both_saw_the_same_images():
    made, words = results(*pair()), []
    for record in made.records[:3]:
        record.fingerprint = "1" * 16
        words.append(tuple(first(made)[["verdict", "seeds"]]))
    assert words == [("above", 2), ("one seed", 1), ("not paired", 3)]
    for record in made.records[3:5]:  # two seeds of one set of images, and one of another
        record.fingerprint = "1" * 16
    assert first(made)["seeds"] == 2


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
    assert row.ours == ALMOST(numpy.mean(values), rel=1e-12) and row.seeds == 3
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
    assert row.high - row.ours == ALMOST(t.ppf(0.975, freedom) * variance**0.5, rel=1e-9)
    assert row.p == ALMOST(2 * t.sf(abs(row.ours) / variance**0.5, freedom), rel=1e-9)


def test_deviations_are_in_words_and_what_a_network_lacks_is_none():
    own = {"federation": {"name": "a", "train_images": 9}, "model": {"name": "small", "channels": 4, "width": 2}}
    wanted = {"name": "a", "train_images": None, "more": False}, {"name": "large", "width": 5, "pretrained": True}
    found = _differing(own | {"flow": ["flip"]}, dict(zip(own, wanted, strict=True)) | {"flow": []}, set())
    of_network = ["model small (paper: large)", "width 2 (paper: 5)"]
    assert found == ["train images 9 (paper: all)", *of_network, "flow flip (paper: none)"]


def test_a_constant_answer_is_that_of_the_seeds_partition(monkeypatch):
    known = {
        json.dumps({"name": "cifar10", "seed": seed}, sort_keys=True): {"chance": 10.0, "clients": {"a": value}}
        for seed, value in ((0, 20.0), (1, 50.0))
    }
    monkeypatch.setattr(gates, "_known", lambda project: known)
    recipe = {"federation": {"name": "cifar10", "seed": "run"}}
    records = [SimpleNamespace(recipe=recipe | {"seed": seed}) for seed in (0, 1, 2)]
    assert [gates.trivial(record) for record in records] == [20.0, 50.0, None]
    made, _ = by_seed(("fedavg", 0.5), ("fedavg+fedrdn", 0.6), seeds=2)
    claim, keys = {"site": "average", "federation": "cifar10"}, tuple(record.key for record in made.records)
    why, _ = gates.gate(made, "fedrdn", claim, keys, "last", spreads_of(selected(made.frame)), "small")
    assert why == "FedAvg is not above a constant answer (35.0 %)"


def test_older_code_has_a_number_of_common_seeds_and_no_verdict_and_says_so_in_every_table():
    made = results(*seeds_of("fedavg", BELOW), *seeds_of("fedavg+fedrdn", ABOVE, (0, 1), stale=True))
    assert first(made)["verdict"] == "older code" and "older code" in runs_table(made).cells.index[1]
    rows = comparison(made, printed()).query("row.str.contains('older')")
    assert rows["ours"].notna().any() and not rows["outside"].any()
    [row] = effects(made, [("fedavg+fedrdn", "fedavg")]).frame.itertuples()
    assert (row.direction, row.seeds) == ("older code", 2)


def test_a_verdict_that_changes_with_the_papers_rule_says_so(monkeypatch):
    shifted = [(label, seed, shift) for label in ("fedavg", "fedavg+fedrdn") for seed, shift in enumerate((0, 1, -1))]
    made = []
    for label, seed, shift in shifted:
        tests = [tuple(count + shift for count in right) for right in ((ABOVE if "+" in label else BELOW), BELOW)]
        made.append(run(label, tests, [(8, 8, 8, 8), (9, 9, 9, 9)], seed=seed))
    rules = protocol.rules() | {"level_curve": 99.0}
    monkeypatch.setattr(protocol, "rules", lambda: rules)
    assert first(results(*made))[["verdict", "other_rules"]].tolist() == ["no effect as printed", "best test: above"]


def test_effects_of_one_table_are_tested_together():
    """Of four pairs on 100 images the first is better, the others are not: clear alone, none among four."""
    plain = ("fedavg", "fedprox", "scaffold", "fednova")
    pairs = [(f"{name}+fedrdn", name) for name in plain]
    for better, words in ((7, ["inconclusive"] * 4), (9, ["above"] + ["inconclusive"] * 3)):
        runs = []
        for name in plain:
            more = better if name == "fedavg" else 0
            runs += seeds_of(name, (50,), (-2, 0, 2), images={"here": 100})
            runs += seeds_of(f"{name}+fedrdn", (50 + more,), (2, 0, -2), images={"here": 100})
        made = effects(results(*runs), pairs).frame
        assert made["direction"].tolist() == words and made["p"][0] < 0.05
        assert (made["p"][0] < 0.05 / 4) == (words[0] == "above") == (made["together_low"][0] > 0)
        assert effects(results(*runs), pairs[:1]).frame["direction"].tolist() == ["above"]


def test_a_pair_has_one_verdict_whatever_else_was_run():
    """All pairs that the paper prints on the data set count, run or not; the spread is that of all that is known."""
    calm = pair((62, 72, 11, 31))
    few, many = results(*calm), results(*calm, *seeds_of("fedprox", BELOW), *seeds_of("fedprox+fedrdn", ABOVE))
    few.alike = many.alike
    assert first(few).drop("other_rules").equals(first(many).drop("other_rules"))
    assert papers.family("fedrdn", "office_caltech10") == 29  # and one primary claim, by itself


def test_a_pair_that_is_a_claim_has_the_claims_verdict_in_a_table_of_differences():
    """Numbers, word and gates are the scoreboard's, either way round; else it is a pair as any."""
    pairs = [("fedprox+fedrdn", "fedprox"), ("fedprox", "fedprox+fedrdn"), ("fedbn", "fedprox")]
    better = seeds_of("fedprox+fedrdn", ABOVE, (1, -1, 0))
    made = results(*better, *seeds_of("fedprox", BELOW), *seeds_of("fedbn", BELOW))
    made.paper = "distrans"  # which claims nothing of these
    alone = effects(made, pairs).frame
    made.paper = None  # then of any paper
    of_any = effects(made, pairs).frame
    made.paper = "fedrdn"
    assert effects(made, pairs).frame.equals(of_any)
    assert effects(made, pairs, claims=False).frame.equals(alone)
    few = effects(made, pairs[1:2]).frame.iloc[0]  # whatever else is asked for
    assert few["together_low"] == of_any["together_low"][1]
    claim = scoreboard(made, "fedrdn", table="table1").frame.query("ours.notna()").iloc[0]
    same, turned, other = of_any.to_dict("records")
    assert [same[name] for name in EFFECT] == [claim[name] for name in EFFECT]
    assert (same["direction"], turned["direction"], claim["verdict"]) == ("above", "below", "above")
    assert turned["together_low"] == -same["together_high"] and turned["ours"] == -same["ours"]
    assert other["together_low"] == ALMOST(alone["together_low"][2]) and other["direction"] != "not testable"
    assert same["together_low"] < alone["together_low"][0]
    by_another = effects(made, pairs[:1], rule="best_test").frame
    assert by_another["together_low"][0] > same["together_low"]
    shut = results(*pair(worse=(20, 23, 4, 6)))
    shut.paper = "fedrdn"
    assert "FedAvg + FedRDN against FedAvg, not testable, as FedAvg is not a" in sentences(effects(shut, "fedavg"))


def test_a_verdict_rests_on_the_seeds_that_the_protocol_has():
    sides = (("fedavg", BELOW), ("fedavg+fedrdn", ABOVE))
    wild = [run(label, [tuple(count + 8 for count in right)], seed=100) for label, right in sides]
    usual = [own for label, right in sides for own in seeds_of(label, right, (0, 1))]
    more, few = results(*usual, *wild), results(*usual)
    assert first(more)["seeds"] == 2 and first(more)["together_low"] == first(few)["together_low"]
    more.paper = "fedrdn"
    assert effects(more, "fedavg").frame["together_low"].tolist() == [first(few)["together_low"]]


def test_sides_of_different_settings_are_refused():
    made = results(*seeds_of("fedavg", BELOW, alpha=1), *seeds_of("fedavg+fedrdn", ABOVE, alpha=2))
    with pytest.raises(RecipeError, match="fedavg.fedrdn and fedavg were run in different settings"):
        effects(made, [("fedavg+fedrdn", "fedavg")])
    made = results(run("fedavg", [FEDAVG], rounds=1), run("fedavg", [FEDAVG], rounds=2))
    with pytest.raises(RecipeError, match="rounds 1; FedAvg, rounds 2"):
        scoreboard(made, "fedrdn")


def test_effects_within_each_value_of_a_field():
    rows = []
    for label, right in (("fedavg", 20), ("fedavg+fedfa", 30)):
        for alpha in (0.1, 0.5):
            rows += seeds_of(label, (right, right), (0, 0), images={"a": 100, "b": 50}, alpha=alpha)
    made = effects(results(*rows), [("fedavg+fedfa", "fedavg"), ("fedavg+fedrdn", "fedavg")], by="alpha")
    assert made.cells.index.tolist() == ["alpha 0.1: FedAvg + FedFA - FedAvg", "alpha 0.5: FedAvg + FedFA - FedAvg"]
    assert made.frame["ours"].tolist() == ALMOST([15, 15]) and set(made.frame["direction"]) == {"above"}
    site = effects(results(*rows), [("fedavg", "fedavg+fedfa")], by="alpha", client="b").frame
    assert site["ours"].tolist() == ALMOST([-20, -20]) and set(site["direction"]) == {"below"}


def test_averages_over_other_sites_than_the_papers_are_not_compared():
    made, table2 = on_digits({"fedavg": 50, "fedavg+fraug": 90}), papers.printed("fraug", "table2", "digits")
    frame = comparison(made, table2)
    average = cell(frame, "FedAvg", "average")
    assert average["paper"] == 85.62 and average["ours"] == 50 and pandas.isna(average["difference"])
    assert cell(frame, "FedAvg", "usps")["difference"] == ALMOST(50 - 97.62)
    assert comparison(made, papers.printed("fraug", "table5", "digits"))["difference"].isna().all()  # names no site
    everywhere = comparison(on_digits({"fedavg": 90}, svhn=100), table2)
    assert cell(everywhere, "FedAvg", "average")["difference"] == ALMOST(90 - 85.62)
    rows = told(made, "fraug", "table2")["verdict"]
    assert rows["FRAug is 3.97 points above FedAvg on Digits."] == "one seed"
    common = told(made, "fraug", "table2")["paper"]["FRAug is 3.97 points above FedAvg on Digits."]
    assert common == ALMOST((97.81 + 81.65 + 97.67 - 96.85 - 73.51 - 97.62) / 3)
    assert rows["FRAug is 8.14 points above FedAvg on Digits at MNIST-M."] == "one seed"
    assert rows["FRAug is 6.75 points above FedAvg on Digits at SVHN."] == "not run"


def test_a_claims_side_is_the_run_with_its_own_options():
    rights = {"fedavg": BELOW, "fedavg+fedfa": ABOVE, "fedavg+fedfa(stages=[1])": BELOW}
    released = {"fedavg+fedfa(variant=released)": (100, 100, 20, 40)}
    rows = told(results(*(run(label, [right]) for label, right in (rights | released).items())), "fedfa", "table8")
    claim = rows.loc["FedFA is 4.3 points above FedFA (stages {1}) on Office-Caltech-10."]
    assert claim["ours"] == ALMOST(mean_accuracy(ABOVE) - mean_accuracy(BELOW))
    assert rows.loc["FedFA (stages {1}) is 0.3 points above FedAvg on Office-Caltech-10.", "ours"] == 0
    alone = results(run("fedavg", [FEDAVG]), run("fedavg+fedfa(variant=released)", [FEDRDN]))
    assert told(alone, "fedfa", "table1").loc["FedFA is 4.6 points above FedAvg on Office-Caltech-10.", "seeds"] == 1


def test_a_run_with_unseen_sites_stands_in_no_row_and_behind_no_claim():
    made, table1 = results(*pair()), papers.printed("fedrdn", "table1", "office_caltech10")
    assert len(comparison(made, table1)["ours"].dropna()) == 10
    for record in made.records:
        record.recipe["unseen"] = ["dslr"]
    assert comparison(made, table1)["ours"].isna().all()
    assert set(scoreboard(made, "fedrdn").frame["verdict"]) == {"not run"}


def test_a_difference_is_told_where_its_interval_over_seeds_leaves_zero_out():
    # differences -9, -5, -13: deviation 4, t(0.975, 2) = 4.3027, so that the reach is 4.3027 * 4 / sqrt(3) = 9.94
    assert paired_difference([61, 63, 60], [70, 68, 73]) == "-9.0 points (-18.9 to +0.9), inconclusive"
    assert paired_difference([70, 71, 72], [61, 63, 62], together=3) == "+9.0 points (+4.6 to +13.4), above"
    assert paired_difference([61], [70]) == "-9.0 points"


def test_rows_at_the_level_of_a_constant_answer_are_said():
    """Of two classes in equal shares: 50 %."""
    split = fednb.federation.made(1, 10, (1, 4, 4), classes=2)
    frame = pandas.DataFrame({"row": ["FedAvg", "FedBN"] * 2, "client": ["average"] * 2 + ["a"] * 2})
    level = "a constant answer's level (50.0 %)"
    for low, said in (
        ([40, 50], f"Every method is down at {level}. Nothing was learned"),
        ([40, 60], f"Down at {level}: FedAvg."),
        ([51, 60], f"No method is down at {level}."),
    ):
        assert at_chance(SimpleNamespace(frame=frame.assign(low=low + [0, 0])), split).startswith(said)


if __name__ == "__main__":
    SHOWN.write_text(shown(), encoding="utf-8")
