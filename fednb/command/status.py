"""`fednb status`: for each notebook runs recorded and missing, and the time that the missing ones will take."""

from fednb.command.desk import Desk
from fednb.command.progress import duration


def main(options) -> int:
    desk = Desk.open(options)
    needs = {book: desk.needs(book) for book in desk.books}
    records = [record for each in needs.values() for record in each.records]
    width = max(len(book.name) for book in desk.books)
    for book, each in needs.items():
        missing = len(each.found) - len(each.records)
        line = f"{book.name:<{width}}  {len(each.records):4} recorded {missing:4} missing"
        if each.trainable:
            line += f", about {duration(sum(desk.seconds(book, each, records).values()))} to train one by one"
        if each.stand_in:
            line += " (stand-in data)"
        if each.lacking:
            line += f"; data missing: {next(iter(each.lacking.values()))}"
        print(f"{book.name:<{width}}  cannot be planned: {each.error}" if each.error else line)
    return 1 if any(each.error for each in needs.values()) else 0
