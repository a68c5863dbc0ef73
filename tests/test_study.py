"""Studies: what is planned, found, trained and missing, and the data frame of it."""

import os

import pytest
from methods import federation
from small_runs import SMALL, record, use_toy

from fednb import papers
from fednb.errors import RecipeError, RunError
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.study import Results, Study

OFFICE = Recipe(**papers.recipe("fedrdn", "quick"))


@pytest.fixture(autouse=True)
def toy(monkeypatch, tmp_path):
    use_toy(monkeypatch)
    monkeypatch.delenv("FEDNB_TRAIN", raising=False)
    monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "no-data"))


def test_only_what_is_missing_is_trained(store):
    recipes = SMALL.vary(seed=[0, 1])
    store.write(recipes[0], record(recipes[0], right=5))
    before = Study(recipes, store=store).recorded()
    assert before.missing == [recipes[1]] and len(before.records) == 1
    results = Study(recipes, store=store).run()
    with pytest.raises(RunError, match="2 of 2 runs are recorded with {'algorithm': 'fedavg'}"):
        results.record(algorithm="fedavg")
    assert results.missing == [] and results.record(seed=0).rounds[0]["test"][0] == 5
    assert results.record(seed=1).clients == ["clinic", "harbour", "tower"]


def test_where_training_is_forbidden_missing_runs_are_named_by_what_they_vary(store, monkeypatch):
    monkeypatch.setenv("FEDNB_TRAIN", "0")
    with pytest.raises(RunError, match="fedavg on shifted_digits.*: not recorded yet, and FEDNB_TRAIN=0 forbids"):
        Study([SMALL], store=store).run()
    recipes = SMALL.vary(algorithm=["fedavg", "fedprox"], local_epochs=[1, 2], seed=[0, 1])
    recipes += SMALL.vary(unseen=[["low"], ["middle"]], seed=[0])
    for recipe in recipes[1:5]:
        store.write(recipe, record(recipe))
    told = (
        "fedavg, local_epochs 1 on shifted_digits, seed 0; fedprox, local_epochs 1 on shifted_digits, seed 1; "
        "fedprox, local_epochs 2 on shifted_digits, seed 0, 1; fedavg, local_epochs 1, unseen low on shifted_digits, "
        "seed 0; fedavg, local_epochs 1, unseen middle on shifted_digits, seed 0: not recorded"
    )
    assert told in Study(recipes, store=store).run().notes[-1]
    many = SMALL.vary(local_epochs=range(1, 20), seed=[7])
    store.write(many[0], record(many[0]))
    note = Study(many, store=store).run().notes[-1]
    assert "local_epochs 13 on shifted_digits, seed 7 and more: not recorded" in note and "local_epochs 14" not in note


def test_one_that_fails_is_reported_and_the_others_are_there(store):
    bad, good = SMALL.vary(learning_rate=[1e30, 0.05])
    results = Study([bad, good], store=store).run()
    assert results.missing == [bad] and len(results.records) == 1
    assert bad.key in results.notes[-1] and "is nan" in results.notes[-1]
    assert set(results.frame["learning_rate"]) == {0.05}
    with pytest.raises(RunError, match="no run of this study succeeded: .* is nan"):
        Study([bad], store=store).run()


def test_where_the_papers_images_are_missing_the_stand_in_runs_and_is_marked(store):
    recipes = OFFICE.vary(augmentations=[[], ["fedrdn"]], local_epochs=[1, 2])
    results = Study(recipes, paper="fedrdn", store=store).run()
    assert len(results.records) == 4 and results.stand_in
    assert results.frame["stand_in"].all() and set(results.frame["federation"]) == {"shifted_digits"}
    assert set(results.frame["local_epochs"]) == {1, 2}  # what the study varies, it still varies
    assert set(results.frame["augmentation"]) == {"", "fedrdn"}
    assert {recipe.full["model"]["name"] for recipe in results.found} == {"digits_cnn"}
    assert results.notes[-1].startswith("There is no folder office_caltech_10")


