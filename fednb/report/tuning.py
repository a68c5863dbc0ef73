"""Which of several settings is best on validation images."""

from fednb.errors import DataError
from fednb.papers import protocol
from fednb.report.selection import rounds_taken
from fednb.report.wording import frame_of


def best(results):
    """Of recipes that differ in more than their seed the one with the highest accuracy: mean over its seeds of
    ``on_validation``, which says what it raises; with the first of its seeds."""
    scored, alike = on_validation(results), {}
    for recipe in results.found:
        alike.setdefault(recipe.with_(seed=0), []).append(recipe)
    return max(alike.values(), key=lambda own: sum(map(scored.get, own)) / len(own))[0]


def on_validation(results) -> dict:
    """Of each recipe its accuracy on validation images, per cent: mean over sites and rounds as the protocol's rule
    takes them. DataError where a run is not recorded, or has no validation image."""
    frame = frame_of(results)
    scored = frame[(frame["split"] == "validation") & (frame["images"] > 0) & frame["took_part"]]
    taken = rounds_taken(frame, protocol.rules()["selection"])
    chosen = scored.loc[[number in taken[key] for key, number in zip(scored["key"], scored["round"], strict=True)]]
    means = chosen.groupby("key")["accuracy"].mean()
    for recipe in results.found:
        if recipe.key not in means:
            raise DataError(f"{recipe} has no validation accuracy on record; expected one of all runs.")
    return {recipe: float(means[recipe.key]) for recipe in results.found}
