"""The printed numbers, checked against each other and against what the texts say of them; settings and protocol."""

import re
from functools import cache
from pathlib import Path

import pandas
import pytest

from fednb import papers
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.registry import complete, file
from fednb.registry import names as known
from fednb.report import labels
from fednb.report.selection import RULES

PAPERS = ("distrans", "fedfa", "fedrdn", "fraug")
DECIMALS = {"distrans": 1, "fedfa": 1, "fedrdn": 2, "fraug": 2}
TEST_IMAGES = {
    **{"amazon": 192, "caltech": 225, "dslr": 32, "webcam": 59},
    **{"clipart": 526, "infograph": 657, "painting": 619, "quickdraw": 1000, "real": 1217, "sketch": 554},
}
CELL = ["algorithm", "augmentation", "federation", "source", "setting", "site"]
ROW = CELL[:-1]
TABLES = {  # numbers and rows of each table of accuracies
    "fedrdn": {"table1": (336, 56), "table2": (84, 12), "table3": (48, 16), "table4": (9, 9)},
    "fedfa": {
        **{"table1": (96, 16), "table2": (63, 9), "table3": (24, 24), "table4": (95, 15), "table5": (12, 12)},
        **{"table6": (30, 30), "table7": (6, 6), "table8": (48, 48), "table16": (378, 54)},
    },
    "fraug": {
        **{"table1": (10, 2), "table2": (150, 30), "table3": (60, 12)},
        **{"table5": (18, 18), "table6": (9, 9), "table7": (35, 7)},
    },
    "distrans": {
        **{"table1": (104, 104), "table2": (20, 20), "table3": (30, 30)},
        **{"table4": (60, 60), "table5": (16, 16), "table6": (12, 12)},
    },
}


@cache
def cells(paper, table):
    return {tuple(getattr(row, name) for name in CELL): row for row in papers.printed(paper, table).itertuples()}


def value(paper, table, run, federation, setting="", site="average"):
    algorithm, _, augmentation = run.partition("+")
    return cells(paper, table)[algorithm, augmentation, federation, "", setting, site].value


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
            rise = round(100 * cell.value) - round(100 * averages[key[0], "", *key[2:]].value)
            if rise != round(100 * cell.change):
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
    for table in sorted(papers.tables(paper), key=lambda name: int(name.removeprefix("table"))):
        for key, cell in cells(paper, table).items():
            known = first.setdefault(key, cell)
            if cell.value != known.value:
                yield table, key, "repeated", known.value
            if cell.std == cell.std and known.std == known.std and cell.std != known.std:
                yield table, key, "repeated std", known.std


@pytest.mark.parametrize(("paper", "count"), [("distrans", 1), ("fedfa", 10), ("fedrdn", 9), ("fraug", 10)])
def test_the_known_inconsistencies_are_all_there_are_and_quote_what_is_printed(paper, count):
    checks = (wrong_averages, wrong_changes, wrong_counts)
    found = [(table, *w) for table in papers.tables(paper) for check in checks for w in check(paper, table)]
    found = {entry[:3]: entry[3] for entry in (*found, *wrong_repetitions(paper))}
    listed = {
        (w.table, tuple(getattr(w, name) for name in CELL), w.kind): w
        for w in papers.inconsistencies(paper).itertuples()
    }
    assert len(found) == count and sorted(found) == sorted(listed)
    for (table, key, kind), wrong in listed.items():
        assert wrong.expected == pytest.approx(found[table, key, kind], abs=0.5001 / 10 ** DECIMALS[paper]), key
        cell = cells(paper, table)[key]
        assert getattr(cell, {"change": "change", "repeated std": "std"}.get(kind, "value")) == wrong.printed
        assert wrong.reason in cell.remark
    remarks = sum((papers.printed(paper, table)["remark"] != "").sum() for table in papers.tables(paper))
    assert remarks == len({(table, key) for table, key, _ in listed})


