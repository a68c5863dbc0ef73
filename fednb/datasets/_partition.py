"""Cuts one list of labelled images into parts, all classes in proportion; deals it out to clients: client_0, ..."""

from collections.abc import Callable, Sequence

import numpy as np

from fednb.errors import DataError, RecipeError
from fednb.federation import Site, Split
from fednb.randomness import random_state

TRIES = 1000  # of a Dirichlet draw that leaves a client too few images
VALIDATION = 0.1  # of a client's training images; DisTrans and FedFA have no validation images on these data
LEAST = 5  # training images of a client, so that one becomes validation; batch normalisation needs two of the others


def stratified(targets: np.ndarray, sizes: Sequence[int], *key) -> list[np.ndarray]:
    """Positions ``[size]`` for each part, disjoint, drawn by the key; what the sizes do not cover is left over.

    In the order that is cut every beginning has all classes in proportion (rounded), so a smaller part is inside a
    larger one of the same key. Sizes are exact; their sum is at most the images'."""
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


def cut(split: Split, shares: Sequence[float], *key) -> list[Split]:
    """A part for each share, all classes in proportion; images with masks as if of one class."""
    targets = split.targets.numpy() if split.targets.ndim == 1 else np.zeros(len(split))
    return [split.select(part) for part in stratified(targets, sizes(len(split), shares), *key)]


def check_shares(**shares: float) -> None:
    """RecipeError unless all are numbers above 0 and up to 1."""
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise RecipeError(f"{name} is {share!r}; expected a share above 0 and up to 1.")


