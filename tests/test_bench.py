"""The bench does the same work twice; how long it takes is no test."""

import torch

from fednb.command import bench
from fednb.federation import made
from fednb.recipe import Recipe


def test_the_bare_loop_does_what_a_federated_round_of_one_site_does(monkeypatch):
    # One site, no averaging, equal draws: after one round both networks hold the same weights.
    recipe = Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8}, momentum=0.9)
    federation = made(1, 8, (3, 8, 8))
    monkeypatch.setattr(torch, "randperm", lambda count, generator=None: torch.arange(count))
    built = []
    build = bench.models.build
    monkeypatch.setattr(bench.models, "build", lambda *arguments: built.append(build(*arguments)) or built[-1])
    run, bare = bench.FederatedRun(recipe, federation), bench._bare_loop(recipe, federation, "cpu")
    run.train_round()
    bare()
    federated, alone = built
    for name, value in federated.state_dict().items():
        assert torch.equal(value, alone.state_dict()[name]), name


def test_every_part_of_a_round_is_timed(monkeypatch):
    recipe = Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8}, flow=["rotation"])
    monkeypatch.setattr(bench, "WORKLOADS", {"tiny": (2, 8, 8, recipe)})
    told = []
    (timing,) = bench.bench(rounds=3, tell=told.append)
    assert len(timing.federated) == len(timing.bare) == 3 and timing.ratio > 0
    assert "training images per second" in told[0]
    assert {"forward", "backward", "images and augmentation", "add up the replies"} <= set(timing.parts)
    assert timing.operators["convolutions"] > 0 and timing.operators["optimiser"] > 0
    assert "    convolutions" in told[0]


def test_every_method_has_a_row(monkeypatch):
    monkeypatch.setattr(
        bench, "COSTS", (2, 8, (3, 8, 8), Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8}))
    )
    told = []
    found = bench.costs(rounds=3, tell=told.append)
    names = ("fedrdn", "fedfa", "fraug", "distrans")
    assert [sum(f"fedavg+{name}" in cost.name for cost in found) for name in names] == [2, 2, 2, 2]
    assert all(len(cost.ratios) == 3 and cost.ratios[0] > 0 for cost in found)
    assert "times FedAvg's round (median of 3 pairs" in told[0]
