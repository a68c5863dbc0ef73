"""Laws of the seams: server and clients know each other by messages alone; testing leaves no trace; unseen clients."""

from dataclasses import dataclass

import pytest
import torch
from methods import CASES, PIXELS, ROWS, SIZES, TINY, federation, label, pixel_federation, row_of, same, train, wired

from fednb.errors import RecipeError
from fednb.federation import Federation
from fednb.loop.loop import FederatedRun
from fednb.methods import Client, Method
from fednb.recipe import Recipe

each_case = pytest.mark.parametrize("case", CASES, ids=label)


class Worlds(FederatedRun):
    """The server here; each client in a run of its own, with a network of its own; messages pass as bytes."""

    def __init__(self, recipe: Recipe, data: Federation):
        super().__init__(recipe, data)
        self.clients = {site.name: FederatedRun(recipe, data).clients[site.name] for site in data.sites}

    def exchange(self, kind, round, messages):
        ready = ((name, wired(message)) for name, message in messages)
        if not any(method.sequential for method in self.methods):
            ready = list(ready)
        for name, message in ready:
            reply = wired(getattr(self.clients[name], kind)(message, round))
            if kind == "work":
                self.server.hear(name, reply)
            yield name, reply


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@each_case
def test_in_separate_worlds_the_metrics_are_equal(case, precision):
    """separate worlds: let a client know of others only what came in a message, and the server of clients"""
    compared = [] if row_of(case).method.pools else ["cross_site"]
    asked = case | {"precision": precision, "rounds": 2, "evaluation": compared}
    recipe = Recipe(**TINY | asked)
    here, there = FederatedRun(recipe, federation()), Worlds(recipe, federation())
    assert [there.advance() for _ in range(2)] == [here.advance() for _ in range(2)]
    assert there.prepared == here.prepared
    assert same(there.gathered("show"), here.gathered("show")) and same(there.features(), here.features())


@dataclass(frozen=True)
class Tuned(Method):
    """Trains one epoch at test time, with draws, on a copy that nobody keeps."""

    epochs: int = 1

    @property
    def name(self) -> str:
        return "tuned"

    def adapt(self, client: Client) -> None:
        client.memory(self)["seen"] = torch.rand(3, generator=client.generator("order"))
        client.train(self.epochs)


@each_case
def test_what_adapts_at_test_time_leaves_no_trace(case):
    """testing: let a test change nothing that a later round reads"""
    plain, tuned = (FederatedRun(Recipe(**TINY | case | {"rounds": 2}), federation()) for _ in range(2))
    for client in tuned.clients.values():
        client.methods = [*client.methods, Tuned()]
    for _ in range(2):
        one, other = plain.advance(), tuned.advance()
        assert one["loss"] == other["loss"] and one["up"] == other["up"]
    assert same(plain.state(), tuned.state())


@each_case
def test_an_unseen_site_changes_nothing_for_the_others_and_is_tested(case):
    """unseen sites: give them what the method keeps at others (unseen), and let them change nothing for others"""
    changes_nothing_for_the_others(case, case, federation())


@pytest.mark.parametrize("case", [case for case in CASES if row_of(case).masks], ids=label)
def test_an_unseen_site_with_masks_changes_nothing_for_the_others_and_is_tested(case):
    """unseen sites with masks: give them what the method keeps at others, and let them change nothing for others"""
    changes_nothing_for_the_others(case, PIXELS | case, pixel_federation((("clinic", 8), ("harbour", 6), ("tower", 5))))


def changes_nothing_for_the_others(case: dict, settings: dict, data: Federation):
    without = Federation(data.name, data.sites[:-1], data.classes, task=data.task)
    settings = settings | {"rounds": 2}
    if any(case in row.cases(row.refuses_unseen) for row in ROWS):
        with pytest.raises(RecipeError, match="unseen (ones?|sites) \\(tower\\)"):
            train(settings | {"unseen": ["tower"]}, data)
        return
    some, unseen = train(settings, without), train(settings | {"unseen": ["tower"]}, data)
    for one, other in zip(some.rounds, unseen.rounds, strict=True):
        assert other["loss"] == one["loss"] and other["up"] == one["up"] and other["down"] == one["down"]
        assert other["test"][:-1] == one["test"]
        assert len(other["test"]) == len(data.sites)
    assert same(some.run.server.remembered(), unseen.run.server.remembered())
    assert some.run.prepared == unseen.run.prepared


def test_an_unseen_client_of_fedbn_has_statistics_of_its_own_images():
    """Batch normalisation as drawn, 1 and 0, with the mean and variance of the features that reach it."""
    trained = train({"algorithm": "fedbn", "unseen": ["tower"], "precision": "fp64", "flow": ()})
    client, model = trained.run.clients["tower"], trained.run.model
    with client.at_test(trained.run.server.send("tower"), 3):
        images = client.site.train.images.double() / 255
        before = torch.nn.functional.conv2d(images, model.stage1[0].weight, model.stage1[0].bias, padding=2)
        layer = model.stage1[1]
        torch.testing.assert_close(layer.running_mean, before.mean((0, 2, 3)))
        torch.testing.assert_close(layer.running_var, before.var((0, 2, 3), correction=1))
        assert (layer.weight == 1).all() and (layer.bias == 0).all() and layer.momentum == 0.1
        assert not model.training


def kept_at(run: FederatedRun, name: str) -> dict[str, torch.Tensor]:
    """The entries that never leave a client, as they are when it is tested."""
    client = run.clients[name]
    with client.at_test(run.server.send(name), run.rounds):
        state = client.model.state_dict()
        return {n: state[n].clone() for n in client.keeps if state[n].is_floating_point()}


def test_an_unseen_client_of_fedbn_may_have_the_mean_of_the_others_layers():
    """Weighted by 12 and 7 training images; without a word from it, and as FedAvg's own after one round."""
    asked = {"unseen": ["tower"], "precision": "fp64"}
    mean = {"algorithm": {"name": "fedbn", "at_unseen": "mean"}}
    run = train(asked | mean).run
    kept = [kept_at(run, name) for name in SIZES]
    assert kept[0].keys() == kept[2].keys() and not torch.equal(*(own["stage1.1.weight"] for own in kept[:2]))
    for name, found in kept[2].items():
        torch.testing.assert_close(found, (12 * kept[0][name] + 7 * kept[1][name]) / 19)
    once = asked | {"rounds": 1}
    fedbn, fedavg = train(once | mean).run, train(once).run
    expected = fedavg.server.model
    for name, found in kept_at(fedbn, "tower").items():
        torch.testing.assert_close(found, expected[name])


def test_unseen_sites_that_make_no_run_are_named():
    with pytest.raises(RecipeError, match="all sites of toy are unseen"):
        train({"unseen": list(SIZES)}, rounds=0)
