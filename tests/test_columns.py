"""A record's rounds as columns: the same rounds again, and what are no columns is refused."""

import base64
import bz2
import json
import random

import pytest
from small_runs import SMALL, record

from fednb.errors import DamagedError
from fednb.records import columns
from fednb.records.record import parsed, to_text


def drawn(draw: random.Random, clients: list[str], count: int) -> list[dict]:
    """Rounds of clients that take part by chance, who send by turns."""
    rounds = []
    for number in range(1, count + 1):
        part = sorted(draw.sample(clients, draw.randint(1, len(clients))))
        counts = [draw.randint(0, 9) if draw.random() < 0.5 else draw.random() for _ in clients]
        rounds.append(
            {
                "round": number,
                "loss": {name: round(3 * draw.random(), 6) for name in part},
                "up": {"model": 7 * len(part), "head": 10**9} | ({"late": 8} if number > 1 else {}),
                "down": {"model": 7} if draw.random() < 0.9 else {},
                "validation": counts,
                "test": counts[::-1],
            }
            | ({"absent": [clients[0]]} if draw.random() < 0.3 else {})
        )
    return rounds[:-1] + [rounds[-1] | {"cross_site": {clients[0]: [1] * len(clients)}}]


@pytest.mark.parametrize("clients", [["b", "a"], [f"client_{number}" for number in range(300)]])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_rounds_come_back_as_they_were_and_a_long_run_shows_its_last(clients, count):
    rounds = drawn(random.Random(count), clients, count)
    shown = json.loads(columns.to_text(rounds, clients))
    found = columns.to_rounds(shown, clients)
    assert found == rounds and [list(each["loss"]) for each in found] == [list(each["loss"]) for each in rounds]
    assert ("earlier" in shown) == (len(clients) == 300 and count > 1) and shown["test"][-1] == rounds[-1]["test"]


def packed(content: bytes) -> dict:
    return {"earlier": base64.b64encode(content).decode()}


ONE = {"loss": [[0.5, 0.25]], "up": {"model": 8}, "down": {"model": 8}, "validation": [[1, 2]], "test": [[3, 4]]}


@pytest.mark.parametrize(
    "rounds",
    [
        {},
        ONE | {"loss": [[0.5]]},
        ONE | {"test": [[3, 4], [3, 4]]},
        ONE | {"earlier": "?"},
        ONE | packed(b"no archive"),
        ONE | packed(bz2.compress(b"[]")),
        ONE | packed(bz2.compress(json.dumps(ONE).encode())),  # columns, of other numbers
    ],
)
def test_what_are_no_columns_or_others_is_a_damaged_record(rounds):
    whole = to_text(record(SMALL)).rpartition('"rounds": ')[0]
    with pytest.raises(DamagedError, match="a record is damaged"):
        parsed(f'{whole}"rounds": {json.dumps(rounds)}}}')
