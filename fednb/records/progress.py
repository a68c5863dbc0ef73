"""One progress display for whatever takes long: a bar in JupyterLab and on a terminal, plain lines in logs."""

from __future__ import annotations

import html
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from fednb.recipe import Recipe
    from fednb.records.record import Record
    from fednb.records.training import Progress

LINE_SECONDS, BAR_SECONDS = 10.0, 0.2  # between two lines, two states of the bar
LINES = 100  # after a while, a line each hundredth of the time so far: a day of training has some hundred
SURE = 3  # runs of a kind done on this machine, from which on one number tells the time of the next
# What a time is multiplied by, of a few runs done here and of none. Our own records of one kind differ by seven times,
# and were made with two runs side by side on a busy machine: others are rather quicker.
FEW, NONE = (0.5, 2.0), (0.125, 3.0)
MARK = {"fednb": "progress"}  # the metadata of what a notebook shows while it trains


def duration(seconds: float) -> str:
    """A length of time for a reader: "40 s", "12 min", "3 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def span(seconds: float, here: int) -> tuple[float, float]:
    """The shortest and the longest time, where so many runs of the kind are done on this machine."""
    least, most = (1.0, 1.0) if here >= SURE else FEW if here else NONE
    return least * seconds, most * seconds


def between(spans: Iterable[tuple[float, float]], jobs: int = 1) -> str:
    """All of them, so many side by side, for a reader: "12 min", "2 to 12 min", "40 s to 2 min"."""
    one, other = (duration(sum(seconds) / jobs) for seconds in zip(*spans, strict=True))
    if one == other:
        return one
    number, unit = one.split(" ", 1)
    return f"{number if unit in ('s', 'min') and other.split(' ', 1)[1] == unit else one} to {other}"


def expected_seconds(
    recipe: Recipe, records: list[Record], device: str = "cpu", here: Path | None = None
) -> tuple[float, float] | None:
    """How long a run will take at least and at most, from recorded runs on the same kind of device; None where there is
    none like it.

    Runs of the same methods tell it if there are any, then runs of these methods with other options, else all runs with
    the same data, model and precision; of these the ones in the folder ``here``, which this machine made, if there are
    any. The middle one counts; it is the only number where ``SURE`` of them are here.
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
    told = same or kin or like
    own = [record for record in told if here and record.path and record.path.is_relative_to(here)]
    rates = sorted(record.origin["seconds"] / _work(record.recipe) for record in own or told)
    return span(rates[len(rates) // 2] * _work(recipe.full), len(own)) if rates else None


def _methods(recipe: dict) -> list[str]:
    return [given["name"] for given in (recipe["algorithm"], *recipe["augmentations"])]


def _work(recipe: dict) -> int:
    """Steps or epochs of a client in a whole run."""
    return recipe["rounds"] * (recipe.get("local_steps") or recipe["local_epochs"])


class Display:
    """What is on, how much of the work is done, the time left: one for all that a command or a study does.

    The bar goes when the work ends; in a notebook, lines are told to papermill's log, and recording leaves them out.

    work: what will be done: name of each piece -> the seconds that it should take at least and at most, None where
    nothing recorded tells. jobs: pieces side by side. stream: where it is shown outside of notebooks.
    """

    def __init__(self, work: dict[str, tuple[float, float] | None], jobs: int = 1, stream=None):
        known = [spanned for spanned in work.values() if spanned is not None]
        self.measured = bool(known)
        usual = tuple(sum(seconds) / len(known) for seconds in zip(*known, strict=True)) or (1.0, 1.0)
        self.spans = {piece: spanned or usual for piece, spanned in work.items()}
        self.work = {piece: (least * most) ** 0.5 for piece, (least, most) in self.spans.items()}
        self.jobs = max(1, min(jobs, len(work)))
        self.share = dict.fromkeys(work, 0.0)
        self.first = {}  # the share of each piece when it was heard of first: done before this began
        self.stream = stream or sys.stderr
        self.start, self.told = time.monotonic(), float("-inf")
        self.notebook = _notebook()
        self.bar = _bar(self.notebook)
        self.terminal = not self.notebook and self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar:
            self.bar.update({}, raw=True, metadata=MARK)
        elif self.terminal:
            print("\x1b[K", end="", file=self.stream, flush=True)

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
        if now - self.told >= (
            BAR_SECONDS if self.bar or self.terminal else max(LINE_SECONDS, (now - self.start) / LINES)
        ):
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
        if self.terminal:  # what else is printed begins where the line does
            text = f"[{'#' * round(20 * self.done):.<20}] {self.left}{': ' if self.left else ''}{text}"
            width = shutil.get_terminal_size().columns - 1
            print(f"\x1b[K{text[:width]}", end="\r", file=self.stream, flush=True)
            return
        text = f"{text} ({self.left})" if self.left else text
        if self.bar:
            shown = f'<progress value="{self.done:.3f}" style="width: 20em"></progress> {html.escape(text)}'
            self.bar.update({"text/html": shown, "text/plain": text}, raw=True, metadata=MARK)
        elif self.notebook:
            from IPython.display import display

            display({"text/plain": text}, raw=True, metadata=MARK)
        else:
            print(text, file=self.stream, flush=True)

    @property
    def done(self) -> float:
        """The share of all work that is done, 0 to 1."""
        total = sum(self.work.values())
        return sum(self.work[piece] * share for piece, share in self.share.items()) / total if total else 1.0

    @property
    def left(self) -> str:
        """The time left: as recorded runs took, and as soon as a hundredth is done, as this work took; at least and at
        most, until some pieces are finished."""
        rest = sum(self.work[piece] * (1 - share) for piece, share in self.share.items())
        done = sum(self.work[piece] * (self.share[piece] - share) for piece, share in self.first.items())
        if not rest:
            return ""
        if done > 0.01 * (done + rest):
            finished = sum(share == 1 for share in self.share.values())
            return f"about {between([span((time.monotonic() - self.start) * rest / done, max(1, finished))])} left"
        if not self.measured:
            return "the time left is not known yet"
        spans = ((least * (1 - self.share[p]), most * (1 - self.share[p])) for p, (least, most) in self.spans.items())
        return f"about {between(spans, self.jobs)} left"


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
