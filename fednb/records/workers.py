"""Trains many recipes: in turn or side by side, here and in whatever else works on the same store."""

import sys
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path

from fednb.errors import HeldError, reason
from fednb.federation import Federation
from fednb.loop import parallel
from fednb.recipe import Recipe
from fednb.records import signals
from fednb.records.store import Store
from fednb.records.training import Progress, train_one

BAR = "{percentage:3.0f} %|{bar:20}| {remaining} left: {desc}"


def train(
    recipes: list[Recipe],
    store: Store,
    jobs: int = 1,
    device: str = "cpu",
    root: str | Path | None = None,
    progress: Progress | None = None,
    federation: Federation | None = None,
) -> dict[Recipe, str | None]:
    """Trains each recipe once, here or in ``jobs`` processes that share the cores; for each None or what went wrong.

    Runs that another process trains come last. progress: hears of each round, in the place of a bar. federation: of
    recipes whose images are in memory."""
    ended: dict[Recipe, str | None] = dict.fromkeys(recipes)
    rest, held = list(ended), []
    with signals.watched(), _bar(rest) as shown:

        def hear(recipe: Recipe, what: int | str | None) -> None:
            signals.pass_on()
            if what is None:
                held.append(recipe)
            elif isinstance(what, str):
                store.notes.append(what)
            else:
                (progress or shown)(recipe, what)

        for wait in (False, True):
            ended |= _here(partial(_train, store, device, root, federation, wait), rest, hear, jobs, store)
            rest, held = held, []
    return ended


def _here(work, recipes: list[Recipe], hear, jobs: int, store: Store) -> dict[Recipe, str | None]:
    if jobs > 1 and len(recipes) > 1:
        try:
            return parallel.in_processes(work, recipes, hear, jobs)
        except parallel.UnguardedError as error:
            store.notes.append(f"{error}: the runs were trained one after the other. With it, they go side by side.")
    ended: dict[Recipe, str | None] = {}
    for recipe in recipes:
        try:
            ended[recipe] = work(recipe, partial(hear, recipe))
        except Exception as error:  # the other runs go on
            ended[recipe] = reason(error)
    return ended


def _train(store: Store, device: str, root, federation: Federation | None, wait: bool, recipe: Recipe, tell) -> None:
    """Tells how many rounds are done, at the end every note of the store, and None where another process trains it."""
    signals.end_if_requested()
    apart = copy(store)
    apart.notes = []
    try:
        train_one(recipe, apart, device, root, lambda _, rounds: tell(rounds), federation, wait)
    except HeldError:
        if wait:
            raise
        tell(None)
    finally:
        for note in apart.notes:
            tell(note)


@contextmanager
def _bar(recipes: list[Recipe]):
    """Gives what hears how many rounds are done, and shows it on a terminal or in a notebook."""
    if not _is_watched():
        yield lambda recipe, rounds: None
        return
    from tqdm import tqdm

    done: dict[Recipe, int] = {}
    shown = {"bar_format": BAR, "file": sys.stderr, "leave": False, "dynamic_ncols": True}
    with tqdm(total=sum(recipe.rounds for recipe in recipes), **shown) as bar:

        def progress(recipe: Recipe, rounds: int) -> None:
            if recipe not in done:
                bar.initial += rounds  # by an earlier start: it says nothing of the speed of this one
            bar.set_description_str(f"{recipe}, round {rounds}/{recipe.rounds}", refresh=False)
            bar.update(rounds - done.get(recipe, 0))
            done[recipe] = rounds

        yield progress


def _is_watched() -> bool:
    """Whoever only executes a notebook lets no cell ask anything, and would record the bar."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if hasattr(shell, "get_parent"):
        return bool(shell.get_parent()["content"].get("allow_stdin"))
    return sys.stderr.isatty()
