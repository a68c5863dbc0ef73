"""Items side by side as jobs of SLURM, by submitit; a job's machine has fednb, and a folder in common with this one.

What sbatch reads from the environment holds: ``SBATCH_PARTITION``, ``SBATCH_ACCOUNT``, ``SBATCH_TIMELIMIT``. A job has
as many cores as ``SLURM_CPUS_PER_TASK`` says, or one.
"""

import importlib.util
import os
import shutil
import signal
from pathlib import Path

from fednb.errors import RunError
from fednb.loop.executors import _far

EXECUTOR = "SlurmExecutor"
LOOK = 2.0  # seconds between two looks


def check() -> None:
    """Raises RunError where submitit is not installed or this machine has no SLURM."""
    if importlib.util.find_spec("submitit") is None:
        raise RunError('submitit is not installed: pip install -e ".[slurm]" in a clone of fednb')
    if EXECUTOR == "SlurmExecutor" and not (shutil.which("sbatch") and shutil.which("srun")):
        raise RunError("no SLURM on this machine: it has no sbatch and srun. Run this where jobs are submitted.")


def carry_out(work, items: list, tell, jobs: int, device: str, folder: Path) -> dict:
    """As every executor does. An item is a job, with one GPU where ``device`` is ``"cuda"``; one whose time is up, or
    that is lost, is submitted once more. Raises RunError where SLURM takes no job.
    """
    import submitit

    cores = int(os.environ.get("SLURM_CPUS_PER_TASK", 1))
    with _far.place(work, folder) as place:
        executor = getattr(submitit, EXECUTOR)(place / "jobs")
        asked = {"job_name": "fednb", "time": None, "cpus_per_task": cores, "srun_args": [f"--cpus-per-task={cores}"]}
        executor.update_parameters(**asked, **({"gpus_per_node": 1} if device == "cuda" else {}))

        def start(*given):
            try:
                return executor.submit(_do, *given, cores)
            except submitit.core.utils.FailedJobError as error:
                raise RunError(f"SLURM takes no job: {error}") from error

        crew = _far.Crew(start, _over, _cancel, LOOK)
        return _far.carry_out(crew, items, tell, jobs, place)


def _do(*given) -> None:
    signal.signal(signal.SIGUSR2, lambda *_: signal.raise_signal(signal.SIGTERM))  # the job's time is nearly up
    _far.do(*given)


def _over(job) -> str | None:
    if not job.done():
        return None
    said = (job.stderr() or "").strip().splitlines()
    return f"job {job.job_id} is {job.state}" + (f", and said: {said[-1]}" if said else "")


def _cancel(job) -> None:
    job.cancel(check=False)
