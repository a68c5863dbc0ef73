"""Several workers on one store divide the work; an interrupted run leaves a checkpoint."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from methods import federation
from small_runs import SMALL, record

from fednb.errors import HeldError, StoreError
from fednb.records import signals
from fednb.records.store import Store
from fednb.records.training import train_one
from fednb.records.workers import train
from fednb.study import Study

pytestmark = pytest.mark.usefixtures("toy")


def test_what_another_worker_holds_is_put_off(store, capsys):
    """The held one is first in the list and last to be done, by whoever held it."""
    recipes = SMALL.vary(seed=[0, 1, 2])
    order, held = [], threading.Event()

    def tell(recipe, rounds):
        if rounds == SMALL.rounds:
            order.append(recipe)
        held.set() if len(order) == 2 else None

    def other():
        with Store(store.folder).lock(recipes[0]):
            begun.set()
            assert held.wait(60)
            time.sleep(1.5)
            store.write(recipes[0], record(recipes[0]))

    begun = threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    assert train(recipes, store, progress=tell) == dict.fromkeys(recipes)
    thread.join()
    assert order == [recipes[1], recipes[2], recipes[0]]
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith(f"waiting for another process, which trains {recipes[0]}")


def test_a_lock_lies_beside_the_runs_and_not_beside_the_checkpoints(tmp_path):
    """Two stores with other folders for checkpoints exclude each other."""
    one, other = (Store(tmp_path / "runs", checkpoints=tmp_path / name) for name in ("a", "b"))
    with one.lock(SMALL):
        with pytest.raises(HeldError, match="another process trains"), other.lock(SMALL, wait=False):
            pass
    assert not list(tmp_path.glob("*/*.lock"))


def test_where_the_file_system_has_no_locks_runs_are_trained_and_a_note_says_so(store, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert train([SMALL], store) == {SMALL: None}
    assert store.find(SMALL) and any("No locks available" in note and "once more" in note for note in store.notes)
    monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(StoreError, match="broken"), store.lock(SMALL):
        pass


LONG = Study(SMALL.with_(rounds=10_000).vary(seed=[0, 1, 2]), federation=federation()).recipes
SCRIPT = """
import sys
from test_workers import LONG, Store, federation, train

def tell(recipe, rounds):
    print(recipe.seed, rounds, flush=True)

if __name__ == "__main__":
    train(LONG[: int(sys.argv[2])], Store(sys.argv[1]), jobs=2, progress=tell, federation=federation())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
@pytest.mark.parametrize("runs", [1, 3], ids=["here", "in processes"])
def test_an_interrupted_run_leaves_a_checkpoint(tmp_path, number, runs):
    """Runs of less than a minute too; what was not begun is not, and the last round told is the last one done."""
    (tmp_path / "mine.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "mine.py"), str(tmp_path / "runs"), str(runs)]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    begun, beside = {}, min(runs, 2, os.cpu_count())
    with subprocess.Popen(words, **streams, env=os.environ | {"PYTHONPATH": paths}) as process:
        try:
            while len(begun) < beside or min(begun.values()) < 1:
                seed, rounds = map(int, process.stdout.readline().split())
                begun[seed] = rounds
            process.send_signal(number)
            out, told = process.communicate(timeout=120)
        finally:
            process.kill()
    for line in out.splitlines():
        seed, rounds = map(int, line.split())
        begun[seed] = max(rounds, begun[seed])  # a run that was not begun before is a KeyError
    assert process.returncode in (-signal.SIGINT, 130, 1) if number == signal.SIGINT else process.returncode == 143
    assert told.startswith("stopping after this round, with a checkpoint; Ctrl-C again stops at once\n")
    assert told.count("stopping") == 1
    store = Store(tmp_path / "runs")
    for seed, rounds in begun.items():
        saved = store.load_checkpoint(LONG[seed], "cpu")
        assert saved["run"]["rounds"] == len(saved["rounds"]) >= rounds
    assert len(list(store.checkpoints.glob("*.pt"))) == beside


def test_ctrl_c_again_ends_a_run_at_once(store):
    seen = []

    def twice(_, rounds):
        seen.append(rounds)
        if rounds == 1:
            signal.raise_signal(signal.SIGINT)
            assert signals.requested()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_one(SMALL.with_(rounds=5), store, progress=twice)
    assert seen == [0, 1] and not signals.requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_in_the_last_round_leaves_a_record_and_the_next_run_is_not_begun(store):
    first, second = SMALL.vary(seed=[0, 1])
    with pytest.raises(SystemExit) as ended:
        train([first, second], store, progress=lambda _, n: n == SMALL.rounds and signal.raise_signal(signal.SIGTERM))
    assert ended.value.code == 143 and store.find(first) and store.find(second) is None
    assert not list(store.checkpoints.glob("*.pt"))
