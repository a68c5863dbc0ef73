"""Finds algorithms, augmentations, networks, data sets and papers by their file names: no list needs to be edited.

``fednb/methods/algorithms/fedprox.py`` holds the class ``FedProx``; a recipe names it ``"fedprox"``. ``FEDNB_METHODS``
names folders, as ``PATH`` does, with the same rooms inside: ``FOLDER/augmentations/histograms.py``. Helpers next to a
file begin with ``_`` and are imported by ``from ._helper import ...``. A project is a folder with a ``fednb.toml``;
inside of it, its own rooms are searched, too.
"""

import hashlib
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from fednb.errors import RecipeError, nearest, reason
from fednb.files import hash_of

METHODS = ("algorithms", "augmentations")
PACKAGES = {
    "algorithms": "fednb.methods.algorithms",
    "augmentations": "fednb.methods.augmentations",
    "models": "fednb.models",
    "datasets": "fednb.datasets",
    "papers": "fednb.papers",
}
ROOMS = tuple(PACKAGES)
FOLDERS = "FEDNB_METHODS"
PROJECT = "fednb.toml"
OF_THE_RUN = "run"  # as a federation's option ``seed``: see ``dealt``
IN_MEMORY = {"classification": "in_memory", "segmentation": "in_memory_masks"}  # see fednb/datasets/_in_memory.py


def folder(room: str) -> str:
    return PACKAGES[room].replace(".", "/")


@cache
def builtin(room: str) -> tuple[str, ...]:
    """All names in our folder of a room, sorted: its files without a leading underscore."""
    (place,) = importlib.import_module(PACKAGES[room]).__path__
    return tuple(sorted(_names_in(Path(place), room)))


def names(room: str) -> tuple[str, ...]:
    """All names for a room, sorted: our own and those from outside."""
    return tuple(sorted((*builtin(room), *outside(room))))


def outside(room: str) -> dict[str, Path]:
    """By name, which folder of the search path has it; RecipeError for a name that is found twice, or is ours."""
    found: dict[str, Path] = {}
    for place in map(Path, filter(None, searched().split(os.pathsep))):
        _require_room(place)
        for name in _names_in(place / room, room):
            others = METHODS if room in METHODS else (room,)
            taken = [folder(other) for other in others if name in builtin(other)]
            taken += ["fednb/datasets"] if room == "datasets" and name in IN_MEMORY.values() else []
            taken += [f"folder {found[name].name}"] if name in found else []
            if taken:
                raise RecipeError(f'"{name}" in folder {place.name} has a name of {taken[0]}; give it another one.')
            found[name] = place
    return found


def source(room: str, name: str) -> str:
    """Where what is found outside comes from, ``"folder examples"``; empty for our own."""
    return f"folder {outside(room)[name].name}" if name in outside(room) else ""


def source_hash(room: str, name: str) -> str:
    """12 hex digits of what is found outside, as it was when it was imported."""
    return _imported(outside(room)[name], room, name)[1]


def file(room: str, name: str):
    """The module of this name in a room, ours or one from outside; RecipeError where there is none."""
    if name in builtin(room):
        return importlib.import_module(f"{PACKAGES[room]}.{name}")
    if room == "datasets" and name in IN_MEMORY.values():
        return importlib.import_module("fednb.datasets._in_memory")
    if place := outside(room).get(name):
        return _imported(place, room, name)[0]
    other = next((other for other in METHODS if room in METHODS and other != room and name in names(other)), None)
    hint = f"it is one of the {other}." if other else nearest(name, names(room))
    raise RecipeError(f'"{name}" is not in {folder(room)}; {hint}')


def find(room: str, name: str):
    """The class that a file is written for, or its ``load`` in the room ``datasets``."""
    module, where = file(room, name), source(room, name) or folder(room)
    if room == "datasets":
        if lacking := [each for each in ("load", "missing", "NEEDS") if not hasattr(module, each)]:
            raise RecipeError(f"{name}.py of {where} has no {', '.join(lacking)}; see fednb/datasets/__init__.py.")
        return module.load
    for attribute, value in vars(module).items():
        if attribute.lower() == name.replace("_", "") and inspect.isclass(value):
            if room not in METHODS or hasattr(value, "tasks"):
                return value
    kind = "fednb.Method" if room in METHODS else "network"
    raise RecipeError(f"{name}.py of {where} has no class of its own name that is a {kind}; expected one.")


def make(room: str, given: str | dict, *arguments):
    """The object that a choice describes: ``make("algorithms", {"name": "fedprox", "mu": 0.01})``."""
    settings = complete(room, given)
    made = find(room, settings.pop("name"))
    return made(*arguments, **settings)


