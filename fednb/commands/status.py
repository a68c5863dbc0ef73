"""`fednb status`: for each notebook runs recorded, missing and by older code, and the time to train them."""

from fednb import outside
from fednb.commands import project
from fednb.commands.desk import Desk
from fednb.records.progress import between


def main(options) -> int:
    desk = Desk.open(options)
    needs = dict(desk.plan())
    records = [record for each in needs.values() for record in each.records]
    older = {}
    width = max((len(book.name) for book in desk.books), default=0)
    for book, each in needs.items():
        missing = len(each.found) - len(each.records)
        line = f"{book.name:<{width}}  {len(each.records):4} recorded {missing:4} missing"
        seconds = desk.seconds(book, each, records)
        if each.trainable:
            line += f", about {between(seconds[recipe] for recipe in each.trainable)} to train one by one"
        if each.stale:
            names = ", ".join(sorted({name for names in each.stale.values() for name in names}))
            line += f"; {len(each.stale)} of {len(each.records)} recorded are by older code: {names}"
        older |= {recipe: seconds.get(recipe) for recipe in each.stale}
        if each.stand_in:
            line += " (stand-in data)"
        if each.lacking:
            line += f"; data missing: {next(iter(each.lacking.values()))}"
        print(f"{book.name:<{width}}  cannot be planned: {each.error}" if each.error else line)
    if older:
        again = [each for each in older.values() if each]
        time = f"about {between(again)} one by one" if again else "no data at hand"
        print(f"by older code: {len(older)} runs; `fednb run --stale` trains {len(again)} of them again, {time}")
    here = outside.project()
    for note in (*desk.store.notes, *(project.lacking(here, desk.store.folders) if here else ())):
        print(f"note: {note}")
    return 1 if any(each.error for each in needs.values()) else 0
