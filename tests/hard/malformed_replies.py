"""Replies that are none, by the hundred: one of three clients sends them, and the run is that of the two others.

    python tests/hard/malformed_replies.py --trials 100 --seed 1

Each trial spoils one reply of one client of a run of three rounds, from a family drawn at random. The run ends, its
record can be read again, and its numbers are those of a run in which that client did not answer then; where such a run
cannot go on (an offer, the first test, what is measured once), neither does this one, by a named error, and it ends
when it is started again with an honest client. Prints counts; the exit status is 1 where a trial went otherwise.
"""

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from methods import TINY, federation
from test_remote import Elsewhere

from fednb.errors import RunError
from fednb.loop.remote import RemoteRun
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.records.training import finish

SETTINGS = [
    {},
    {"algorithm": "scaffold", "augmentations": ["fedrdn"]},
    {"algorithm": "fedproto"},
    {"algorithm": "fedbn", "augmentations": ["fedmix"], "optimiser_state": "kept"},
    {"algorithm": "pfedhn"},
    {"augmentations": ["fraug"]},
    {"augmentations": ["distrans"], "participation": 0.67},
    {"algorithm": "fednova", "augmentations": ["fedfa"], "evaluation": ["cross_site", "own_statistics", "features"]},
]
CALLS = [("offer", 0), ("learn", 0), *((kind, number) for number in (1, 2, 3) for kind in ("work", "test"))]
LAST = {"cross_site": "visit", "own_statistics": "measure", "features": "represent"}


def wrong_type(value, draw):
    kinds = [t for t in (torch.float16, torch.float32, torch.float64, torch.int32, torch.int64) if t != value.dtype]
    return draw.choice([None, "0.5", 0.5, [value], value.to(draw.choice(kinds))])


def wrong_shape(value, draw):
    return draw.choice([value[None], torch.stack([value, value]), value.new_zeros(2, 3, 5), value.new_zeros(10**6)])


def filled(number):
    def fill(value, draw):
        other = value.double().clone()
        if other.numel():
            other.view(-1)[draw.randrange(other.numel())] = number
        return other.to(value.dtype if value.is_floating_point() else torch.float64)

    return fill


def out_of_range(value, draw):
    number = draw.choice([-(2.0**40), 1e12, 1e38]) if value.is_floating_point() else draw.choice([-(2**40), 2**40])
    return torch.full_like(value, number, dtype=value.dtype if value.is_floating_point() else torch.int64)


def huge_count(value, draw):
    return torch.full(value.shape, draw.choice([2**62, 10**12, -(2**62)]), dtype=torch.int64)


FAMILIES = {
    "wrong type": wrong_type,
    "missing name": lambda value, draw: None,
    "extra name": None,
    "wrong shape": wrong_shape,
    "NaN": filled(float("nan")),
    "infinite": filled(float("inf")),
    "out of range": out_of_range,
    "huge count": huge_count,
    "complex": lambda value, draw: value.to(torch.complex64),
    "integer": lambda value, draw: value.to(torch.int16 if value.dtype != torch.int16 else torch.int8),
    "empty": lambda value, draw: value.new_zeros(0),
    "nested": lambda value, draw: {"inner": value},
    "bytes": lambda value, draw: b"\0" * 8,
    "whole": None,
}


def spoilt(reply: dict, family: str, draw: random.Random):
    """The reply with an entry spoilt, and which."""
    if family == "whole":
        return draw.choice([[], None, 7, b"reply", list(reply), {1: 2}, {"\ud800": torch.zeros(1)}]), "all"
    if family == "extra name":
        name = draw.choice(["spy", "model/spy", "local/spy", "a" * 10**5, "loss/spy"])
        return reply | {name: torch.zeros(3)}, name[:20]
    name = draw.choice(sorted(reply))
    if family == "missing name":
        return {other: value for other, value in reply.items() if other != name}, name
    return reply | {name: FAMILIES[family](reply[name], draw)}, name


class Run:
    """A run over clients, one of which sends something else, or nothing, once; its store is kept for another start."""

    def __init__(self, recipe: Recipe, place: Path):
        self.recipe, self.store = recipe, Store(place / "runs")
        self.clients = Elsewhere(recipe, federation())

    def ended(self, **mishaps):
        """The record, or the words of the error that ended it; any other error is not caught."""
        for name in ("dead", "twisted"):
            setattr(self.clients, name, mishaps.get(name, {}))
        begin = partial(RemoteRun, self.recipe, self.clients.introductions(), self.clients.ask, {"wire": {}})
        try:
            with self.store.lock(self.recipe):
                return finish(begin, self.store)
        except RunError as error:
            return str(error)


def numbers(record) -> tuple:
    scores = record.artefact("scores")
    return record.rounds, record.prepare, record.images, [(k, v.tobytes()) for k, v in sorted(scores.items())]


def trial(number: int, draw: random.Random, place: Path) -> str:
    """What became of it, in a word."""
    settings, family, seed = draw.choice(SETTINGS), draw.choice(list(FAMILIES)), draw.randrange(3)
    recipe = Recipe(**TINY | settings | {"seed": seed})
    kind, round = draw.choice(CALLS + [(LAST[name], 3) for name in recipe.evaluation])
    at = (kind, round, draw.choice(["clinic", "harbour", "tower"]))
    told = []

    def twist(reply):
        changed, name = spoilt(reply, family, draw)
        told.append(name)
        return changed

    hostile, silent = Run(recipe, place / f"{number} hostile"), Run(recipe, place / f"{number} silent")
    found, expected = hostile.ended(twisted={at: twist}), silent.ended(dead={at})
    what = f"trial {number}: {recipe}, {at}, {family} {told[:1]}"
    if not told:
        return "not drawn"
    if isinstance(expected, str):
        assert isinstance(found, str) and at[2] in found and f'did not answer "{kind}"' in found, f"{what}: {found}"
        found, expected = hostile.ended(), silent.ended()
        assert numbers(found) == numbers(expected), f"{what}: another end after a new start"
        return "named, and ended after a new start"
    assert not isinstance(found, str), f"{what}: {found}"
    assert numbers(found) == numbers(expected), f"{what}: other numbers"
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
