"""Reads files that come next to images: no code in them is executed."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fednb.errors import DataError


def reading(file: Path, reader: Callable, advice: str = "Fetch it again."):
    """``reader(file)``; DataError naming the file, whatever else its damage makes the reader raise."""
    try:
        return reader(file)
    except DataError:
        raise
    except Exception as error:  # readers of damaged files raise many kinds
        raise DataError(f"{file} cannot be read ({str(error) or type(error).__name__}). {advice}") from error


def npz(file: Path) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` by name."""
    with open(file, "rb") as handle, np.load(handle, allow_pickle=False) as held:
        return dict(held)


def table(file: Path, *columns: str) -> list[tuple[str, ...]]:
    """These columns of a table of values separated by commas; DataError naming a file without them, or damaged."""

    def rows(file: Path) -> list[tuple[str, ...]]:
        with open(file, newline="", encoding="utf-8") as handle:
            held = [tuple(row[name] for name in columns) for row in csv.DictReader(handle, strict=True)]
        if short := [number for number, row in enumerate(held, 1) if None in row]:
            raise ValueError(f"row {short[0]} is too short")
        return held

    return reading(file, rows, f"Expected columns {','.join(columns)} in UTF-8.")


def pairs(file: Path) -> dict[str, str]:
    """The second word of each line by the first, in the order of the lines; DataError naming the file and the line
    that has another number of words, or a first word again."""

    def words(file: Path) -> dict[str, str]:
        held = {}
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            first, *others = line.split() or [""]
            if len(others) != 1 or first in held:
                raise ValueError(f'line {number}: "{line[:60]}"')
            held[first] = others[0]
        return held

    return reading(file, words, "Expected two words a line, the first of them in that line alone. Fetch it again.")