def test_a_stand_in_leaves_out_a_site_for_each_that_the_study_leaves_out(store):
    recipes = OFFICE.vary(unseen=[(), ["webcam"], ["dslr"]], seed=[0, 1])
    found = Study(recipes, "fedrdn", store).as_stand_in().recipes
    assert [recipe.unseen for recipe in found] == [(), (), ("clinic",), ("clinic",), ("harbour",), ("harbour",)]


def test_rows_of_the_frame_say_who_took_part_and_how_many_were_left_out(store):
    recipes = SMALL.vary(unseen=[(), ["a"], ["b"]])
    for recipe in recipes:
        store.write(recipe, record(recipe))
    frame = Study(recipes, store=store).recorded().frame.drop_duplicates(["key", "client"])
    assert frame["took_part"].tolist() == [True, True, False, True, True, False]
    assert frame["unseen"].tolist() == [0, 0, 1, 1, 1, 1]


def test_recipes_beside_the_papers_neither_stand_in_nor_change_what_does(store):
    """They run as they are, and what they alone vary (here the rounds) is not varied by the stand-in."""
    beside = SMALL.with_(rounds=3)
    store.write(beside, record(beside))
    notebook = Study([OFFICE, OFFICE.with_(seed=1), beside], paper="fedrdn", store=store)
    theirs, alone = notebook.run().apart([beside])
    rounds = Study([OFFICE], "fedrdn", store).as_stand_in().recipes[0].rounds
    assert [recipe.rounds for recipe in theirs.found] == [rounds, rounds] and theirs.frame["stand_in"].all()
    assert list(alone.found) == [beside] and not alone.frame["stand_in"].any()
    assert "office" in theirs.notes[-1].lower()


PROSTATE, VESSELS = (Recipe(**papers.recipe("fedrdn", "quick", on)) for on in ("prostate_mri", "retinal_vessels"))


def test_other_data_take_the_place_of_a_study_without_images_and_without_records(store):
    both = Study([PROSTATE, PROSTATE.with_(seed=1)], "fedrdn", store, other=[VESSELS])
    assert both.instead(set(both.recipes)).recipes == [VESSELS] and both.instead({PROSTATE}) is None
    store.write(VESSELS, record(VESSELS))
    results = both.run()
    assert list(results.found) == [VESSELS] and results.frame["stand_in"].all()
    (lack,) = (note for note in results.notes if "prostate_mri" in note)
    assert lack.startswith(f"There is no folder prostate_mri{os.sep}BIDMC, prostate_mri{os.sep}")
    store.write(PROSTATE, record(PROSTATE))
    results = both.run()
    assert not results.frame["stand_in"].any() and results.missing == [PROSTATE.with_(seed=1)]


def test_where_other_data_are_missing_too_masks_are_embedded(store):
    both = Study([PROSTATE], "fedrdn", store, other=VESSELS.vary(augmentations=[[], ["fedrdn"]], seed=[0, 1]))
    stands_in = both.instead({PROSTATE}).instead(set(both.other))
    assert {recipe.full["federation"]["name"] for recipe in stands_in.recipes} == {"shifted_strokes"}
    assert {(recipe.augmentation_name, recipe.seed) for recipe in stands_in.recipes} >= {("", 0), ("fedrdn", 1)}


def test_other_images_than_the_recorded_ones_are_reported(store, monkeypatch):
    recipes = SMALL.vary(seed=[0, 1])
    Study(recipes[:1], store=store).run()
    assert "not recorded" not in str(Study(recipes[:1], store=store).run().notes)
    use_toy(monkeypatch, federation(held_out=1))
    (note,) = Study(recipes[:1], store=store).run().notes
    assert str(recipes[0]) in note and "recorded from other images" in note
    (note,) = Study(recipes, store=store).run().notes  # also where another run is trained now
    assert str(recipes[0]) in note


