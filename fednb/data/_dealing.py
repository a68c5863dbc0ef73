"""One data set dealt out to clients: the sites client_0, client_1, ..."""

from collections.abc import Callable, Sequence
from math import gcd

import numpy as np

from fednb.data._partition import TRIES, deal, dealt, dirichlet_shares, largest, sizes, stratified
from fednb.errors import DataError
from fednb.federation import Site, Split
from fednb.randomness import random_state
from fednb.standalone.class_shares import check_whole, class_shares

VALIDATION = 0.1  # of a client's training images; DisTrans and FedFA have no validation images on these data
LEAST = 5  # training images of a client, so that one becomes validation; batch normalisation needs two of the others
LEAST_DRAWN = 10  # the same by Dirichlet, as released


def by_class_shares(
    train: Split, test: Split, classes: int, clients: int, classes_per_client: int, *key, spare: Split | None = None
) -> tuple[list[Site], list[str]]:
    """Sites with ``classes_per_client`` classes each, as DisTrans cuts them, and notes.

    Test images are cut by the same shares, and so are spare ones. With one class per client each is tested first on
    its own test images, the positives, then on as many of other classes with their true labels, drawn with replacement
    (as released; the paper says "randomly selected"): DisTrans, Sec. 5.1.

    Raises DataError as ``_shares`` does.
    """
    check_whole("classes_per_client", classes_per_client)
    trained, held_out = (split.targets.bincount(minlength=classes).tolist() for split in (train, test))

    def draw(clients: int, tries: int) -> np.ndarray | None:
        shares = class_shares(classes, clients, classes_per_client, *key)
        enough = dealt(trained, shares).min() >= LEAST and dealt(held_out, shares).min() >= 1
        return shares if enough else None

    step = classes // gcd(classes, classes_per_client)
    shares = _shares(draw, train, test, clients, LEAST, f"{classes_per_client} of {classes} classes each", step)
    notes, held_out = [], []
    for name, split in {"test": test, "spare": spare}.items():
        if split:
            targets = split.targets.numpy()
            hands = deal(targets, shares, *key, name)
            if classes_per_client == 1:
                hands = [_with_negatives(targets, own, *key, client) for client, own in enumerate(hands)]
            held_out.append([split.select(hand) for hand in hands])
    if classes_per_client == 1:
        notes = ["A client is tested on its own class and on as many images of the others, drawn with replacement."]
    return _sites(train, deal(train.targets.numpy(), shares, *key, "train"), held_out, *key), notes


def by_dirichlet(
    train: Split, test: Split, classes: int, clients: int, concentration: float, *key, spare: Split | None = None
) -> tuple[list[Site], list[str]]:
    """Sites whose training classes follow a Dirichlet distribution, as FedFA cuts them, and notes.

    FedFA prints one accuracy, that of the global model on all test images. Here each client is tested on its
    equal part of them, with all classes in proportion; together the parts are the whole, each image once. Spare
    images are dealt out as test images are.

    Raises DataError as ``_shares`` does.
    """
    counts = train.targets.bincount(minlength=classes).tolist()

    def draw(clients: int, tries: int) -> np.ndarray | None:
        return dirichlet_shares(counts, clients, concentration, *key, minimum=LEAST_DRAWN, tries=tries)

    shares = _shares(draw, train, test, clients, LEAST_DRAWN, f"Dir({concentration})")
    held_out = []
    for name, split in {"test": test, "spare": spare}.items():
        if split:
            hands = stratified(split.targets.numpy(), sizes(len(split), [1 / clients] * clients), *key, name)
            held_out.append([split.select(hand) for hand in hands])
    notes = ["A client is tested on its equal part of all test images, with all classes in proportion."]
    return _sites(train, deal(train.targets.numpy(), shares, *key, "train"), held_out, *key), notes


def _shares(draw: Callable, train: Split, test: Split, clients: int, least: int, how: str, step: int = 1) -> np.ndarray:
    """``draw(clients, tries)``, the shares.

    Raises DataError when there are none that give each client ``least`` training images and one test image. It names
    the largest number of clients, a multiple of ``step``, that has such shares.
    """
    check_whole("clients", clients)
    most = min(len(train) // least, len(test))
    shares = draw(clients, TRIES) if clients <= most else None
    if shares is None:
        fewer = largest(lambda number: draw(number, 10) is not None, min(clients, most + 1), step)
        raise DataError(
            f"{len(train)} training and {len(test)} test images cannot be dealt out to {clients} clients by {how}, "
            f"with {least} training images (one for validation) and one test image for each client. "
            f"{f'Take at most {fewer} clients, or' if fewer else 'Take'} more images."
        )
    return shares


def _with_negatives(targets: np.ndarray, positives: np.ndarray, *key) -> np.ndarray:
    others = np.flatnonzero(~np.isin(targets, targets[positives]))
    return np.concatenate((positives, random_state(*key, "negatives").choice(others, len(positives))))


def _sites(train: Split, trained: Sequence[np.ndarray], held_out: Sequence[list[Split]], *key) -> list[Site]:
    """held_out: the test images of each client, and its spare ones where there are any."""
    sites = []
    for client, (own, *others) in enumerate(zip(trained, *held_out, strict=True)):
        counts = sizes(len(own), (1 - VALIDATION, VALIDATION))
        cuts = stratified(train.targets[own].numpy(), counts, *key, "validation", client)
        sites.append(Site(f"client_{client}", *(train.select(own[cut]) for cut in cuts), *others))
    return sites
