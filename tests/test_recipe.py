"""Recipes: what their key depends on, and what they refuse."""

import json
import math
from dataclasses import dataclass

import pytest

from fednb import recipe, registry
from fednb.errors import RecipeError
from fednb.methods.algorithms.fedprox import FedProx
from fednb.recipe import Recipe

PROX = {"name": "fedprox", "mu": 0.1}


def test_the_key_does_not_depend_on_the_order_of_options():
    one = Recipe(algorithm={"name": "fedmix"} | PROX, model={"name": "digits_cnn", "width": 8, "channels": 2})
    other = Recipe(model={"channels": 2, "width": 8, "name": "digits_cnn"}, algorithm={"mu": 0.1, "name": "fedprox"})
    assert one.key == other.key and one == other and len({one, other}) == 1


@pytest.mark.parametrize(
    "spelled",
    [
        {"algorithm": {"name": "fedavg"}},
        {"model": {"name": "digits_cnn", "channels": 64, "width": 2048}},
        {"federation": {"name": "shifted_digits", "size": 32}},
        {"rounds": 10, "momentum": 0, "participation": 1, "flow": [], "evaluation": ()},
    ],
)
def test_spelling_out_a_default_changes_nothing(spelled):
    assert Recipe(**spelled).key == Recipe().key


def test_keys_are_what_they_were_when_runs_were_recorded():
    """Not to be changed: the records in results/ are found by these."""
    assert Recipe().key == KEYS[0]
    varied = Recipe(algorithm=PROX, augmentations=["fedrdn"], flow=["flip", "rotation"], learning_rate=0.1, seed=3)
    assert varied.key == KEYS[1]


KEYS = ("4654622a9d42", "e1f6ab85d57c")


def test_whole_numbers_are_the_numbers_that_they_equal():
    assert Recipe(learning_rate=1).key == Recipe(learning_rate=1.0).key
    assert Recipe(algorithm=PROX | {"mu": 2}).key == Recipe(algorithm=PROX | {"mu": 2.0}).key


def test_what_is_evaluated_is_a_set():
    one, other = (Recipe(evaluation=names) for names in (["features", "cross_site"], ["cross_site", "features"]))
    assert one.key == other.key != Recipe(evaluation=["features"]).key


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"rounds": 11},
        {"algorithm": "fedprox"},
        {"augmentations": ["fedrdn"]},
        {"flow": ["flip"]},
        {"flow": ["rotation", "flip"]},
        {"precision": "bf16"},
        {"federation": {"name": "shifted_digits", "size": 16}},
        {"model": {"name": "digits_cnn", "width": 8}},
    ],
)
def test_everything_that_decides_a_number_changes_the_key(changed):
    assert Recipe(**changed).key != Recipe().key


def test_a_new_setting_or_option_leaves_the_keys_of_old_runs(monkeypatch):
    old = Recipe(algorithm=PROX).key

    @dataclass(frozen=True, eq=False)
    class Later(Recipe):
        warm_up: int = 0

    known = registry.options
    monkeypatch.setattr(registry, "options", lambda made: known(made) | {"new_option": 7})
    monkeypatch.setattr(recipe, "make", lambda room, given: FedProx())
    later = Later(algorithm=PROX)
    assert later.full["warm_up"] == 0 and later.full["algorithm"]["new_option"] == 7
    assert later.key == old
    assert Later(algorithm=PROX | {"new_option": 8}).key != old != Later(algorithm=PROX, warm_up=1).key


def test_device_paths_and_processes_are_not_part_of_a_recipe():
    for name in ("device", "data", "root", "jobs"):
        with pytest.raises(RecipeError, match=f'no setting "{name}"'):
            Recipe.from_dict({name: "x"})
    with pytest.raises(RecipeError, match='no option "root"'):
        Recipe(federation={"name": "shifted_digits", "root": "somewhere"})


