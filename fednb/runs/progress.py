"""One progress display for whatever trains: plain lines on a terminal and in papermill's log, a bar in JupyterLab."""

from __future__ import annotations

import html
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fednb.recipe import Recipe
    from fednb.runs.record import Record
    from fednb.runs.training import Progress

LINE_SECONDS, BAR_SECONDS = 10.0, 0.2  # between two lines, two states of the bar
LINES = 100  # after a while, a line each hundredth of the time so far: a day of training has some hundred
MARK = {"fednb": "progress"}  # the metadata of what a notebook shows while it trains


def duration(seconds: float) -> str:
    """A length of time for a reader: "40 s", "12 min", "3 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def expected_seconds(recipe: Recipe, records: list[Record], device: str = "cpu") -> float | None:
    """How long a run will take, from recorded runs on the same kind of device; None where there is none like it.

    Runs of the same methods tell it if there are any, then runs of these methods with other options, else all runs with
    the same data, model and precision.
    """
    like = [
        record
        for record in records
        if all(record.recipe[name] == recipe.full[name] for name in ("federation", "model", "precision"))
        and bool(record.recipe.get("local_steps")) == bool(recipe.local_steps)
        and (record.origin["device"] == "cpu") == (device == "cpu")
    ]
    methods = ("algorithm", "augmentations")
    same = [record for record in like if all(record.recipe[name] == recipe.full[name] for name in methods)]
    kin = [record for record in like if _methods(record.recipe) == _methods(recipe.full)]
    rates = [record.origin["seconds"] / _work(record.recipe) for record in same or kin or like]
    return sorted(rates)[len(rates) // 2] * _work(recipe.full) if rates else None


def _methods(recipe: dict) -> list[str]:
    return [given["name"] for given in (recipe["algorithm"], *recipe["augmentations"])]


def _work(recipe: dict) -> int:
    """Steps or epochs of a client in a whole run."""
    return recipe["rounds"] * (recipe.get("local_steps") or recipe["local_epochs"])


class Display:
    """What is on, how much of the work is done, the time left: one for all that a command or a study does.

    In a notebook, the bar goes when the work ends; lines are told to papermill's log, and recording leaves them out.

    work: what will be done: name of each piece -> the seconds that it should take, None where nothing recorded tells.
    jobs: pieces side by side. stream: where lines go outside of notebooks.
    """

    def __init__(self, work: dict[str, float | None], jobs: int = 1, stream=None):
        known = [seconds for seconds in work.values() if seconds is not None]
        self.measured = bool(known)
        usual = sum(known) / len(known) if known else 1.0
        self.work = {piece: usual if seconds is None else seconds for piece, seconds in work.items()}
        self.jobs = max(1, min(jobs, len(work)))
        self.share = dict.fromkeys(work, 0.0)
        self.first = {}  # the share of each piece when it was heard of first: done before this began
        self.stream = stream
        self.start, self.told = time.monotonic(), float("-inf")
        self.notebook = _notebook()
        self.bar = _bar(self.notebook)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar:
            self.bar.update({}, raw=True, metadata=MARK)

    def runs(self, recipes: list[Recipe], whom: Callable[[Recipe], str] = lambda _: "") -> Progress:
        """What hears how many rounds of these recipes are done; their keys name their pieces. whom: more to say."""
        order = {recipe: number for number, recipe in enumerate(recipes, 1)}

        def tell(recipe: Recipe, rounds: int) -> None:
            text = f"run {order[recipe]}/{len(order)}: {recipe}, round {rounds}/{recipe.rounds}{whom(recipe)}"
            if rounds < recipe.rounds:
                self.update(recipe.key, text, rounds / recipe.rounds)
            else:
                self.finish(recipe.key, text)

        return tell

    def update(self, piece: str, text: str, share: float) -> None:
        """``share`` (0 to 1) of a piece is done; ``text`` says what it is doing."""
        self.first.setdefault(piece, share)
        self.share[piece] = share
        now = time.monotonic()
        if now - self.told >= (BAR_SECONDS if self.bar else max(LINE_SECONDS, (now - self.start) / LINES)):
            self.say(text)
            self.told = now

    def finish(self, piece: str, text: str) -> None:
        """A piece is over, well or not."""
        self.first.setdefault(piece, 0.0)
        self.share[piece] = 1.0
        self.say(text)
        self.told = time.monotonic()

    def say(self, text: str) -> None:
        """Shows a line, with the time left."""
        text = f"{text} ({self.left})" if self.left else text
        if self.bar:
            shown = f'<progress value="{self.done:.3f}" style="width: 20em"></progress> {html.escape(text)}'
            self.bar.update({"text/html": shown, "text/plain": text}, raw=True, metadata=MARK)
        elif self.notebook:
            from IPython.display import display

            display({"text/plain": text}, raw=True, metadata=MARK)
        else:
            print(text, file=self.stream or sys.stderr, flush=True)

    @property
    def done(self) -> float:
        """The share of all work that is done, 0 to 1."""
        total = sum(self.work.values())
        return sum(self.work[piece] * share for piece, share in self.share.items()) / total if total else 1.0

    @property
    def left(self) -> str:
        """The time left: as recorded runs took, and as soon as a hundredth is done, as this work took."""
        rest = sum(self.work[piece] * (1 - share) for piece, share in self.share.items())
        done = sum(self.work[piece] * (self.share[piece] - share) for piece, share in self.first.items())
        if not rest:
            return ""
        if done > 0.01 * (done + rest):
            return f"about {duration((time.monotonic() - self.start) * rest / done)} left"
        return f"about {duration(rest / self.jobs)} left" if self.measured else "the time left is not known yet"


def _notebook():
    """The shell of the notebook's kernel that this runs in; None outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(shell, "get_parent") else None


def _bar(notebook):
    """A place for a bar, where somebody sits before the notebook: who only executes it lets no cell ask anything."""
    if not notebook or not notebook.get_parent()["content"].get("allow_stdin"):
        return None
    from IPython.display import display

    return display({"text/plain": ""}, raw=True, metadata=MARK, display_id=True)
