"""Lists that come with images, as text: tables with named columns, or two words a line; and whether they are there."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fednb.data._digit_files import reading
from fednb.data._published import Published, damage
from fednb.errors import DataError


@dataclass(frozen=True)
class Listed(Published):
    """A data set whose lists say what it has: ``listed`` reads them, raising DataError; nothing is told without them.

    name: its folder. needed: what has to be there, the list first.
    """

    name: str
    needed: tuple[str, ...]

    def listed(self, root: Path):
        raise NotImplementedError

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


def table(file: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """These columns of a table of values separated by commas, whose first line names its columns.

    Raises DataError naming a file that has not all of them, or is damaged.
    """
    try:
        with open(file, newline="", encoding="utf-8") as handle:
            rows = csv.DictReader(handle, strict=True)
            if absent := [name for name in columns if name not in (rows.fieldnames or ())]:
                raise KeyError(absent[0])
            held = [tuple(row[name] for name in columns) for row in rows]
        if any(None in row for row in held):
            raise csv.Error(f"row {next(number for number, row in enumerate(held, 1) if None in row)} is too short")
        return held
    except (csv.Error, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read ({error}); expected columns {','.join(columns)} in UTF-8.") from error


def pairs(file: Path) -> dict[str, str]:
    """The second word of each line by the first, in the order of the lines.

    Raises DataError naming the file, and the line that has another number of words or a first word for a second time.
    """
    held = {}
    for number, line in enumerate(reading(file, lambda path: path.read_text("utf-8")).splitlines(), 1):
        words = line.split()
        if len(words) != 2 or words[0] in held:
            raise DataError(
                f'{file}, line {number}: "{line[:60]}"; expected two words, the first of them in this line alone. '
                "Fetch it again."
            )
        held[words[0]] = words[1]
    return held
