"""Runs on other machines: a Ray cluster of two nodes in this process."""

import gc
import os
import signal
import warnings
from pathlib import Path

import pytest
from test_parallel import imports, require_outcome, work

from fednb import Recipe
from fednb.errors import RunError
from fednb.loop import cluster
from fednb.records import workers
from fednb.records.store import Store
from fednb.records.training import train_one
from fednb.study import Study

DIGITS = Recipe(
    federation={"name": "shifted_digits", "size": 8},
    model={"name": "digits_cnn", "channels": 2, "width": 8},
    augmentations=["fedrdn"],
    flow=[],
    rounds=2,
    batch_size=64,
)


@pytest.fixture(scope="module")
def ray():
    """A Ray cluster of two nodes, each with one core; the second claims a GPU."""
    pytest.importorskip("ray", reason='Ray is not installed: pip install -e ".[ray]"')
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # Ray leaves files to the collector
            made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000})
            made.add_node(num_cpus=1, num_gpus=1, object_store_memory=80_000_000)
            gc.collect()
        patch.setenv("RAY_ADDRESS", made.address)
        yield made.address
        made.shutdown()


def heard(work, items: list, folder: Path) -> tuple[dict, dict]:
    told = {item: [] for item in items}
    return cluster.on_ray(work, items, lambda item, what: told[item].append(what), 2, "cpu", folder), told


def test_one_that_fails_stops_no_other_and_every_round_is_told_once_and_in_order(ray, tmp_path):
    require_outcome(*heard(work, ["first", "refused", "greedy", "last"], tmp_path))


def dies_once(item: str, tell) -> None:
    """In the third round of its first attempt, if it is fragile."""
    folder, name = Path(item).parent, Path(item).name
    for rounds in range(4):
        tell((rounds, os.getpid()))
        if rounds == 2 and name == "fragile" and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_lost_worker_costs_one_item_which_is_begun_once_more(ray, tmp_path):
    items = [str(tmp_path / name) for name in ("fragile", "first", "second")]
    ended, told = heard(dies_once, items, tmp_path)
    assert ended == dict.fromkeys(items)
    rounds = [[number for number, _ in told[item]] for item in items]
    assert rounds == [[0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    ended, told = heard(work, ["killed", "first"], tmp_path)
    assert ended["killed"].startswith("its worker was lost twice: ") and ended["first"] is None
    assert [len(events) for events in told.values()] == [4, 4]


def test_no_worker_imports_a_file_of_the_working_directory(ray, tmp_path, monkeypatch):
    (tmp_path / "cmd.py").write_text("raise SystemExit('a file of the working directory was executed')")
    monkeypatch.chdir(tmp_path)
    assert heard(imports, ["cmd"], tmp_path / "shared")[0] == {"cmd": None}


def test_on_a_cluster_the_records_are_those_that_are_made_here(ray, tmp_path):
    store = Store(tmp_path / "there" / "runs")
    results = Study(DIGITS.vary(algorithm=["fedavg", "fedbn"], seed=[0, 1]), store=store).run(jobs=2, engine="ray")
    assert not results.missing and results.notes == ()
    for recipe, record in results.found.items():
        here = train_one(recipe, Store(tmp_path / "here" / "runs"))
        assert record.rounds == here.rounds and record.fingerprint == here.fingerprint
    assert {path.suffix for path in store.folder.rglob("*") if path.is_file()} == {".json", ".npz", ".lock"}
    assert not list(store.checkpoints.glob("*"))


@pytest.mark.parametrize(
    ("machines", "jobs", "device", "share"),
    [
        ([{"CPU": 16}, {"CPU": 16}], 4, "cpu", (8, 0)),
        ([{"CPU": 16}, {"CPU": 16}], 3, "cpu", (8, 0)),  # ten cores each would leave room for two alone
        ([{"CPU": 2}], 8, "cpu", (1, 0)),
        ([{"CPU": 16, "GPU": 1}, {"CPU": 64}], 1, "cuda", (16, 1)),  # the other machine's cores are of no use
        ([{"CPU": 16, "GPU": 2}], 4, "cuda", (4, 0.5)),
    ],
)
def test_share_of_the_cores_and_gpus(machines, jobs, device, share):
    assert cluster._share(machines, jobs, device) == share


def test_what_no_cluster_can_do_is_refused(monkeypatch, tmp_path):
    with pytest.raises(RunError, match="has no GPU; choose the device cpu"):
        cluster._share([{"CPU": 4.0}], 1, "cuda")
    for engine, device, why in (("rey", "cpu", 'did you mean "ray"'), ("ray", "cuda:1", "cuda:1")):
        with pytest.raises(RunError, match=why):
            workers.train([DIGITS], Store(tmp_path), device=device, engine=engine)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RunError, match=r'Ray is not installed: pip install -e "\.\[ray\]"'):
        workers.check("ray", "cpu")
