"""The number by which each of the four methods shows that it is at work, against float64 computed from the images."""

import methods
import numpy
import pytest
import torch

from fednb.methods.augmentations.fraug import FRAug
from fednb.recipe import Recipe
from fednb.records.record import parsed, to_text
from fednb.records.store import Store
from fednb.records.training import train_one

RUN = {"rounds": 3, "precision": "fp64"}


def number(augmentation, **settings) -> float:
    name = augmentation if isinstance(augmentation, str) else augmentation["name"]
    return methods.train(RUN | {"augmentations": [augmentation]} | settings).run.activity()[name]


def test_fedrdns_is_how_far_other_clients_means_lie_from_ones_own():
    means, deviations = [], []
    for site in methods.federation().sites:
        pixels = site.train.images.numpy() / 255.0
        means.append(pixels.mean((2, 3)).mean(0))
        deviations.append(pixels.std((2, 3)).mean(0))
    own = [
        numpy.mean([abs(other - mean) / spread for other in means])
        for mean, spread in zip(means, deviations, strict=True)
    ]
    assert number("fedrdn") == pytest.approx(numpy.mean(own), rel=1e-5)


def test_distrans_is_how_far_the_offset_is_from_its_draw():
    still = {"name": "distrans", "offset_rate": 0.0, "aggregation": "none"}
    assert number(still) == number({"name": "distrans", "alpha": 0.0}) == 0
    run = methods.train(RUN | {"augmentations": [still | {"offset_rate": 1.0}]}).run
    first = methods.train(RUN | {"augmentations": [still]}).run.server.remembered()
    moved = []
    for name, offset in run.server.remembered().items():
        if name.startswith("distrans/offset/"):
            then = first[name].double().numpy()
            moved.append(numpy.sqrt(((offset.double().numpy() - then) ** 2).mean()) / then.std(ddof=1))
    assert run.activity() == {"distrans": pytest.approx(numpy.mean(moved), rel=1e-5)} and min(moved) > 0


def test_fedfas_is_the_share_that_the_federation_adds():
    assert number({"name": "fedfa", "probability": 0.0}) == 0
    assert number({"name": "fedfa", "variant": "released"}) == pytest.approx(0.5)  # every gamma is 1
    run, ratios = methods.train(RUN | {"augmentations": ["fedfa"]}).run, []
    gammas = {name: value.double().numpy() for name, value in run.server.remembered().items()}
    for name, client in run.clients.items():
        with client.at_test(run.server.send(name), run.rounds), torch.no_grad():
            features = torch.from_numpy(client.site.train.images.numpy() / 255.0)
            for place, stage in enumerate(client.model.eval().stages, 1):
                features = getattr(client.model, stage)(features)
                pixels = features.numpy().reshape(*features.shape[:2], -1)
                for kind, values in (("mean", pixels.mean(2)), ("std", pixels.std(2))):
                    spread = values.var(0)
                    ratios.append((gammas[f"fedfa/{place}/gamma_{kind}"] * spread).sum() / spread.sum())
    assert run.activity()["fedfa"] == pytest.approx(0.5 * numpy.mean(ratios), rel=1e-6)
    assert max(ratios) - min(ratios) > 0.01  # not as if every gamma were 1


def test_fraugs_is_the_length_of_residuals_against_features():
    assert number({"name": "fraug", "generator": False, "rtnet": False}) == 0
    run = methods.train(RUN | {"augmentations": ["fraug"]}).run
    weaker = FRAug(growth=0.02).lambda_syn(3, 3) / FRAug().lambda_syn(3, 3)
    strong = run.activity()["fraug"]
    object.__setattr__(run.methods[-1], "growth", 0.02)  # of the same networks a smaller part of their residuals
    assert run.activity()["fraug"] == pytest.approx(weaker * strong, rel=1e-5) and strong > 0


def test_a_record_has_it_and_a_run_is_the_same_with_or_without(tmp_path):
    recipe = Recipe(federation="shifted_digits", model={"name": "digits_cnn", "channels": 2, "width": 8}, rounds=1,
                    local_steps=1, augmentations=["fedrdn"])  # fmt: skip
    record = train_one(recipe, Store(tmp_path))
    assert record.activity["fedrdn"] > 1 and parsed(to_text(record), record.path).activity == record.activity
    assert train_one(recipe.with_(augmentations=()), Store(tmp_path)).activity == {}
    four = RUN | {"rounds": 4, "augmentations": ["fraug", "fedrdn"]}
    run = methods.train(four, rounds=3).run
    before = [value.clone() for value in run.server.model.values()]
    assert [*run.activity()] == ["fraug", "fedrdn"]
    assert all(map(torch.equal, before, run.server.model.values()))
    assert run.advance()["loss"] == methods.train(four).rounds[-1]["loss"]
