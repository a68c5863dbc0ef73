"""Items side by side on a Ray cluster: the one that ``RAY_ADDRESS`` names, else one that runs on this machine, else one
that is started here for as long as it is needed. All of its machines have fednb, and a folder in common.
"""

import importlib.util
import math
import os
import re
import signal
import socket
import threading
from pathlib import Path

from fednb.errors import RunError
from fednb.loop.executors import _far

LOOK = 0.2  # seconds between two looks
ANSWER = 10  # seconds that a cluster has to answer


def check() -> None:
    """Raises RunError where Ray is not installed or nobody answers at the address."""
    if importlib.util.find_spec("ray") is None:
        raise RunError('Ray is not installed: pip install -e ".[ray]" in a clone of fednb')
    address = os.environ.get("RAY_ADDRESS", "")
    if there := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address):  # Ray itself would try for minutes
        try:
            socket.create_connection((there[1], int(there[2])), ANSWER).close()
        except OSError as error:
            raise RunError(_nobody(address, error)) from error


def carry_out(work, items: list, tell, jobs: int, device: str, folder: Path) -> dict:
    """As every executor does. Each item has the same share of the cluster's cores, and of its GPUs where ``device`` is
    ``"cuda"``, so that ``jobs`` of them fit. Raises RunError where there is no cluster, or none with a GPU.
    """
    import ray

    ours = not ray.is_initialized()
    if ours:
        for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):  # no telemetry; as Ray will do
            os.environ.setdefault(name, "0")
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(log_to_driver=False, logging_level="warning")
        except Exception as error:  # Ray raises that class itself
            raise RunError(_nobody(os.environ.get("RAY_ADDRESS", "this machine"), error)) from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has put its own in its place
    try:
        cores, gpus = _share([node["Resources"] for node in ray.nodes() if node["Alive"]], jobs, device)
        task = ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=0)(_far.do)

        def start(*given):
            return task.remote(*given, cores)

        with _far.place(work, folder) as place:
            return _far.carry_out(_far.Crew(start, _over, ray.cancel, LOOK), items, tell, jobs, place)
    finally:
        if ours:
            ray.shutdown()


def _over(job) -> str | None:
    import ray

    if not ray.wait([job], timeout=0)[0]:
        return None
    try:
        ray.get(job)
    except ray.exceptions.RayError as error:
        why = str(error).strip().splitlines()
        return f"{type(error).__name__}: {why[-1] if isinstance(error, ray.exceptions.RayTaskError) else why[0]}"
    return "it ended"


def _share(machines: list[dict], jobs: int, device: str) -> tuple[int, float]:
    """Whole cores, and GPUs or a part of one, for each of so many items."""
    gpus = sum(machine.get("GPU", 0) for machine in machines)
    if device != "cpu" and not gpus:
        raise RunError("the Ray cluster has no GPU; choose the device cpu, or add a machine that has one.")
    each = 0 if device == "cpu" else math.ceil(jobs / gpus)  # items that share a GPU

    def room(machine: dict, cores: int) -> int:
        return min(machine.get("CPU", 0) // cores, machine.get("GPU", 0) * each if each else math.inf)

    most = int(max(machine.get("CPU", 0) for machine in machines))
    fitting = (cores for cores in range(most, 1, -1) if sum(room(machine, cores) for machine in machines) >= jobs)
    return next(fitting, 1), 1 / each if each else 0


def _nobody(address: str, error: Exception) -> str:
    return f"no Ray cluster at {address}: {error}. Start one (`ray start --head`), or name another by --address."
