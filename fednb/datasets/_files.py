"""Reads files that come next to images: no code in them is executed, and nothing is reserved that they do not hold."""

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fednb.errors import DataError

MOST = 2**29  # bytes that a file may unpack to: SVHN, the largest, has 305 million


def reading(file: Path, reader: Callable, advice: str = "Fetch it again."):
    """``reader(file)``; DataError naming the file, whatever else its damage makes the reader raise."""
    try:
        return reader(file)
    except DataError:
        raise
    except Exception as error:  # readers of damaged files raise many kinds
        raise DataError(f"{file} cannot be read ({str(error) or type(error).__name__}). {advice}") from error


def refuse_more(file: Path, count: int, most: int = MOST):
    if count > most:
        raise DataError(f"{file} unpacks to more than {most} bytes, more than it may have. Fetch it again.")


def unpacked(file: Path, stream: BinaryIO, most: int = MOST) -> bytes:
    """What the stream of a packed file gives; DataError if it is more than ``most`` bytes."""
    with stream:
        content = stream.read(most + 1)
    refuse_more(file, len(content), most)
    return content


def npz(file: Path, most: int = MOST) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` by name; DataError if they are more than ``most`` bytes."""
    with zipfile.ZipFile(file) as archive:
        refuse_more(file, sum(entry.file_size for entry in archive.infolist()), most)
        return {entry.filename.removesuffix(".npy"): npy(archive.read(entry)) for entry in archive.infolist()}


def npy(content: bytes) -> np.ndarray:
    """The array of an ``.npy``, which may not be of objects; its header may claim no more than follows."""
    stream = io.BytesIO(content)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = header[np.lib.format.read_magic(stream)](stream)
    return np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")


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
