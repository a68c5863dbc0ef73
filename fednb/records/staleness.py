"""How methods, networks and loaders behave, and which records were made while one behaved otherwise.

A behaviour is all tiny runs of one file, recorded in ``tests/recorded_runs.json``. ``behaviours.json``, written with
them by ``python tests/test_regression.py``, has for each file ``now``, the hashes under which it behaves as today,
today's last (empty text: of before the first tiny run), and ``by_hand``, raised by hand where it changes in a way that
no tiny run shows. What comes from outside has the hash of its source; a ``fednb.toml`` may name earlier ones.
"""

import json
import tomllib
from functools import cache
from pathlib import Path

from fednb import registry

FORMER = {"augment": "augmentations", "data": "datasets"}  # rooms as records before November 2026 name them
FILE = Path(__file__).with_name("behaviours.json")


@cache
def known() -> dict[str, dict]:
    return json.loads(FILE.read_text())


def used(settings: dict) -> dict[str, str]:
    """The behaviours that a full recipe uses; empty text for a file of ours without a recorded one."""
    return {name: _equal(name)[-1] for name in _names(settings)}


def sources(settings: dict) -> dict[str, str]:
    """Where a full recipe's files from outside come from: ``"augmentations/histograms"`` -> ``"folder examples"``."""
    found = {name: registry.source(*name.split("/")) for name in _names(settings)}
    return {name: source for name, source in found.items() if source}


def changed(record) -> list[str]:
    """What a record used and what behaves otherwise today, by room and name; of what comes from outside and is not
    available nothing is known."""
    return [name for name, then in record.behaviours.items() if then not in (_equal(name) or (then,))]


def _equal(name: str) -> list[str]:
    """The hashes under which a file behaves as it does today; none where it is not there."""
    room, file = name.split("/")
    room = FORMER.get(room, room)
    if file in registry.builtin(room):
        return known()["now"].get(f"{room}/{file}", [""])
    if file not in registry.names(room):
        return []
    project = registry.project()
    settings = tomllib.loads((project / registry.PROJECT).read_text(encoding="utf-8")) if project else {}
    return [*settings.get("same_behaviour", {}).get(name, []), registry.source_hash(room, file)]


def _names(settings: dict) -> list[str]:
    files = {"datasets": settings["federation"], "models": settings["model"], "algorithms": settings["algorithm"]}
    if settings["federation"]["name"] in registry.IN_MEMORY.values():
        del files["datasets"]
    single = [f"{room}/{chosen['name']}" for room, chosen in files.items()]
    return [*single, *(f"augmentations/{augmentation['name']}" for augmentation in settings["augmentations"])]
