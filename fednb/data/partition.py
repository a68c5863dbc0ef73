"""Cutting one list of labelled images into parts, so that each part has every class in proportion."""

from collections.abc import Sequence

import numpy as np

from fednb.randomness import seed_for


def stratified(targets: np.ndarray, sizes: Sequence[int], *key) -> list[np.ndarray]:
    """Positions ``[size]`` for each part, disjoint, drawn by the key; what the sizes do not cover is left
    over.

    The images are put in an order in which every beginning has all classes in proportion (rounded), and the
    order is cut. So the first n of a part are stratified as well, and a smaller part is inside a larger one
    of the same key. Sizes are exact; their sum is at most ``len(targets)``.
    """
    # RandomState's stream is frozen by numpy's promise, unlike that of a Generator.
    random = np.random.RandomState(seed_for(*key) % 2**32)
    place = np.empty(len(targets))
    for label in np.unique(targets):
        members = random.permutation(np.flatnonzero(targets == label))
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.lexsort((random.permutation(len(targets)), place))
    return np.split(order, np.cumsum(sizes))[: len(sizes)]


def sizes(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in these shares of a total; shares that sum to 1 give numbers that sum to the total."""
    edges = [0, *(round(total * share) for share in np.cumsum(shares))]
    return [after - before for before, after in zip(edges, edges[1:], strict=False)]