# What is there


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_there_once_with_its_decimals_and_its_caption(paper):
    place = Path(papers.__file__).parent / paper
    assert set(papers.tables(paper)) == TABLES[paper].keys()
    for table, (count, rows) in TABLES[paper].items():
        frame = papers.printed(paper, table)
        assert (len(frame), len(frame.drop_duplicates(ROW))) == (count, rows) and not frame.duplicated(CELL).any()
        texts = pandas.read_csv(place / f"{paper}_{table}.csv", dtype=str, keep_default_na=False)
        assert texts["value"].str.fullmatch(rf"\d{{1,2}}\.\d{{{DECIMALS[paper]}}}").all()
        added = (frame["site"] == "average") & (frame["augmentation"] != "")
        assert (frame["change"].notna() == (added & (paper == "fedrdn" and table in ("table1", "table2")))).all()
        assert (frame["std"].notna() == (paper == "fraug" and table != "table1")).all()
        assert (frame["runs"] == (3 if paper == "fraug" else 1)).all()  # FRAug, Sec. 4.1.3: all experiments, 3 seeds
        assert frame["std"].dropna().between(0.1, 1.6).all() and frame["value"].between(0, 100).all()
    for path in place.glob(f"{paper}_*.csv"):
        caption = papers.caption(paper, path.stem.removeprefix(f"{paper}_"))
        assert len(caption) > 20 and not re.search(r"et al\.|\[\d|§", caption)
    frame = papers.printed("fedrdn", "table3")
    assert (frame["source"] != frame["site"]).all()  # every pair of two sites


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: papers.caption("fedrdm", "table1"), 'did you mean "fedrdn"'),
        (lambda: papers.printed("fedrdn", "table1", "domainet"), 'did you mean "domainnet"'),
        (lambda: papers.printed("distrans", "table7"), "no accuracies; read it with fednb.papers.numbers"),
        (lambda: papers.recipe("fedrdn", "quik"), 'did you mean "quick"'),
        (lambda: papers.recipe("fedrdn", "quick", "pcas"), 'federation "pcas" is not known'),
        (lambda: papers.of_profile({"smoke": 1, "quick": 4}, "quik"), 'did you mean "quick"'),
    ],
)
def test_unknown_names_are_errors_with_the_nearest_valid_one(read, said):
    with pytest.raises(RecipeError, match=said):
        read()


# What the texts say of the tables

OFFICE, MINI, UNSEEN = ("office_caltech10", ""), ("prostate_mri", "1/6"), papers.UNSEEN
RIVALS = tuple(f"fedavg+{name}" for name in ("mixup", "manifold_mixup", "mixstyle", "moex"))
FEDMIX, RXRX1 = ("fedavg+fedmix",), ("fedavg", "harmofl", "fedbn")
GAINS = [  # paper, table, better, worse (the best of these), (federation, setting) and the points that the text names
    ("fedfa", "table1", "fedavg+fedfa", ("fedavg",), {OFFICE: 4.6, ("domainnet", ""): 3.7}),
    ("fedfa", "table1", "fedavg+fedfa", FEDMIX, {OFFICE: 3.3, ("domainnet", ""): 2.2}),
    ("fedfa", "table2", "fedavg+fedfa", ("fedavg",), {MINI: 3.0}),
    ("fedfa", "table3", "fedavg+fedfa", FEDMIX, {("cifar10", "Dir(0.6)"): 0.8, ("cifar10", "Dir(0.3)"): 1.2}),
    ("fedfa", "table3", "fedavg+fedfa", FEDMIX, {("emnist", ""): 1.2}),
    ("fedfa", "table3", "fedavg+fedfa", ("fedrobust",), {("emnist", ""): 1.1}),
    ("fedfa", "table4", "fedavg+fedfa", FEDMIX, {("office_caltech10", UNSEEN): 1.7, ("domainnet", UNSEEN): 1.6}),
    ("fedfa", "table4", "fedavg+fedfa", FEDMIX, {("prostate_mri", UNSEEN): 1.3}),
    ("fedfa", "table6", "fedavg+fedfa", RIVALS, {OFFICE: 2.9, ("domainnet", ""): 1.9, MINI: 1.0}),
    ("fraug", "table2", "fedavg+fraug", ("fedavg",), {("office_home", ""): 1.91}),
    ("fraug", "table2", "fedavg+fraug", ("fedbn",), {("office_home", ""): 1.58}),
    ("fraug", "table1", "fedavg+additional_embeddings", ("fedavg",), {("office_home", ""): 10.32}),
    ("fraug", "table3", "fedavg+fraug", RXRX1, {("rxrx1", "8 clients"): 3.04, ("rxrx1", "12 clients"): 2.81}),
    ("fraug", "table3", "fedavg+fraug", RXRX1, {("rxrx1", "16 clients"): 1.21}),
]


