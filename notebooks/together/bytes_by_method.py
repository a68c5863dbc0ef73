"""What each method sends next to the model."""

from pandas import DataFrame


def table(results) -> DataFrame:
    """A row for each run of the first seed: bytes of a client next to the model and images, once before round 1 and in
    the last round, up and down."""
    rows = {}
    for recipe, record in results.found.items():
        if record and recipe.seed == min(each.seed for each in results.found):
            each = {"once": record.prepare, "a round": record.rounds[-1]}
            rows[recipe.label] = {
                f"{when}, {way}": sum(count for name, count in sent[way].items() if name not in ("model", "images"))
                // len(record.clients)
                for when, sent in each.items()
                for way in ("up", "down")
            }
    return DataFrame.from_dict(rows, orient="index")
