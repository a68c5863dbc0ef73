"""What a constant answer scores on each recorded federation: ``fednb.report.gates`` holds a run against it."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fednb.datasets import available, load
from fednb.errors import FednbError
from fednb.files import write_text
from fednb.registry import dealt
from fednb.report.gates import TRIVIAL, measured, place, places


def add(file: Path, folders: Iterable[Path]) -> list[str]:
    """Adds to a JSON file what it lacks of the federations that are recorded in these folders and at hand. Where a
    federation's seed is "run", each recorded seed has an entry, that of the partition that it dealt out."""
    known, ours, found = places(file), places(TRIVIAL), []
    for path in (path for folder in folders for path in sorted(folder.glob("*/*.json"))):
        with suppress(ValueError, KeyError, FednbError):  # damaged, which others tell
            recipe = json.loads(path.read_text())["recipe"]
            choice = dealt(recipe["federation"], recipe["seed"])
            name = place(choice)
            if name not in known | ours and not available(**choice):
                known[name] = measured(load(**choice))
                found.append(name)
    if found:
        write_text(file, json.dumps(known, indent=1, sort_keys=True) + "\n")
    return found
