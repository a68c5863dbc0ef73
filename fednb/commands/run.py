"""`fednb run`: executes notebooks, each of which trains what it misses; then writes the site, or what is committed."""

import importlib.util
import os
import sys
from functools import partial
from pathlib import Path

from fednb import registry
from fednb.commands import notebooks
from fednb.commands.notebooks import Notebook
from fednb.errors import FednbError, NotebookError, RunError
from fednb.files import unwritable

JUPYTER = ("papermill", "nbclient", "ipykernel")
MOST_JOBS = 8  # unless more are asked for
MACHINE = {"DEVICE", "JOBS"}  # parameters that change nothing of what a notebook shows


def main(options) -> int:
    """Returns 0, or 1 where a notebook failed or the site could not be written. What is trained is kept."""
    home, chosen, own = notebooks.home(), notebooks.select(options.only), registry.project()
    recording = notebooks.tool("recording") if options.record else None
    if recording and (changes := recording.dirty(home)):
        raise RunError("recording needs a clean work tree; commit or undo first:\n  " + "\n  ".join(changes))
    report = notebooks.report_folder(options.report)
    cores = os.cpu_count() or 1
    jobs = min(options.jobs or (MOST_JOBS if options.device == "cpu" else 1), cores)
    at_once = min(jobs, len(chosen))
    given = {notebook.name: _given(notebook, options, jobs // at_once, len(chosen) == 1) for notebook in chosen}
    for notebook in chosen:
        notebooks.check(notebook, given[notebook.name])
    if own:
        from fednb.commands import project, trivial

        project.refuse(own, chosen)
    if absent := [name for name in JUPYTER if importlib.util.find_spec(name) is None]:
        raise RunError(f'notebooks need {", ".join(absent)}: pip install -e ".[notebooks]" in a clone of fednb.')
    require_device(options.device)
    runs = home / "results" if recording else report / "runs"
    if refusal := unwritable(runs, report / "notebooks"):
        raise RunError(refusal if recording else f"{refusal} --report names another folder.")
    _tell_kernels(options, runs, cores // jobs)
    before = _records(runs)
    failed = _execute(chosen, report, given, at_once, runs)
    if recording:  # the committed notebooks show their default parameters
        shown = {name: {each: some[each] for each in some.keys() & MACHINE} for name, some in given.items()}
        failed |= _execute(chosen, report, shown, at_once, runs) if shown != given else {}
    executed = [notebook for notebook in chosen if notebook.name not in failed]
    done = [f"{len(executed)} notebooks executed, {len(failed)} failed; {_records(runs) - before} runs trained"]
    done += [f"FAILED {name}: {error}" for name, error in failed.items()]
    if own:
        trivial.add(own / "results" / "trivial.json", (runs, own / "results"))
        done += [f"note: {note}" for note in project.left_open(own)]
    try:
        done += _shown(options, home, report, executed, recording)
    except (FednbError, OSError) as error:
        failed["report"] = str(error)
        done.append(f"FAILED {'recording' if recording else 'report'}: {error}")
    if failed:
        done.append("next: mend what FAILED; the same command tries it again, what is finished is kept")
    print("\n" + "\n".join(done), flush=True)
    return 1 if failed else 0


def _given(notebook: Notebook, options, jobs: int, alone: bool) -> dict:
    """The parameters of a notebook: those of the command's options that it has, and every `--set`, which it must have.
    `--data` is the user's own folder of sites where a notebook of such is the only one chosen."""
    shared = {"PROFILE": options.profile, "DEVICE": options.device, "JOBS": jobs}
    if alone and options.data and notebook.about.get("data") == "folders":
        shared["DATA"] = str(Path(options.data).expanduser().absolute())
    known = notebooks.parameters(notebook)
    return {name: value for name, value in shared.items() if name in known} | dict(options.set)


def require_device(device: str) -> None:
    """RunError unless torch can use the device in the double precision that sums are kept in."""
    if device != "cpu":
        import torch

        try:
            torch.zeros(1, device=device, dtype=torch.float64).item()
        except (RuntimeError, AssertionError, TypeError) as error:  # torch's own words are long; its first line says it
            why = str(error).splitlines()[0]
            raise RunError(f'device "{device}" cannot be used: {why} Choose cpu, or install a torch for it.') from error


def _tell_kernels(options, runs: Path, threads: int) -> None:
    """Sets what kernels and their processes have from this command: absolute paths, as they start elsewhere."""
    from fednb.datasets import data_root

    os.environ[registry.FOLDERS] = registry.searched()
    os.environ["FEDNB_DATA"] = str(data_root(options.data).absolute())
    os.environ["FEDNB_RUNS"] = str(runs)
    os.environ["FEDNB_STALE"] = "again" if options.stale else ""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, threads)))


def _records(runs: Path) -> int:
    return sum(1 for _ in runs.glob("*/*.json"))


def _execute(chosen: list[Notebook], report: Path, given: dict[str, dict], at_once: int, runs: Path) -> dict[str, str]:
    """Executes notebooks, so many at once, under a bar that says how many runs are trained; returns name -> error."""
    from tqdm import tqdm

    from fednb.loop import parallel

    before = _records(runs)
    with tqdm(total=len(chosen), unit=" notebooks", disable=None) as bar:

        def hear(notebook: Notebook, error: str) -> None:
            bar.write(f"{notebook.name}: {error or 'executed'}", file=sys.stdout)
            bar.set_postfix_str(f"{_records(runs) - before} runs trained")
            bar.update()

        errors = parallel.in_processes(partial(_execute_one, report, given), chosen, hear, at_once)
    return {notebook.name: error for notebook, error in errors.items() if error}


def _execute_one(report: Path, given: dict[str, dict], notebook: Notebook, tell) -> None:
    error = notebooks.execute(notebook, notebooks.executed(report, notebook), given[notebook.name])
    tell(error or "")
    if error:
        raise NotebookError(error)


def _shown(options, home: Path, report: Path, executed: list[Notebook], recording) -> list[str]:
    if recording:
        for notebook in executed:
            recording.commit_outputs(home, report, notebook)
        if (home / "tools" / "readme.py").is_file():
            notebooks.tool("readme").update()
        return [f"recorded: results/, figures/ and notebooks/ in {home}", "next: look at the changes and commit them"]
    if options.only or registry.project():
        first = [str(notebooks.executed(report, notebook)) for notebook in executed[:1]]
        return [f"executed: {report / 'notebooks'}", *(f"next: jupyter lab {copy}" for copy in first)]
    from fednb.commands.report import build

    print("writing the site", flush=True)
    build(home, report)
    return [f"report: {report / 'index.html'}", "next: open it; to try things, begin with together/quickstart"]
