"""Which algorithm is tested with which augmentation: with FULL=1 all, in `fednb check` the method with all others.

Cases are named by their labels.
"""

from functools import cache
from itertools import product

from methods import CASES, CHECKED, FULL, HOOKS, ROW, label, row_of

from fednb.methods import overrides
from fednb.registry import METHODS

EXCHANGING = {"keeps", "load", "prepare_offer", "prepare_share", "prepare_receive", "send", "reply", "collect"}
CASE = {label(case): case for case in CASES}


@cache
def hooks(name: str) -> set[str]:
    """The hooks that a case's method overrides."""
    return {hook for hook in HOOKS if overrides(row_of(CASE[name]).method, hook)}


def refused(one: str, other: str) -> bool:
    """Whether no run has both: each of them owns the criterion, one needs labels that the other mixes or images that an
    algorithm changes, or one is no federation and the other exchanges or keeps something."""
    for needing, changing in ((one, other), (other, one)):
        row, beside = row_of(CASE[needing]), row_of(CASE[changing])
        changed = beside.room == "algorithms" and "inputs" in hooks(changing)
        if (row.method.hard_labels and beside.method.mixes_labels) or (row.untouched_images and changed):
            return True
        if row.measures_images and beside.method.images_become:
            return True
        if row.method.pools and EXCHANGING & hooks(changing):
            return True
    return "criterion" in hooks(one) & hooks(other)


def chosen() -> list[tuple[str, str, str]]:
    """Algorithm, augmentation and precision of this run of the tests."""
    if FULL:
        rooms = [[name for name in CASE if row_of(CASE[name]).room == room] for room in METHODS]
        found = product(*rooms, ("fp32", "bf16"))
    else:
        tested = [label(case) for row in ROW.values() if row.name == CHECKED for case in row.cases()]
        others = [label(row.cases()[0]) for row in ROW.values()]
        either = [(each, other) for each in tested for other in others]
        pairs = [pair if row_of(CASE[pair[0]]).room == "algorithms" else pair[::-1] for pair in either]
        found = [(*pair, "bf16") for pair in pairs if row_of(CASE[pair[0]]).room != row_of(CASE[pair[1]]).room]
    return [pair for pair in found if not refused(*pair[:2])]
