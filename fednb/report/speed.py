"""The recorded bench: what a round of each method costs, and what many clients do. `fednb bench --record` writes it."""

import json
from pathlib import Path

FILE = Path(__file__).with_name("speed.json")


def recorded() -> dict:
    """``origin``: machine, code, torch, device, threads. ``methods``: by name, ``times`` FedAvg's round, ``least`` and
    ``most`` of its pairs of rounds, ``bytes`` a client and round. ``clients``: rows with ``clients``, the ``way`` to
    run in words, ``seconds`` a round, ``data`` and ``memory`` in MB."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def times(method: str) -> str:
    """A method's round in FedAvg's, ``"1.07"``; "not measured" where it is not recorded."""
    found = recorded()["methods"].get(method)
    return f"{found['times']:.2f}" if found else "not measured"
