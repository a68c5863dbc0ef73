"""Reads files that come beside images: no code in them is executed, and nothing is reserved that they do not hold."""

import csv
import io
import math
import operator
import pickle
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fednb.errors import DataError

# MATLAB's types of what a file holds: numbers, an array, and something packed; and its classes of arrays of numbers.
MATLAB = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
MATRIX, PACKED, NUMBERS = 14, 15, range(6, 16)


def reading(file: Path, reader: Callable, *limit: int, advice: str = "Fetch it again."):
    """``reader(file, *limit)``; DataError naming the file, whatever else its damage makes the reader raise."""
    try:
        return reader(file, *limit)
    except DataError:
        raise
    except Exception as error:  # readers of damaged files raise many kinds
        reason = str(error) or type(error).__name__
        raise DataError(f"{file} cannot be read ({reason}). {advice}") from error


def refuse_more(file: Path, count: int, most: int):
    if count > most:
        raise DataError(f"{file} unpacks to more than {most} bytes, more than it may have. Fetch it again.")


def unpacked(file: Path, stream: BinaryIO, most: int) -> bytes:
    """What the stream of a packed file gives; DataError if it is more than ``most`` bytes."""
    with stream:
        content = stream.read(most + 1)
    refuse_more(file, len(content), most)
    return content


def npz(file: Path, most: int) -> dict[str, np.ndarray]:
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


def mat(file: Path, most: int) -> dict[str, np.ndarray]:
    """The arrays of numbers in a MATLAB 5 file by name; DataError if they are more than ``most`` bytes.

    Cells, structures and text are left out.
    """
    content = memoryview(file.read_bytes())
    order = "<" if content[126:128] == b"IM" else ">"
    arrays, total = {}, 0
    for kind, data in _elements(content[128:], order):
        if kind == PACKED:
            data = zlib.decompressobj().decompress(data, most - total + 1)
            ((kind, data),) = _elements(memoryview(data), order)
        total += len(data)
        refuse_more(file, total, most)
        if kind == MATRIX:
            (_, flags), (_, shape), (_, name), (kind, numbers), *_ = _elements(data, order)
            if struct.unpack(f"{order}I", flags[:4])[0] & 0xFF in NUMBERS:
                shape = np.frombuffer(shape, order + "i4")
                arrays[bytes(name).decode()] = np.frombuffer(numbers, order + MATLAB[kind]).reshape(shape, order="F")
    return arrays


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The type and the bytes of one element after the other; one of four bytes or fewer lies in its own tag."""
    while content:
        kind, count = struct.unpack(f"{order}II", content[:8])
        start, padded = 8, 8 + count + -count % 8 * (kind != PACKED)
        if kind >> 16:
            start, padded, kind, count = 4, 8, kind & 0xFFFF, kind >> 16
        if start + count > len(content):
            raise ValueError(f"an element claims {count} bytes of the {len(content) - start} that are left")
        yield kind, content[start : start + count]
        content = content[padded:]


def table(file: Path, *columns: str) -> list[tuple[str, ...]]:
    """These columns of a table of values separated by commas, whose first line names its columns.

    Raises DataError naming a file that has not all of them, or is damaged.
    """

    def rows(file: Path) -> list[tuple[str, ...]]:
        with open(file, newline="", encoding="utf-8") as handle:
            held = [tuple(row[name] for name in columns) for row in csv.DictReader(handle, strict=True)]
        if short := [number for number, row in enumerate(held, 1) if None in row]:
            raise ValueError(f"row {short[0]} is too short")
        return held

    return reading(file, rows, advice=f"Expected columns {','.join(columns)} in UTF-8.")


def pairs(file: Path) -> dict[str, str]:
    """The second word of each line by the first, in the order of the lines.

    Raises DataError naming the file, and the line that has another number of words or a first word for a second time.
    """

    def words(file: Path) -> dict[str, str]:
        held = {}
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            first, *others = line.split() or [""]
            if len(others) != 1 or first in held:
                raise ValueError(f'line {number}: "{line[:60]}"')
            held[first] = others[0]
        return held

    return reading(
        file, words, advice="Expected two words a line, the first of them in that line alone. Fetch it again."
    )


def images_and_labels(file: Path, key: str) -> tuple[np.ndarray, np.ndarray]:
    """A batch of CIFAR, a pickled dictionary: "data", uint8 as it is, and under the key class numbers, int64 ``[n]``.

    Only what rebuilds arrays of bytes is allowed in it. Raises DataError if it asks for anything else, which is not
    looked up or called, or if it is damaged.
    """
    try:
        content = file.read_bytes()
        for operation, argument, _ in pickletools.genops(content):
            if "PUT" in operation.name and argument > len(content):  # the memo reserves memory up to this entry
                raise ValueError(f"entry {argument} of a memo in a file of {len(content)} bytes")
        held = _BytesUnpickler(io.BytesIO(content), encoding="latin1").load()
        return held["data"].array, np.array([operator.index(label) for label in held[key]], np.int64)
    except _Refused as error:
        raise DataError(
            f"{file} is a pickle that asks for {error}; a batch of CIFAR needs nothing but arrays of bytes. Nothing of "
            "it was executed. Do not open it with other tools; fetch it from its source again."
        ) from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise DataError(
            f'{file} cannot be read ({error}); expected a pickled dictionary with "data" and "{key}".'
        ) from error


class _Refused(Exception):
    pass


class _Bytes:
    """In the place of numpy's array, which would reserve what a pickle claims."""

    def __init__(self, *arguments):
        pass

    def __setstate__(self, state: tuple):
        _, shape, kind, fortran, raw = state
        raw = raw.encode("latin1") if isinstance(raw, str) else raw  # Python 2 wrote text
        if kind.code != "u1" or math.prod(shape) != len(raw):
            raise ValueError(f"{len(raw)} bytes for an array of {kind.code} {list(shape)}; expected uint8")
        self.array = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Type:
    """In the place of numpy's type; of what a pickle says of it, its code is heeded alone."""

    def __init__(self, code: str, *arguments):
        self.code = code

    def __setstate__(self, state: tuple):
        pass


def _latin1(text: str, encoding: str) -> bytes:
    """What ``_codecs.encode`` does in pickles of protocol 2, which write bytes as text."""
    if encoding != "latin1":
        raise _Refused(f"the codec {encoding}")
    return text.encode("latin1")


_ALLOWED = {
    ("numpy", "ndarray"): "ndarray",  # named in pickles, never called
    ("numpy", "dtype"): _Type,
    ("numpy.core.multiarray", "_reconstruct"): _Bytes,
    ("numpy._core.multiarray", "_reconstruct"): _Bytes,
    ("_codecs", "encode"): _latin1,
}


class _BytesUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None
