"""Which algorithm is tested beside which augmentation: with FULL=1 all, in `fednb check` a cover of the hooks.

Cases are named by their labels. Two methods meet at the hooks that they override, so that one partner stands for all
that override the same. Of all (algorithm, augmentation, precision), the cover has

1. every algorithm beside every hook that any augmentation overrides, and every augmentation beside every hook that
   any algorithm overrides;
2. every algorithm and every augmentation in both precisions.

It has about as many pairs as there are cases times hooks of the other room, so it grows with the number of methods
and not with their product. Pairs that are refused are left out.
"""

from functools import cache
from hashlib import sha256
from itertools import product

from methods import CASES, CHECKED, FULL, HOOKS, label, row_of

from fednb.methods import overrides
from fednb.registry import make

PRECISIONS = ("fp32", "bf16")
EXCHANGING = {"keeps", "load", "prepare_offer", "prepare_share", "prepare_receive", "send", "reply", "collect"}

Pair = tuple[str, str, str]

CASE = {label(case): case for case in CASES}


def of(room: str) -> list[str]:
    """The cases of ``algorithms`` or ``augment``."""
    return [name for name, case in CASE.items() if row_of(case).room == room]


@cache
def hooks(name: str) -> set[str]:
    """The hooks that a case's method overrides."""
    row = row_of(CASE[name])
    return {hook for hook in HOOKS if overrides(make(row.room, row.name), hook)}


def refused(one: str, other: str) -> bool:
    """Whether no run has both: each of them owns the criterion, one needs labels that the other mixes or images that an
    algorithm changes, or one is no federation and the other exchanges or keeps something."""
    for needing, changing in ((one, other), (other, one)):
        row, beside = row_of(CASE[needing]), row_of(CASE[changing])
        changed = beside.room == "algorithms" and "inputs" in hooks(changing)
        if (row.hard_labels and beside.mixes_labels) or (row.untouched_images and changed):
            return True
        if row.measures_images and make(beside.room, beside.name).images_become:
            return True
        if row.pools and EXCHANGING & hooks(changing):
            return True
    return "criterion" in hooks(one) & hooks(other)


def every() -> list[Pair]:
    found = product(of("algorithms"), of("augmentations"), PRECISIONS)
    return [pair for pair in found if not refused(*pair[:2])]


def cover(found: list[Pair]) -> list[Pair]:
    """As many of the pairs found as the cover needs.

    Of all pairs that show the same, the one with the smallest hash is taken: the order in which they are found
    decides nothing, partners take turns, and a new method leaves most of the others' pairs as they are.
    """
    opened = {name: hooks(name) for name in CASE}

    def shows(pair: Pair) -> set[tuple]:
        algorithm, augment, precision = pair
        beside = [(algorithm, hook) for hook in opened[augment]] + [(augment, hook) for hook in opened[algorithm]]
        return {*beside, (algorithm, precision), (augment, precision)}

    shown = {pair: shows(pair) for pair in sorted(found, key=lambda pair: sha256(" ".join(pair).encode()).digest())}
    wanted, chosen = set().union(*shown.values()), []
    for want in sorted(wanted):
        if want in wanted:
            chosen.append(next(pair for pair in shown if want in shown[pair]))
            wanted -= shown[chosen[-1]]
    return chosen


def chosen() -> list[Pair]:
    """The pairs of this run of the tests."""
    return every() if FULL else cover(every()) if CHECKED else []
