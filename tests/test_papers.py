"""The printed numbers, checked against each other and against what the texts say of them."""

import ast
import csv
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from statistics import mean

import pytest

from fednb import papers
from fednb.datasets import office_caltech10, pacs, retinal_vessels, shifted_digits
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.registry import complete, file
from fednb.registry import names as known
from fednb.report import labels
from fednb.report.selection import RULES

PAPERS = ("distrans", "fedfa", "fedrdn", "fraug")
TABLES = [(paper, table) for paper in PAPERS for table in papers.tables(paper)]
DECIMALS = {"distrans": 1, "fedfa": 1, "fedrdn": 2, "fraug": 2}
TEST_IMAGES = {
    **{"amazon": 192, "caltech": 225, "dslr": 32, "webcam": 59},
    **{"clipart": 526, "infograph": 657, "painting": 619, "quickdraw": 1000, "real": 1217, "sketch": 554},
}
CELL = ["algorithm", "augmentation", "federation", "source", "setting", "site"]
ROW = CELL[:-1]


def hundredths(value):
    return round(100 * value)


@cache
def cells(paper, table):
    return {tuple(getattr(row, name) for name in CELL): row for row in papers.printed(paper, table).itertuples()}


def value(paper, table, run, federation, site="average", setting=""):
    algorithm, _, augmentation = run.partition("+")
    return cells(paper, table)[algorithm, augmentation, federation, "", setting, site].value


def number(table):
    return int(table.removeprefix("table"))


# What is wrong, found again


def wrong_averages(paper, table):
    """Cells are cut or rounded, and so may be the average: two hundredths off, or two tenths, is too much."""
    tolerated = {1: 0.1 - 1e-9, 2: 0.01 + 1e-9}[DECIMALS[paper]]
    for key, row in papers.printed(paper, table).groupby(ROW):
        sites = row.loc[row["site"] != "average", "value"]
        average = row.loc[row["site"] == "average", "value"]
        if len(sites) and len(average) and abs(average.item() - sites.mean()) > tolerated:
            yield (*key, "average"), "average", sites.mean()


def wrong_changes(paper, table):
    averages = {key: cell for key, cell in cells(paper, table).items() if key[-1] == "average"}
    for key, cell in averages.items():
        if cell.change == cell.change:
            rise = hundredths(cell.value) - hundredths(averages[key[0], "", *key[2:]].value)
            if rise != hundredths(cell.change):
                yield key, "change", rise / 100


def wrong_counts(paper, table):
    """A cell must be k / n, cut to its decimals; FedFA also rounds (26 of 32 are 81.2 or 81.3)."""
    for key, cell in cells(paper, table).items():
        if key[2] not in ("office_caltech10", "domainnet") or key[-1] not in TEST_IMAGES:
            continue
        images, unit = TEST_IMAGES[key[-1]], 10 ** DECIMALS[paper]
        shares = [100 * unit * right / images for right in range(images + 1)]
        cut, rounded = [int(share + 1e-9) for share in shares], [int(share + 0.5) for share in shares]
        allowed = cut if paper == "fedrdn" else cut + rounded
        printed = round(unit * cell.value)
        if printed not in allowed:
            nearest = min(cut if paper == "fedrdn" else rounded, key=lambda share: abs(share - printed))
            yield key, "rounded" if printed in rounded else "count", nearest / unit


def wrong_repetitions(paper):
    """A run that two tables print has one value and one deviation."""
    first = {}
    for table in sorted(papers.tables(paper), key=number):
        for key, cell in cells(paper, table).items():
            known = first.setdefault(key, cell)
            if cell.value != known.value:
                yield table, key, "repeated", known.value
            if cell.std == cell.std and known.std == known.std and cell.std != known.std:
                yield table, key, "repeated std", known.std


@pytest.mark.parametrize("paper", PAPERS)
def test_the_known_inconsistencies_are_all_there_are(paper):
    checks = (wrong_averages, wrong_changes, wrong_counts)
    found = [(table, *w) for table in papers.tables(paper) for check in checks for w in check(paper, table)]
    found = {entry[:3]: entry[3] for entry in (*found, *wrong_repetitions(paper))}
    listed = {
        (row.table, tuple(getattr(row, name) for name in CELL), row.kind): row.expected
        for row in papers.inconsistencies(paper).itertuples()
    }
    assert len(found) == {"distrans": 1, "fedfa": 10, "fedrdn": 9, "fraug": 10}[paper]
    assert sorted(found) == sorted(listed)
    for entry, expected in found.items():
        assert listed[entry] == pytest.approx(expected, abs=0.5001 / 10 ** DECIMALS[paper]), entry


