"""Items on other machines, which share a folder with this one: what the engines have in common.

Whoever is at an item has a file of its own in the folder and adds letters to it: all that it tells, at last how the
item ended. Where the file is gone nobody waits any more, and who trains ends after its round, with a checkpoint.
"""

import os
import pickle
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from fednb.errors import RunError
from fednb.loop.executors import attempt
from fednb.outside import FOLDERS, searched


@dataclass
class Crew:
    """What an engine can do.

    start   ``start(place, item, letters)`` has ``do`` called with these on another machine; returns a job.
    over    ``over(job)``: in words how it ended; None where it is queued or at work.
    cancel  ``cancel(job)`` takes a job that is not at work out of the queue.
    look    seconds between two looks.
    """

    start: Callable
    over: Callable
    cancel: Callable
    look: float


class Letters:
    """What one attempt at an item has written so far."""

    def __init__(self, path: Path):
        self.path = path
        self.path.touch()
        self.read = 0

    def news(self) -> Iterator[tuple]:
        with self.path.open("rb") as file:
            file.seek(self.read)
            with suppress(EOFError, pickle.UnpicklingError):  # the next one is not there, or not whole
                while True:
                    letter = pickle.load(file)
                    self.read = file.tell()
                    yield letter


@contextmanager
def place(work, folder: Path):
    """A folder inside the shared one, while items are carried out; the work lies in it."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("FEDNB_")}
    if folders := searched():
        settings[FOLDERS] = folders
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="engine-", dir=folder.absolute(), ignore_cleanup_errors=True) as made:
        try:
            Path(made, "work").write_bytes(pickle.dumps(settings) + pickle.dumps(work))
        except Exception as error:  # it may hold anybody's objects
            raise RunError(
                f"this work cannot be pickled for other machines: {type(error).__name__}: {error}"
            ) from error
        yield Path(made)


def carry_out(crew: Crew, items: list, tell, jobs: int, place: Path) -> dict:
    """As every executor does. An item whose job is lost is begun once more, and goes on from what it left."""
    waiting, working, ended, lost = list(items), {}, {}, set()
    try:
        while waiting or working:
            while waiting and len(working) < jobs:
                item = waiting.pop(0)
                letters = Letters(place / f"{items.index(item)}-{item in lost:d}")
                working[item] = crew.start(place, item, letters.path), letters
            time.sleep(crew.look)
            for item, (job, letters) in list(working.items()):
                how = crew.over(job)  # asked first: whoever ended well has said so before
                for event, value in letters.news():
                    if event == "told":
                        tell(item, value)
                    elif event == "ended":
                        ended[item] = value
                if how is None:
                    continue
                del working[item]
                if item in lost:
                    ended.setdefault(item, f"its worker was lost twice: {how}")
                elif item not in ended:
                    print(f"{item}: its worker was lost, and another begins: {how}", file=sys.stderr, flush=True)
                    lost.add(item)
                    waiting.insert(0, item)
    finally:
        for job, letters in working.values():
            if not letters.read:
                crew.cancel(job)
            letters.path.unlink(missing_ok=True)
        while any(crew.over(job) is None for job, _ in working.values()):
            time.sleep(crew.look)
    return {item: ended[item] for item in items}


def do(place: Path, item, letters: Path, threads: int) -> None:
    """On the other machine: does one item, with so many threads."""
    if not letters.exists():
        raise RunError(f"{platform.node()} does not see {letters}; the folder of runs must be one for all machines.")

    def write(*letter) -> None:
        with letters.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(pickle.dumps(letter))

    def tell(what) -> None:
        try:
            write("told", what)
        except FileNotFoundError:
            signal.raise_signal(signal.SIGTERM)
        except OSError:  # a full disk: the item is worth more than what it tells
            pass

    write("begun", platform.node())
    with (place / "work").open("rb") as file:
        os.environ.update(pickle.load(file))
        work = pickle.load(file)
    torch.set_num_threads(threads)
    write("ended", attempt(work, item, tell))
