"""What is at hand of the data that recipes need, and whether its images are those of the records."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fednb.errors import FednbError
from fednb.runs.training import federation_of

if TYPE_CHECKING:
    from fednb.recipe import Recipe
    from fednb.runs.store import Record


def lacks(recipe: Recipe, data: str | None) -> str | None:
    """What is missing of the data that a recipe needs, in one sentence; None where nothing is."""
    from fednb.data import available

    return available(root=data, **recipe.dealt)


def below_the_folder(lack: str, data: str | None) -> str:
    """What ``lacks`` says, with places below the data folder: a notebook that shows it speaks of no machine."""
    from fednb.data import data_root

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