@pytest.mark.parametrize("paper", PAPERS)
def test_the_listed_inconsistencies_quote_what_is_printed(paper):
    where = {"change": "change", "repeated std": "std"}
    for wrong in papers.inconsistencies(paper).itertuples():
        cell = cells(paper, wrong.table)[tuple(getattr(wrong, name) for name in CELL)]
        assert getattr(cell, where.get(wrong.kind, "value")) == wrong.printed
        assert wrong.reason in cell.remark


@pytest.mark.parametrize("paper", PAPERS)
def test_remarks_stand_at_no_other_cell(paper):
    wrong = papers.inconsistencies(paper)
    remarks = sum((papers.printed(paper, table)["remark"] != "").sum() for table in papers.tables(paper))
    assert remarks == len(wrong.drop_duplicates(["table", *CELL]))


# What is there


@pytest.mark.parametrize(
    ("paper", "table", "count", "rows"),
    [
        ("fedrdn", "table1", 336, 56),
        ("fedrdn", "table2", 84, 12),
        ("fedrdn", "table3", 48, 16),
        ("fedrdn", "table4", 9, 9),
        ("fedfa", "table1", 8 * 5 + 8 * 7, 16),
        ("fedfa", "table2", 9 * 7, 9),
        ("fedfa", "table3", 24, 24),
        ("fedfa", "table4", 5 * (5 + 7 + 7), 15),
        ("fedfa", "table5", 12, 12),
        ("fedfa", "table6", 30, 30),
        ("fedfa", "table7", 6, 6),
        ("fedfa", "table8", 48, 48),
        ("fedfa", "table16", 6 * 9 * 7, 54),
        ("fraug", "table1", 2 * 5, 2),
        ("fraug", "table2", 3 * 10 * 5, 30),
        ("fraug", "table3", 3 * 4 * 5, 12),
        ("fraug", "table5", 18, 18),
        ("fraug", "table6", 9, 9),
        ("fraug", "table7", 7 * 5, 7),
        ("distrans", "table1", 20 * 5 + 4, 104),
        ("distrans", "table2", 20, 20),
        ("distrans", "table3", 30, 30),
        ("distrans", "table4", 60, 60),
        ("distrans", "table5", 16, 16),
        ("distrans", "table6", 12, 12),
    ],
)
def test_every_row_and_cell_is_there_once(paper, table, count, rows):
    frame = papers.printed(paper, table)
    assert len(frame) == len(frame.drop_duplicates(CELL)) == count
    assert len(frame.drop_duplicates(ROW)) == rows
    assert frame["value"].between(0, 100).all()


def test_the_tables_of_accuracies_are_those_above():
    assert papers.names() == list(PAPERS)
    assert [len(papers.tables(paper)) for paper in PAPERS] == [6, 9, 4, 6]


def test_table3_of_fedrdn_has_every_pair_of_two_sites_for_four_methods():
    frame = papers.printed("fedrdn", "table3")
    assert len(frame) == len(frame.drop_duplicates(CELL)) == 4 * 4 * 3
    assert (frame["source"] != frame["site"]).all()


@pytest.mark.parametrize(("paper", "table"), TABLES)
def test_a_change_stands_beside_fedrdns_averages_where_something_was_added(paper, table):
    frame = papers.printed(paper, table)
    expected = (frame["site"] == "average") & (frame["augmentation"] != "")
    printed = (paper, table) in (("fedrdn", "table1"), ("fedrdn", "table2"))
    assert (frame["change"].notna() == (expected & printed)).all()


@pytest.mark.parametrize(("paper", "table"), TABLES)
def test_a_deviation_stands_beside_every_value_of_fraug_but_table_1(paper, table):
    frame = papers.printed(paper, table)
    assert (frame["std"].notna() == (paper == "fraug" and table != "table1")).all()
    assert (frame["runs"] == (3 if paper == "fraug" else 1)).all(), "FRAug, Sec. 4.1.3: all experiments, 3 seeds"
    assert frame["std"].dropna().between(0.1, 1.6).all()


