"""Writes what a constant answer scores on each recorded federation: ``python tools/trivial.py``.

Where a federation's seed is "run", each recorded seed has an entry, that of the partition that it dealt out.
"""

import json

from fednb.catalogue import dealt
from fednb.data import available, load
from fednb.federation import Federation
from fednb.files import write_text
from fednb.report.gates import TRIVIAL
from fednb.study import default_store


def measured(federation: Federation) -> dict:
    """``chance``: one class in all; ``clients``: by site the share of the test images, per cent, that have the most
    frequent class of its training images. 0 of a segmentation."""
    if federation.outline.task == "segmentation":
        return {"chance": 0.0, "clients": {site.name: 0.0 for site in federation.sites}}
    clients = {
        site.name: 100 * (site.test.targets == site.train.targets.bincount().argmax()).double().mean().item()
        for site in federation.sites
        if len(site.test)
    }
    return {"chance": 100 / len(federation.outline.classes), "clients": clients}


def main() -> None:
    known = json.loads(TRIVIAL.read_text())
    for folder in default_store().folders:
        for path in sorted(folder.glob("*/*.json")):
            recipe = json.loads(path.read_text())["recipe"]
            choice = dealt(recipe["federation"], recipe["seed"])
            place = json.dumps(choice, sort_keys=True)
            if place not in known and not available(**choice):
                known[place] = measured(load(**choice))
                print(place)
    write_text(TRIVIAL, json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
