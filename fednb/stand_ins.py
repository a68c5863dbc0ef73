"""What runs in the place of recipes whose images are missing: the same study on embedded images."""

from fednb import papers
from fednb.recipe import Recipe
from fednb.runs.training import federation_of
from fednb.varied import varied


def is_stand_in(recipe: Recipe, paper: str | None) -> bool:
    """Whether a recipe uses another federation than those that the paper prints accuracies on: embedded data, or other
    real ones."""
    return paper is not None and recipe.full["federation"]["name"] not in papers.printed_federations(paper)


def replaced(recipes: list[Recipe], paper: str | None) -> list[Recipe]:
    """The recipes whose place a stand-in takes: those on the paper's data, or all where there are none."""
    return [recipe for recipe in recipes if not is_stand_in(recipe, paper)] or recipes


def stand_ins(recipes: list[Recipe], paper: str) -> list[Recipe]:
    """The same recipes on embedded images, with a network that fits them; what else they vary, they vary.

    One of the sites is unseen for each choice of unseen sites. Recipes on another federation than the paper's stay,
    unless all are on such.
    """
    away = replaced(recipes, paper)
    kept = set(varied(away)) - {"federation", "model"}
    choices = list(dict.fromkeys(recipe.unseen for recipe in away if recipe.unseen))
    stands_in = {}
    for recipe in away:
        federation, unseen = recipe.full["federation"]["name"], ()
        on = federation if federation in papers.settings(paper).get("on", {}) else None
        settings = papers.recipe(paper, "stand_in", on)
        if recipe.unseen:
            sites = federation_of(Recipe(federation=settings["federation"]), None).sites
            unseen = (sites[choices.index(recipe.unseen) % len(sites)].name,)
        fitting = {name: value for name, value in settings.items() if name not in kept}
        stands_in[recipe] = recipe.with_(**fitting, unseen=unseen)
    return [stands_in.get(recipe, recipe) for recipe in recipes]
