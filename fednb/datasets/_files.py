"""Reads files that come with images, in bounds and without executing anything: tables, lists of two words a line, and
the two kinds of pickles, lists of paths and CIFAR's batches."""

import csv
import io
import pickle
import pickletools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fednb.errors import DataError


def reading(file: Path, reader: Callable, *limit: int, advice: str = "Fetch it again."):
    """``reader(file, *limit)``; DataError naming the file, whatever else its damage makes the reader raise."""
    try:
        return reader(file, *limit)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # readers of damaged files raise many kinds
        raise DataError(f"{file} cannot be read ({error}). {advice}") from error


def refuse_more(file: Path, count: int, most: int):
    if count > most:
        raise DataError(
            f"{file} unpacks to more than {most} bytes, which is more than its complete source has. Fetch it again."
        )


def unpacked(file: Path, stream: BinaryIO, most: int) -> bytes:
    """What the stream of a packed file gives; DataError if it is more than ``most`` bytes."""
    with stream:
        content = stream.read(most + 1)
    refuse_more(file, len(content), most)
    return content


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


def paths_and_labels(file: Path) -> tuple[list[str], list[str]]:
    """FedBN's split lists: a pickled tuple of (numpy array of paths, numpy array of text labels).

    Raises DataError as ``_read`` does.
    """

    def pair(content) -> list[np.ndarray]:
        paths, labels = (np.asarray(part).astype(str) for part in content)
        return [paths, labels]

    paths, labels = _read(file, "a pickled pair of numpy arrays, paths and labels", pair)
    if paths.ndim != 1 or paths.shape != labels.shape:
        raise DataError(
            f"{file} holds arrays of {list(paths.shape)} and {list(labels.shape)}; expected as many paths as labels."
        )
    return paths.tolist(), labels.tolist()


def images_and_labels(file: Path, key: str, content: bytes | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A batch of CIFAR: a pickled dictionary with "data", an array, and under the key a list of class numbers.

    The labels become int64 ``[n]``; the array is given as it is. ``content`` is what the file holds if it is inside
    another. Raises DataError as ``_read`` does.
    """

    def pair(content) -> tuple[np.ndarray, np.ndarray]:
        labels = np.asarray(content[key])
        return np.asarray(content["data"]), labels.astype(np.int64, casting="safe").reshape(len(labels))

    return _read(file, f'a pickled dictionary with "data" and "{key}"', pair, content)


def _read(file: Path, expected: str, convert: Callable, content: bytes | None = None):
    """``convert`` of what the pickle holds.

    Only what rebuilds numpy arrays is allowed in it. Raises DataError if it asks for anything else, which is not
    looked up or called, or if it is damaged or cannot be converted.
    """
    try:
        content = file.read_bytes() if content is None else content
        for operation, argument, _ in pickletools.genops(content):
            if "PUT" in operation.name and argument > len(content):  # the memo reserves memory up to this entry
                raise ValueError(f"entry {argument} of a memo in a file of {len(content)} bytes")
        return convert(_ArrayUnpickler(io.BytesIO(content), encoding="latin1").load())
    except _Refused as error:
        raise DataError(
            f"{file} is a pickle that asks for {error}; {expected} needs nothing but numpy arrays. Nothing of it was "
            f"executed. Do not open it with other tools; fetch it from its source again."
        ) from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise DataError(f"{file} cannot be read ({error}); expected {expected}.") from error


class _Refused(Exception):
    pass


def _latin1(text: str, encoding: str) -> bytes:
    """What ``_codecs.encode`` does in pickles of protocol 2, which write bytes as text."""
    if encoding != "latin1":
        raise _Refused(f"the codec {encoding}")
    return text.encode("latin1")


def _reconstruct(kind, shape, code) -> np.ndarray:
    """What numpy's own does for every array: an empty one, before its shape and bytes are put in."""
    return np.zeros(0, np.uint8)


# numpy names its own reconstruction functions differently from version to version; these are this version's.
_FROM_BUFFER = np.zeros(1).__reduce_ex__(5)[0]
_ALLOWED = {
    ("numpy", "ndarray"): "ndarray",  # named in pickles, never called: it would reserve memory of any size
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("_codecs", "encode"): _latin1,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None
