"""Claims on orders and curves: which steps decide them, and what is said of them."""

from importlib import import_module

import pytest
from made_results import SETTINGS, results, seeds_of

from fednb import papers
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.report.curves import curves, steps
from fednb.report.effects import effects_of

FALLING = [(170, 190, 30, 55), (150, 170, 26, 48), (125, 145, 22, 42), (100, 120, 18, 36), (75, 90, 13, 30)]
EPOCHS = (1, 5, 10, 15, 20)
ORDER, FALLS = "FedRDN > FedAvg at local epochs 1, 5, 10, 15, 20", "FedAvg falls over local epochs 1, 5, 10, 15, 20"
ORDER, FALLS = f"{ORDER} on Office-Caltech-10.", f"{FALLS} on Office-Caltech-10."


def with_recipes(frames, **fields):
    """fields: of a recipe, by the frame's columns or from the label."""
    made = results(*frames)
    for record in made.records:
        row = made.frame[made.frame["key"] == record.key].iloc[0]
        record.recipe = SETTINGS | {name: of(row) for name, of in fields.items()}
    return made


def by_epochs(fedavg, fedrdn=(), epochs=EPOCHS, **other):
    """Three seeds of both methods: so many images right at each number of local epochs."""
    frames = []
    for label, values in (("fedavg", fedavg), ("fedavg+fedrdn", fedrdn)):
        for number, right in zip(epochs, values, strict=False):
            frames += seeds_of(label, right, local_epochs=number, rounds=60 // number, **other)
    return with_recipes(frames, local_epochs=lambda row: int(row["local_epochs"]))


def judged(made, paper, claim):
    rows = curves(made, paper).set_index("claim")
    return rows.loc[claim, "verdict"], rows.loc[claim, "why"]


def swapped(values, first, second):
    values = list(values)
    values[first], values[second] = values[second], values[first]
    return values


@pytest.mark.parametrize(
    ("values", "verdict", "why"),
    [
        (FALLING, "as in print", "4 of 4 steps significant"),
        (swapped(FALLING, 1, 2), "otherwise than in print", "4 of 4 steps significant, 1 of them the other way"),
        ([FALLING[0], FALLING[1], FALLING[1], *FALLING[3:]], "inconclusive", "3 of 4 steps significant"),
        (FALLING[:3], "inconclusive", "2 of 4 steps significant, 2 not run"),
        ([], "not run", "0 of 4 steps significant, 4 not run"),
    ],
)
def test_a_curve_falls_where_every_step_is_told(values, verdict, why):
    assert judged(by_epochs(values, FALLING), "fedrdn", FALLS) == (verdict, why)


@pytest.mark.parametrize(
    ("lower", "verdict", "why"),
    [
        (FALLING[1:] + [(60, 70, 10, 25)], "as in print", "5 of 5 steps significant"),
        ([*FALLING[1:], FALLING[0]], "otherwise than in print", "5 of 5 steps significant, 1 of them the other way"),
        (FALLING[1:], "inconclusive", "4 of 5 steps significant, 1 not run"),
    ],
)
def test_an_order_holds_where_it_is_told_at_every_x(lower, verdict, why):
    assert judged(by_epochs(lower, FALLING), "fedrdn", ORDER) == (verdict, why)


def test_an_order_without_an_x_is_one_step():
    frames = [*seeds_of("fedavg", FALLING[3]), *seeds_of("fedavg+fedfa(probability=0.1)", FALLING[1])]
    claim = "FedFA (p = 0.1) > FedAvg on Office-Caltech-10."
    assert judged(results(*frames), "fedfa", claim) == ("as in print", "1 of 1 steps significant")
    row = curves(by_epochs(FALLING), "fedrdn").set_index("claim").loc[FALLS]  # what x makes otherwise is no deviation
    assert row["setting"] == "small" and "local epochs" not in row["deviations"] and "size 128" in row["deviations"]


def test_all_steps_of_a_claim_are_tested_together(monkeypatch):
    made, given = by_epochs(FALLING, FALLING), []

    def recorded(pairs, results, spreads, level):
        given.append((len(pairs), level))
        return effects_of(pairs, results, spreads, level)

    monkeypatch.setattr(import_module("fednb.report.curves"), "effects_of", recorded)
    curves(made, "fedrdn")
    assert given == [(5, pytest.approx(0.05 / 5)), (4, pytest.approx(0.05 / 4))]
    rules = protocol.rules() | {"level": 1e-30}
    monkeypatch.setattr(protocol, "rules", lambda: rules)
    assert judged(made, "fedrdn", FALLS) == ("inconclusive", "0 of 4 steps significant")


def test_a_step_that_cannot_be_judged_is_not_told_and_says_why():
    older = by_epochs(FALLING, stale=True)
    assert judged(older, "fedrdn", FALLS) == ("inconclusive", "0 of 4 steps significant, 4 older code")
    guess = (20, 23, 4, 6)
    verdict, why = judged(by_epochs([*FALLING[:4], guess]), "fedrdn", FALLS)
    assert verdict == "inconclusive" and why.startswith(
        "3 of 4 steps significant, 1 not testable; local epochs 20: FedAvg is not"
    )
    assert judged(by_epochs([guess] * 5), "fedrdn", FALLS)[0] == "not testable"
    assert judged(by_epochs(FALLING, stand_in=True), "fedrdn", FALLS)[0] == "not run"
    fewer = [frame[frame["client"] != "dslr"] for frame in seeds_of("fedavg", FALLING[0], local_epochs=1)]
    assert judged(with_recipes(fewer, local_epochs=lambda row: 1), "fedrdn", FALLS)[0] == "not run"


def test_steps_are_what_a_claim_states():
    claim = {"kind": "order", "runs": ["a", "b", "c"], "x": "", "values": [None], "at": ""}
    assert steps(claim) == [(("a", None), ("b", None)), (("b", None), ("c", None))]
    claim |= {"runs": ["a"], "x": "x", "values": [1, 2, 3]}
    assert steps(claim | {"kind": "monotone", "at": "rises"}) == [(("a", 3), ("a", 2)), (("a", 2), ("a", 1))]
    assert steps(claim | {"kind": "monotone", "at": "falls"}) == [(("a", 1), ("a", 2)), (("a", 2), ("a", 3))]
    assert steps(claim | {"kind": "maximum", "at": 2}) == [(("a", 2), ("a", 1)), (("a", 2), ("a", 3))]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("fig2,pacs,,peak,fedavg,local_epochs,5,Sec. 1", "peak of fedavg in fig2: its kind .peak. is not known"),
        ("fig2,pacs,,monotone,fedavg,width,falls,Sec. 1", 'its x "width" is not known'),
        ("fig2,pacs,,monotone,fedavg,local_epochs,grows,Sec. 1", '"grows" is not known; .*Known: falls, rises'),
    ],
)
def test_a_claim_that_cannot_be_is_refused_by_name(monkeypatch, tmp_path, row, said):
    (tmp_path / "curves.csv").write_text(f"figure,federation,setting,kind,runs,x,at,place\n{row}\n")
    monkeypatch.setattr(papers, "folder", lambda paper: tmp_path)
    monkeypatch.setattr(papers, "settings", lambda paper: {"fig2": {"local_epochs": [1, 5, 10]}})
    with pytest.raises(RecipeError, match=f"fedrdn/curves.csv: .*{said}"):
        papers.curves("fedrdn")


def test_orders_and_curves_of_tables_stand_so_in_print():
    """Table 6 of FRAug, by its labels."""

    def value(paper, figure, claim, run, x):
        labels = {0.01: "image_noise(sigma=0.01)", 0.1: "image_noise", 1.0: "image_noise(sigma=1.0)"}
        label = run.replace("image_noise", labels[x]) if claim["x"] == "sigma" else run
        rows = papers.printed(paper, figure, claim["federation"])
        found = (rows["algorithm"] + "+" + rows["augmentation"]).str.strip("+") == label
        return rows.loc[found, "value"].item()

    seen = 0
    for paper in papers.names():
        for claim in papers.curves(paper):
            assert claim["place"].startswith(("Sec. ", "Table "))
            if claim["figure"].startswith("table"):
                for higher, lower in steps(claim):
                    assert value(paper, claim["figure"], claim, *higher) > value(paper, claim["figure"], claim, *lower)
                    seen += 1
    assert seen == 3 + 3