def test_a_recorded_recipe_gives_the_same_key():
    first = Recipe(algorithm=PROX, augmentations=["mixstyle", {"name": "fedmix", "ratio": 0.2}], flow=["flip"])
    assert Recipe.from_dict(json.loads(json.dumps(first.full))).key == first.key
    assert Recipe.from_dict(first.short).key == first.key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "fedprx"}, 'fedprx" is not in fednb/methods/algorithms; did you mean "fedprox"'),
        ({"augmentations": ["fedrnd"]}, 'did you mean "fedrdn"'),
        ({"model": "alexnett"}, 'did you mean "alexnet"'),
        ({"federation": "shifted_digit"}, 'did you mean "shifted_digits"'),
        ({"federation": "partition"}, "is not in fednb/datasets"),  # a file there, but no data set
        ({"algorithm": {"name": "fedprox", "mi": 1}}, 'fedprox has no option "mi"; did you mean "mu"'),
        ({"algorithm": {"name": "fedavg", "mu": 1}}, "It has no options"),
        ({"algorithm": ["fedavg"]}, "names nothing"),
        ({"algorithm": {"mu": 1}}, "names nothing"),
        ({"algorithm": {"name": "fedprox", "mu": "0.1"}}, "fedprox has mu '0.1'; expected a value of type float"),
        ({"federation": {"name": "shifted_digits", "size": 8.5}}, "expected a value of type int"),
        ({"augmentations": "fedrdn"}, "expected a list, for example"),
        ({"augmentations": None}, "augmentations is None; expected a list."),
        ({"flow": {"flip"}}, "expected a list"),
        ({"augmentations": ["fedrdn", "fedrdn"]}, "each of them once"),
        ({"optimiser": "sdg"}, 'did you mean "sgd"'),
        ({"flow": ["rotate"]}, 'did you mean "rotation"'),
        ({"evaluation": ["cross"]}, "Known: cross_site, examples, features"),
        ({"unseen": [1, "a"]}, "expected names of sites"),
        ({"unseen": "dslr"}, "unseen is 'dslr'; expected a list"),
        ({"precision": "fp16"}, 'did you mean "'),
        ({"rounds": 0}, "rounds is 0"),
        ({"local_epochs": 1.0}, "local_epochs is 1.0"),
        ({"batch_size": True}, "batch_size is True"),
        ({"participation": 0}, "participation is 0"),
        ({"participation": 1.5}, "participation is 1.5"),
        ({"participation": "all"}, "participation is 'all'"),
        ({"learning_rate": -0.1}, "learning_rate is -0.1"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"momentum": 1}, "momentum is 1"),
        ({"weight_decay": math.inf}, "weight_decay is inf"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"algorithm": {"name": "fedprox", "mu": math.nan}}, "plain values only"),
    ],
    ids=str,
)
def test_what_is_not_known_or_not_possible_is_refused(given, message):
    with pytest.raises(RecipeError) as raised:
        Recipe(**given)
    assert message in str(raised.value)


def test_vary_makes_every_combination():
    varied = Recipe(rounds=3).vary(seed=[0, 1], algorithm=["fedavg", PROX])
    assert [(r.seed, r.label) for r in varied] == [
        (0, "fedavg"),
        (0, "fedprox(mu=0.1)"),
        (1, "fedavg"),
        (1, "fedprox(mu=0.1)"),
    ]
    assert all(r.rounds == 3 for r in varied)
    assert Recipe().vary() == [Recipe()]


def test_vary_and_with_refuse_what_they_do_not_know():
    for change in (Recipe().vary, Recipe().with_):
        with pytest.raises(RecipeError, match='no setting "seeds"; did you mean "seed"'):
            change(seeds=[0])
    for given in ("fedavg", 3):
        with pytest.raises(RecipeError, match="varies over .* expected a list"):
            Recipe().vary(algorithm=given)
    assert Recipe().with_(seed=4, flow=["flip"]) == Recipe(seed=4, flow=("flip",))


def test_labels_show_what_differs_and_file_names_stay_short():
    plain = Recipe(algorithm={"name": "fedprox", "mu": 0.001}, augmentations=["fedrdn", "mixup"], seed=2)
    assert plain.label == "fedprox+fedrdn+mixup"
    assert plain.filename == f"shifted_digits/fedprox+fedrdn+mixup_s2_{plain.key[:6]}.json"
    varied = Recipe(algorithm=PROX, augmentations=[{"name": "fedrdn", "variant": "released"}])
    assert varied.label == "fedprox(mu=0.1)+fedrdn(variant=released)"
    assert varied.filename.startswith("shifted_digits/fedprox+fedrdn_s0_")
    assert str(varied) == f"{varied.label} on shifted_digits, seed 0 ({varied.key})"
    assert len(varied.key) == 12 and int(varied.key, 16) >= 0


def test_every_setting_is_checked():
    """A new field needs a check, and a line here that says which."""
    checked = {*recipe.ROOMS, *recipe.ONE_OF, *recipe.EACH_OF, *recipe.LEAST, *recipe.RANGES}
    assert checked | {"augmentations", "unseen"} == set(Recipe().full)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.1}, 'a recipe has no setting "lr"; did you mean "learning_rate"'),
        ({"epochs": 3}, 'no setting "epochs"; did you mean "local_epochs"'),
        ({"model": object()}, "an object of the class object names nothing; expected a name"),
        ({"algorithm": "fedrdn"}, '"fedrdn" is not in fednb/methods/algorithms; it is one of the augmentations'),
        ({"augmentations": ["fedprox"]}, "it is one of the algorithms"),
    ],
)
def test_what_is_named_otherwise_elsewhere_is_refused_with_its_name_here(settings, message):
    with pytest.raises(RecipeError, match=message):
        Recipe(**settings)


@pytest.mark.parametrize(("seeds", "expected"), [([], "at least one value"), ([0, 0], "each of them once")])
def test_a_recipe_varies_over_seeds_each_once(seeds, expected):
    with pytest.raises(RecipeError, match=f"seed varies over .*; expected {expected}"):
        Recipe().vary(seed=seeds)
