"""Every algorithm and augmentation in a few words, taken from its class and its docstring."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fednb import catalogue
from fednb.errors import RecipeError, nearest
from fednb.report import speed

PAPERS = ("fedrdn", "fedfa", "fraug", "distrans")  # their own methods come first
CHANGES = {
    "build": "the network",
    "keeps": "which entries are sent",
    **dict.fromkeys(("prepare_offer", "prepare_share", "prepare_receive"), "the preparation"),
    "send": "the server's message",
    "load": "what is loaded",
    "begin": "a round's start",
    "inputs": "the images",
    **dict.fromkeys(("before_step", "after_step"), "what surrounds a step"),
    "criterion": "the criterion",
    "loss": "a term of the loss",
    "gradients": "the gradients",
    "step": "the step",
    "reply": "the client's reply",
    **dict.fromkeys(("collect", "aggregate"), "the server's memory"),
    "aggregate_model": "the new weights",
    "adapt": "training before a test",
    "unseen": "unseen clients",
    "predict": "the prediction",
}
SENDING = r"\b(sends?|receives?|nor averaged)\b|\b(is|are) sent\b"
KEEPING = r"\bkeeps?\b|\b(is|are) kept\b"
NOTHING = r"(sends|keeps|sends and keeps) nothing( of its own)?|nothing is (sent|kept)"


@dataclass(frozen=True)
class Told:
    """One method: its file's room and name, what papers call it, where it is from, what it changes, sends and keeps.

    cost: of a round, over FedAvg's. source: empty for our own, else where its file comes from.
    """

    room: str
    name: str
    printed: str
    paper: str
    changes: str
    sends: str
    keeps: str
    tasks: str
    cost: str
    source: str = ""


def told(only: str | None = None) -> list[Told]:
    """The methods with this part in their names, or all: the four papers' own first, then algorithms before
    augmentations, by name."""
    found = {name: room for room in ("algorithms", "augmentations") for name in catalogue.names(room)}
    chosen = [name for name in found if not only or only in name]
    if not chosen:
        raise RecipeError(f'no method has "{only}" in its name: {nearest(only, found)}')
    return [_told(found[name], name) for name in sorted(chosen, key=lambda name: (*PAPERS, name).index(name))]


def _told(room: str, name: str) -> Told:
    from fednb.methods import overrides

    method = catalogue.make(room, name)
    text = inspect.cleandoc(type(method).__doc__ or "")
    clauses = list(_clauses(text))
    words = dict.fromkeys(word for door, word in CHANGES.items() if overrides(method, door))
    return Told(
        room,
        name,
        method.printed or type(method).__name__,
        paper(text),
        ", ".join(words) or "nothing",
        _about(SENDING, clauses),
        _about(KEEPING, clauses),
        ", ".join(method.tasks.names),
        speed.times(name) + (", without what it does before a test" if overrides(method, "adapt") else ""),
        catalogue.source(room, name),
    )


def paper(text: str) -> str:
    """The first reference of a docstring in short: ``"Li et al., MLSys 2020"``, ``"FedRDN, Sec. 3.2"``; "no reference"
    where it has none."""
    source = re.search(r"^Reference: (.+?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    authors, *rest = re.sub(r",\s+\*.*?\*", "", " ".join(source[1].split()) if source else "no reference").split(", ")
    cited = authors.endswith("et al.") and rest
    return f"{authors}, {re.split(r'[;(]|[.] ', rest[0] + ' ')[0].strip()}" if cited else authors


def _clauses(text: str) -> Iterator[str]:
    """What a docstring says of the method before its arguments or its reference, clause by clause, without formulas."""
    for block in re.split(r"\n\n", re.split(r"^(?:Args|Raises|Reference)\b", text, flags=re.MULTILINE)[0]):
        if not block.startswith((" ", "..")):
            plain = re.sub(r":math:`(.*?)`|``(.*?)``|\*\*(.*?)\*\*", r"\1\2\3", " ".join(block.split()))
            yield from re.split(r";\s+|(?<=[.:])\s+(?=[A-Z])", plain)


def _about(words: str, clauses: list[str]) -> str:
    """The clauses with these words, as one text without its first verb; "nothing" where they say so."""
    chosen = [clause.strip(" .:,") for clause in clauses if re.search(words, clause, re.IGNORECASE)]
    told = ["nothing" if re.fullmatch(NOTHING, clause, re.IGNORECASE) else clause for clause in chosen]
    return re.sub(r"^(sends|keeps) (?!and )", "", "; ".join(told), flags=re.IGNORECASE)
