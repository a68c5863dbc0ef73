"""A record's rounds as its file holds them: a column for each quantity, packed up to the last round in long runs."""

import base64
import bz2
import json
from functools import partial

LONG = 8_000  # characters of columns that are written out
WAYS = ("up", "down")


def to_text(rounds: list[dict], clients: list[str]) -> str:
    """JSON with a line for each column, which has a value for each round, null where there is none.

    In ``loss`` a value is a list in the order of ``clients``. ``up`` and ``down`` have a column for each name, or one
    number for all rounds. Where it is longer than ``LONG``, the columns are those of the last round, and ``earlier`` is
    the JSON of the others in bzip2 and base64."""
    text = _text(_columns(rounds, clients))
    if len(text) <= LONG or len(rounds) == 1:
        return text
    earlier = bz2.compress(_text(_columns(rounds[:-1], clients)).encode())
    return _text(_columns(rounds[-1:], clients) | {"earlier": base64.b64encode(earlier).decode()})


def to_rounds(columns: dict, clients: list[str]) -> list[dict]:
    """The rounds again, numbered from 1; LookupError, TypeError, ValueError or the like where these are none."""
    last = dict(columns)
    packed = last.pop("earlier", None)
    earlier = _rounds(json.loads(bz2.decompress(base64.b64decode(packed, validate=True))), clients) if packed else []
    return [{"round": number} | values for number, values in enumerate([*earlier, *_rounds(last, clients)], 1)]


def _columns(rounds: list[dict], clients: list[str]) -> dict:
    names = dict.fromkeys(name for values in rounds for name in values if name != "round")
    columns = {name: [values.get(name) for values in rounds] for name in names}
    columns["loss"] = [[losses.get(client) for client in clients] for losses in columns["loss"]]
    for way in WAYS:
        names = dict.fromkeys(name for each in columns[way] for name in each)
        sent = {name: [each.get(name) for each in columns[way]] for name in names}
        columns[way] = {name: counts[0] if len(set(counts)) == 1 else counts for name, counts in sent.items()}
    return columns


def _rounds(columns: dict, clients: list[str]) -> list[dict]:
    rounds = [{} for _ in columns["loss"]]
    for name, column in columns.items():
        if name == "loss":
            column = [_present(dict(sorted(zip(clients, losses, strict=True)))) for losses in column]
        elif name in WAYS:
            full = [counts if isinstance(counts, list) else [counts] * len(rounds) for counts in column.values()]
            lines = zip(*full, strict=True) if full else [()] * len(rounds)
            column = [_present(dict(zip(column, counts, strict=True))) for counts in lines]
        for values, value in zip(rounds, column, strict=True):
            if value is not None:
                values[name] = value
    return rounds


def _present(values: dict) -> dict:
    return {name: value for name, value in values.items() if value is not None}


def _text(columns: dict) -> str:
    write = partial(json.dumps, allow_nan=False, separators=(",", ": "))
    lines = (f"{write(name)}: {write(column)}" for name, column in columns.items())
    return "{\n" + ",\n".join(lines) + "\n}"
