"""`fednb status`: what is recorded, by federation, what of it is by older code, and what a project leaves open."""

from collections import defaultdict

from fednb import registry
from fednb.commands import notebooks, project
from fednb.errors import StoreError
from fednb.records.record import read
from fednb.records.staleness import changed
from fednb.study import default_store


def main(options) -> int:
    home, own = notebooks.home(), registry.project()
    records, notes = defaultdict(dict), []
    for path in (path for folder in default_store().folders for path in sorted(folder.glob("*/*.json"))):
        try:
            record = read(path)
        except StoreError as error:
            notes.append(str(error))
        else:
            records[record.recipe["federation"]["name"]].setdefault(record.key, record)
    for federation, found in sorted(records.items()):
        hours = sum(record.origin["seconds"] for record in found.values()) / 3600
        older = [names for names in map(changed, found.values()) if names]
        line = f"{federation}: {len(found)} runs, {hours:.1f} h"
        if older:
            what = ", ".join(sorted({name for names in older for name in names}))
            line += f"; {len(older)} by older code ({what}): `fednb run --stale` trains them again"
        print(line)
    print(f"{sum(map(len, records.values()))} runs are recorded for {home}")
    for note in (*notes, *(project.left_open(own) if own else ())):
        print(f"note: {note}")
    return 0