@pytest.mark.parametrize("paper", PAPERS)
def test_values_keep_their_decimals_in_the_files(paper):
    place = Path(papers.__file__).parent / paper
    decimals = rf"\d{{1,2}}\.\d{{{DECIMALS[paper]}}}"
    for table in papers.tables(paper):
        with open(place / f"{paper}_{table}.csv", newline="") as file:
            for row in csv.DictReader(file):
                assert re.fullmatch(decimals, row["value"]), row
                assert re.fullmatch(r"(-?\d+\.\d\d)?", row["change"]), row
                assert re.fullmatch(r"(\d\.\d)?", row.get("std", "")), row


def test_one_federation_and_one_setting_alone():
    frame = papers.printed("fedrdn", "table1", "domainnet")
    assert set(frame["federation"]) == {"domainnet"} and len(frame) == 28 * 7
    with pytest.raises(RecipeError, match='did you mean "domainnet"'):
        papers.printed("fedrdn", "table1", "domainet")
    frame = papers.printed("distrans", "table4", "cifar10", "40 %")
    assert frame["value"].tolist() == [78.9, 81.4, 81.9, 81.9]
    with pytest.raises(RecipeError, match='no setting "30 %"'):
        papers.printed("distrans", "table4", "cifar10", "30 %")


def test_what_a_reader_changes_is_his_own():
    for read in (lambda: papers.printed("fedfa", "table5"), lambda: papers.numbers("distrans", "table7")):
        frame = read()
        frame[frame.columns[-1]] = "changed"
        assert "changed" not in set(read()[frame.columns[-1]])


def test_an_average_names_the_sites_that_it_is_over():
    frame = papers.printed("fraug", "table5", "digits")
    assert set(frame["sites"]) == {"mnist, mnist_m, svhn, usps"}
    frame = papers.printed("fedfa", "table1", "office_caltech10")
    assert set(frame.loc[frame["site"] == "average", "sites"]) == {"amazon, caltech, dslr, webcam"}
    assert set(frame.loc[frame["site"] != "average", "sites"]) == {""}
    assert set(papers.printed("distrans", "table1")["sites"]) == {""}


def test_unknown_names_are_errors_with_the_nearest_valid_one():
    with pytest.raises(RecipeError, match='did you mean "fedrdn"'):
        papers.caption("fedrdm", "table1")
    with pytest.raises(RecipeError, match="table1, table2, table3, table4"):
        papers.printed("fedrdn", "table9")
    with pytest.raises(RecipeError, match='did you mean "quick"'):
        papers.recipe("fedrdn", "quik")
    with pytest.raises(RecipeError, match='did you mean "fedprox"'):
        papers.algorithm("fedrdn", "fedprx")
    with pytest.raises(RecipeError, match="table7 has no accuracies; read it with fednb.papers.numbers"):
        papers.printed("distrans", "table7")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_has_a_caption(paper):
    for path in (Path(papers.__file__).parent / paper).glob(f"{paper}_*.csv"):
        caption = papers.caption(paper, path.stem.removeprefix(f"{paper}_"))
        assert len(caption) > 20 and not re.search(r"et al\.|\[\d|§", caption)


# What the texts say of the tables


def test_fedfas_text_agrees_with_its_tables():
    office, domainnet, prostate = "office_caltech10", "domainnet", "prostate_mri"
    for federation, fedavg, fedmix in ((office, 4.6, 3.3), (domainnet, 3.7, 2.2)):
        best = value("fedfa", "table1", "fedavg+fedfa", federation)
        assert best - value("fedfa", "table1", "fedavg", federation) == pytest.approx(fedavg)
        assert best - value("fedfa", "table1", "fedavg+fedmix", federation) == pytest.approx(fedmix)
    mini = [value("fedfa", "table2", run, prostate, setting="1/6") for run in ("fedavg+fedfa", "fedavg")]
    assert mini[0] - mini[1] == pytest.approx(3.0)
    for setting, gain in (("Dir(0.6)", 0.8), ("Dir(0.3)", 1.2)):
        pair = [value("fedfa", "table3", f"fedavg+{name}", "cifar10", setting=setting) for name in ("fedfa", "fedmix")]
        assert pair[0] - pair[1] == pytest.approx(gain)
    emnist = [value("fedfa", "table3", run, "emnist") for run in ("fedavg+fedfa", "fedrobust", "fedavg+fedmix")]
    assert [emnist[0] - other for other in emnist[1:]] == pytest.approx([1.1, 1.2])
    for federation, gain in ((office, 1.7), (domainnet, 1.6), (prostate, 1.3)):
        unseen = [
            value("fedfa", "table4", f"fedavg+{name}", federation, setting="unseen client")
            for name in ("fedfa", "fedmix")
        ]
        assert unseen[0] - unseen[1] == pytest.approx(gain)
    for federation, gain in ((office, 2.9), (domainnet, 1.9), (prostate, 1.0)):
        setting = "1/6" if federation == prostate else ""
        second = max(
            value("fedfa", "table6", f"fedavg+{name}", federation, setting=setting)
            for name in ("mixup", "manifold_mixup", "mixstyle", "moex")
        )
        assert value("fedfa", "table6", "fedavg+fedfa", federation, setting=setting) - second == pytest.approx(gain)


