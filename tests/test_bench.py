"""The bench does the same work twice; how long it takes is no test."""

import subprocess
import sys
from pathlib import Path

import bench
import scale
import torch
from methods import ROWS

from fednb import cli
from fednb.federation import made
from fednb.recipe import Recipe
from fednb.report import speed


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
    assert len(timing.federated) == len(timing.bare) == 3 and timing.ratios[0] > 0
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


def test_what_is_recorded_is_what_the_tables_show(monkeypatch, tmp_path):
    small = Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8})
    three = {"fedavg": {}, "scaffold": {"algorithm": "scaffold"}, "fedrdn": {"augmentations": ["fedrdn"]}}
    monkeypatch.setattr(speed, "FILE", tmp_path / "speed.json")
    monkeypatch.setattr(bench, "EVERY", (2, 8, (3, 8, 8), small))
    monkeypatch.setattr(bench, "every_method", lambda: three)
    monkeypatch.setattr(scale, "RECIPE", small)
    monkeypatch.setattr(scale, "WAYS", {"here": 1, "two here": 2})
    monkeypatch.setattr(scale, "CLIENTS", (2, 3))
    assert speed.times("fedavg") == "not measured" and "fednb bench --record" in speed.origin()
    assert speed.methods_table().empty and speed.clients_table().empty and not speed.curves(": s a round")
    told = []
    bench.record(rounds=1, device="cpu", tell=told.append)
    assert len(told) == 3 + 4 + 1

    model = speed.recorded()["methods"]["fedavg"]["bytes"]
    methods, clients = speed.methods_table(), speed.clients_table()
    assert set(methods.index) == {"fedavg", "scaffold", "fedrdn"}
    assert (methods["lowest"] <= methods["times FedAvg's round"]).all()
    assert (methods["times FedAvg's round"] <= methods["highest"]).all()
    assert 1.5 * model < speed.recorded()["methods"]["scaffold"]["bytes"] < 2 * model  # a variate for each parameter
    assert list(clients) == ["here: s a round", "two here: s a round", "data MB", "memory MB"]
    assert list(clients.index) == [2, 3] and (clients > 0).all(axis=None)
    assert list(clients["data MB"]) == [round(n * 3 * 20 * 3 * 32 * 32 / 1e6, 1) for n in (2, 3)]
    assert "From 2 clients to 3 the images grow by 0 MB" in speed.memory()
    assert list(speed.curves(": s a round")) == ["here", "two here"]
    assert speed.origin().startswith("Measured on ")


def test_the_command_finds_the_repository(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "bench", lambda *given: print(*given))
    monkeypatch.setattr(bench, "costs", lambda *given: None)
    assert cli.main(["bench", "--rounds", "2"]) == 0 and capsys.readouterr().out == "2 cpu\n"


def test_every_method_of_the_package_is_recorded():
    assert set(bench.every_method()) == {row.name for row in ROWS}


def test_clients_of_the_bench_share_no_image():
    first, second = scale.own_images(2, 4, (3, 8, 8)).sites
    assert not torch.equal(first.train.images, second.train.images)
    assert not torch.equal(first.train.images, first.test.images)


def test_the_peak_of_a_new_process_is_its_own():
    held = bytearray(1_500_000_000)  # a process with torch has 560 MB
    child = "from scale import peak; print(peak())"
    words, tools = [sys.executable, "-c", child], Path(scale.__file__).parent
    new = int(subprocess.run(words, cwd=tools, capture_output=True, text=True, check=True).stdout)
    assert len(held) < scale.peak() and new < len(held)
