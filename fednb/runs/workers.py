"""Trains many recipes: one after the other, or in processes side by side."""

import multiprocessing
import os
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from fednb.errors import FednbError
from fednb.recipe import Recipe
from fednb.runs.store import Store
from fednb.runs.training import Progress, silent, train_one


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


def _attempt(recipe: Recipe, store: Store, device: str, root, progress: Progress) -> str | None:
    try:
        train_one(recipe, store, device, root, progress)
    except FednbError as error:
        return str(error)
    except Exception as error:  # out of memory and the like: the other recipes go on
        return f"{type(error).__name__}: {error}"
    return None


def _side_by_side(recipes, store, jobs, device, root, progress) -> dict[Recipe, str | None]:
    """``jobs`` processes, each with a pipe of its own over which it is handed one recipe after the other.

    A process that dies costs the recipe that it was at; another takes its place.
    """
    context = multiprocessing.get_context("spawn")
    jobs = min(jobs, len(recipes))
    threads = max(1, (os.cpu_count() or 1) // jobs)
    waiting, working, ended = list(recipes), {}, {}

    def hire() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(store, device, root, threads, theirs), daemon=True)
        process.start()
        theirs.close()
        hand_next(ours, process)

    def hand_next(pipe, process) -> None:
        if not waiting:
            pipe.close()
            return
        working[pipe] = process, waiting.pop(0)
        with suppress(BrokenPipeError):  # it has died since; its pipe will tell
            pipe.send(working[pipe][1])

    try:
        for _ in range(jobs):
            hire()
        while working:
            for pipe in wait(list(working)):
                process, recipe = working[pipe]
                try:
                    kind, value = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    died = f"its process ended with code {process.exitcode}, as it does when memory runs out."
                    ended[recipe] = died
                    del working[pipe]
                    if waiting:
                        hire()
                    continue
                if kind == "round":
                    progress(recipe, value)
                else:
                    ended[recipe], notes = value
                    store.notes.extend(notes)
                    del working[pipe]
                    hand_next(pipe, process)
    finally:
        for process, _ in working.values():
            process.terminate()
    return {recipe: ended[recipe] for recipe in recipes}


def _work(store: Store, device: str, root, threads: int, pipe) -> None:
    import torch

    torch.set_num_threads(threads)
    while True:
        try:
            recipe = pipe.recv()
        except EOFError:
            return
        store.notes.clear()
        error = _attempt(recipe, store, device, root, lambda _, rounds: pipe.send(("round", rounds)))
        pipe.send(("end", (error, store.notes)))
