"""Methods, networks, data sets and papers from outside: in somebody's installed package, or in a folder of theirs.

A package names its modules in its ``pyproject.toml``, in the group of the room that they belong to, each by its own
name:

    [project.entry-points."fednb.augmentations"]
    histograms = "their_package.histograms"

``FEDNB_METHODS`` is the search path of everything from outside: a folder that it names (or several, as in ``PATH``) has
the rooms inside, and files as ours in them: ``FOLDER/augmentations/histograms.py``; helpers beside them begin with
``_`` and
are imported by ``from ._helper import ...``. A paper is a folder, ``FOLDER/papers/NAME``, with ``NAME.toml`` beside it
(see ``fednb.papers``); a package offers it as ``NAME = "their_package.papers.NAME"``.

A project is a folder with a ``fednb.toml``; inside of it, its own rooms are on the search path.
"""

import hashlib
import importlib.util
import os
import pkgutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from fednb.errors import RecipeError

ROOMS = ("algorithms", "augmentations", "models", "datasets", "papers")
FOLDERS = "FEDNB_METHODS"
PROJECT = "fednb.toml"


@dataclass(frozen=True)
class Place:
    """Where a file from outside is, or a paper's folder.

    module: to import it by, or to find it by. source: what a record says of it: ``"their_package 0.3"`` or
    ``"folder examples"``.
    """

    module: str
    source: str


def places(room: str) -> dict[str, Place]:
    """By name all that is found outside for a room. Raises RecipeError, naming both, where two have one name."""
    found = {}
    for name, place in (*_packaged(room), *_lying(room)) if room in ROOMS else ():
        if name in found:
            raise RecipeError(f'"{name}" is found twice for {room}: in {found[name].source} and in {place.source}.')
        found[name] = place
    return found


@cache
def loaded(place: Place) -> tuple[ModuleType, str]:
    """The module, and 12 hex digits of its source as it was when it was imported.

    The source is the file and the helpers beside it (``_*.py``), or all files of a package. Raises RecipeError where it
    cannot be imported.
    """
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(place.module)
        file = Path(module.__file__)
        inside = file.name == "__init__.py"
        files = file.parent.rglob("*.py") if inside else [file, *file.parent.glob("_*.py")]
        source = {path.relative_to(file.parent).as_posix(): path.read_bytes() for path in files}
    except Exception as error:  # it is anybody's code
        raise RecipeError(
            f"{place.module.rpartition('.')[2]} of {place.source} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    digest = hashlib.sha256()
    for name in sorted(source):
        digest.update(f"{name} {len(source[name])}\n".encode() + source[name])
    return module, digest.hexdigest()[:12]


@cache
def folder(place: Place) -> Path:
    """Where a paper's files lie. Raises RecipeError where it cannot be found, or its package cannot be imported."""
    importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(place.module)
        return Path(spec.submodule_search_locations[0])
    except Exception as error:  # it is anybody's code
        raise RecipeError(
            f"the paper {place.module.rpartition('.')[2]} of {place.source} cannot be found: "
            f"{type(error).__name__}: {error}. Expected {place.module} to be a folder of files."
        ) from error


@cache
def _packaged(room: str) -> tuple[tuple[str, Place], ...]:
    found = []
    for entry in metadata.entry_points(group=f"fednb.{room}"):
        source = f"{entry.dist.name} {entry.dist.version}"
        if entry.attr or entry.module.rpartition(".")[2] != entry.name:
            raise RecipeError(
                f'{source} offers "{entry.name} = {entry.value}" for {room}; expected a module of the same name, such '
                f'as "{entry.name} = their_package.{entry.name}".'
            )
        found.append((entry.name, Place(entry.module, source)))
    return tuple(found)


def methods_from(folder: str | os.PathLike) -> list[str]:
    """Adds a folder to ``FEDNB_METHODS``, here and for the processes that start from here; what it has, as "room/name".

    Raises RecipeError where the folder has no room inside.
    """
    named = absolute(os.fspath(folder))
    found = [f"{room}/{name}" for room in ROOMS for name, _ in _inside(Path(named), room)]
    there = absolute(os.environ.get(FOLDERS, "")).split(os.pathsep)
    os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys(filter(None, (*there, named))))
    return found


def absolute(folders: str) -> str:
    """The same folders for a process that starts elsewhere."""
    named = filter(None, folders.split(os.pathsep))
    return os.pathsep.join(str(Path(folder).expanduser().absolute()) for folder in named)


def project() -> Path | None:
    """The project that the current folder is in: the nearest folder, going up, with a ``fednb.toml``."""
    try:
        return _project(os.getcwd())
    except FileNotFoundError:  # the current folder is no more
        return None


@cache
def _project(here: str) -> Path | None:
    folders = (Path(here), *Path(here).parents)
    return next((folder for folder in folders if (folder / PROJECT).is_file()), None)


def searched() -> str:
    """The search path, for a process that starts elsewhere: what ``FEDNB_METHODS`` names, and the project's own folder
    where it has a room."""
    given, own = os.environ.get(FOLDERS, ""), project()
    if not (given or own):  # as almost always
        return ""
    named = [Path(each) for each in absolute(given).split(os.pathsep) if each]
    if own and _has_room(own):
        named.append(own)
    once = {folder.resolve(): folder for folder in named}
    return os.pathsep.join(map(str, once.values()))


def _has_room(folder: Path) -> bool:
    return any((folder / each).is_dir() for each in ROOMS)


def _lying(room: str) -> list[tuple[str, Place]]:
    folders = filter(None, searched().split(os.pathsep))
    return [each for folder in folders for each in _inside(Path(folder), room)]


def _inside(folder: Path, room: str) -> list[tuple[str, Place]]:
    if not _has_room(folder):
        raise RecipeError(
            f"{FOLDERS} names {folder}, which has none of the folders {', '.join(ROOMS)}; expected them, with a file "
            "for each method, network or data set, or a folder for each paper, inside."
        )
    package, source = _package(folder), f"folder {folder.name}"
    if room == "papers":
        names = sorted(path.name for path in (folder / room).glob("[!.]*") if path.is_dir())
    else:
        names = (module.name for module in pkgutil.iter_modules([str(folder / room)]))
    return [(name, Place(f"{package}.{room}.{name}", source)) for name in names if not name.startswith("_")]


@cache
def _package(folder: Path) -> str:
    """A package whose modules are the folder's rooms, so that its files find their helpers."""
    package = ModuleType(f"fednb_methods_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}")
    package.__path__ = [str(folder)]
    sys.modules[package.__name__] = package
    return package.__name__
