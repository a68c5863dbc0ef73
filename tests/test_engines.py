"""Runs on other machines: a Ray cluster of two nodes in this process, and submitit's local jobs in SLURM's place."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from methods import federation
from small_runs import SMALL
from test_executors import (  # noqa: F401  what holds for every executor holds for these
    test_every_round_is_told_once_and_in_order,
    test_one_that_fails_stops_no_other,
    work,
)

from fednb import Recipe, catalogue
from fednb.errors import RunError
from fednb.loop.executors import ENGINES, _far, ray, slurm
from fednb.records import workers
from fednb.records.store import Store
from fednb.records.training import train_one
from fednb.study import Study

HERE = str(Path(__file__).parent)
DIGITS = Recipe(
    federation={"name": "shifted_digits", "size": 8},
    model={"name": "digits_cnn", "channels": 2, "width": 8},
    augmentations=["fedrdn"],
    flow=[],
    rounds=2,
    batch_size=64,
)


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two nodes, each with one core; the second claims a GPU."""
    pytest.importorskip("ray", reason='Ray is not installed: pip install -e ".[ray]"')
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # Ray leaves files to the collector
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000})
        made.add_node(num_cpus=1, num_gpus=1, object_store_memory=80_000_000)
        gc.collect()
    yield made.address
    made.shutdown()


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, patch) -> str:
    """The name of an engine that is there."""
    patch.setenv("PYTHONPATH", os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]))
    if request.param == "ray":
        patch.setenv("RAY_ADDRESS", request.getfixturevalue("cluster"))
    else:
        pytest.importorskip("submitit", reason='submitit is not installed: pip install -e ".[slurm]"')
        patch.setattr(slurm, "EXECUTOR", "LocalExecutor")
        patch.setattr(slurm, "LOOK", 0.1)
    return request.param


def carry_out(engine: str, work, items: list, folder: Path, jobs: int = 2, device: str = "cpu") -> tuple[dict, dict]:
    told = {item: [] for item in items}
    executor = catalogue.file("engine.executors", engine)
    ended = executor.carry_out(work, items, lambda item, what: told[item].append(what), jobs, device, folder)
    return ended, told


@pytest.fixture(scope="module")
def outcome(engine, tmp_path_factory):
    return carry_out(engine, work, ["first", "refused", "greedy", "last"], tmp_path_factory.mktemp("shared"))


