"""What is published of a data set: where it is from, and how much of what it has; and what every one is asked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fednb.errors import DataError


@dataclass(frozen=True)
class Needs:
    """Where a data set is from; ``str()`` is one text for errors.

    what: its name, authors and year, and what of it is read. layout: where its files lie under the data folder.
    page: where it is had. download: how large that is. licence: its own, or what its page says.
    folders: those under the data folder that hold its image files; a dot for all of it.
    """

    what: str
    layout: str
    page: str
    download: str
    licence: str
    folders: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what}. Layout: {self.layout}. From {self.page}; {self.download}. Licence: {self.licence}."

    def require(self, problem: str | None) -> None:
        """DataError where there is a problem, with this text behind it."""
        if problem:
            raise DataError(f"{problem} Expected: {self}")

    @property
    def lines(self) -> list[str]:
        """The same, a line for each."""
        told = {"source": self.what} | {name: getattr(self, name) for name in ("layout", "page", "download", "licence")}
        return [f"{name.capitalize()}: {text}." for name, text in told.items()]


@dataclass(frozen=True)
class Count:
    """How many there are on disk, and how many are published.

    what: of which site, class or part.
    """

    what: str
    found: int
    published: int
    unit: str = "images"

    def __str__(self) -> str:
        return f"{self.what}: {self.found} {self.unit} (complete: {self.published})"


class Published:
    """What is asked of every file in ``fednb.datasets``. A data set has ``missing(root, **options)``, one sentence
    or None, and ``counts(root)``, what is on disk beside what is published; the rest follows."""

    def damaged(self, root: Path) -> list[tuple[Path, str]]:
        """The files other than images that cannot be read, each with the reason."""
        return []

    def told(self, root: Path) -> list[str]:
        """What is on disk, in lines for people."""
        return [str(count) for count in self.counts(root)]

    def describe(self, root: Path) -> list[str]:
        """Whether it can be loaded, and what is on disk."""
        return [self.missing(root) or "ready", *self.told(root)]


@dataclass(frozen=True)
class Listed(Published):
    """A data set whose lists say what it has: ``listed(root)`` reads them, raising DataError; nothing is told without
    them.

    name: its folder. needed: what has to be there, the list first.
    """

    name: str
    needed: tuple[str, ...]

    def named(self, root: Path) -> Path:
        """What is named when the lists are damaged."""
        return root / self.name / self.needed[0]

    def missing(self, root: Path, **options) -> str | None:
        """One sentence that names the files and folders that are not there."""
        absent = [str(root / self.name / name) for name in self.needed if not (root / self.name / name).exists()]
        return f"There is no {' and no '.join(absent)}." if absent else None

    def damaged(self, root: Path) -> list[tuple[Path, str]]:
        return [] if self.missing(root) else damage([self.named(root)], lambda _: self.listed(root))

    def describe(self, root: Path) -> list[str]:
        problem = self.missing(root) or "; ".join(reason for _, reason in self.damaged(root))
        return [problem] if problem else ["ready", *self.told(root)]


def damage(paths: Iterable, read: Callable) -> list[tuple]:
    """Those of the paths for which ``read`` raises DataError or OSError, each with the reason."""
    found = []
    for path in paths:
        try:
            read(path)
        except (DataError, OSError) as error:
            found.append((path, str(error)))
    return found
