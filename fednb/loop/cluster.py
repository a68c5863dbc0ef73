"""Items side by side on a Ray cluster: the one that ``RAY_ADDRESS`` names, else one that runs on this machine, else one
that is started here for as long as it is needed. All of its machines have fednb, and a folder in common.
"""

import importlib.util
import math
import os
import signal
import threading
import time
from contextlib import chdir
from pathlib import Path

from fednb.errors import RunError
from fednb.loop.parallel import attempt
from fednb.registry import FOLDERS, searched

ENGINES = ("ray",)
LOOK = 0.2  # seconds between two looks


def check() -> None:
    """Raises RunError where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise RunError('Ray is not installed: pip install -e ".[ray]"')


def on_ray(work, items: list, tell, jobs: int, device: str, folder: Path) -> dict:
    """As ``fednb.loop.parallel`` has it. Each item has the same share of the cluster's cores, and of its GPUs where
    ``device`` is ``"cuda"``. An item whose worker is lost is begun once more. Interrupted, this waits until those at
    work have ended after their round. folder: one that all of the machines share.
    """
    import ray
    from ray.util.queue import Queue

    ours = not ray.is_initialized()
    if ours:
        _begin(folder)
    working: dict = {}
    try:
        cores, gpus = _share([node["Resources"] for node in ray.nodes() if node["Alive"]], jobs, device)
        task, news = ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=1)(_do), Queue()
        settings = {name: value for name, value in os.environ.items() if name.startswith("FEDNB_")}
        if folders := searched():
            settings[FOLDERS] = folders
        waiting, ended, work = list(items), {}, ray.put(work)
        while waiting or working:
            while waiting and len(working) < jobs:
                item = waiting.pop(0)
                working[task.remote(work, item, news, settings, cores)] = item
            time.sleep(LOOK)  # not in ray.wait, which would swallow what a signal raises
            done, _ = ray.wait(list(working), num_returns=len(working), timeout=0)
            for item, what in news.get_nowait_batch(news.size()):
                tell(item, what)
            for job in done:
                ended[working.pop(job)] = _how(job)
        return {item: ended[item] for item in items}
    finally:
        for job in working:
            ray.cancel(job)
        ray.wait(list(working), num_returns=len(working)) if working else None
        if ours:
            ray.shutdown()


def _begin(folder: Path) -> None:
    """Reaches the cluster, or starts one."""
    import ray

    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):  # no telemetry; as Ray will do
        os.environ.setdefault(name, "0")
    before = signal.getsignal(signal.SIGTERM)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with chdir(folder):  # Ray puts the working directory first on its workers' path
            ray.init(log_to_driver=False, logging_level="warning")
    except Exception as error:  # Ray raises that class itself
        address = os.environ.get("RAY_ADDRESS", "this machine")
        raise RunError(
            f"no Ray cluster at {address}: {error}. Start one (`ray start --head`), or name another by RAY_ADDRESS."
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray has put its own in its place


def _do(work, item, news, settings: dict, threads: int) -> str | None:
    """On a worker: one item, with so many threads; None or what went wrong."""
    import torch

    os.environ.update(settings)
    torch.set_num_threads(threads)
    return attempt(work, item, lambda what: news.put((item, what)))


def _how(job) -> str | None:
    import ray

    try:
        return ray.get(job)
    except ray.exceptions.RayError as error:
        return f"its worker was lost twice: {type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _share(machines: list[dict], jobs: int, device: str) -> tuple[int, float]:
    """Whole cores, and GPUs or a part of one, for each of ``jobs`` items."""
    gpus = sum(machine.get("GPU", 0) for machine in machines)
    if device != "cpu" and not gpus:
        raise RunError("the Ray cluster has no GPU; choose the device cpu, or add a machine that has one.")
    cores = [machine.get("CPU", 0) for machine in machines if device == "cpu" or machine.get("GPU")]
    each = max(1, int(min(cores) // math.ceil(jobs / len(cores))))
    return each, 0 if device == "cpu" else 1 / math.ceil(jobs / gpus)