def dies_once(item: str, tell) -> None:
    """In the third round of its first attempt, if it is fragile."""
    folder, name = Path(item).parent, Path(item).name
    for rounds in range(4):
        tell((rounds, os.getpid()))
        if rounds == 2 and name == "fragile" and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_lost_worker_costs_one_item_which_is_begun_once_more(engine, tmp_path, capfd):
    items = [str(tmp_path / name) for name in ("fragile", "first", "second")]
    ended, told = carry_out(engine, dies_once, items, tmp_path)
    assert ended == dict.fromkeys(items)
    rounds = [[number for number, _ in told[item]] for item in items]
    assert rounds == [[0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert len({process for _, process in told[items[0]]}) == 2
    assert f"{items[0]}: its worker was lost, and another begins: " in capfd.readouterr().err


def test_a_worker_lost_twice_is_an_error(engine, tmp_path):
    ended, told = carry_out(engine, work, ["killed", "first"], tmp_path)
    assert ended["killed"].startswith("its worker was lost twice: ") and ended["first"] is None
    assert [len(events) for events in told.values()] == [4, 4]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def study(engine, tmp_path_factory):
    """Four recipes by an engine, two at a time."""
    store = Store(tmp_path_factory.mktemp("study") / "runs")
    recipes = DIGITS.vary(algorithm=["fedavg", "fedbn"], seed=[0, 1])
    return Study(recipes, store=store).run(jobs=2, engine=engine), store


def test_an_engine_makes_the_records_that_are_made_here(study, tmp_path):
    results, store = study
    assert not results.missing and results.notes == ()
    for recipe, record in results.found.items():
        here = train_one(recipe, Store(tmp_path / "runs"))
        assert record.rounds == here.rounds and record.fingerprint == here.fingerprint
        assert record.origin["threads"] == 1


def test_nothing_but_records_stays_in_the_store(study):
    _, store = study
    assert {path.suffix for path in store.folder.rglob("*") if path.is_file()} == {".json", ".npz", ".lock"}
    assert not list(store.locks.glob("engine-*")) and not list(store.checkpoints.glob("*"))


def test_a_federation_in_memory_is_sent_along(engine, tmp_path):
    study = Study([SMALL.with_(rounds=1)], store=Store(tmp_path / "runs"), federation=federation())
    assert study.run(engine=engine).records[0].fingerprint == federation().fingerprint


FRAGILE = """
import os
import signal
from pathlib import Path
from fednb import Method

class Fragile(Method):
    def __init__(self, lives: int = 1):
        self.lives = lives

    def begin(self, client):
        deaths = Path(os.environ["FEDNB_DEATHS"])
        if len(deaths.read_text()) < self.lives:
            deaths.write_text(deaths.read_text() + ".")
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_recipe_whose_worker_dies_twice_is_named_and_the_others_are_recorded(engine, tmp_path, monkeypatch):
    """With a method from a folder, which the workers find as well."""
    (tmp_path / "mine" / "augmentations").mkdir(parents=True)
    (tmp_path / "mine" / "augmentations" / "fragile.py").write_text(FRAGILE)
    (tmp_path / "deaths").write_text("")
    monkeypatch.setenv("FEDNB_METHODS", str(tmp_path / "mine"))
    monkeypatch.setenv("FEDNB_DEATHS", str(tmp_path / "deaths"))
    twice = DIGITS.with_(augmentations=[{"name": "fragile", "lives": 2}])
    results = Study([DIGITS, twice], store=Store(tmp_path / "runs")).run(engine=engine)
    assert results.missing == [twice] and results.notes[0].startswith(f"{twice}: its worker was lost twice: ")
    assert Study([twice], store=Store(tmp_path / "runs")).run(engine=engine).notes == ()


SCRIPT = """
import sys
from test_engines import LONG, Store, federation, slurm, train

slurm.EXECUTOR, slurm.LOOK = "LocalExecutor", 0.1
if __name__ == "__main__":
    tell = lambda recipe, rounds: print(recipe.seed, rounds, flush=True)
    train(LONG, Store(sys.argv[1]), 2, progress=tell, federation=federation(), engine=sys.argv[2])
"""
LONG = Study(SMALL.with_(rounds=100_000).vary(seed=[0, 1, 2]), federation=federation()).recipes
train = workers.train


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_interrupted_runs_leave_their_checkpoints(engine, tmp_path, number):
    (tmp_path / "mine.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "mine.py"), str(tmp_path / "runs"), engine]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    begun = {}
    with subprocess.Popen(words, **streams) as process:
        try:
            while len(begun) < 2 or min(begun.values()) < 1:
                seed, rounds = map(int, process.stdout.readline().split())
                begun[seed] = rounds
            process.send_signal(number)
            _, told = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode in (-signal.SIGINT, 130, 1) if number == signal.SIGINT else process.returncode == 143
    assert told.startswith("stopping after this round, with a checkpoint; Ctrl-C again stops at once\n")
    store = Store(tmp_path / "runs")
    for seed, rounds in begun.items():
        assert store.load_checkpoint(LONG[seed], "cpu")["run"]["rounds"] >= rounds
    assert len(list(store.checkpoints.glob("*.pt"))) == 2 and not list(store.locks.glob("engine-*"))
    with store.lock(LONG[0], wait=False), store.lock(LONG[1], wait=False):
        pass


def gpus(item: str, tell) -> None:
    tell((os.environ.get("CUDA_VISIBLE_DEVICES"), torch.get_num_threads()))


def test_ray_says_which_gpu(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    assert carry_out("ray", gpus, ["one"], tmp_path, 1, "cuda")[1] == {"one": [("0", 1)]}


def test_a_ray_cluster_without_a_gpu_is_refused():
    with pytest.raises(RunError, match="has no GPU; choose the device cpu"):
        ray._share([{"CPU": 4.0}], 1, "cuda")


@pytest.mark.parametrize(
    ("machines", "jobs", "device", "share"),
    [
        ([{"CPU": 16}, {"CPU": 16}], 4, "cpu", (8, 0)),
        ([{"CPU": 16}, {"CPU": 16}], 3, "cpu", (8, 0)),  # ten cores each would leave room for two alone
        ([{"CPU": 16}, {"CPU": 16}], 1, "cpu", (16, 0)),
        ([{"CPU": 2}], 8, "cpu", (1, 0)),
        ([{"CPU": 16, "GPU": 1}, {"CPU": 64}], 1, "cuda", (16, 1)),  # the other machine's cores are of no use
        ([{"CPU": 16, "GPU": 1}, {"CPU": 64, "GPU": 1}], 2, "cuda", (16, 1)),
        ([{"CPU": 16, "GPU": 2}], 4, "cuda", (4, 0.5)),
        ([{"CPU": 20, "GPU": 1}], 5, "cuda", (4, 0.2)),
    ],
)
def test_share_of_the_cores_and_gpus(machines, jobs, device, share):
    assert ray._share(machines, jobs, device) == share


@pytest.mark.parametrize(("engine", "library"), [("ray", "Ray"), ("slurm", "submitit")])
def test_an_extra_that_is_missing_is_named_with_its_command(engine, library, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RunError, match=rf'{library} is not installed: pip install -e "\.\[{engine}\]"'):
        workers.check(engine, "cpu")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_no_cluster_at_the_address(address, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: "there")
    with pytest.raises(RunError, match=f"no Ray cluster at {address}: .*refused. Start one"):
        Study([DIGITS], store=Store(tmp_path / "runs")).run(engine="ray")


@pytest.mark.skipif(not find_spec("ray"), reason='Ray is not installed: pip install -e ".[ray]"')
def test_what_ray_cannot_read_as_an_address_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(RunError, match="no Ray cluster at nowhere: "):
        Study([DIGITS], store=Store(tmp_path / "runs")).run(engine="ray")


def test_a_machine_without_slurm_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(slurm, "EXECUTOR", "SlurmExecutor")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: "there")
    with pytest.raises(RunError, match="no SLURM on this machine"):
        workers.check("slurm", "cpu")


@pytest.mark.skipif(not find_spec("submitit"), reason='submitit is not installed: pip install -e ".[slurm]"')
def test_what_slurm_refuses_is_told_in_its_words(monkeypatch, tmp_path):
    for name in ("sbatch", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\ncp $1 asked\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    monkeypatch.setattr(slurm, "EXECUTOR", "SlurmExecutor")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="SLURM takes no job: (.|\n)*invalid partition"):
        carry_out("slurm", work, ["one"], tmp_path / "shared", 1, "cuda")
    asked = (tmp_path / "asked").read_text()
    assert "--cpus-per-task=3\n" in asked and "--gpus-per-node=1\n" in asked and "--time" not in asked
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.parametrize(
    ("engine", "device", "why"), [("rey", "cpu", 'did you mean "ray"'), ("ray", "cuda:1", "cuda:1")]
)
def test_what_no_engine_can_do_is_refused(engine, device, why, tmp_path):
    with pytest.raises(RunError, match=why):
        workers.train([DIGITS], Store(tmp_path), device=device, engine=engine)


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path):
    with pytest.raises(RunError, match="does not see .*/letters; the folder of runs must be one for all machines"):
        _far.do(tmp_path, "item", tmp_path / "letters", 1)


def test_what_cannot_be_pickled_is_refused(tmp_path):
    with pytest.raises(RunError, match="cannot be pickled for other machines"), _far.place(lambda: 0, tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_half_a_letter_is_left_until_it_is_whole(tmp_path):
    letters, text = _far.Letters(tmp_path / "letters"), pickle.dumps(("told", "a" * 5000))
    assert list(letters.news()) == []
    letters.path.write_bytes(text + text[:3000])
    assert list(letters.news()) == [("told", "a" * 5000)]
    letters.path.write_bytes(text + text)
    assert list(letters.news()) == [("told", "a" * 5000)] and list(letters.news()) == []
