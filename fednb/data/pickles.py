"""Reads the one kind of pickle that data sets come in, lists of paths and labels, without executing
anything."""

import pickle
from pathlib import Path

import numpy as np

from fednb.errors import DataError


def paths_and_labels(file: Path) -> tuple[list[str], list[str]]:
    """FedBN's split lists: a pickled tuple of (numpy array of paths, numpy array of text labels).

    Only what rebuilds numpy arrays of text is allowed in the pickle. Raises DataError if it asks for anything
    else, which is not looked up or called, or if it is damaged.
    """
    try:
        with open(file, "rb") as handle:
            content = _ArrayUnpickler(handle, encoding="latin1").load()
        paths, labels = (np.asarray(part).astype(str) for part in content)
    except _Refused as error:
        raise DataError(
            f"{file} is a pickle that asks for {error}; a list of paths and labels needs nothing but numpy "
            f"arrays. Nothing of it was executed. Do not open it with other tools; fetch the list from its "
            f"source again."
        ) from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise DataError(
            f"{file} cannot be read ({error}); expected a pickled pair of numpy arrays, paths and labels."
        ) from error
    if paths.ndim != 1 or paths.shape != labels.shape:
        raise DataError(
            f"{file} holds arrays of {list(paths.shape)} and {list(labels.shape)}; expected as many paths as labels."
        )
    return paths.tolist(), labels.tolist()


class _Refused(Exception):
    pass


def _latin1(text: str, encoding: str) -> bytes:
    """What ``_codecs.encode`` does in pickles of protocol 2, which write bytes as text."""
    if encoding != "latin1":
        raise _Refused(f"the codec {encoding}")
    return text.encode("latin1")


# numpy names its own reconstruction functions differently from version to version; these are this version's.
_RECONSTRUCT = np.zeros(1).__reduce__()[0]
_FROM_BUFFER = np.zeros(1).__reduce_ex__(5)[0]
_ALLOWED = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
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
