"""A study: recipes that a notebook declares in plain sight, found among the records or trained."""

from __future__ import annotations

import os
from pathlib import Path

from fednb import registry
from fednb.at_hand import below_the_folder, lacks, other_images, replaced, stand_ins
from fednb.errors import RunError
from fednb.federation import Federation
from fednb.files import unwritable
from fednb.recipe import Recipe
from fednb.records.progress import Display, expected_seconds
from fednb.records.store import Store
from fednb.records.workers import train
from fednb.registry import IN_MEMORY
from fednb.results import Results
from fednb.varied import listed

NO_TRAINING = "FEDNB_TRAIN"


def default_store() -> Store:
    """Reads ``results/`` of the project or the checkout, and reads and writes ``report/runs``, with checkpoints beside.

    ``FEDNB_RUNS`` names another folder to write to. A run that Flower carried is found where no other is. A project
    inside the checkout reads the checkout's ``results/``, too. ``FEDNB_STALE=again`` has it renew what is stale.
    """
    checkout, project = Path(__file__).parents[1], registry.project()
    there = (checkout / "pyproject.toml").is_file()
    home = project or (checkout if there else Path.cwd())
    runs, results = Path(os.environ.get("FEDNB_RUNS") or home / "report" / "runs"), home / "results"
    beside = home / "report" if runs == results else runs.parent
    ours = (checkout / "results",) if there and project and project.is_relative_to(checkout) else ()
    store = Store(runs, also=(results, *ours, runs / "flower", results / "flower"), checkpoints=beside / "checkpoints")
    store.renew = os.environ.get("FEDNB_STALE") == "again"
    return store


class Study:
    """Recipes that belong together.

    Args:
        recipes: what to run; doubles are run once.
        paper: the paper that they reproduce. Rows from another federation than the paper's count for nothing, and
            where the paper's images are missing and nothing on them is recorded, its ``stand_in`` profile runs instead.
        store: where records are; ``default_store()`` unless given.
        other: what runs where the paper's images are missing and nothing on them is recorded: recipes on other data,
            a real federation that the paper does not print, which are never held against its numbers.
        federation: made in memory, in the place of the recipes' own. Recipes and records hold its fingerprint, so that
            runs on other images are other runs.
    """

    def __init__(
        self,
        recipes: list[Recipe],
        paper: str | None = None,
        store: Store | None = None,
        other: list[Recipe] | None = None,
        federation: Federation | None = None,
    ):
        if federation is not None:
            given = {"name": IN_MEMORY[federation.task], "fingerprint": federation.fingerprint}
            recipes = [recipe.with_(federation=given) for recipe in recipes]
        self.federation = federation
        self.recipes = list(dict.fromkeys(recipes))
        self.paper = paper
        self.store = store or default_store()
        self.other = other

    def run(self, data: str | None = None, device: str = "cpu", jobs: int = 1, engine: str | None = None) -> Results:
        """Finds what is recorded, trains what is missing, and returns all of it.

        data: the folder of the data sets; ``FEDNB_DATA`` or ``./data`` unless given. device: several as
        ``"cuda:0,cuda:1"``, taken in turn. jobs: processes side by side; whatever else trains on the same store shares
        the work. engine: ``"ray"``, the cluster that ``RAY_ADDRESS`` names or one on this machine; then
        ``jobs`` runs are trained at a time on its machines, which share the store's and the data's folders with this
        one, and ``device`` is cpu or cuda. A recipe that fails is named in ``Results.notes`` and the others go on; so
        are those that are missing while ``FEDNB_TRAIN=0`` forbids training. Raises RunError when there is no run at
        all, or when the engine is not there.
        """
        data = data or None
        chosen = self.at_hand(data)
        if chosen is not self:
            lack = below_the_folder(lacks(self.recipes[0], data), data)
            return chosen.run(data, device, jobs, engine).with_notes(lack)
        results = self.recorded()
        if not results.missing:
            return results.with_notes(*other_images(results.found, data))
        lacking = {recipe: None if self.federation else lacks(recipe, data) for recipe in results.missing}
        if stands_in := self.needs_stand_in({recipe for recipe, lack in lacking.items() if lack}):
            lack = below_the_folder(next(filter(None, lacking.values())), data)
            return stands_in.run(data, device, jobs, engine).with_notes(lack)
        if os.environ.get(NO_TRAINING) == "0":
            failed = dict.fromkeys(results.missing, f"not recorded yet, and {NO_TRAINING}=0 forbids training.")
        else:
            trainable = [recipe for recipe, lack in lacking.items() if not lack]
            failed = {recipe: lack for recipe, lack in lacking.items() if lack}
            if trainable and (refusal := unwritable(self.store.folder, self.store.checkpoints)):
                failed, trainable = failed | {trainable[0]: refusal}, []
            ended = _train(trainable, self.store, jobs, device, data, self.federation, engine)
            failed |= {recipe: error for recipe, error in ended.items() if error}
            results = self.recorded()
        if not results.records:
            raise RunError("no run of this study succeeded: " + listed(failed))
        failures = [listed(failed)] if failed else []
        return results.with_notes(*other_images(results.found, data), *failures)

    def recorded(self) -> Results:
        """What is recorded, without training anything."""
        found = self.store.found(self.recipes)
        of_records = (note for record in found.values() if record for note in record.notes)
        return Results(found, self.paper, tuple(dict.fromkeys((*self.store.notes, *of_records))), self.store)

    def at_hand(self, data: str | None = None) -> Study:
        """The study on other data where it takes this one's place, else this one."""
        if not self.other or self.recorded().records or not all(lacks(recipe, data) for recipe in self.recipes):
            return self
        return Study(self.other, self.paper, self.store)

    def needs_stand_in(self, lacking: set[Recipe]) -> Study | None:
        """The study that runs where all recipes whose place a stand-in takes are ``lacking``, else None."""
        if not self.paper or not self.recipes or not lacking.issuperset(replaced(self.recipes, self.paper)):
            return None
        stands_in = self.as_stand_in()
        return stands_in if stands_in.recipes != self.recipes else None

    def as_stand_in(self) -> Study:
        """The same study on embedded images: see ``stand_ins``."""
        return Study(stand_ins(self.recipes, self.paper), self.paper, self.store)


def _train(recipes, store, jobs, device, data, federation, engine) -> dict[Recipe, str | None]:
    if not recipes:
        return {}
    recorded = store.like(recipes)
    work = {recipe.key: expected_seconds(recipe, recorded, device, store.folder) for recipe in recipes}
    with Display(work, jobs) as display:
        display.say(f"{len(recipes)} runs to train")
        return train(recipes, store, jobs, device, data, display.runs(recipes), federation, engine)
