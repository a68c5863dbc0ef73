"""Items one after the other and in processes: the same is made, told and reported; nothing is lost with one item."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import torch

from fednb.errors import RunError
from fednb.loop import parallel


def work(item: str, tell) -> None:
    """Tells four rounds; some items end earlier."""
    for rounds in range(4):
        tell((rounds, os.getpid(), torch.get_num_threads()))
        if rounds == 1:
            end_early(item)


def end_early(item: str) -> None:
    if item == "refused":
        raise RunError("this cannot be done.")
    if item == "greedy":
        raise MemoryError("no room")
    if item == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "crashed":
        os._exit(3)
    if item == "endless":
        time.sleep(600)


def heard(items: list[str], jobs: int = 2) -> tuple[dict, dict[str, list]]:
    """What ended how, and what each item told."""
    told = {item: [] for item in items}
    return parallel.in_processes(work, items, lambda item, what: told[item].append(what), jobs), told


def test_one_that_fails_stops_no_other_and_every_round_is_told_once_and_in_order():
    ended, told = heard(["first", "refused", "greedy", "last"])
    why = {"first": None, "refused": "this cannot be done.", "greedy": "MemoryError: no room", "last": None}
    assert list(ended.items()) == list(why.items()) and heard([]) == ({}, {})
    rounds = {item: [rounds for rounds, *_ in events] for item, events in told.items()}
    assert rounds == {"first": [0, 1, 2, 3], "refused": [0, 1], "greedy": [0, 1], "last": [0, 1, 2, 3]}


def test_a_process_that_dies_costs_its_item_and_the_others_are_done_once(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    ended, told = heard(["killed", "crashed", "first", "second"])
    assert ended == {
        "killed": "its process ended with code -9, as it does when memory runs out.",
        "crashed": "its process ended with code 3.",
        "first": None,
        "second": None,
    }
    assert [len(events) for events in told.values()] == [2, 2, 4, 4]
    assert {threads for events in told.values() for _, _, threads in events} == {3}  # six cores, two at a time
    at = {item: events[0][1] for item, events in told.items()}
    assert not {at["killed"], at["crashed"], os.getpid()} & {at["first"], at["second"]}


def test_no_more_processes_are_started_than_there_are_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    _, told = heard(["first", "second"], jobs=1000)
    assert len({process for events in told.values() for _, process, _ in events}) == 1


ENDLESS = """
import test_parallel as tests
tests.parallel.in_processes(tests.work, ["endless"], lambda item, what: print(what[1], flush=True), 1)
"""


def test_a_process_ends_within_seconds_of_the_one_that_started_it():
    place = os.path.dirname(__file__)
    paths = os.environ | {"PYTHONPATH": place}
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True, env=paths) as parent:
        at = int(parent.stdout.readline())
        parent.kill()
        try:
            parent.communicate(timeout=10)  # its end of the pipe is the child's too
        finally:
            with suppress(ProcessLookupError):
                os.kill(at, signal.SIGKILL)


@pytest.mark.parametrize("path", [[], [""]], ids=["script", "notebook"])
def test_no_process_imports_a_file_of_the_working_directory(path, tmp_path, monkeypatch):
    """Neither while it starts nor in its work, also where this process, as a notebook's kernel, would itself."""
    for name in ("pickle", "socket", "signal", "multiprocessing", "glob", "cmd"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the working directory was executed')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", path + sys.path)
    assert parallel.in_processes(imports, ["cmd", "glob"], lambda *_: None, jobs=2) == {"cmd": None, "glob": None}
    assert sys.path[: len(path)] == path and "PYTHONSAFEPATH" not in os.environ


def imports(item: str, tell) -> None:
    __import__(item)


SCRIPT = """
import sys
from fednb import Recipe, Study
from fednb.records.store import Store

base = Recipe(model={"name": "digits_cnn", "channels": 2, "width": 8}, rounds=1)
results = Study(base.vary(seed=[0, 1]), store=Store(sys.argv[1])).run(jobs=2)
print(len(results.records), *results.notes, sep="\\n")
"""


def test_a_script_without_a_guard_trains_in_its_own_process_and_is_told_so(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, tmp_path / "runs"], capture_output=True, text=True, check=True)
    number, note = done.stdout.strip().split("\n")
    assert number == "2"
    assert note.startswith(f'{script} has no line `if __name__ == "__main__":` above its work: the runs were trained ')


def test_a_script_on_standard_input_trains_side_by_side(tmp_path):
    words = [sys.executable, "-", tmp_path / "runs"]
    done = subprocess.run(words, input=SCRIPT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"] and "Traceback" not in done.stderr
