"""How DisTrans deals classes out to clients."""

import numpy as np

from fednb.errors import RecipeError
from fednb.randomness import random_state


def class_shares(classes: int, clients: int, classes_per_client: int, *key) -> np.ndarray:
    """What share of each class's images each client gets, ``[clients, classes]``, with few classes a client.

    With N classes and C clients, each client is given u = ``classes_per_client`` classes and each class to
    k = u C / N clients: one client after another draws among the classes with most places left. Then client i
    with class c draws s_ic ~ U(0.4, 0.6), and its share is s_ic / sum_n s_nc. The shares of a class sum to 1.
    The heterogeneity (DisTrans, Eq. 3 and 4) is DH = 1 - u / N if k > 1, and 1 if k = 1.

    Images are cut by these shares; training and test images cut by one table have the same classes.

    Reference: DisTrans, Sec. 5, "Local Data Distribution"; the paper does not say how classes are given out,
    this is as released.

    Raises RecipeError when classes cannot go to equally many clients, or a number is out of its range.
    """
    check_whole("clients", clients)
    check_whole("classes_per_client", classes_per_client)
    if classes_per_client > classes or classes_per_client * clients % classes:
        fitting = [u for u in range(1, classes + 1) if u * clients % classes == 0]
        raise RecipeError(
            f"{clients} clients with {classes_per_client} of {classes} classes each cannot share every class among "
            f"equally many clients. For {clients} clients classes_per_client may be {', '.join(map(str, fitting))}."
        )
    random = random_state(*key)
    places = np.full(classes, classes_per_client * clients // classes)
    table = np.zeros((clients, classes))
    for row in table:
        given = np.lexsort((random.permutation(classes), -places))[:classes_per_client]
        places[given] -= 1
        row[given] = random.uniform(0.4, 0.6, classes_per_client)
    return table / table.sum(axis=0)


def check_whole(name: str, value) -> None:
    """RecipeError unless the value is a whole number from 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RecipeError(f"{name} is {value!r}; expected a whole number from 1.")
