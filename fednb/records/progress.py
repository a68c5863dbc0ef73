"""A bar while runs train, by tqdm, where somebody sees it: on a terminal, or in a notebook that somebody works in."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fednb.recipe import Recipe
    from fednb.records.record import Record

BAR = "{percentage:3.0f} %|{bar:20}| {remaining} left: {desc}"


@contextmanager
def display(recipes: list[Recipe], records: list[Record], jobs: int = 1, device: str = "cpu"):
    """Gives what hears how many rounds of these recipes are done (``Progress``), and shows it inside.

    records: recorded runs, by which the time is estimated. jobs: runs side by side.
    """
    if not _is_watched():
        yield lambda recipe, rounds: None
        return
    from tqdm import tqdm

    known = {recipe: expected_seconds(recipe, records, device) for recipe in recipes}
    measured = [seconds for seconds in known.values() if seconds]
    usual = sum(measured) / len(measured) if measured else 1.0
    work = {recipe: (seconds or usual) / max(1, jobs) for recipe, seconds in known.items()}
    shares: dict[Recipe, float] = {}
    order = {recipe: number for number, recipe in enumerate(recipes, 1)}
    shown = {"bar_format": BAR, "file": sys.stderr, "leave": False, "dynamic_ncols": True}
    with tqdm(total=sum(work.values()), **shown) as bar:

        def progress(recipe: Recipe, rounds: int) -> None:
            share = rounds / recipe.rounds
            done = work[recipe] * (share - shares.get(recipe, 0.0))
            if recipe not in shares:
                bar.initial += done  # by an earlier start: it says nothing of the speed of this one
            shares[recipe] = share
            text = f"run {order[recipe]}/{len(order)}: {recipe}, round {rounds}/{recipe.rounds}"
            bar.set_description_str(text, refresh=False)
            bar.update(done)

        yield progress


def expected_seconds(recipe: Recipe, records: list[Record], device: str = "cpu") -> float | None:
    """How long a run will take: the median of recorded runs of its methods on such data and such a device, else of all
    runs there; None where there is none."""
    like = [
        record
        for record in records
        if all(record.recipe[name] == recipe.full[name] for name in ("federation", "model", "precision"))
        and (record.origin["device"] == "cpu") == (device == "cpu")
    ]
    same = [record for record in like if _methods(record.recipe) == _methods(recipe.full)]
    rates = sorted(record.origin["seconds"] / _work(record.recipe) for record in same or like)
    return rates[len(rates) // 2] * _work(recipe.full) if rates else None


def _methods(recipe: dict) -> list[str]:
    return [given["name"] for given in (recipe["algorithm"], *recipe["augmentations"])]


def _work(recipe: dict) -> int:
    """Steps or epochs of a client in a whole run."""
    return recipe["rounds"] * (recipe.get("local_steps") or recipe["local_epochs"])


def _is_watched() -> bool:
    """Whoever only executes a notebook lets no cell ask anything, and would record the bar."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if hasattr(shell, "get_parent"):
        return bool(shell.get_parent()["content"].get("allow_stdin"))
    return sys.stderr.isatty()