def check_whole(**numbers: int) -> None:
    """RecipeError unless all are whole numbers from 1."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise RecipeError(f"{name} is {value!r}; expected a whole number from 1.")


def by_class_shares(
    train: Split, test: Split, classes: int, clients: int, classes_per_client: int, *key, spare: Split | None = None
) -> tuple[list[Site], list[str]]:
    """Sites with ``classes_per_client`` classes each, as DisTrans cuts them, and notes; ``key``: of all draws.

    Test and spare images are cut by the same shares. With one class per client each is tested first on its own test
    images, then on as many of other classes, drawn with replacement (as released; the paper says "randomly selected"):
    DisTrans, Sec. 5.1. DataError where a client would have too few images."""
    shares = class_shares(classes, clients, classes_per_client, *key) if clients <= len(test) else None

    def hands(name: str, targets: np.ndarray) -> list[np.ndarray]:
        dealt = deal(targets, shares, *key, name)
        if classes_per_client == 1:
            dealt = [_with_negatives(targets, own, *key, client) for client, own in enumerate(dealt)]
        return dealt

    how = f"{clients} clients by {classes_per_client} of {classes} classes each"
    note = "A client is tested on its own class and on as many images of the others, drawn with replacement."
    return _sites(train, test, spare, shares, hands, how, *key), [note] * (classes_per_client == 1)


def class_shares(classes: int, clients: int, classes_per_client: int, *key) -> np.ndarray:
    """What share of each class's images each client gets, ``[clients, classes]``; the shares of a class sum to 1.

    With N classes and C clients, each client is given u = ``classes_per_client`` classes and each class to
    k = u C / N clients: one client after another draws among the classes with most places left. Then client i
    with class c draws s_ic ~ U(0.4, 0.6), and its share is s_ic / sum_n s_nc. The heterogeneity (DisTrans, Eq. 3
    and 4) is DH = 1 - u / N if k > 1, and 1 if k = 1. RecipeError when classes cannot go to equally many clients.

    Reference: DisTrans, Sec. 5, "Local Data Distribution"; how classes are given out is as released."""
    check_whole(clients=clients, classes_per_client=classes_per_client)
    if classes_per_client > classes or classes_per_client * clients % classes:
        fitting = [u for u in range(1, classes + 1) if u * clients % classes == 0]
        each = f"{clients} clients with {classes_per_client} of {classes} classes each cannot share every class among"
        may = ", ".join(map(str, fitting))
        raise RecipeError(f"{each} equally many clients; for them classes_per_client may be {may}.")
    random = random_state(*key)
    places = np.full(classes, classes_per_client * clients // classes)
    table = np.zeros((clients, classes))
    for row in table:
        given = np.lexsort((random.permutation(classes), -places))[:classes_per_client]
        places[given] -= 1
        row[given] = random.uniform(0.4, 0.6, classes_per_client)
    return table / table.sum(axis=0)


def by_dirichlet(
    train: Split, test: Split, classes: int, clients: int, concentration: float, *key, spare: Split | None = None
) -> tuple[list[Site], list[str]]:
    """Sites whose training classes follow a Dirichlet distribution, as FedFA cuts them, and notes.

    FedFA prints the accuracy of the global model on all test images; here each client is tested on its equal part of
    them, with all classes in proportion; spare images likewise. DataError where a client would have too few images."""
    shares = dirichlet_shares(train.targets.bincount(minlength=classes).tolist(), clients, concentration, *key)

    def hands(name: str, targets: np.ndarray) -> list[np.ndarray]:
        return stratified(targets, sizes(len(targets), [1 / clients] * clients), *key, name)

    note = "A client is tested on its equal part of all test images, with all classes in proportion."
    return _sites(train, test, spare, shares, hands, f"{clients} clients by Dir({concentration})", *key), [note]


def dirichlet_shares(
    counts: Sequence[int], clients: int, concentration: float, *key, minimum: int = 10
) -> np.ndarray | None:
    """What share of each class's images each client gets, ``[clients, classes]``, drawn for each class from
    Dir(concentration, ..., concentration); ``counts`` are the images of each class.

    A client that holds its equal part of all images gets none of the classes that follow, and the draw is repeated
    until each client has ``minimum`` images (both as released); None when ``TRIES`` draws do not give it.

    Reference: FedFA, App. E.1, Dir(alpha)."""
    check_whole(clients=clients)
    # Below 0.01 all gammas may be too small for a float.
    if not isinstance(concentration, int | float) or not 0.01 <= concentration < np.inf:
        raise RecipeError(f"concentration is {concentration!r}; expected a number from 0.01, such as 0.6.")
    random = random_state(*key)
    for _ in range(TRIES if clients * minimum <= sum(counts) else 0):
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
    """Positions for each client, disjoint: of the images of class c client i gets the share ``shares[i, c]``, rounded
    so that no image is left over (DisTrans' code rounds each down and drops the rest)."""
    random = random_state(*key)
    hands = [[] for _ in shares]
    for label, column in enumerate(shares.T):
        members = random.permutation(np.flatnonzero(targets == label))
        parts = np.split(members, np.cumsum(sizes(len(members), column)))
        for hand, part in zip(hands, parts, strict=False):
            hand.append(part)
    return [np.concatenate(hand) for hand in hands]


def _with_negatives(targets: np.ndarray, positives: np.ndarray, *key) -> np.ndarray:
    others = np.flatnonzero(~np.isin(targets, targets[positives]))
    return np.concatenate((positives, random_state(*key, "negatives").choice(others, len(positives))))


def _sites(
    train: Split, test: Split, spare: Split | None, shares: np.ndarray | None, hands: Callable, how: str, *key
) -> list[Site]:
    """Training images by the shares; ``hands(name, targets)``: the positions of each client's test and spare images."""
    trained = tested = [()]
    if shares is not None:
        trained, tested = deal(train.targets.numpy(), shares, *key, "train"), hands("test", test.targets.numpy())
    if min(map(len, trained)) < LEAST or min(map(len, tested)) < 1:
        few = "one would have too few to train, validate and test on. Take fewer clients, or more images"
        raise DataError(f"{len(train)} training and {len(test)} test images cannot be dealt out to {how}: {few}.")
    sites = []
    spared = hands("spare", spare.targets.numpy()) if spare else [None] * len(trained)
    for client, (own, held_out, left) in enumerate(zip(trained, tested, spared, strict=True)):
        parts = cut(train.select(own), (1 - VALIDATION, VALIDATION), *key, "validation", client)
        sites.append(Site(f"client_{client}", *parts, test.select(held_out), spare.select(left) if spare else None))
    return sites
