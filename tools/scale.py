"""Rounds of more and more clients: how long one takes, alone and two side by side, and how much memory."""

import re
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from fednb.errors import RunError
from fednb.federation import Federation, Site, Split
from fednb.loop import parallel
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe

CLIENTS = (4, 20, 100, 500)
IMAGES = 20  # of a client's training; as many to validate and to test
RECIPE = Recipe(model={"name": "digits_cnn", "channels": 16, "width": 128}, flow=["rotation"], momentum=0.9)
WAYS = {"one process": 1, "two processes": 2}  # runs at once


def rows(rounds: int = 5, device: str = "cpu", tell: Callable[[str], None] = print) -> list[dict]:
    """One row for each number of clients and each way to run: seconds a round, and the peak memory of a process.

    ``seconds``: the median round of FedAvg, with its evaluation, over the runs at once: what a round costs where many
    are to be trained. ``data``, ``memory``: MB of images, and the most that the process ever held, both of one run.
    """
    found = []
    for way, jobs in WAYS.items():
        for count in CLIENTS:
            told = _measured(jobs, partial(run, count, rounds, device))
            seconds = statistics.median(each["seconds"] for each in told) / jobs
            most = {name: max(each[name] for each in told) for name in ("data", "memory")}
            found.append({"clients": count, "way": way, "seconds": round(seconds, 4), **most})
            tell(f"{count} clients, {way}: {seconds:.3f} s a round, at most {most['memory']:.0f} MB")
    return found


def _measured(jobs: int, work: Callable) -> list[dict]:
    """What as many runs tell, each in a process of its own, all at once; RunError where one of them fails."""
    told: list[dict] = []
    failed = parallel.in_processes(work, list(range(jobs)), lambda item, what: told.append(what), jobs)
    for problem in filter(None, failed.values()):
        raise RunError(f"a run of the bench failed: {problem}")
    return told


def run(clients: int, rounds: int, device: str, item: int, tell: Callable[[dict], None]) -> None:
    """Tells the median seconds of a round on one thread, after one that is not counted, and this process's peak."""
    torch.set_num_threads(1)
    federation = own_images(clients, IMAGES, (3, 32, 32))
    trained = FederatedRun(RECIPE, federation, device)
    trained.advance()
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        trained.advance()
        seconds.append(time.perf_counter() - begun)
    images = sum(part.images.nbytes for site in federation.sites for part in (site.train, site.validation, site.test))
    tell({"seconds": statistics.median(seconds), "data": round(images / 1e6, 1), "memory": round(peak() / 1e6, 1)})


def own_images(clients: int, images: int, image_shape: tuple[int, int, int]) -> Federation:
    """As ``federation.made`` with ten classes, but nobody shares an image with another."""
    draw = torch.Generator().manual_seed(0)

    def split() -> Split:
        pixels = torch.randint(0, 256, (images, *image_shape), generator=draw, dtype=torch.uint8)
        return Split(pixels, torch.arange(images) % 10)

    sites = tuple(Site(f"client {number + 1}", split(), split(), split()) for number in range(clients))
    return Federation("made", sites, tuple(map(str, range(10))))


def peak() -> int:
    """The most bytes that this process ever held."""
    if (told := Path("/proc/self/status")).exists():  # Linux counts to a new process's ru_maxrss what its parent held
        return int(re.search(r"^VmHWM:\s+(\d+) kB", told.read_text(), re.MULTILINE)[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
