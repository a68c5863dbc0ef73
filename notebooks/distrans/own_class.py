"""With one class a client: is a client right on its own class, or on the others?"""

import numpy
from pandas import DataFrame


def halves(results) -> DataFrame:
    """By alpha the accuracy on a client's own class and on the others, in per cent of the last round.

    The first half of such a client's test images are of its class, the second half are drawn from the others.
    """
    rows = []
    for recipe, record in results.found.items():
        if record is None or recipe.full["federation"].get("classes_per_client") != 1:
            continue
        scores = record.scores()
        clients = [numpy.split(client, 2) for client in scores[max(scores)]]
        own, others = (100 * numpy.mean([client[half].mean() for client in clients]) for half in (0, 1))
        rows.append({"alpha": recipe.full["augmentations"][0]["alpha"], "own": own, "others": others})
    return DataFrame(rows, columns=["alpha", "own", "others"]).groupby("alpha").mean()
