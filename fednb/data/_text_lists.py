"""Lists that come with images, as text: tables with named columns, or two words a line; and whether they are there."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fednb.data._digit_files import reading
from fednb.errors import DataError


def missing(paths: Iterable[Path]) -> str | None:
    """One sentence that names the files and folders that are not there."""
    absent = [str(path) for path in paths if not path.exists()]
    return f"There is no {' and no '.join(absent)}." if absent else None


def damage(path: Path, read: Callable[[], object]) -> list[tuple[Path, str]]:
    """The path and the reason when ``read()`` raises DataError."""
    try:
        read()
    except DataError as error:
        return [(path, str(error))]
    return []


def table(file: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """These columns of a table of values separated by commas, whose first line names its columns.

    Raises DataError naming a file that has not all of them, or is damaged.
    """
    try:
        with open(file, newline="", encoding="utf-8") as handle:
            held = [tuple(row[name] for name in columns) for row in csv.DictReader(handle, strict=True)]
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