@pytest.mark.parametrize(("paper", "table", "better", "others", "gains"), GAINS)
def test_a_gain_that_a_text_names_is_that_of_its_table(paper, table, better, others, gains):
    for where, points in gains.items():
        second = max(value(paper, table, other, *where) for other in others)
        assert value(paper, table, better, *where) - second == pytest.approx(points)


# Names, claims and settings


def buildable(run):
    algorithm, *augmentations = [name for name, _ in labels.parts(run)]
    return algorithm in known("algorithms") and all(name in known("augmentations") for name in augmentations)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_printed_row_is_named_as_the_label_of_the_run_that_it_prints(paper):
    for run in {run for table in papers.tables(paper) for run in papers.labels_of(papers.printed(paper, table))}:
        assert all(labels.printed(name) != name or name == "mixup" for name, _ in labels.parts(run)), run
        if buildable(run):
            first, *others = papers.choices(run)
            label = Recipe(algorithm=first, augmentations=others).label
            assert labels.method(label) == labels.method(run) and labels.options(label) == labels.options(run)


@pytest.mark.parametrize(
    ("federation", "table", "classes", "clients"), [("cifar10", "table4", 10, 10), ("ch_mnist", "table2", 8, 8)]
)
def test_a_printed_heterogeneity_is_that_of_its_option(federation, table, classes, clients):
    """DH = 1 - u / N where a class lies with several clients, and 1 where each lies with one (Eq. 3, 4)."""
    printed = papers.printed("distrans", table, federation)
    for run_on, setting in set(zip(printed["run_on"], printed["setting"], strict=True)):
        own = int(re.fullmatch(rf"{federation}\(classes_per_client=(\d+)\)", run_on)[1])
        heterogeneity = 1 - own / classes if own * clients / classes > 1 else 1
        assert setting == f"{100 * heterogeneity:.0f} %"


def test_every_setting_is_made_by_options_that_the_federation_has():
    for paper in PAPERS:
        for table in papers.tables(paper):
            for run_on in papers.printed(paper, table)["run_on"].unique():
                assert not run_on or complete("datasets", papers.choices(run_on)[0])
    levels = [level["classes_per_client"] for level in papers.federations("distrans", "quick")]
    assert levels == papers.settings("distrans")["heterogeneity"]["classes_per_client"] == [10, 6, 4, 2, 1]
    assert papers.federations("distrans", "smoke") == ["shifted_digits"]
    assert papers.federations("fedfa", "quick") == [papers.recipe("fedfa", "quick")["federation"]]
    for name, option in (("prostate_mri", "ratio"), ("retinal_vessels", "fraction")):
        shares = [complete("datasets", each) for each in papers.under_settings("fedfa", {"name": name})]
        whole = complete("datasets", name)[option]
        assert [share[option] / whole for share in shares] == pytest.approx([n / 6 for n in range(1, 7)], abs=5e-4)


@pytest.mark.parametrize(("paper", "count"), [("distrans", 163), ("fedfa", 165), ("fedrdn", 63), ("fraug", 82)])
def test_every_claim_has_a_positive_printed_effect_the_same_in_all_its_tables(paper, count):
    claims, pairs = papers.claims(paper), set()
    for claim in claims:
        where = claim["federation"], claim["setting"], claim["site"]
        pairs.add((*where, claim["better"], claim["worse"]))
        sides = {
            tuple(value(paper, table, claim[side], *where) for side in ("better", "worse")) for table in claim["tables"]
        }
        [(better, worse)] = sides
        assert better - worse > 0.5 / 10 ** DECIMALS[paper], claim
        assert claim["place"].startswith(("Sec. ", "App. ")) and claim["table"] == claim["tables"][0]
        if paper != "fedrdn":  # which names rivals that are not built here
            assert buildable(claim["better"]) and buildable(claim["worse"])
    assert len(claims) == len(pairs) == count
    assert papers.family(paper, "domainnet") == sum(federation == "domainnet" for federation, *_ in pairs)


@pytest.mark.parametrize("row", ["table1,,,average,a,b", "table1,x,,average,a,b,Sec. 1, too much"])
def test_a_row_of_claims_with_a_value_too_few_or_too_many_is_refused(monkeypatch, tmp_path, row):
    (tmp_path / "claims.csv").write_text(f"# a remark\ntable,federation,setting,site,better,worse,place\n{row}\n")
    monkeypatch.setattr(papers, "folder", lambda paper: tmp_path)
    with pytest.raises(RecipeError, match="/claims.csv has a row table1, .*; expected a value for each of table, "):
        papers.claims("fedrdn")


