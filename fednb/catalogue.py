"""Finds what a folder offers by its file names, so that a new file needs no list to be edited.

``fednb/algorithms/fedprox.py`` holds the class ``FedProx``; a recipe names it ``"fedprox"``.
"""

import importlib
import inspect
import pkgutil
from functools import cache

from fednb.errors import RecipeError, nearest

Choice = tuple[str, dict]


@cache
def names(room: str) -> tuple[str, ...]:
    """All names in ``fednb/<room>``, sorted: its files without a leading underscore."""
    package = importlib.import_module(f"fednb.{room}")
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def file(room: str, name: str):
    """The module ``fednb/<room>/<name>.py``; RecipeError where there is none."""
    if name not in names(room):
        raise RecipeError(f'"{name}" is not in fednb/{room}; {nearest(name, names(room))}')
    return importlib.import_module(f"fednb.{room}.{name}")


def find(room: str, name: str):
    """The class that ``fednb/<room>/<name>.py`` is written for, or its function ``load`` in the room ``data``."""
    module = file(room, name)
    if room == "data":
        return module.load
    for attribute, value in vars(module).items():
        if inspect.isclass(value) and attribute.lower() == name.replace("_", ""):
            return value
    raise RecipeError(f"fednb/{room}/{name}.py defines no class of its own name; expected one such class.")


def task(federation: str) -> str:
    """The task of the federation that ``fednb/data/<federation>.py`` loads: its ``TASK``, else classification."""
    return getattr(file("data", federation), "TASK", "classification")


def options(made) -> dict:
    """The options of a class or loader and their defaults: the parameters of its signature that
    have one. Where the data lie (``root``) is none of them, nor which of them are read (``site``): they decide no
    number."""
    parameters = inspect.signature(made).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty and p.name not in ("root", "site")}


def choice(given: str | dict) -> Choice:
    """``"fedprox"`` or ``{"name": "fedprox", "mu": 0.01}`` as ``(name, options)``."""
    if isinstance(given, str):
        return given, {}
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return given["name"], {key: value for key, value in given.items() if key != "name"}
    raise RecipeError(f'{given!r} names nothing; expected a name or {{"name": ..., option: value}}.')


def complete(room: str, given: str | dict) -> dict:
    """A choice with every default filled in; RecipeError for an unknown name or option, or another type."""
    name, chosen = choice(given)
    known = options(find(room, name))
    require_known(name, chosen, known)
    fitted = {option: _fitted(name, option, value, known[option]) for option, value in chosen.items()}
    return {"name": name, **known, **fitted}


def require_known(name: str, chosen: dict, known: dict) -> None:
    """RecipeError for an option that is not known."""
    for option in chosen:
        if option not in known:
            hint = nearest(option, known) if known else "It has no options."
            raise RecipeError(f'{name} has no option "{option}"; {hint}')


def _fitted(name: str, option: str, value, default):
    """The value in the type of its default: 1 as 1.0, so that both are one run."""
    if type(default) is float and type(value) is int:
        return float(value)
    if type(default) in (bool, int, float, str) and type(value) is not type(default):
        kind = type(default).__name__
        raise RecipeError(f"{name} has {option} {value!r}; expected a value of type {kind}, such as {default!r}.")
    return value


def make(room: str, given: str | dict, *arguments):
    """The object that a choice describes: ``make("algorithms", {"name": "fedprox", "mu": 0.01})``."""
    settings = complete(room, given)
    made = find(room, settings.pop("name"))
    return made(*arguments, **settings)