def test_fraugs_text_agrees_with_its_tables():
    best = value("fraug", "table2", "fedavg+fraug", "office_home")
    assert best - value("fraug", "table2", "fedavg", "office_home") == pytest.approx(1.91)
    assert best - value("fraug", "table2", "fedbn", "office_home") == pytest.approx(1.58)
    added = value("fraug", "table1", "fedavg+additional_embeddings", "office_home")
    assert added - value("fraug", "table1", "fedavg", "office_home") == pytest.approx(10.32)
    over_fedbn, over_fedavg = (
        [
            value("fraug", "table2", a, name) - value("fraug", "table2", b, name)
            for name in ("office_home", "digits", "pacs")
        ]
        for a, b in (("fedavg+fraug", "fedbn"), ("fedbn", "fedavg"))
    )
    assert mean(over_fedbn) == pytest.approx(1.547, abs=1e-3) and mean(over_fedavg) == pytest.approx(1.5)
    for setting, gain in (("8 clients", 3.04), ("12 clients", 2.81), ("16 clients", 1.21)):
        others = [value("fraug", "table3", run, "rxrx1", setting=setting) for run in ("fedavg", "harmofl", "fedbn")]
        ours = value("fraug", "table3", "fedavg+fraug", "rxrx1", setting=setting)
        assert ours - max(others) == pytest.approx(gain)


def test_distrans_text_agrees_with_its_tables():
    clients = ("50 clients", "100 clients", "500 clients")
    row = {
        run: [value("distrans", "table6", run, "cifar100", setting=setting) for setting in clients]
        for run in ("fedavg+distrans", "pfedhn", "pfedhn_pc", "moon")
    }
    ours = row.pop("fedavg+distrans")
    gains = [mine - other for others in row.values() for mine, other in zip(ours, others, strict=True)]
    assert (min(gains), max(gains)) == pytest.approx((8.8, 30.7))
    drops = [others[0] - others[-1] for others in row.values()]
    assert ours[0] - ours[-1] == pytest.approx(8.4) and (min(drops), max(drops)) == pytest.approx((10.8, 27.6))


def test_distrans_table_5_repeats_the_accuracies_of_table_1():
    frame = papers.numbers("distrans", "table5")
    runs = frame["algorithm"] + "+" + frame["augmentation"]
    counts = tuple(f"{count} clients" for count in (8, 16, 24, 40))
    assert len(frame) == 16 and set(frame.groupby(runs)["setting"].apply(tuple)) == {counts}
    for row in frame[frame["setting"] == "8 clients"].itertuples():
        run = f"{row.algorithm}+{row.augmentation}".strip("+")
        assert row.value == value("distrans", "table1", run, "ch_mnist", setting="50 %")


def test_distrans_table_7_follows_from_its_bytes():
    """Percentages are cut to three decimals; their mean, 0.389, is in Sec. 5.5."""
    frame = papers.numbers("distrans", "table7")
    share = 100 * (frame["double_bytes"] - frame["single_bytes"] + frame["offset_bytes"]) / frame["single_bytes"]
    assert [int(1000 * value + 1e-9) for value in share] == [round(1000 * v) for v in frame["overhead_percent"]]
    assert round(share.mean(), 3) == 0.389
    assert (frame["offset_bytes"] == 3 * 64 * 64 * 4 + 128).all()


def test_fraugs_table_4_is_read_as_printed():
    frame = papers.numbers("fraug", "table4").set_index("part")
    assert frame["million_parameters"].tolist() == [11.18, 18.15, 0.39, 0.26]
    assert frame.loc["RTNet", "billion_macs"] == "<<0.01"