def test_a_folder_that_cannot_be_written_is_noticed_before_training(store, tmp_path):
    recipes = SMALL.vary(seed=[0, 1, 2])
    (tmp_path / "file").touch()
    refused = Store(tmp_path / "file" / "runs", also=(store.folder,))
    with pytest.raises(RunError, match="cannot be used: .* Choose another folder"):
        Study(recipes, store=refused).run()
    store.write(recipes[0], record(recipes[0]))
    results = Study(recipes, store=refused).run()  # what is recorded is shown
    assert results.missing == recipes[1:] and results.notes[-1].count("cannot be used") == 1


def test_the_frame_has_a_row_for_each_run_round_client_and_split(store):
    recipes = SMALL.vary(seed=[0, 1], augmentations=[[], ["mixstyle", {"name": "fedmix", "ratio": 0.2}]])
    for number, recipe in enumerate(recipes):
        store.write(recipe, record(recipe, right=number))
    frame = Study(recipes, store=store).recorded().frame
    assert len(frame) == 4 * 2 * 2 * 2
    row = frame[(frame["seed"] == 1) & (frame["augmentation"] != "") & (frame["round"] == 2)]
    row = row[(row["client"] == "b") & (row["split"] == "test")].iloc[0].to_dict()
    assert list(row) == list(frame.columns) and row == {
        "run": "fedavg+mixstyle+fedmix(ratio=0.2)",
        "label": "fedavg+mixstyle+fedmix(ratio=0.2)",
        "algorithm": "fedavg",
        "augmentation": "mixstyle+fedmix",
        "federation": "shifted_digits",
        "task": "classification",
        "seed": 1,
        "dealt_by_seed": False,
        "key": recipes[3].key,
        "stand_in": False,
        "stale": False,
        "round": 2,
        "client": "b",
        "took_part": True,
        "split": "test",
        "correct": 5,
        "images": 10,
        "accuracy": 50.0,
    }


def test_varied_settings_and_options_are_columns_and_hide_none_of_the_same_name():
    recipes = SMALL.vary(local_epochs=[1, 3], model=[SMALL.model, SMALL.model | {"width": 32}])
    frame = Results({recipe: record(recipe) for recipe in recipes}).frame
    assert frame.groupby(["local_epochs", "width"])["key"].nunique().tolist() == [1, 1, 1, 1]
    assert "channels" not in frame and "rounds" not in frame
    recipes = SMALL.vary(federation=[{"name": "digits", "seed": seed} for seed in (5, 6)], seed=[0, 1])
    recipes += SMALL.vary(federation=[{"name": "office_caltech10", "split": split} for split in ("fedbn", "fedfa")])
    frame = Results({recipe: record(recipe) for recipe in recipes}).frame
    assert set(frame["seed"]) == {0, 1} and {5, 6} <= set(frame["federation_seed"])
    assert set(frame["split"]) == {"validation", "test"} and {"fedbn", "fedfa"} <= set(frame["federation_split"])


def test_a_label_names_what_the_study_varies():
    recipes = SMALL.vary(learning_rate=[0.1, 0.01], seed=[0, 1]) + SMALL.vary(federation=["digits"])
    frame = Results({recipe: record(recipe) for recipe in recipes}).frame
    labels = ["fedavg, learning_rate 0.1 on shifted_digits", "fedavg, learning_rate 0.01 on shifted_digits"]
    assert list(frame["label"].unique())[:2] == labels and frame["label"].iloc[-1].endswith("on digits")
    assert set(frame["run"]) == {"fedavg"} and (frame.groupby("label")["seed"].nunique() == [1, 2, 2]).all()


@pytest.mark.parametrize("recipes", ["fedavg", ["fedavg"], SMALL])
def test_what_is_no_list_of_recipes_is_refused(recipes, store):
    with pytest.raises(RecipeError, match="a study is of .*; expected a list of recipes"):
        Study(recipes, store=store)
    with pytest.raises(RunError, match="jobs is 'two'; expected a whole number of at least 1"):
        Study([SMALL], store=store).run(jobs="two")
