"""The parameters of a notebook hold what their cell says, whoever gives them: ``--set``, papermill or an editor."""

import os
import sys
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin

from fednb.errors import NotebookError
from fednb.files import source_hash

COPY = "FEDNB_COPY"  # in a kernel that a command starts: the package of that command


def check_parameters(space: dict) -> None:
    """NotebookError where an annotated name of a notebook's ``globals()``, ``SEEDS: list[int] = [0]``, has another type
    now, and where the kernel imports another copy of the package than the notebook belongs to."""
    for name, kind in space.get("__annotations__", {}).items():
        if (misfits := misfit(name, space.get(name), kind)) is not None:
            raise NotebookError(f"{misfits}.")
    package, here = Path(__file__).parent, Path.cwd()
    around = (folder / "fednb" for folder in (here, *here.parents))
    wanted = Path(os.environ.get(COPY) or next((each for each in around if (each / "registry.py").is_file()), package))
    if wanted.resolve() != package.resolve() and source_hash(wanted) != source_hash(package):
        raise NotebookError(
            f"this kernel ({sys.executable}) imports fednb from {package}, which differs from {wanted}, where the "
            "notebook belongs. Choose the kernel of the environment in which the latter is installed."
        )


def misfit(name: str, value, kind) -> str | None:
    """What was found and expected, ``"DATA is 2024, of type int; expected str"``, or None where a value fits."""
    if fits(value, kind):
        return None
    quotes = f", with quotes around it: '{name}=\"{value}\"'" if kind is str else ""
    called = kind.__name__ if type(kind) is type else kind
    return f"{name} is {value!r}, of type {type(value).__name__}; expected {called}{quotes}"


def fits(value, kind) -> bool:
    """Whether a value is of a kind such as ``dict[str, int]``; a whole number is a float too, True is no number."""
    outer, inner = get_origin(kind) or kind, get_args(kind)
    if outer is UnionType:
        return any(fits(value, each) for each in inner)
    if outer is list:
        return isinstance(value, list | tuple) and all(fits(each, *inner or [object]) for each in value)
    if outer is dict:
        keys, values = inner or (object, object)
        return isinstance(value, dict) and all(fits(k, keys) and fits(v, values) for k, v in value.items())
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)


def kind_of(default):
    """The kind of which a default is: ``list[int]`` of ``[0, 1]``; anything where it is None."""
    if isinstance(default, list | tuple):
        return list[kind_of(default[0])] if default else list
    if isinstance(default, dict):
        return dict[str, kind_of(next(iter(default.values())))] if default else dict
    return object if default is None else type(default)