def test_fedfas_extra_bytes_follow_from_its_channels():
    """Eq. 25: four numbers of four bytes for each channel."""
    told = papers.settings("fedfa")["printed"]["extra_kilobytes"]["value"]
    assert told == {
        name: 4 * sum(channels) * 4 / 1024
        for name, channels in (("alexnet", (64, 192, 384, 256, 256)), ("unet", (32, 64, 128, 256, 512)))
    }


# Names, claims and settings


def _choice(part):
    name, given = part
    pairs = (option.split("=") for _, option in labels.options(f"{name}({given})"))
    return {"name": name} | {key: _literal(text) for key, text in pairs}


def _literal(text):
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


def _buildable(run):
    algorithm, *augmentations = [name for name, _ in labels.parts(run)]
    return algorithm in known("algorithms") and all(name in known("augmentations") for name in augmentations)


LOWER_CASE = ("mixup",)  # printed as they are named


@pytest.mark.parametrize(("paper", "table"), TABLES)
def test_a_printed_row_is_named_as_the_label_of_the_run_that_it_prints(paper, table):
    frame = papers.printed(paper, table)
    for algorithm, augmentation in set(zip(frame["algorithm"], frame["augmentation"], strict=True)):
        run = "+".join(filter(None, (algorithm, augmentation)))
        assert all(labels.printed(name) != name or name in LOWER_CASE for name, _ in labels.parts(run)), run
        if _buildable(run):
            first, *others = map(_choice, labels.parts(run))
            label = Recipe(algorithm=first, augmentations=others).label
            assert labels.method(label) == labels.method(run) and labels.options(label) == labels.options(run)


@pytest.mark.parametrize(
    ("paper", "federation", "classes", "clients"), [("distrans", "cifar10", 10, 10), ("distrans", "ch_mnist", 8, 8)]
)
def test_a_printed_heterogeneity_is_that_of_its_option(paper, federation, classes, clients):
    """DH = 1 - u / N where a class lies with several clients, and 1 where each lies with one (Eq. 3, 4)."""
    printed = (
        papers.printed(paper, "table4", federation)
        if federation == "cifar10"
        else papers.printed(paper, "table2", federation)
    )
    for run_on, setting in set(zip(printed["run_on"], printed["setting"], strict=True)):
        own = int(re.fullmatch(rf"{federation}\(classes_per_client=(\d+)\)", run_on)[1])
        heterogeneity = 1 - own / classes if own * clients / classes > 1 else 1
        assert setting == f"{100 * heterogeneity:.0f} %"


def test_every_setting_is_made_by_options_that_the_federation_has():
    for paper in PAPERS:
        for table in papers.tables(paper):
            for run_on in papers.printed(paper, table)["run_on"].unique():
                if "(" in run_on:
                    complete("datasets", _choice(labels.parts(run_on)[0]))
    levels = papers.settings("distrans")["setting"]["cifar10"].values()
    sweep = papers.settings("distrans")["heterogeneity"]["classes_per_client"]
    assert [level["classes_per_client"] for level in levels] == sweep
    printed = papers.printed("fedfa", "table2")
    assert set(printed["setting"]) == {"1/6"} and set(printed["run_on"]) == {"prostate_mri(ratio=0.1)"}
    for name in ("prostate_mri", "retinal_vessels"):
        shares = [complete("datasets", each) for each in papers.under_settings("fedfa", {"name": name})]
        option = "ratio" if name == "prostate_mri" else "fraction"
        whole = complete("datasets", name)[option]
        assert [share[option] / whole for share in shares] == pytest.approx([n / 6 for n in range(1, 7)], abs=5e-4)
    assert list(papers.settings("fedfa")["setting"]["prostate_mri"]) == list(
        dict.fromkeys(papers.printed("fedfa", "table16")["setting"])
    )


@pytest.mark.parametrize(("paper", "count"), [("distrans", 163), ("fedfa", 165), ("fedrdn", 63), ("fraug", 82)])
def test_every_claim_has_a_positive_printed_effect(paper, count):
    claims = papers.claims(paper)
    assert len(claims) == count
    for claim in claims:
        where = (claim["federation"], claim["site"], claim["setting"])
        better, worse = (value(paper, claim["table"], claim[side], *where) for side in ("better", "worse"))
        assert better > worse, claim
        assert (better - worse) > 0.5 / 10 ** DECIMALS[paper]
        assert claim["place"].startswith(("Sec. ", "App. "))


