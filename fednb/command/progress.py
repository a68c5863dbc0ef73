"""One progress display for a whole command: what is on, how much of the work is done, the time left."""

import importlib.util
import sys
import time


def duration(seconds: float) -> str:
    """A length of time for a reader: "40 s", "12 min", "3 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class Display:
    """Bars on a terminal, a plain line now and then elsewhere.

    work   what will be done: name of each piece -> the seconds that it should take (only their ratio matters)
    every  seconds between two plain lines
    """

    def __init__(self, work: dict[str, float], every: float = 10.0, stream=None):
        self.work = dict(work)
        self.share = dict.fromkeys(work, 0.0)
        self.every = every
        self.stream = stream or sys.stdout
        self.start = self.told = time.monotonic()
        self.bars = None

    def __enter__(self):
        if self.work and self.stream.isatty() and importlib.util.find_spec("rich"):
            from rich.progress import BarColumn, Progress, TextColumn

            self.bars = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
            self.total = self.bars.add_task("all", total=1.0, left="")
            self.tasks = {}
            self.bars.start()
        return self

    def __exit__(self, *_):
        if self.bars:
            self.bars.stop()

    def update(self, piece: str, text: str, share: float) -> None:
        """`share` (0 to 1) of a piece is done; `text` says what it is doing."""
        self.share[piece] = share
        if self.bars:
            if piece not in self.tasks:
                self.tasks[piece] = self.bars.add_task(text, total=1.0, left="")
            self.bars.update(self.tasks[piece], completed=share, description=text)
            self.bars.update(self.total, completed=self.done, left=self.left)
        elif time.monotonic() - self.told > self.every:
            self.say(f"{text} ({self.left})")

    def finish(self, piece: str, text: str) -> None:
        """A piece is over, well or not; `text` stays on the screen."""
        self.share[piece] = 1.0
        if self.bars:
            if piece in self.tasks:
                self.bars.remove_task(self.tasks.pop(piece))
            self.bars.update(self.total, completed=self.done, left=self.left)
        self.say(text if self.bars or self.done == 1 else f"{text} ({self.left})")

    def say(self, text: str) -> None:
        """A line that stays."""
        self.told = time.monotonic()
        if self.bars:
            self.bars.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self.stream, flush=True)

    @property
    def done(self) -> float:
        """The share of all work that is done, 0 to 1."""
        total = sum(self.work.values())
        return sum(self.work[piece] * share for piece, share in self.share.items()) / total if total else 1.0

    @property
    def left(self) -> str:
        """The time left, from the time that the work so far took."""
        if self.done < 0.01:
            return f"about {duration(sum(self.work.values()))} left"
        return f"about {duration((time.monotonic() - self.start) * (1 - self.done) / self.done)} left"
