"""What is at hand of the data that recipes need, whether its images are those of the records, and what runs in their
place where images are missing: the same study on embedded ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fednb import papers
from fednb.errors import FednbError
from fednb.recipe import Recipe
from fednb.records.training import federation_of
from fednb.varied import varied

if TYPE_CHECKING:
    from fednb.records.store import Record


def lacks(recipe: Recipe, data: str | None) -> str | None:
    """What is missing of the data and weights that a recipe needs, in one sentence; None where nothing is."""
    from fednb.datasets import available

    lack = available(root=data, **recipe.dealt)
    if lack or not recipe.full["model"].get("pretrained"):
        return lack
    from fednb import models

    return models.lacks(recipe.full["model"], data)


def below_the_folder(lack: str, data: str | None) -> str:
    """What ``lacks`` says, with places below the data folder: a notebook that shows it speaks of no machine."""
    from fednb.datasets import data_root

    return lack.replace(f"{data_root(data).absolute()}{os.sep}", "")


def other_images(found: dict[Recipe, Record | None], data: str | None) -> list[str]:
    """Notes on records that were made from other images than those at hand."""
    notes, at_hand = [], {}
    for recipe, record in found.items():
        if record is None:
            continue
        place = str(recipe.dealt)
        if place not in at_hand:
            try:
                at_hand[place] = None if lacks(recipe, data) else federation_of(recipe, data).fingerprint
            except FednbError as error:
                at_hand[place] = None
                notes.append(f"The images at hand cannot be compared with the recorded ones: {error}")
        if at_hand[place] not in (None, record.fingerprint):
            notes.append(
                f"{recipe} was recorded from other images (fingerprint {record.fingerprint}) than those at "
                f"hand ({at_hand[place]}); the record is shown."
            )
    return notes


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
