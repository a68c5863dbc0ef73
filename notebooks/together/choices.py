"""How sure the choice of configurations is: what it promised, and its lead over the others."""

from statistics import stdev

from pandas import DataFrame

from budget import CHOSEN_ON, LOCAL, RATES, tries
from fednb.recipe import Recipe
from fednb.report import on_validation
from fednb.study import Results

HIGHEST = RATES[1] * (RATES[0] / RATES[1]) ** 0.2  # where the highest fifth of the rates begins


def choices(base: Recipe, entrants: dict, chosen: dict, tried: Results, tuned: Results) -> DataFrame:
    """A row for each method that has run its choice with several seeds, local training aside.

    promised: points of validation accuracy that the chosen try has over the default's. lead: over the next best try.
    deviation: of the chosen configuration's validation accuracy over the seeds. highest: whether its learning rate is
    in the highest fifth. images: in the validation sets of all sites."""
    own = {run: tries(base, run, entrants[run]) for run in chosen if run != LOCAL}
    scored = on_validation(tried.apart([recipe for each in own.values() for recipe in each])[1])
    ran = on_validation(tuned.apart(tuned.missing)[0])
    found = {}
    for run, recipes in own.items():
        values = sorted((scored[recipe] for recipe in recipes), reverse=True)
        seeds = [value for recipe, value in ran.items() if recipe.with_(seed=CHOSEN_ON) == chosen[run]]
        if len(seeds) > 1:
            rate = chosen[run].learning_rate
            found[run] = (values[0] - scored[recipes[0]], values[0] - values[1], stdev(seeds), rate >= HIGHEST)
    frame = DataFrame.from_dict(found, orient="index", columns=["promised", "lead", "deviation", "highest"])
    return frame.assign(images=sum(tuned.records[0].images["validation"]))
