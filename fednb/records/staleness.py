"""How methods, networks and loaders behave, and which records were made while one behaved otherwise.

A behaviour is all tiny runs of one file, recorded in ``tests/recorded_runs.json``; ``behaviours.json`` beside this file
holds its hash, by room and name, and is written together with them by ``python tests/test_regression.py``:

- ``now``: ``"augmentations/fedfa"`` -> 12 hex digits, the last of a list; before it stand those of fewer tiny runs,
  all of
  which still give the same, and, added by hand, those of before a commit that replaced tiny runs and left what every
  record rests on as it was (empty text: of before the first tiny run, of the same file). A record keeps the hashes
  that it used.
- ``by_hand``: how often a file has changed in a way that no tiny run shows, such as in bf16 alone (they are in float64)
  or on masks. Raised by hand in the commit that changes it; it is part of the hash.

What comes from outside has no recorded behaviour: the hash of its source takes its place, and its project's
``fednb.toml`` may name earlier hashes that give the same, such as of before a renamed import. Images in memory have
none: the recipe holds their fingerprint.
"""

import json
import tomllib
from functools import cache
from pathlib import Path

from fednb import registry
from fednb.recipe import ROOMS, Recipe

FORMER = {"augment": "augmentations", "data": "datasets"}  # rooms as records before November 2026 name them
FILE = Path(__file__).with_name("behaviours.json")


@cache
def known() -> dict[str, dict]:
    """What ``behaviours.json`` holds, read once."""
    return json.loads(FILE.read_text())


def used(recipe: Recipe) -> dict[str, str]:
    """The behaviours that a recipe uses; empty text for a file of ours without a recorded one."""
    return {name: _equal(name)[-1] for name in _names(recipe.full)}


def sources(recipe: Recipe) -> dict[str, str]:
    """Where a recipe's files from outside come from: ``"augmentations/histograms"`` -> ``"their_package 0.3"``."""
    found = {name: registry.source(*name.split("/")) for name in _names(recipe.full)}
    return {name: source for name, source in found.items() if source}


def changed(record) -> list[str]:
    """What a record used and what behaves otherwise today, by room and name; where there is nothing, it speaks for
    today's code. Of what comes from outside and is not at hand nothing is known."""
    return [name for name, then in record.behaviours.items() if then not in (_equal(name) or (then,))]


def _equal(name: str) -> list[str]:
    """The hashes under which a file behaves as it does today; none where it is not there."""
    room, file = name.split("/")
    room = FORMER.get(room, room)
    if file in registry.builtin(room):
        return known()["now"].get(f"{room}/{file}", [""])
    return [*_same_behaviour(name), registry.source_hash(room, file)] if file in registry.names(room) else []


def _same_behaviour(name: str) -> list[str]:
    """Earlier hashes of a file of the project that its ``fednb.toml`` says behaved as it does today."""
    project = registry.project()
    settings = tomllib.loads((project / registry.PROJECT).read_text(encoding="utf-8")) if project else {}
    return settings.get("same_behaviour", {}).get(name, [])


def _names(settings: dict) -> list[str]:
    """The files of a full recipe's federation, model, algorithm and augmentations."""
    single = [f"{room}/{settings[setting]['name']}" for setting, room in ROOMS.items()]
    single = [name for name in single if name.removeprefix("datasets/") not in registry.IN_MEMORY.values()]
    return [*single, *(f"augmentations/{augmentation['name']}" for augmentation in settings["augmentations"])]
