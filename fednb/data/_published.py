"""What is published of a data set: where it is from, and how much of what it has."""

from dataclasses import dataclass


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