@pytest.mark.parametrize("row", ["table1,,average,a,b", "table1,x,average,a,b,Sec. 1, too much"])
def test_a_row_of_claims_with_a_value_too_few_or_too_many_is_refused(monkeypatch, tmp_path, row):
    (tmp_path / "claims.csv").write_text(f"# a remark\ntable,federation,site,better,worse,place\n{row}\n")
    monkeypatch.setattr(papers, "folder", lambda paper: tmp_path)
    with pytest.raises(RecipeError, match="/claims.csv has a row table1, .*; expected a value for each of table, "):
        papers.claims("fedrdn")


@pytest.mark.parametrize("paper", ("distrans", "fedfa", "fraug"))
def test_both_sides_of_a_claim_are_methods_that_can_be_run(paper):
    missing = {claim[side] for claim in papers.claims(paper) for side in ("better", "worse")}
    assert [run for run in missing if not _buildable(run)] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_the_paper_profile_is_what_is_printed_or_explained(paper):
    settings = papers.settings(paper)
    profile = papers.recipe(paper, "paper")
    told = settings["printed"] | settings["not_printed"]
    assert len(told) == len(settings["printed"]) + len(settings["not_printed"])
    assert set(profile) - set(told) <= {"federation", "model", "evaluation"}
    for name in set(profile) & set(told) - {"precision"}:
        value = told[name]["value"]
        assert profile[name] == (tuple(value) if isinstance(value, list) else value), name
    for part in ("federation", "model"):
        options = profile[part] if isinstance(profile[part], dict) else {}
        for name in set(options) & set(told):
            assert options[name] == told[name]["value"], name
    assert all("place" in entry for entry in settings["printed"].values())
    assert all("reason" in entry for entry in settings["not_printed"].values())


@pytest.mark.parametrize(
    ("paper", "told", "name", "option"),
    [
        ("fedrdn", "fedprox_mu", "fedprox", "mu"),
        ("fedrdn", "fedproto_mu", "fedproto", "mu"),
        ("fedrdn", "fedavgm_beta", "fedavgm", "beta"),
        ("fedfa", "fedprox_mu", "fedprox", "mu"),
        ("fedfa", "fedavgm_beta", "fedavgm", "beta"),
        ("fedfa", "fedsam_rho", "fedsam", "rho"),
        ("fraug", "fedprox_mu", "fedprox", "mu"),
        ("fraug", "fedproto_mu", "fedproto", "mu"),
    ],
)
def test_an_algorithms_option_is_the_one_told(paper, told, name, option):
    settings = papers.settings(paper)
    assert papers.algorithm(paper, name)[option] == (settings["printed"] | settings["not_printed"])[told]["value"]


