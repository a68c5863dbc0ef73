"""Finds what a folder offers by its file names, so that a new file needs no list to be edited.

``fednb/methods/algorithms/fedprox.py`` holds the class ``FedProx``; a recipe names it ``"fedprox"``. What
``fednb.outside`` finds is named in the same way.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from fednb import outside
from fednb.errors import RecipeError, nearest

Choice = tuple[str, dict]
METHODS = ("algorithms", "augmentations")
PACKAGES = {
    "algorithms": "fednb.methods.algorithms",
    "augmentations": "fednb.methods.augmentations",
    "models": "fednb.models",
    "datasets": "fednb.datasets",
}
OF_THE_RUN = "run"  # as a federation's option ``seed``: see ``dealt``
IN_MEMORY = {
    "classification": "in_memory",
    "segmentation": "in_memory_masks",
}  # by task: see fednb/datasets/_in_memory.py


def folder(room: str) -> str:
    """Where the files of a room lie: ``"fednb/methods/algorithms"``."""
    return PACKAGES[room].replace(".", "/")


@cache
def own(room: str) -> tuple[str, ...]:
    """All names in ``fednb/<room>``, sorted: its files without a leading underscore."""
    package = importlib.import_module(PACKAGES[room])
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def names(room: str) -> tuple[str, ...]:
    """All names for a room, sorted: our own and those from outside."""
    return tuple(sorted((*own(room), *_outside(room))))


def source(room: str, name: str) -> str:
    """Where what is found outside comes from, ``"their_package 0.3"`` or ``"folder examples"``; empty for our own."""
    place = _outside(room).get(name)
    return place.source if place else ""


def source_hash(room: str, name: str) -> str:
    """12 hex digits of the source of what is found outside."""
    return outside.loaded(_outside(room)[name])[1]


def file(room: str, name: str):
    """The module ``fednb/<room>/<name>.py``, or that from outside; RecipeError where there is none."""
    if name in own(room):
        return importlib.import_module(f"{PACKAGES[room]}.{name}")
    if room == "datasets" and name in IN_MEMORY.values():
        return importlib.import_module("fednb.datasets._in_memory")
    if place := _outside(room).get(name):
        return outside.loaded(place)[0]
    raise RecipeError(f'"{name}" is not in {folder(room)}; {nearest(name, names(room))}')


def find(room: str, name: str):
    """The class that a file is written for, or its function ``load`` in the room ``data``."""
    module, where = file(room, name), source(room, name) or folder(room)
    if room == "datasets":
        lacking = [each for each in ("load", "missing", "NEEDS") if not hasattr(module, each)]
        if lacking:
            raise RecipeError(
                f"{name}.py of {where} has no {', '.join(lacking)}; fednb/datasets/__init__.py says what for."
            )
        return module.load
    wanted = name.replace("_", "")
    for attribute, value in vars(module).items():
        if attribute.lower() == wanted and inspect.isclass(value):
            if room in METHODS and not hasattr(value, "tasks"):
                raise RecipeError(
                    f"{attribute} in {name}.py of {where} is no method; expected a class of fednb.Method."
                )
            return value
    raise RecipeError(f"{name}.py of {where} defines no class of its own name; expected one such class.")


def _outside(room: str) -> dict[str, outside.Place]:
    """What is found outside; RecipeError for a name that is ours: a recipe would not say which of them it means."""
    found = outside.places(room)
    if not found:
        return found
    for other in METHODS if room in METHODS else (room,):
        for name in found.keys() & {*own(other), *(IN_MEMORY.values() if room == "datasets" else ())}:
            raise RecipeError(
                f'"{name}" in {found[name].source} has the name of {folder(other)}/{name}.py; give it another one.'
            )
    return found


def task(federation: str | dict) -> str:
    """The task of a choice of federation: what its loader's ``task(**options)`` says, or its ``TASK``, else
    classification."""
    name, chosen = choice(federation)
    loader = file("datasets", name)
    if name in IN_MEMORY.values():
        return next(task for task, made in IN_MEMORY.items() if made == name)
    return loader.task(**chosen) if hasattr(loader, "task") else getattr(loader, "TASK", "classification")


@cache
def options(made) -> Mapping:
    """The options of a class or loader and their defaults: the parameters of its signature that
    have one. Where the data lie (``root``) is none of them, nor which of them are read (``site``): they decide no
    number."""
    parameters = inspect.signature(made).parameters.values()
    found = {p.name: p.default for p in parameters if p.default is not p.empty and p.name not in ("root", "site")}
    return MappingProxyType(found)


def choice(given: str | dict) -> Choice:
    """``"fedprox"`` or ``{"name": "fedprox", "mu": 0.01}`` as ``(name, options)``."""
    if isinstance(given, str):
        return given, {}
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return given["name"], {key: value for key, value in given.items() if key != "name"}
    raise RecipeError(f'{given!r} names nothing; expected a name or {{"name": ..., option: value}}.')


def complete(room: str, given: str | dict) -> dict:
    """A choice with every default filled in; RecipeError for an unknown name or option, or another type.

    The seed of a federation may be ``"run"``: see ``dealt``.
    """
    name, chosen = choice(given)
    known = options(find(room, name))
    require_known(name, chosen, known)
    fitted = {option: _fitted(room, name, option, value, known[option]) for option, value in chosen.items()}
    return {"name": name, **known, **fitted}


def dealt(federation: dict, seed: int) -> dict:
    """A choice of federation as its loader takes it, in a run with this seed: ``"run"`` is that seed."""
    return federation | {"seed": seed} if federation.get("seed") == OF_THE_RUN else federation


def require_known(name: str, chosen: dict, known: Mapping) -> None:
    """RecipeError for an option that is not known."""
    for option in chosen:
        if option not in known:
            hint = nearest(option, known) if known else "It has no options."
            raise RecipeError(f'{name} has no option "{option}"; {hint}')


def _fitted(room: str, name: str, option: str, value, default):
    """The value in the type of its default: 1 as 1.0, so that both are one run."""
    may_be_of_the_run = (room, option, type(default)) == ("datasets", "seed", int)
    if may_be_of_the_run and value == OF_THE_RUN:
        return value
    if type(default) is float and type(value) is int:
        return float(value)
    if type(default) in (bool, int, float, str) and type(value) is not type(default):
        expected = f"a value of type {type(default).__name__}, such as {default!r}"
        expected += f', or "{OF_THE_RUN}", which is the seed of the recipe' * may_be_of_the_run
        raise RecipeError(f"{name} has {option} {value!r}; expected {expected}.")
    return value


def make(room: str, given: str | dict, *arguments):
    """The object that a choice describes: ``make("algorithms", {"name": "fedprox", "mu": 0.01})``."""
    settings = complete(room, given)
    made = find(room, settings.pop("name"))
    return made(*arguments, **settings)
