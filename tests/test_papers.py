"""The printed numbers, checked against each other: averages, changes and counts of images."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fednb import papers
from fednb.errors import RecipeError

TABLES = ("table1", "table2", "table3", "table4")
TEST_IMAGES = {
    **{"amazon": 192, "caltech": 225, "dslr": 32, "webcam": 59},
    **{"clipart": 526, "infograph": 657, "painting": 619, "quickdraw": 1000, "real": 1217, "sketch": 554},
}
CELL = ["algorithm", "augmentation", "federation", "source", "site"]


def hundredths(value):
    return round(100 * value)


def wrong_averages(table):
    """Cells are cut to two decimals, and so may be the average: they may differ by one hundredth."""
    for (algorithm, augmentation, federation), row in table.groupby(["algorithm", "augmentation", "federation"]):
        sites = row.loc[row["site"] != "average", "value"]
        average = row.loc[row["site"] == "average", "value"].item()
        if abs(average - sites.mean()) > 0.01 + 1e-9:
            yield (algorithm, augmentation, federation, "", "average"), "average", hundredths(sites.mean())


def wrong_changes(table):
    averages = table[table["site"] == "average"].set_index(["federation", "algorithm", "augmentation"])
    for (federation, algorithm, augmentation), row in averages.iterrows():
        if augmentation:
            rise = hundredths(row["value"]) - hundredths(averages.loc[federation, algorithm, ""]["value"])
            if rise != hundredths(row["change"]):
                yield (algorithm, augmentation, federation, "", "average"), "change", rise


def wrong_counts(table):
    """A cell must be k / n, cut to two decimals."""
    for row in table[table["site"].isin(TEST_IMAGES)].itertuples():
        images, printed = TEST_IMAGES[row.site], hundredths(row.value)
        cut = [10000 * right // images for right in range(images + 1)]
        if printed not in cut:
            nearest = min(cut, key=lambda value: abs(value - printed))
            kind = "rounded" if printed == nearest + 1 and printed in rounded(images) else "count"
            yield (row.algorithm, row.augmentation, row.federation, row.source, row.site), kind, nearest


def rounded(images):
    return [round(10000 * right / images) for right in range(images + 1)]


def test_the_known_inconsistencies_are_all_there_are():
    tables = {name: papers.printed("fedrdn", name) for name in TABLES}
    found = [("table1", *w) for check in (wrong_averages, wrong_changes, wrong_counts) for w in check(tables["table1"])]
    found += [("table2", *w) for check in (wrong_averages, wrong_changes) for w in check(tables["table2"])]
    found += [("table3", *w) for w in wrong_counts(tables["table3"])]
    listed = [
        (row.table, tuple(getattr(row, name) for name in CELL), row.kind, hundredths(row.expected))
        for row in papers.inconsistencies("fedrdn").itertuples()
    ]
    assert sorted(found) == sorted(listed)


def test_the_listed_inconsistencies_quote_what_is_printed():
    for wrong in papers.inconsistencies("fedrdn").itertuples():
        table = papers.printed("fedrdn", wrong.table)
        cell = table[[tuple(row) == tuple(getattr(wrong, n) for n in CELL) for row in table[CELL].values]]
        assert cell["change" if wrong.kind == "change" else "value"].item() == wrong.printed
        assert wrong.reason in cell["remark"].item()


def test_remarks_stand_at_no_other_cell():
    remarks = sum((papers.printed("fedrdn", name)["remark"] != "").sum() for name in TABLES)
    assert remarks == len(papers.inconsistencies("fedrdn")) == 9


@pytest.mark.parametrize(("table", "cells", "rows"), [("table1", 336, 56), ("table2", 84, 12), ("table4", 9, 9)])
def test_every_row_and_cell_is_there_once(table, cells, rows):
    frame = papers.printed("fedrdn", table)
    assert len(frame) == len(frame.drop_duplicates(CELL)) == cells
    assert len(frame.drop_duplicates(["algorithm", "augmentation", "federation"])) == rows


def test_table3_has_every_pair_of_two_sites_for_four_methods():
    frame = papers.printed("fedrdn", "table3")
    assert len(frame) == len(frame.drop_duplicates(CELL)) == 4 * 4 * 3
    assert (frame["source"] != frame["site"]).all()


def test_an_average_has_a_change_exactly_where_something_was_added():
    for name in ("table1", "table2"):
        frame = papers.printed("fedrdn", name)
        expected = (frame["site"] == "average") & (frame["augmentation"] != "")
        assert (frame["change"].notna() == expected).all()


def test_table4_repeats_the_averages_of_tables_1_and_2():
    frame = papers.printed("fedrdn", "table4")
    for table, count in (("table1", 4), ("table2", 2)):
        both = frame.merge(papers.printed("fedrdn", table), on=CELL)
        assert len(both) == count
        assert (both["value_x"] == both["value_y"]).all()


def test_one_federation_alone():
    frame = papers.printed("fedrdn", "table1", "domainnet")
    assert set(frame["federation"]) == {"domainnet"} and len(frame) == 28 * 7
    with pytest.raises(RecipeError, match='did you mean "domainnet"'):
        papers.printed("fedrdn", "table1", "domainet")


def test_unknown_names_are_errors_with_the_nearest_valid_one():
    with pytest.raises(RecipeError, match='did you mean "fedrdn"'):
        papers.caption("fedrdm", "table1")
    with pytest.raises(RecipeError, match="table1, table2, table3, table4"):
        papers.printed("fedrdn", "table9")
    with pytest.raises(RecipeError, match='did you mean "quick"'):
        papers.recipe("fedrdn", "quik")
    with pytest.raises(RecipeError, match='did you mean "fedprox"'):
        papers.algorithm("fedrdn", "fedprx")


def test_every_table_and_figure_has_a_caption():
    for name in (*TABLES, "fig1", "fig2", "fig3"):
        assert papers.caption("fedrdn", name).endswith((".", ")"))


def test_every_claim_has_a_positive_printed_effect():
    claims = papers.claims("fedrdn")
    assert len({(c["table"], c["federation"], c["better"], c["worse"]) for c in claims}) == len(claims) == 59
    for claim in claims:
        frame = papers.printed("fedrdn", claim["table"], claim["federation"])
        values = {
            "+".join(filter(None, (row.algorithm, row.augmentation))): row.value
            for row in frame[frame["site"] == claim["site"]].itertuples()
        }
        assert values[claim["better"]] > values[claim["worse"]], claim
        assert "{effect:.2f}" in claim["statement"]


def test_the_paper_profile_is_what_is_printed_or_explained():
    settings = papers.settings("fedrdn")
    profile = papers.recipe("fedrdn", "paper")
    told = settings["printed"] | settings["not_printed"]
    same = set(profile) & set(told) - {"precision"}
    assert same >= {
        "rounds",
        "local_epochs",
        "batch_size",
        "learning_rate",
        "weight_decay",
        "momentum",
        "flow",
    }
    for name in same:
        value = told[name]["value"]
        assert profile[name] == (tuple(value) if isinstance(value, list) else value), name
    assert profile["model"]["width"] == told["width"]["value"]
    assert {k: profile["federation"][k] for k in ("size", "split")} == {k: told[k]["value"] for k in ("size", "split")}
    assert papers.algorithm("fedrdn", "fedprox")["mu"] == told["fedprox_mu"]["value"]
    assert papers.algorithm("fedrdn", "fedproto")["mu"] == told["fedproto_mu"]["value"]
    assert papers.algorithm("fedrdn", "fedavgm")["beta"] == told["fedavgm_beta"]["value"]
    assert all("place" in entry for entry in settings["printed"].values())
    assert all("reason" in entry for entry in settings["not_printed"].values())


def test_every_profile_makes_a_recipe_for_every_algorithm():
    from fednb.recipe import Recipe

    for profile in papers.settings("fedrdn")["profile"]:
        for name in papers.settings("fedrdn")["algorithm"]:
            recipe = Recipe(**papers.recipe("fedrdn", profile), algorithm=papers.algorithm("fedrdn", name))
            assert recipe.algorithm_name == name


def test_reading_papers_needs_no_torch():
    code = "import sys; from fednb import papers; papers.settings('fedrdn'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def test_values_keep_two_decimals_in_the_files():
    for file in (Path(papers.__file__).parent / "fedrdn").glob("fedrdn_table*.csv"):
        lines = file.read_text().splitlines()[1:]
        assert all(re.fullmatch(r"\d\d\.\d\d,(-?\d+\.\d\d)?", ",".join(line.split(",")[5:])) for line in lines)


def test_a_value_for_each_profile_is_found_or_the_nearest_named():
    assert papers.of_profile({"smoke": 1, "quick": 4}, "quick") == 4
    with pytest.raises(RecipeError, match='"quik" is not known; did you mean "quick"'):
        papers.of_profile({"smoke": 1, "quick": 4}, "quik")
