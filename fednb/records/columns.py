"""A record's rounds as its file holds them: a column for each quantity, packed up to the last round in long runs."""

from __future__ import annotations

import base64
import bz2
import json

LONG = 8_000  # characters of columns that are written out
WAYS = ("up", "down")
SHORT = (",", ": ")


def to_text(rounds: list[dict], clients: list[str]) -> str:
    """JSON with a line for each column, which has a value for each round, null where there is none.

    In ``loss`` a value is a list in the order of ``clients``. ``up`` and ``down`` have a column for each name, or one
    number that is the same in every round. Where all of it is longer than ``LONG``, the columns are those of the last
    round, and ``earlier`` is the JSON of the others in bzip2 and base64.
    """
    text = _text(_columns(rounds, clients))
    if len(text) <= LONG or len(rounds) == 1:
        return text
    earlier = bz2.compress(_text(_columns(rounds[:-1], clients)).encode())
    return _text(_columns(rounds[-1:], clients) | {"earlier": base64.b64encode(earlier).decode()})


def to_rounds(columns: dict, clients: list[str]) -> list[dict]:
    """The rounds again, numbered from 1. ValueError where these are no such columns."""
    try:
        last = {name: column for name, column in columns.items() if name != "earlier"}
        parts = [last]
        if "earlier" in columns:
            parts = [json.loads(bz2.decompress(base64.b64decode(columns["earlier"], validate=True))), last]
        rounds = [values for part in parts for values in _rounds(part, clients)]
    except (LookupError, TypeError, AttributeError, ValueError, OSError) as error:
        raise ValueError(f"rounds are no columns of a record ({type(error).__name__}: {error})") from error
    return [{"round": number} | values for number, values in enumerate(rounds, 1)]


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
            column = [_named(dict(sorted(zip(clients, losses, strict=True)))) for losses in column]
        elif name in WAYS:
            column = _sent(column, len(rounds))
        for values, value in zip(rounds, column, strict=True):
            if value is not None:
                values[name] = value
    return rounds


def _sent(columns: dict, rounds: int) -> list[dict]:
    full = [counts if isinstance(counts, list) else [counts] * rounds for counts in columns.values()]
    return [_named(dict(zip(columns, counts, strict=True))) for _, *counts in zip(range(rounds), *full, strict=True)]


def _named(values: dict) -> dict:
    """Those that there are."""
    return {name: value for name, value in values.items() if value is not None} if None in values.values() else values


def _text(columns: dict) -> str:
    texts = {
        json.dumps(name): json.dumps(column, allow_nan=False, separators=SHORT) for name, column in columns.items()
    }
    return "{\n" + ",\n".join(f"{name}: {text}" for name, text in texts.items()) + "\n}"
