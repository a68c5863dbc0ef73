"""What recipes differ in: columns of a frame, and the names of runs that are told of together."""

from dataclasses import fields

from fednb.recipe import Recipe

_NAMED = ("federation", "algorithm", "augmentations", "seed")


def varied(recipes: list[Recipe]) -> list[str]:
    """The settings that they differ in."""
    names = [field.name for field in fields(Recipe)]
    return [name for name in names if len({str(recipe.full[name]) for recipe in recipes}) > 1]


def varied_columns(recipes: list[Recipe]) -> dict:
    """Column name -> its value for a recipe; where federation or model vary, a column for each option that does."""
    columns, settings = {}, {"split", *(field.name for field in fields(Recipe))}
    for name in varied(recipes):
        if name in ("federation", "model"):
            for option in dict.fromkeys(option for recipe in recipes for option in recipe.full[name]):
                if len({str(recipe.full[name].get(option)) for recipe in recipes}) > 1:
                    column = name if option == "name" else option
                    if column in columns or column in settings - {name}:  # a federation's seed is not the run's
                        column = f"{name}_{option}"
                    columns[column] = lambda recipe, name=name, option=option: recipe.full[name].get(option)
        elif name == "unseen":
            columns[name] = lambda recipe: len(recipe.unseen)
        elif name not in _NAMED:
            columns[name] = lambda recipe, name=name: recipe.full[name]
    return {column: value for column, value in columns.items() if column != "federation"}


def plain(value):
    """A setting as a cell shows it."""
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return " + ".join(value) or "none"
    return value if isinstance(value, str | int | float | bool) else str(value)


def listed(failed: dict[Recipe, str]) -> str:
    """Each reason once, with the runs that it is of."""
    alike: dict[str, list[Recipe]] = {}
    for recipe, error in failed.items():
        alike.setdefault(error, []).append(recipe)
    return " ".join(f"{_named(recipes)}: {error}" for error, recipes in alike.items())


def _named(recipes: list[Recipe]) -> str:
    """Which runs these are: by federation, those that differ in their seeds or unseen sites alone together."""
    if len(recipes) == 1:
        return str(recipes[0])
    told, alike = [], {}
    for recipe in recipes:
        alike.setdefault(recipe.full["federation"]["name"], []).append(recipe)
    for federation, of in alike.items():
        columns = {name: value for name, value in varied_columns(of).items() if name not in ("evaluation", "unseen")}
        seeds, unseen = {}, {}
        for recipe in of:
            what = ", ".join((recipe.label, *(f"{name} {plain(value(recipe))}" for name, value in columns.items())))
            what += ", unseen " if recipe.unseen else ""
            seeds.setdefault((what, " + ".join(recipe.unseen)), set()).add(recipe.seed)
        for (what, sites), found in seeds.items():
            unseen.setdefault((what, ", ".join(map(str, sorted(found)))), []).append(sites)
        runs = (f"{what}{' or '.join(sites)}, seed {found}" for (what, found), sites in unseen.items())
        told.append(f"on {federation}: {'; '.join(runs)}")
    return f"{len(recipes)} runs ({'. '.join(told)})"
