"""Cutting one list of labelled images into parts: every class in proportion, or each part its own classes."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from fednb.errors import RecipeError
from fednb.randomness import random_state
from fednb.standalone.class_shares import check_whole

TRIES = 1000  # of a Dirichlet draw that leaves a client too few images


def stratified(targets: np.ndarray, sizes: Sequence[int], *key) -> list[np.ndarray]:
    """Positions ``[size]`` for each part, disjoint, drawn by the key; what the sizes do not cover is left
    over.

    The images are put in an order in which every beginning has all classes in proportion (rounded), and the
    order is cut. So the first n of a part are stratified as well, and a smaller part is inside a larger one
    of the same key. Sizes are exact; their sum is at most ``len(targets)``.
    """
    random = random_state(*key)
    place = np.empty(len(targets))
    for label in np.unique(targets):
        members = random.permutation(np.flatnonzero(targets == label))
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.lexsort((random.permutation(len(targets)), place))
    return np.split(order, np.cumsum(sizes))[: len(sizes)]


def sizes(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in these shares of a total; shares that sum to 1 give numbers that sum to the total."""
    return np.diff(np.rint(total * np.cumsum(shares)), prepend=0).astype(int).tolist()


def dealt(counts: Sequence[int], shares: np.ndarray) -> np.ndarray:
    """How many images ``deal`` gives each client of classes with so many."""
    return np.sum([sizes(count, column) for count, column in zip(counts, shares.T, strict=True)], axis=0)


def largest(possible: Callable[[int], bool], below: int, step: int = 1) -> int:
    """The largest number below ``below`` that is possible, found by halving among the multiples of ``step``; 0 if none
    is. Where a few smaller ones are impossible, by a bad draw, one that is possible all the same."""
    numbers = range(step, below, step)
    return step * bisect_left(numbers, True, key=lambda number: not possible(number))


def check_shares(**shares: float) -> None:
    """RecipeError unless all are numbers above 0 and up to 1."""
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise RecipeError(f"{name} is {share!r}; expected a share above 0 and up to 1.")


def dirichlet_shares(
    counts: Sequence[int], clients: int, concentration: float, *key, minimum: int = 10, tries: int = TRIES
) -> np.ndarray | None:
    """What share of each class's images each client gets, ``[clients, classes]``, drawn for each class from
    Dir(concentration, ..., concentration).

    A client that holds its equal part of all images (their number / clients) gets none of the classes that
    follow. The whole draw is repeated until each client has at least ``minimum`` images; None when no draw of so many
    ``tries`` gives it.

    Args:
        counts: the images of each class, in order.
        concentration: the smaller, the more do clients differ; FedFA uses 0.6 and 0.3.

    Reference: FedFA, App. E.1, Dir(alpha). Both rules above are as released; the paper prints neither.

    Raises RecipeError when a number is out of its range.
    """
    check_whole("clients", clients)
    # Below 0.01 all gammas may be too small for a float.
    if not isinstance(concentration, int | float) or not 0.01 <= concentration < np.inf:
        raise RecipeError(f"concentration is {concentration!r}; expected a number from 0.01, such as 0.6.")
    random = random_state(*key)
    for _ in range(tries if clients * minimum <= sum(counts) else 0):
        held = np.zeros(clients)
        columns = []
        for count in counts:
            # Gammas over their sum are Dirichlet. The tiny number lets the last client that is not full take the rest.
            gammas = random.gamma(concentration, size=clients) + 1e-300
            gammas[held >= sum(counts) / clients] = 0
            columns.append(gammas / gammas.sum())
            held += sizes(count, columns[-1])
        if held.min() >= minimum:
            return np.stack(columns, axis=1)
    return None


def deal(targets: np.ndarray, shares: np.ndarray, *key) -> list[np.ndarray]:
    """Positions for each client, disjoint: of the images of class c, in a drawn order, client i gets the share
    ``shares[i, c]``.

    Numbers are rounded so that shares that sum to 1 leave no image over (DisTrans' code rounds each down and
    drops the rest).
    """
    random = random_state(*key)
    hands = [[] for _ in shares]
    for label, column in enumerate(shares.T):
        members = random.permutation(np.flatnonzero(targets == label))
        parts = np.split(members, np.cumsum(sizes(len(members), column)))
        for hand, part in zip(hands, parts, strict=False):
            hand.append(part)
    return [np.concatenate(hand) for hand in hands]
