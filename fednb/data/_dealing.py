"""One data set dealt out to clients: the sites client_0, client_1, ..."""

from collections.abc import Sequence

import numpy as np

from fednb.data._partition import deal, dirichlet_shares, sizes, stratified
from fednb.errors import RecipeError
from fednb.federation import Site, Split
from fednb.randomness import random_state
from fednb.standalone.class_shares import class_shares

VALIDATION = 0.1  # of a client's training images; DisTrans and FedFA have no validation images on these data


def by_class_shares(
    train: Split, test: Split, classes: int, clients: int, classes_per_client: int, *key
) -> tuple[list[Site], list[str]]:
    """Sites with ``classes_per_client`` classes each, as DisTrans cuts them, and notes.

    Test images are cut by the same shares. With one class per client each is tested on its own test images,
    the positives, and as many of other classes with their true labels, drawn with replacement (as released;
    the paper says "randomly selected"): DisTrans, Sec. 5.1.
    """
    shares = class_shares(classes, clients, classes_per_client, *key)
    targets = test.targets.numpy()
    tested = deal(targets, shares, *key, "test")
    notes = []
    if classes_per_client == 1:
        tested = [_with_negatives(targets, own, *key, client) for client, own in enumerate(tested)]
        notes = ["A client is tested on its own class and on as many images of the others, drawn with replacement."]
    return _sites(train, deal(train.targets.numpy(), shares, *key, "train"), test, tested, *key), notes


def by_dirichlet(
    train: Split, test: Split, classes: int, clients: int, concentration: float, *key
) -> tuple[list[Site], list[str]]:
    """Sites whose training classes follow a Dirichlet distribution, as FedFA cuts them, and notes.

    FedFA prints one accuracy, that of the global model on all test images. Here each client is tested on its
    equal part of them, with all classes in proportion; together the parts are the whole, each image once.
    """
    counts = train.targets.bincount(minlength=classes).tolist()
    shares = dirichlet_shares(counts, clients, concentration, *key)
    tested = stratified(test.targets.numpy(), sizes(len(test), [1 / clients] * clients), *key, "test")
    notes = ["A client is tested on its equal part of all test images, with all classes in proportion."]
    return _sites(train, deal(train.targets.numpy(), shares, *key, "train"), test, tested, *key), notes


def _with_negatives(targets: np.ndarray, positives: np.ndarray, *key) -> np.ndarray:
    others = np.flatnonzero(~np.isin(targets, targets[positives]))
    return np.concatenate((positives, random_state(*key, "negatives").choice(others, len(positives))))


def _sites(train: Split, trained: Sequence[np.ndarray], test: Split, tested: Sequence[np.ndarray], *key) -> list[Site]:
    sites = []
    for client, (own, held_out) in enumerate(zip(trained, tested, strict=True)):
        counts = [*sizes(len(own), (1 - VALIDATION, VALIDATION)), len(held_out)]
        if not all(counts):
            raise RecipeError(
                f"client_{client} is left with {counts[0]} training, {counts[1]} validation and {counts[2]} test "
                f"images; expected some of each. Take fewer clients or more images."
            )
        cuts = stratified(train.targets[own].numpy(), counts[:2], *key, "validation", client)
        sites.append(Site(f"client_{client}", *(train.select(own[cut]) for cut in cuts), test.select(held_out)))
    return sites
