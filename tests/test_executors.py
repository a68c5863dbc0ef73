"""Executors: whichever carries out the work, the same is made, told and reported; nothing is lost with one item."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import active_children

import pytest
import torch

from fednb import catalogue
from fednb.errors import RunError
from fednb.loop.executors import ENGINES, processes

EXECUTORS = sorted({*catalogue.names("engine.executors")} - {*ENGINES})  # test_engines.py has those


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


def carry_out(name: str, items: list[str], jobs: int = 2) -> tuple[dict, dict[str, list]]:
    """What ended how, and what each item told."""
    told = {item: [] for item in items}
    ended = catalogue.file("engine.executors", name).carry_out(
        work, items, lambda item, what: told[item].append(what), jobs
    )
    return ended, told


@pytest.fixture(scope="module", params=EXECUTORS)
def outcome(request):
    return carry_out(request.param, ["first", "refused", "greedy", "last"])


def test_one_that_fails_stops_no_other(outcome):
    ended, _ = outcome
    assert list(ended.items()) == [
        ("first", None),
        ("refused", "this cannot be done."),
        ("greedy", "MemoryError: no room"),
        ("last", None),
    ]


def test_every_round_is_told_once_and_in_order(outcome):
    _, told = outcome
    rounds = {item: [rounds for rounds, _, _ in events] for item, events in told.items()}
    assert rounds == {"first": [0, 1, 2, 3], "refused": [0, 1], "greedy": [0, 1], "last": [0, 1, 2, 3]}


@pytest.mark.parametrize("name", EXECUTORS)
def test_nothing_to_do_is_done(name):
    assert carry_out(name, []) == ({}, {})


def test_a_process_that_dies_costs_its_item_and_the_others_are_done_once(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    ended, told = carry_out("processes", ["killed", "crashed", "first", "second"], jobs=2)
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


def test_an_interrupted_executor_leaves_no_process_behind():
    def interrupt(item, what):
        if what[0] == 1:  # the item is about to sleep
            raise KeyboardInterrupt

    before = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        processes.carry_out(work, ["endless"], interrupt, jobs=1)
    for process in set(active_children()) - before:
        process.join(20)
        assert not process.is_alive()


def test_no_more_processes_are_started_than_there_are_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    _, told = carry_out("processes", ["first", "second"], jobs=1000)
    assert len({process for events in told.values() for _, process, _ in events}) == 1


ENDLESS = """
import test_executors as tests
tests.processes.carry_out(tests.work, ["endless"], lambda item, what: print(what[1], flush=True), 1)
"""


def test_a_process_ends_within_seconds_of_the_one_that_started_it():
    place = os.path.dirname(__file__)
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True, cwd=place) as parent:
        at = int(parent.stdout.readline())
        parent.kill()
        try:
            parent.communicate(timeout=10)  # its end of the pipe is the child's too
        finally:
            with suppress(ProcessLookupError):
                os.kill(at, signal.SIGKILL)


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
    told = done.stderr.splitlines()
    assert told[-1].startswith("run 2/2")
    assert [line for line in told if not line.startswith(("2 runs to train", "run "))] == []
    assert note.startswith(f'{script} has no line `if __name__ == "__main__":` above its work: the runs were trained ')
