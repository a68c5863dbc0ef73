"""The bench does the same work twice; how long it takes is no test."""

import bench
import scale
import torch
from methods import ROWS

import bench_tables
from fednb import cli
from fednb.federation import made
from fednb.recipe import Recipe
from fednb.report import speed

SMALL = Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8}, momentum=0.9)


def test_the_bare_loop_does_what_a_federated_round_of_one_site_does(monkeypatch):
    """One site, no averaging, equal draws: after one round both networks hold the same weights."""
    federation = made(1, 8, (3, 8, 8))
    monkeypatch.setattr(torch, "randperm", lambda count, generator=None: torch.arange(count))
    built, build = [], bench.models.build
    monkeypatch.setattr(bench.models, "build", lambda *arguments: built.append(build(*arguments)) or built[-1])
    run, bare = bench.FederatedRun(SMALL, federation), bench._bare_loop(SMALL, federation, "cpu")
    run.train_round()
    bare()
    federated, alone = (network.state_dict() for network in built)
    assert all(torch.equal(value, alone[name]) for name, value in federated.items())


def test_the_command_times_every_part_of_a_round_and_the_four_methods(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)  # it finds the repository beside the package
    monkeypatch.setattr(bench, "WORKLOADS", {"tiny": (2, 8, 8, SMALL)})
    monkeypatch.setattr(bench, "COSTS", (2, 8, (3, 8, 8), SMALL))
    assert cli.main(["bench", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    for part in ("training images per second", "forward", "images and augmentation", "add up the replies", "optimiser"):
        assert part in out
    counts = [out.count(f"fedavg+{name}") for name in ("fedrdn", "fedfa", "fraug", "distrans")]
    assert counts == [2, 2, 2, 2] and out.count("times FedAvg's round (median of 2 pairs") == 8


def test_what_is_recorded_is_what_the_tables_show(monkeypatch, tmp_path):
    three = {"fedavg": {}, "scaffold": {"algorithm": "scaffold"}, "fedrdn": {"augmentations": ["fedrdn"]}}
    monkeypatch.setattr(speed, "FILE", tmp_path / "speed.json")
    monkeypatch.setattr(bench, "EVERY", (2, 8, (3, 8, 8), SMALL))
    monkeypatch.setattr(bench, "every_method", lambda: three)
    monkeypatch.setattr(scale, "WAYS", {"here": 1})
    monkeypatch.setattr(scale, "CLIENTS", (2, 3))
    bench.record(rounds=1, device="cpu", tell=lambda text: None)
    methods, clients = bench_tables.methods_table(), bench_tables.clients_table()
    sent = {name: method["bytes"] for name, method in speed.recorded()["methods"].items()}
    assert set(methods.index) == {*three} and (methods["lowest"] <= methods["highest"]).all()
    assert 1.5 < sent["scaffold"] / sent["fedavg"] < 2  # a variate for each parameter
    assert list(clients.index) == [2, 3] and (clients > 0).all(axis=None)


def test_every_method_of_the_package_is_recorded():
    assert set(bench.every_method()) == {row.name for row in ROWS}