@pytest.mark.parametrize("paper", PAPERS)
def test_the_paper_profile_is_what_is_printed_or_explained(paper):
    settings, profile = papers.settings(paper), papers.recipe(paper, "paper")
    told = settings["printed"] | settings["not_printed"]
    assert len(told) == len(settings["printed"]) + len(settings["not_printed"])
    assert set(profile) - set(told) <= {"federation", "model", "evaluation"}
    options = [profile[part] for part in ("federation", "model") if isinstance(profile[part], dict)]
    for chosen in (profile, *options):
        for name in set(chosen) & set(told) - {"precision"}:
            printed = told[name]["value"]
            assert chosen[name] == (tuple(printed) if isinstance(printed, list) else printed), name
    assert all("place" in entry for entry in settings["printed"].values())
    assert all("reason" in entry for entry in settings["not_printed"].values())


@pytest.mark.parametrize(
    ("paper", "method", "option"),
    [
        *(("fedrdn", "fedprox", "mu"), ("fedrdn", "fedproto", "mu"), ("fedrdn", "fedavgm", "beta")),
        *(("fedfa", "fedprox", "mu"), ("fedfa", "fedavgm", "beta"), ("fedfa", "fedsam", "rho")),
        *(("fraug", "fedprox", "mu"), ("fraug", "fedproto", "mu")),
        *(("fedfa", "fedfa", "probability"), ("fedfa", "fedfa", "momentum")),
        *(("distrans", "distrans", name) for name in ("alpha", "offset_rate", "threshold")),
    ],
)
def test_a_methods_option_is_the_one_told(paper, method, option):
    settings = papers.settings(paper)
    own = complete("augmentations", method) if method == paper else papers.algorithm(paper, method)
    assert own[option] == (settings["printed"] | settings["not_printed"])[f"{method}_{option}"]["value"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_profile_makes_recipes_for_every_algorithm_and_federation(paper):
    settings, printed = papers.settings(paper), papers.printed_federations(paper)
    assert set(settings["profile"]) == {"smoke", "stand_in", "quick", "paper"}
    main = papers.recipe(paper, "paper")["federation"]["name"]
    assert settings["on"].keys() | {main, "cifar10", "emnist"} >= printed >= settings["on"].keys() - {"retinal_vessels"}
    for profile in settings["profile"]:
        for name in settings["algorithm"]:
            assert (
                Recipe(**papers.recipe(paper, profile), algorithm=papers.algorithm(paper, name)).algorithm_name == name
            )
        for name in settings["on"]:
            used = Recipe(**papers.recipe(paper, profile, name)).full["federation"]["name"]
            assert used.startswith("shifted_") if profile in ("smoke", "stand_in") else used == name
    assert papers.recipe(paper, "quick", main) == papers.recipe(paper, "quick")


@pytest.mark.parametrize("federation", ["prostate_mri", "domainnet", "office_home", "pacs"])
def test_printed_sites_are_called_as_the_loaders(federation):
    loader = file("datasets", federation)
    loaded = loader.LISTS.domains if federation == "domainnet" else getattr(loader, "DOMAINS", None) or loader.SITES
    printed = [papers.sites(paper, federation) for paper in papers.names()]
    assert any(printed) and all(set(sites) == set(loaded) for sites in printed if sites)


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
    page = (Path(papers.__file__).parents[2] / "docs" / "protocol.md").read_text()
    assert re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*?\|", page, re.M))) == list(rules)


def test_a_primary_claim_that_is_none_of_the_papers_claims_is_refused(monkeypatch):
    assert sum(claim["primary"] for paper in PAPERS for claim in papers.claims(paper)) == 6
    strange = {"federation": "digits", "better": "fedavg+fraug", "worse": "nobody", "place": "Table 2"}
    told = papers.settings("fraug") | {"primary": [strange]}
    monkeypatch.setattr(papers, "settings", lambda paper: told)
    with pytest.raises(RecipeError, match="fraug.toml has a primary claim .*nobody"):
        papers.claims("fraug")


def test_a_precondition_that_its_paper_does_not_print_is_refused():
    pair = {"paper": "fraug", "federation": "pacs", "better": "fedavg", "worse": "nobody", "place": "Table 2"}
    with pytest.raises(RecipeError, match="a precondition of nobody on pacs, which fraug does not print there"):
        protocol.require_printed(pair, Path("protocol.toml"))
