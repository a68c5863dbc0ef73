"""Trains recipes: one here, or many in processes side by side."""

import json
import multiprocessing
import os
import queue
import subprocess
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from fednb.errors import FednbError
from fednb.federation import SPLITS, Federation
from fednb.recipe import Recipe
from fednb.store import Record, Store

CHECKPOINT_SECONDS = 60.0

Progress = Callable[[Recipe, int], None]


def silent(recipe: Recipe, rounds: int) -> None:
    """No progress display."""


def train_one(
    recipe: Recipe, store: Store, device: str = "cpu", root: str | Path | None = None, progress: Progress = silent
) -> Record:
    """The record of a recipe: found, or trained from its last checkpoint on.

    ``progress(recipe, rounds_done)`` is called after every round. Raises FednbError for what a user can mend.
    """
    with store.lock(recipe):
        if record := store.find(recipe):
            return record
        from fednb.loop import FederatedRun

        federation = federation_of(recipe, root)
        run = FederatedRun(recipe, federation, device)
        rounds, seconds = _resume(run, recipe, store, federation, device)
        begun = saved = time.monotonic()
        progress(recipe, run.rounds)
        while run.rounds < recipe.rounds:
            rounds.append(run.advance())
            progress(recipe, run.rounds)
            if time.monotonic() - saved >= CHECKPOINT_SECONDS and run.rounds < recipe.rounds:
                elapsed = seconds + time.monotonic() - begun
                state = {"run": run.state(), "rounds": rounds, "seconds": elapsed, "data": federation.fingerprint}
                store.save_checkpoint(recipe, state)
                saved = time.monotonic()
        seconds += time.monotonic() - begun
        record = Record(
            recipe=recipe.full,
            key=recipe.key,
            clients=list(run.clients),
            images={split: [len(getattr(site, split)) for site in federation.sites] for split in SPLITS},
            prepare=run.prepared,
            rounds=rounds,
            fingerprint=federation.fingerprint,
            notes=list(federation.notes),
            origin=_origin(run.model, seconds),
        )
        artefacts = {}
        if "features" in recipe.evaluation:
            artefacts["features"] = {name: tensor.numpy() for name, tensor in run.features().items()}
        store.write(recipe, record, artefacts)
        store.drop_checkpoint(recipe)
        return store.find(recipe)


def train(
    recipes: list[Recipe],
    store: Store,
    jobs: int = 1,
    device: str = "cpu",
    root: str | Path | None = None,
    progress: Progress = silent,
) -> dict[Recipe, str | None]:
    """Trains each recipe once, here or in ``jobs`` processes that share the cores; one that fails stops no other.

    Returns, for each recipe, None or what went wrong.
    """
    recipes = list(dict.fromkeys(recipes))
    if jobs > 1 and len(recipes) > 1:
        return _side_by_side(recipes, store, jobs, device, root, progress)
    return {recipe: _attempt(recipe, store, device, root, progress) for recipe in recipes}


def federation_of(recipe: Recipe, root: str | Path | None = None) -> Federation:
    """The federation of a recipe, loaded once per process."""
    return _load(json.dumps(recipe.full["federation"]), None if root is None else str(root))


@lru_cache(maxsize=2)
def _load(choice: str, root: str | None) -> Federation:
    from fednb import data

    return data.load(root=root, **json.loads(choice))


def _resume(run, recipe: Recipe, store: Store, federation: Federation, device: str) -> tuple[list[dict], float]:
    saved = store.load_checkpoint(recipe, device)
    if saved is None:
        return [], 0.0
    if saved["data"] != federation.fingerprint:
        store.notes.append(f"The checkpoint of {recipe} was made from other images; the run starts again.")
        return [], 0.0
    run.load_state(saved["run"])
    return saved["rounds"], saved["seconds"]


def _attempt(recipe: Recipe, store: Store, device: str, root, progress: Progress) -> str | None:
    try:
        train_one(recipe, store, device, root, progress)
    except FednbError as error:
        return str(error)
    except Exception as error:  # out of memory and the like: the other recipes go on
        return f"{type(error).__name__}: {error}"
    return None


def _side_by_side(recipes, store, jobs, device, root, progress) -> dict[Recipe, str | None]:
    context = multiprocessing.get_context("spawn")
    events = context.Queue()
    threads = max(1, (os.cpu_count() or 1) // jobs)
    waiting, running, ended = list(recipes), {}, {}
    by_key = {recipe.key: recipe for recipe in recipes}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                recipe = waiting.pop(0)
                arguments = (recipe, store, device, root, threads, events)
                running[recipe] = context.Process(target=_work, args=arguments, daemon=True)
                running[recipe].start()
            gone = [recipe for recipe, process in running.items() if not process.is_alive()]
            while True:
                try:
                    kind, key, value, notes = events.get(timeout=0.05 if gone else 0.5)
                except queue.Empty:
                    break
                if kind == "round":
                    progress(by_key[key], value)
                else:
                    ended[by_key[key]] = value
                    store.notes.extend(notes)
            for recipe in gone:
                code = running.pop(recipe).exitcode
                ended.setdefault(recipe, f"its process ended with code {code}, as it does when memory runs out.")
    finally:
        for process in running.values():
            process.terminate()
    return {recipe: ended[recipe] for recipe in recipes}


def _work(recipe: Recipe, store: Store, device: str, root, threads: int, events) -> None:
    import torch

    torch.set_num_threads(threads)
    store.notes.clear()
    error = _attempt(recipe, store, device, root, lambda r, done: events.put(("round", r.key, done, [])))
    events.put(("end", recipe.key, error, store.notes))


def _origin(model, seconds: float) -> dict:
    import torch

    device = next(model.parameters()).device
    return {
        "code": code_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": round(seconds, 1),
    }


@lru_cache
def code_version() -> str:
    """The commit of this checkout, with ``-dirty`` where files differ from it; else the installed version."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("fednb")
        except PackageNotFoundError:
            return "unknown"