def task(federation: str | dict) -> str:
    """The task of a choice of federation: its loader's ``task(**options)`` or ``TASK``, else classification."""
    name, chosen = choice(federation)
    loader = file("datasets", name)
    if name in IN_MEMORY.values():
        return next(task for task, made in IN_MEMORY.items() if made == name)
    return loader.task(**chosen) if hasattr(loader, "task") else getattr(loader, "TASK", "classification")


@cache
def options(made) -> Mapping:
    """The options of a class or loader and their defaults, without ``root`` and ``site``, which decide no number."""
    parameters = inspect.signature(made).parameters.values()
    found = {p.name: p.default for p in parameters if p.default is not p.empty and p.name not in ("root", "site")}
    return MappingProxyType(found)


def choice(given: str | dict) -> tuple[str, dict]:
    """``"fedprox"`` or ``{"name": "fedprox", "mu": 0.01}`` as ``(name, options)``."""
    if isinstance(given, str):
        return given, {}
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return given["name"], {key: value for key, value in given.items() if key != "name"}
    expected = 'expected a name or {"name": ..., option: value}: see docs/methods.md'
    raise RecipeError(f"{given!r:.100} names nothing; {expected}.")


def complete(room: str, given: str | dict) -> dict:
    """A choice with every default filled in; RecipeError for an unknown name or option, or another type."""
    name, chosen = choice(given)
    known = options(find(room, name))
    require_known(name, chosen, known)
    full = {"name": name, **known}
    for option, value in chosen.items():
        kind = type(known[option])
        if kind is float and type(value) is int:
            value = float(value)  # 1 and 1.0 are one run
        of_the_run = (room, option, value) == ("datasets", "seed", OF_THE_RUN)
        if kind in (bool, int, float, str) and type(value) is not kind and not of_the_run:
            expected = f"a value of type {kind.__name__}, such as {known[option]!r}"
            raise RecipeError(f"{name} has {option} {value!r}; expected {expected}.")
        full[option] = value
    return full


def dealt(federation: dict, seed: int) -> dict:
    """A choice of federation as its loader takes it in a run with this seed, which ``"run"`` stands for."""
    return federation | {"seed": seed} if federation.get("seed") == OF_THE_RUN else federation


def require_known(name: str, chosen: dict, known: Mapping) -> None:
    """RecipeError for an option that is not known."""
    for option in chosen.keys() - known.keys():
        hint = nearest(option, known) if known else "It has no options."
        raise RecipeError(f'{name} has no option "{option}"; {hint}')


def methods_from(folder: str | os.PathLike) -> list[str]:
    """Adds a folder to ``FEDNB_METHODS``; what it has, as "room/name". RecipeError where it has no room inside."""
    place = Path(folder).expanduser().absolute()
    _require_room(place)
    os.environ[FOLDERS] = os.pathsep.join(map(str, dict.fromkeys((*_named(), place))))
    return [f"{room}/{name}" for room in ROOMS for name in sorted(_names_in(place / room, room))]


def searched() -> str:
    """The search path: the folders named, and the project's if it has a room."""
    places = _named() + [place for place in [project()] if place and _has_room(place)]
    return os.pathsep.join(map(str, {place.resolve(): place for place in places}.values()))


def project() -> Path | None:
    """The project that the current folder is in: the nearest folder, going up, with a ``fednb.toml``."""
    return _project(os.path.abspath(os.curdir))


@cache
def _project(here: str) -> Path | None:
    return next((folder for folder in (Path(here), *Path(here).parents) if (folder / PROJECT).is_file()), None)


def _named() -> list[Path]:
    named = os.environ.get(FOLDERS, "").split(os.pathsep)
    return [Path(each).expanduser().absolute() for each in named if each]


def _has_room(folder: Path) -> bool:
    return any((folder / each).is_dir() for each in ROOMS)


def _require_room(folder: Path) -> None:
    if not _has_room(folder):
        raise RecipeError(f"{FOLDERS} names {folder}, which has none of the folders {', '.join(ROOMS)} inside.")


def _names_in(place: Path, room: str) -> list[str]:
    if room == "papers":
        return [path.name for path in place.glob("[!._]*") if path.is_dir()]
    return [module.name for module in pkgutil.iter_modules([str(place)]) if not module.name.startswith("_")]


@cache
def _imported(folder: Path, room: str, name: str) -> tuple[ModuleType, str]:
    """The module, and 12 hex digits of its source: the file and its helpers (``_*.py``), or all files of a package."""
    package = ModuleType(f"fednb_methods_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}")
    package.__path__ = [str(folder)]  # its modules are the folder's rooms, so that their files find their helpers
    sys.modules.setdefault(package.__name__, package)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(f"{package.__name__}.{room}.{name}")
        path = Path(module.__file__)
        files = path.parent.rglob("*.py") if path.name == "__init__.py" else [path, *path.parent.glob("_*.py")]
        return module, hash_of({file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files})
    except Exception as error:  # it is anybody's code
        raise RecipeError(f"{name} of folder {folder.name} cannot be imported: {reason(error)}.") from error