@pytest.mark.parametrize(
    ("paper", "told", "name", "option"),
    [
        ("fedfa", "fedfa_probability", "fedfa", "probability"),
        ("fedfa", "fedfa_momentum", "fedfa", "momentum"),
        ("distrans", "distrans_alpha", "distrans", "alpha"),
        ("distrans", "distrans_offset_rate", "distrans", "offset_rate"),
        ("distrans", "distrans_threshold", "distrans", "threshold"),
    ],
)
def test_a_methods_default_is_what_its_paper_prints(paper, told, name, option):
    assert complete("augmentations", name)[option] == papers.settings(paper)["printed"][told]["value"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_profile_makes_a_recipe_for_every_algorithm(paper):
    assert set(papers.settings(paper)["profile"]) == {"smoke", "stand_in", "quick", "paper"}
    for profile in papers.settings(paper)["profile"]:
        for name in papers.settings(paper)["algorithm"]:
            recipe = Recipe(**papers.recipe(paper, profile), algorithm=papers.algorithm(paper, name))
            assert recipe.algorithm_name == name


@pytest.mark.parametrize("paper", PAPERS)
def test_every_other_federation_has_profiles_that_make_recipes(paper):
    settings = papers.settings(paper)
    main = papers.recipe(paper, "paper")["federation"]["name"]
    assert settings["on"].keys() | {main} | {"cifar10", "emnist"} >= papers.printed_federations(paper)
    assert settings["on"].keys() - papers.printed_federations(paper) <= {"retinal_vessels"}
    for name in settings["on"]:
        for profile in settings["profile"]:
            recipe = Recipe(**papers.recipe(paper, profile, name))
            used = recipe.full["federation"]["name"]
            assert used.startswith("shifted_") if profile in ("smoke", "stand_in") else used == name
    assert papers.recipe(paper, "quick", main) == papers.recipe(paper, "quick")
    with pytest.raises(RecipeError, match='federation "pcas" is not known'):
        papers.recipe(paper, "quick", "pcas")


def test_a_profile_of_one_federation_alone_differs_from_its_paper():
    own, printed = (papers.recipe("fraug", profile, "pacs") for profile in ("pretrained", "paper"))
    differing = {name for name in printed if own[name] != printed[name]}
    assert differing == {"federation", "model", "rounds", "precision"} and own.keys() == printed.keys()
    with pytest.raises(RecipeError, match='profile "pretrained" is not known'):
        papers.recipe("fraug", "pretrained", "office_home")


@pytest.mark.parametrize("federation", ["prostate_mri", "domainnet", "office_home", "pacs"])
def test_printed_sites_are_called_as_the_loaders(federation):
    loader = file("datasets", federation)
    loaded = loader.LISTS.domains if federation == "domainnet" else getattr(loader, "DOMAINS", None) or loader.SITES
    printed = [papers.sites(paper, federation) for paper in papers.names()]
    assert any(printed) and all(set(sites) == set(loaded) for sites in printed if sites)


def test_other_data_have_one_setting_whatever_the_paper():
    for profile in ("quick", "paper"):
        recipes = [Recipe(**papers.recipe(paper, profile, "retinal_vessels")) for paper in ("fedrdn", "fedfa")]
        (vessels,) = set(recipes)
        assert vessels.full["evaluation"] == ["examples"]


def test_the_sweeps_make_recipes():
    for stages in papers.settings("fedfa")["table8"]["stages"]:
        label = Recipe(augmentations=[{"name": "fedfa", "stages": stages}]).label
        printed = papers.printed("fedfa", "table8", "office_caltech10")
        assert label.removeprefix("fedavg+") in set(printed["augmentation"])
    for name, sweep in papers.settings("fedfa")["fig3"].items():
        assert [Recipe(augmentations=[{"name": "fedfa", name: value}]) for value in sweep]
    for alpha in papers.settings("distrans")["fig4"]["alpha"]:
        assert Recipe(augmentations=[{"name": "distrans", "alpha": alpha}])
    rates = papers.settings("distrans")["offset_rate"]["sweep"]
    assert [Recipe(augmentations=[{"name": "distrans", "offset_rate": rate}]) for rate in rates]
    assert rates[:2] == [0.0, papers.settings("distrans")["printed"]["distrans_offset_rate"]["value"]]
    for options in papers.settings("fraug")["fraug"].values():
        assert Recipe(augmentations=[options])


def test_reading_papers_needs_no_torch():
    code = "import sys; from fednb import papers; "
    code += "[(papers.settings(p), papers.claims(p), papers.curves(p)) for p in papers.names()]; "
    code += "assert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def test_a_value_for_each_profile_is_found_or_the_nearest_named():
    assert papers.of_profile({"smoke": 1, "quick": 4}, "quick") == 4
    with pytest.raises(RecipeError, match='"quik" is not known; did you mean "quick"'):
        papers.of_profile({"smoke": 1, "quick": 4}, "quik")


def test_a_profiles_federation_comes_under_every_printed_setting():
    for on, heterogeneities in (("ch_mnist", 5), ("cifar100", 5)):
        federations = papers.federations("distrans", "quick", on)[:heterogeneities]
        classes = [Recipe(federation=each).full["federation"]["classes_per_client"] for each in federations]
        assert {each["name"] for each in federations} == {on} and classes == sorted(classes, reverse=True)
    levels = papers.federations("distrans", "quick")
    assert [level["classes_per_client"] for level in levels] == [10, 6, 4, 2, 1]
    assert {level["size"] for level in levels} == {32}
    assert papers.federations("distrans", "smoke") == ["shifted_digits"]
    assert papers.federations("fedfa", "quick") == [papers.recipe("fedfa", "quick")["federation"]]


@pytest.mark.parametrize("paper", papers.names())
def test_what_was_tried_for_quick_is_a_recipe_with_its_last_ten_rounds(paper):
    quick = papers.recipe(paper, "quick")
    for tried in papers.settings(paper)["tried"]:
        recipe = Recipe(**quick | tried["setting"])
        assert recipe.full["federation"]["name"] == tried["federation"] and tried["remark"]
        assert recipe.rounds * max(1, recipe.local_epochs) >= 40
        assert len(tried["last_ten"]) == 10 and all(0 <= value <= 100 for value in tried["last_ten"])


def test_table4s_sites_are_those_of_the_federations():
    sites = papers.settings("fedfa")["table4"]["sites"]
    assert sites["office_caltech10"] == papers.sites("fedfa", "office_caltech10") == list(office_caltech10.DOMAINS)
    assert all(sites[name] == papers.sites("fedfa", name) for name in ("domainnet", "prostate_mri"))
    assert sites["pacs"] == list(pacs.DOMAINS) and sites["retinal_vessels"] == list(retinal_vessels.SITES)
    assert sites["shifted_digits"] == sites["shifted_strokes"] == list(shifted_digits.SITES[:2])
    for profiles in papers.settings("fedfa")["table4"]["beside"].values():
        for fields in profiles.values():
            assert Recipe(**fields).full["federation"]["name"] in sites


def test_the_protocol_holds():
    """Our own file: its ranges, and runs that its papers' profiles make on the seeds that verdicts rest on."""
    rules = protocol.rules()
    assert 0 < rules["level"] < 1 and rules["seeds"] == sorted(set(rules["seeds"]))
    assert min(rules[name] for name in ("margin", "least_margin", "level_curve")) > 0
    assert rules["choosing_seeds_from"] > max(rules["seeds"]) and rules["partition"] == "run"
    assert rules["selection"] in RULES and set(rules["as_printed"]) <= Recipe.__dataclass_fields__.keys()
    assert {papers.own_rule(paper) for paper in papers.names()} <= set(RULES)
    for precondition in rules["precondition"]:
        protocol.require_printed(precondition, Path("protocol.toml"))
        assert precondition["better"] != precondition["worse"]
    for entry in rules["runs"]:
        assert entry.keys() == {"paper", "profile", "federation", "seeds"} and set(entry["seeds"]) <= {*rules["seeds"]}
        run = Recipe(**papers.recipe(entry["paper"], entry["profile"], entry["federation"])).full
        assert run["federation"]["name"] == entry["federation"] and run["federation"].get("seed", "run") == "run"
        assert run["federation"].get("spare", False) == (rules["second_test_set"] in run["evaluation"])


def test_the_page_of_the_protocol_explains_each_entry():
    page = (Path(papers.__file__).parents[2] / "docs" / "protocol.md").read_text()
    explained = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*?\|", page, re.M)))
    assert explained == list(protocol.rules())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"worse": "nobody"}, "a precondition of nobody on pacs, which fraug does not print there"),
        ({"lucky": 7}, "with better, federation, lucky, paper, place, worse; expected better, federation, paper, "),
    ],
)
def test_a_precondition_that_its_paper_does_not_print_is_refused(changed, said):
    pair = {"paper": "fraug", "federation": "pacs", "better": "fedavg", "worse": "single", "place": "Table 2"}
    protocol.require_printed(pair, Path("protocol.toml"))
    with pytest.raises(RecipeError, match=f"protocol.toml has {said}" if "lucky" not in changed else said):
        protocol.require_printed(dict(sorted((pair | changed).items())), Path("protocol.toml"))


def test_a_pair_that_stands_in_several_tables_is_one_claim():
    """FedFA over FedAvg on Office stands in three tables, with one printed effect."""
    pairs = [
        ("fedfa", pair["federation"], *(pair[name] for name in ("setting", "site", "better", "worse")))
        for pair in papers.claims("fedfa")
    ]
    assert len(set(pairs)) == len(pairs)
    claim = next(own for own in papers.claims("fedfa") if own["federation"] == "office_caltech10")
    assert claim["table"] == "table1" and claim["tables"] == ["table1", "table5", "table6"]
    assert papers.family("fedfa", "office_caltech10") == sum(pair[1] == "office_caltech10" for pair in pairs) == 45
    for paper in PAPERS:
        for claim in papers.claims(paper):
            where = claim["federation"], claim["site"], claim["setting"]
            sides = [
                [value(paper, table, claim[side], *where) for side in ("better", "worse")] for table in claim["tables"]
            ]
            assert all(pair == sides[0] for pair in sides), claim
