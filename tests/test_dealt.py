"""Federations that are dealt out with the seed of the run: ``{"name": "cifar10", "seed": "run"}``."""

import pytest
from methods import TINY

import fednb
from fednb import registry
from fednb.errors import RecipeError
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.records.training import federation_of
from fednb.study import Study

PLAIN = {"name": "cifar10", "clients": 2, "size": 8}
OWN = PLAIN | {"seed": "run"}
RECIPE = Recipe(**TINY | {"federation": OWN, "rounds": 1})


@pytest.fixture(scope="module")
def root(files_of):
    return files_of("cifar10")


def test_a_recipe_without_it_is_the_same_recipe():
    assert Recipe(federation=PLAIN).key == Recipe(federation=PLAIN | {"seed": 0}).key == "02916c9a7465"
    assert Recipe(federation=PLAIN).short["federation"] == PLAIN
    assert len({Recipe(federation=own, seed=1).key for own in (PLAIN, PLAIN | {"seed": 1}, OWN)}) == 3
    assert RECIPE.full["federation"]["seed"] == RECIPE.short["federation"]["seed"] == "run"
    assert Recipe(**RECIPE.full) == Recipe(**RECIPE.short) == RECIPE


def test_every_loader_with_a_seed_takes_it_and_no_other():
    for name in registry.builtin("datasets"):
        if "seed" in registry.options(registry.find("datasets", name)):
            assert registry.complete("datasets", {"name": name, "seed": "run"})["seed"] == "run"
        else:
            with pytest.raises(RecipeError, match=f'{name} has no option "seed"'):
                registry.complete("datasets", {"name": name, "seed": "run"})


@pytest.mark.parametrize("given", [{"seed": "runs"}, {"clients": "run"}], ids=str)
def test_another_text_and_another_option_are_refused_by_name(given):
    with pytest.raises(RecipeError, match="cifar10 has .*'runs?'; expected a value of type int"):
        Recipe(federation=PLAIN | given)


def test_without_a_recipe_there_is_no_seed_of_a_run(root):
    for asked in (fednb.datasets.load, fednb.datasets.available):
        with pytest.raises(RecipeError, match='cifar10 has seed "run", which is the seed of a recipe'):
            asked(root=root, **OWN)
    assert not fednb.datasets.available(root=root, **RECIPE.dealt)


def test_two_seeds_get_two_partitions_and_one_seed_the_same_again(root):
    first, second, again = (federation_of(RECIPE.with_(seed=seed), root) for seed in (0, 1, 0))
    assert first.fingerprint == again.fingerprint != second.fingerprint
    for seed, found in enumerate((first, second)):
        assert found.fingerprint == fednb.datasets.load(root=root, **PLAIN, seed=seed).fingerprint
    plain = [federation_of(RECIPE.with_(federation=PLAIN, seed=seed), root).fingerprint for seed in (0, 1)]
    assert plain == [first.fingerprint] * 2


def test_a_study_records_each_seeds_own_images_and_finds_them_again(root, tmp_path):
    study = Study(RECIPE.vary(seed=[0, 1]), store=Store(tmp_path / "runs"))
    found = study.run(str(root))
    assert [record.fingerprint for record in found.records] == [
        fednb.datasets.load(root=root, **PLAIN, seed=seed).fingerprint for seed in (0, 1)
    ]
    assert not any("other images" in note for note in study.run(str(root)).notes)
    assert found.frame["dealt_by_seed"].all() and "federation_seed" not in found.frame
    both = Study([*study.recipes, RECIPE.with_(federation=PLAIN)], store=study.store).run(str(root)).frame
    assert both.groupby("federation_seed")["dealt_by_seed"].first().to_dict() == {0: False, "run": True}
