"""Recipes: what their key depends on, and what they refuse."""

import json
import math
from dataclasses import dataclass, fields

import pytest

from fednb import recipe, registry
from fednb.errors import RecipeError
from fednb.methods.algorithms.fedprox import FedProx
from fednb.recipe import Recipe

PROX = {"name": "fedprox", "mu": 0.1}


@pytest.mark.parametrize(
    "spelled",
    [
        {"algorithm": {"name": "fedavg"}},
        {"model": {"width": 2048, "name": "digits_cnn", "channels": 64}},
        {"federation": {"name": "shifted_digits", "size": 32}},
        {"rounds": 10, "momentum": 0, "participation": 1, "flow": [], "evaluation": ()},
    ],
)
def test_spelling_out_a_default_changes_nothing(spelled):
    assert Recipe(**spelled) == Recipe() and len({Recipe(**spelled), Recipe()}) == 1


def test_keys_are_what_they_were_when_runs_were_recorded():
    """Not to be changed: the records in results/ are found by these."""
    assert Recipe().key == "4654622a9d42"
    varied = Recipe(algorithm=PROX, augmentations=["fedrdn"], flow=["flip", "rotation"], learning_rate=0.1, seed=3)
    assert varied.key == "e1f6ab85d57c"


def test_whole_numbers_are_the_numbers_that_they_equal_and_what_is_evaluated_is_a_set():
    assert Recipe(learning_rate=1).key == Recipe(learning_rate=1.0).key
    assert Recipe(algorithm=PROX | {"mu": 2}).key == Recipe(algorithm=PROX | {"mu": 2.0}).key
    one, other = (Recipe(evaluation=names) for names in (["features", "cross_site"], ["cross_site", "features"]))
    assert one.key == other.key != Recipe(evaluation=["features"]).key


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


def test_a_recorded_recipe_gives_the_same_key():
    first = Recipe(algorithm=PROX, augmentations=["mixstyle", {"name": "fedmix", "ratio": 0.2}], flow=["flip"])
    assert Recipe(**json.loads(json.dumps(first.full))).key == first.key == Recipe(**first.short).key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lr": 0.1}, 'a recipe has no setting "lr"; did you mean "learning_rate"'),
        ({"epochs": 3}, 'no setting "epochs"; did you mean "local_epochs"'),
        ({"jobs": 2}, 'no setting "jobs"'),
        ({"model": object()}, "object at .* names nothing; expected a name"),
        ({"algorithm": {"mu": 1}}, "names nothing"),
        ({"algorithm": "fedprx"}, 'fedprx" is not in fednb/methods/algorithms; did you mean "fedprox"'),
        ({"algorithm": "fedrdn"}, '"fedrdn" is not in fednb/methods/algorithms; it is one of the augmentations'),
        ({"federation": "partition"}, "is not in fednb/datasets"),  # a file there, but no data set
        ({"algorithm": {"name": "fedprox", "mi": 1}}, 'fedprox has no option "mi"; did you mean "mu"'),
        ({"algorithm": {"name": "fedavg", "mu": 1}}, "It has no options"),
        ({"federation": {"name": "shifted_digits", "root": "somewhere"}}, 'no option "root"'),
        ({"algorithm": {"name": "fedprox", "mu": "0.1"}}, "fedprox has mu '0.1'; expected a value of type float"),
        ({"algorithm": {"name": "fedprox", "mu": math.nan}}, "plain values only"),
        ({"augmentations": "fedrdn"}, "augmentations is 'fedrdn'; expected a list"),
        ({"augmentations": ["fedrdn", "fedrdn"]}, "each of them once"),
        ({"optimiser": "sdg"}, 'optimiser is .sdg.; did you mean "sgd"'),
        ({"evaluation": ["cross"]}, "Known: cross_site, examples, features"),
        ({"unseen": [1, "a"]}, "expected names of sites"),
        ({"rounds": 0}, "rounds is 0; expected a whole number of at least 1"),
        ({"local_epochs": 1.0}, "local_epochs is 1.0"),
        ({"local_epochs": 2, "local_steps": 2}, "a round is counted in one of them"),
        ({"batch_size": True}, "batch_size is True"),
        ({"participation": 0}, "participation is 0; expected a share in"),
        ({"participation": "all"}, "participation is 'all'"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"momentum": 1}, "momentum is 1"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_what_is_not_known_or_not_possible_is_refused(given, message):
    with pytest.raises(RecipeError, match=message):
        Recipe(**given)


def test_every_setting_is_checked():
    unchecked = {each.name for each in fields(Recipe) if not each.metadata}
    assert unchecked == {*recipe.ROOMS, "augmentations", "unseen"}


def test_vary_makes_every_combination():
    varied = Recipe(rounds=3).vary(seed=[0, 1], algorithm=["fedavg", PROX])
    labels = [(0, "fedavg"), (0, "fedprox(mu=0.1)"), (1, "fedavg"), (1, "fedprox(mu=0.1)")]
    assert [(r.seed, r.label) for r in varied] == labels and all(r.rounds == 3 for r in varied)
    assert Recipe().vary() == [Recipe()]
    assert Recipe().with_(seed=4, flow=["flip"]) == Recipe(seed=4, flow=("flip",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": [0]}, 'no setting "seeds"; did you mean "seed"'),
        ({"algorithm": "fedavg"}, "algorithm varies over 'fedavg'; expected a list"),
        ({"seed": []}, "seed varies over .*; expected a list of at least one value"),
        ({"seed": [0, 0]}, "seed varies over .*; expected each of them once"),
    ],
)
def test_what_a_recipe_cannot_vary_over_is_refused(given, message):
    with pytest.raises(RecipeError, match=message):
        Recipe().vary(**given)


def test_labels_show_what_differs_and_file_names_stay_short():
    plain = Recipe(algorithm={"name": "fedprox", "mu": 0.001}, augmentations=["fedrdn", "mixup"], seed=2)
    assert plain.label == "fedprox+fedrdn+mixup"
    assert plain.filename == f"shifted_digits/fedprox+fedrdn+mixup_s2_{plain.key[:6]}.json"
    varied = Recipe(algorithm=PROX, augmentations=[{"name": "fedrdn", "variant": "released"}])
    assert varied.label == "fedprox(mu=0.1)+fedrdn(variant=released)"
    assert varied.filename.startswith("shifted_digits/fedprox+fedrdn_s0_")
    assert str(varied) == f"{varied.label} on shifted_digits, seed 0 ({varied.key})"
