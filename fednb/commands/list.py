"""`fednb list`: every notebook with its claim, what data it needs and what it costs; or every method."""

import inspect
import re
from typing import NamedTuple

from fednb import registry
from fednb.commands import notebooks
from fednb.errors import RecipeError, nearest

PAPERS = ("fedrdn", "fedfa", "fraug", "distrans")  # their own methods come first


def main(options) -> int:
    chosen = summaries(options.only) if options.methods else []
    for method in chosen:
        origin = f"; from {method.source}" if method.source else ""
        print(f"{method.name}  ({method.printed}; {method.paper}; {method.tasks}{origin})")
        print(f"    {method.line}\n    a round over FedAvg's: {method.cost}")
    if len(chosen) == 1:
        print(f"\n{docstring(chosen[0].room, chosen[0].name)}")
    for notebook in [] if options.methods else notebooks.select(options.only):
        about = notebook.about
        print(f"{notebook.name}  ({' '.join(filter(None, (about.get('paper'), about.get('result'))))})")
        print(f"    {about.get('claim', 'no claim stated')}")
        costs = ", ".join(f"{profile} {minutes} min" for profile, minutes in about.get("minutes", {}).items())
        print(f"    data: {about.get('data', 'none')}; cost: {costs or 'not stated'}")
    return 0


class Summary(NamedTuple):
    """room, name: of a method's file. printed: what papers call it. line: the first of its docstring. paper: its first
    reference in short. tasks: which it has a meaning for. cost: of a round, over FedAvg's. source: empty for our own,
    else where its file comes from."""

    room: str
    name: str
    printed: str
    line: str
    paper: str
    tasks: str
    cost: str
    source: str


def summaries(only: str | None = None) -> list[Summary]:
    """The methods with this part in their names, or all: the four papers' own first, then algorithms before
    augmentations, by name."""
    rooms = {name: room for room in registry.METHODS for name in registry.names(room)}
    chosen = [name for name in rooms if not only or only in name]
    if not chosen:
        raise RecipeError(f'no method has "{only}" in its name: {nearest(only, rooms)}')
    return [_summary(rooms[name], name) for name in sorted(chosen, key=lambda name: (*PAPERS, name).index(name))]


def docstring(room: str, name: str) -> str:
    """What the method's class says of itself: its mathematics, what it sends and keeps, its options."""
    return inspect.cleandoc(registry.find(room, name).__doc__ or "It has no docstring.")


def _summary(room: str, name: str) -> Summary:
    from fednb.report import speed

    method, text = registry.make(room, name), docstring(room, name)
    printed, tasks = method.printed or type(method).__name__, ", ".join(method.tasks.names)
    line = text.partition("\n\n")[0].replace("\n", " ")
    return Summary(room, name, printed, line, paper(text), tasks, speed.times(name), registry.source(room, name))


def paper(text: str) -> str:
    """The first reference of a docstring in short: ``"Li et al., MLSys 2020"``, ``"FedRDN, Sec. 3.2"``; "no reference"
    where it has none."""
    source = re.search(r"^Reference: (.+?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    authors, *rest = re.sub(r",\s+\*.*?\*", "", " ".join(source[1].split()) if source else "no reference").split(", ")
    cited = authors.endswith("et al.") and rest
    return f"{authors}, {re.split(r'[;(]|[.] ', rest[0] + ' ')[0].strip()}" if cited else authors
