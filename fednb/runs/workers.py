"""Trains many recipes: one after the other, or side by side."""

from copy import copy
from functools import partial
from pathlib import Path

from fednb.engine.executors import processes, serial
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
    work = partial(_train, store, device, root)

    def hear(recipe: Recipe, what: int | str) -> None:
        if isinstance(what, str):
            store.notes.append(what)
        else:
            progress(recipe, what)

    if jobs > 1 and len(recipes) > 1:
        try:
            return processes.carry_out(work, recipes, hear, jobs)
        except processes.UnguardedError as error:
            store.notes.append(f"{error}: the runs were trained one after the other. With it, they go side by side.")
    return serial.carry_out(work, recipes, hear)


def _train(store: Store, device: str, root, recipe: Recipe, tell) -> None:
    """Tells how many rounds are done, after each, and at the end every note of the store."""
    own = copy(store)
    own.notes = []
    try:
        train_one(recipe, own, device, root, lambda _, rounds: tell(rounds))
    finally:
        for note in own.notes:
            tell(note)
