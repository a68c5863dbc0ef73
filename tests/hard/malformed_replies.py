"""Replies that are none, by the hundred: one of three clients sends them, and the run is that of the two others.

    python tests/hard/malformed_replies.py --trials 100 --seed 1

Each trial spoils one reply of one client of a run of three rounds, from a family drawn at random. Either the run ends,
its record can be read again, and its numbers are those of a run in which that client did not answer then; or it ends in
an error that names the client, and started again with an honest one its numbers are those of a run without that error.
Prints counts; the exit status is 1 where a trial went otherwise.
"""

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_remote import Started

SETTINGS = [
    {},
    {"algorithm": "scaffold", "augmentations": ["fedrdn"]},
    {"algorithm": "fedproto"},
    {"algorithm": "fedbn", "augmentations": ["fedmix"], "optimiser_state": "kept"},
    {"algorithm": "pfedhn"},
    {"augmentations": ["fraug"]},
    {"augmentations": ["distrans"], "participation": 0.67},
    {"algorithm": "fednova", "augmentations": ["fedfa"], "evaluation": ["spare"]},
]
CALLS = [("offer", 0), ("learn", 0), *((kind, number) for number in (1, 2, 3) for kind in ("work", "test"))]
TYPES = (torch.float16, torch.float32, torch.float64, torch.int16, torch.int32, torch.int64, torch.complex64)


def with_one(numbers: list):
    """One of these numbers somewhere in a tensor, which gets a type that can hold it."""

    def fill(value, draw):
        number = draw.choice(numbers)
        other = value.to(torch.promote_types(value.dtype, torch.tensor(number).dtype))
        if other.numel():
            other = other.clone()
            other.view(-1)[draw.randrange(other.numel())] = number
        return other

    return fill


FAMILIES = {
    "wrong type": lambda value, draw: value.to(draw.choice([t for t in TYPES if t != value.dtype])),
    "wrong shape": lambda value, draw: draw.choice([value[None], value.new_zeros(2, 3, 5), value.new_zeros(10**6)]),
    "empty": lambda value, draw: value.new_zeros(0),
    "missing name": lambda value, draw: None,
    "extra name": None,
    "not finite": with_one([float("nan"), float("inf")]),
    "out of range": with_one([-(2**40), 2**62]),
    "whole": None,
}


def spoilt(reply: dict, family: str, draw: random.Random):
    """The reply with an entry spoilt, and which."""
    if family == "whole":
        return draw.choice([{}, {"\x1b[2J": torch.zeros(1)}]), "all"
    if family == "extra name":
        name = draw.choice(["spy", "model/spy", "local/spy", "a" * 10**5, "loss/spy"])
        return reply | {name: torch.zeros(3)}, name[:20]
    name = draw.choice(sorted(reply))
    if family == "missing name":
        return {other: value for other, value in reply.items() if other != name}, name
    return reply | {name: FAMILIES[family](reply[name], draw)}, name


def numbers(record) -> tuple:
    scores = record.artefact("scores")
    return record.rounds, record.prepare, record.images, [(k, v.tobytes()) for k, v in sorted(scores.items())]


def trial(number: int, draw: random.Random, place: Path) -> str:
    """What became of it, in a word."""
    settings, family, seed = draw.choice(SETTINGS), draw.choice(list(FAMILIES)), draw.randrange(3)
    settings = {"seed": seed, **settings}
    at = (*draw.choice(CALLS), draw.choice(["clinic", "harbour", "tower"]))
    entries = []

    def twist(reply):
        changed, name = spoilt(reply, family, draw)
        entries.append(name)
        return changed

    hostile, silent = Started(settings, place / f"{number} hostile"), Started(settings, place / f"{number} silent")
    found = hostile.start(twisted={at: twist})
    what = f"trial {number}: {hostile.recipe}, {at}, {family} {entries[:1]}"
    if not entries:
        return "not drawn"
    if isinstance(found, str):
        assert at[2] in found, f"{what}: {found}"
        assert numbers(hostile.start()) == numbers(silent.start()), f"{what}: another end after a new start"
        return "named, and ended after a new start"
    assert numbers(found) == numbers(silent.start(dead={at})), f"{what}: other numbers"
    assert any(note.startswith(f"{at[2]} did not answer") and "What went wrong" in note for note in found.notes), what
    return "left out"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    draw, counts = random.Random(options.seed), Counter()
    with tempfile.TemporaryDirectory() as place:
        for number in range(1, options.trials + 1):
            try:
                counts[trial(number, draw, Path(place))] += 1
            except Exception:
                counts["WRONG"] += 1
                traceback.print_exc()
    print(f"{options.trials} trials: {dict(counts)}")
    return int(counts["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
