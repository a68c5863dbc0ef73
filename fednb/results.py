"""Records of a study, what is like them and what is older, and one data frame of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from fednb.at_hand import is_stand_in
from fednb.errors import RecipeError, RunError
from fednb.recipe import Recipe
from fednb.records.staleness import changed
from fednb.records.store import Record, Store
from fednb.registry import OF_THE_RUN, complete, find, options, task
from fednb.varied import plain, varied_columns

_OF_RUNS = ("algorithm", "augmentations", "seed", "evaluation", "unseen")  # what the runs of one setting differ in


@dataclass(frozen=True)
class Results:
    """Records of a study, in the order of its recipes.

    found: a record or None for each recipe. paper: as in Study. notes: what a reader must know, of the study and of its
    records, each once. store: where the records are.
    """

    found: dict[Recipe, Record | None]
    paper: str | None = None
    notes: tuple[str, ...] = field(default=())
    store: Store | None = None

    @property
    def records(self) -> list[Record]:
        return [record for record in self.found.values() if record]

    @property
    def missing(self) -> list[Recipe]:
        return [recipe for recipe, record in self.found.items() if not record]

    @property
    def stand_in(self) -> bool:
        """Whether any of the recipes uses other data than the paper."""
        return any(is_stand_in(recipe, self.paper) for recipe in self.found)

    def apart(self, recipes: list[Recipe]) -> tuple[Results, Results]:
        """All but these recipes, and these alone: runs beside the paper's, which stand in for none of them."""
        alone = {recipe: record for recipe, record in self.found.items() if recipe in recipes}
        others = {recipe: record for recipe, record in self.found.items() if recipe not in recipes}
        return replace(self, found=others), Results(alone, store=self.store)

    @cached_property
    def alike(self) -> Results:
        """All that is recorded in the settings of these runs, by whatever study: they tell how far runs spread. Of
        methods from outside these runs' own alone: others may not be at hand elsewhere."""
        if self.store is None:
            return self
        settings = {_setting(record) for record in self.records}
        found = {recipe: record for recipe, record in self.found.items() if record}
        known = {recipe.key for recipe in found}
        left_out = []
        for record in self.store.like(list(found)):
            if record.key in known or record.origin.get("outside"):
                continue
            try:
                if _setting(record) in settings:
                    found[recipe_of(record)] = record
            except RecipeError:  # by other options than a method or a loader has today
                left_out.append(record.recipe["algorithm"]["name"])
        told = (
            f"{len(left_out)} recorded runs have options that are no more ({', '.join(sorted(set(left_out)))}): the "
            "spread of runs is estimated without them."
        )
        return replace(self, found=found, notes=(*self.notes, *([told] if left_out else [])))

    @cached_property
    def stale(self) -> dict[Recipe, list[str]]:
        """The recipes whose record is by older code, with what behaves otherwise today: ``["augmentations/fedfa"]``."""
        named = {recipe: changed(record) for recipe, record in self.found.items() if record}
        return {recipe: names for recipe, names in named.items() if names}

    def record(self, **settings) -> Record:
        """The one record whose recipe has these settings, for example ``augmentation="fedrdn", seed=0``."""
        chosen = [
            record
            for recipe, record in self.found.items()
            if record and all(_describe(recipe).get(name, recipe.full.get(name)) == v for name, v in settings.items())
        ]
        if len(chosen) != 1:
            raise RunError(f"{len(chosen)} of {len(self.found)} runs are recorded with {settings}; expected one.")
        return chosen[0]

    @cached_property
    def frame(self):
        """One row for each recipe, round, client and split, as a pandas data frame.

        run (label), algorithm, augmentation, federation, task, seed, dealt_by_seed (whether the federation's seed is
        "run": each seed has a partition of its own), key, stand_in, stale (recorded by older code), every other
        varied setting (of unseen sites how many), every varied option of a method, such as ``fedfa.stages`` (None where
        a run has no FedFA), round (from 1), client, took_part (not where it is unseen), split
        ("validation" or "test"), correct (the images' scores added up: a count, or a sum of Dice coefficients),
        images (a count), accuracy (their ratio in per cent).
        """
        import pandas

        varied = varied_columns(list(self.found))
        rows = []
        for recipe, record in self.found.items():
            if record is None:
                continue
            head = _describe(recipe) | {
                "key": recipe.key,
                "stand_in": is_stand_in(recipe, self.paper),
                "stale": recipe in self.stale,
                **{name: plain(value(recipe)) for name, value in varied.items()},
            }
            for values in record.rounds:
                for split in ("validation", "test"):
                    counts = zip(record.clients, values[split], record.images[split], strict=True)
                    for client, correct, images in counts:
                        accuracy = 100 * correct / images if images else float("nan")
                        rows.append(
                            head
                            | {"round": values["round"], "client": client, "took_part": client not in recipe.unseen}
                            | {"split": split, "correct": correct, "images": images, "accuracy": accuracy}
                        )
        if not rows:
            return pandas.DataFrame(rows)
        return pandas.DataFrame(rows).join(self._options(), on="key")

    def _options(self):
        """A row by key, a column for each option that differs among the runs of its method."""
        import pandas

        options = {
            recipe.key: {
                f"{method['name']}.{name}": tuple(value) if isinstance(value, list) else value
                for method in (recipe.full["algorithm"], *recipe.full["augmentations"])
                for name, value in method.items()
                if name != "name"
            }
            for recipe in self.found
        }
        values: dict[str, set] = {}
        for own in options.values():
            for name, value in own.items():
                values.setdefault(name, set()).add(str(value))
        varied = [name for name, found in values.items() if len(found) > 1]
        rows = [[own.get(name) for name in varied] for own in options.values()]
        return pandas.DataFrame(rows, index=list(options), columns=varied, dtype=object)

    def with_notes(self, *notes: str) -> Results:
        """The same with these notes as well."""
        return replace(self, notes=(*self.notes, *notes))


def recipe_of(record: Record) -> Recipe:
    """The recipe of a record, without what its algorithm had as an option then and has no more; RecipeError where the
    rest is another run."""
    algorithm = record.recipe["algorithm"]
    known = {"name", *options(find("algorithms", algorithm["name"]))}
    recipe = Recipe(**record.recipe | {"algorithm": {name: algorithm[name] for name in algorithm if name in known}})
    if recipe.key != record.key:
        raise RecipeError(f"{record.key} was made with options that {algorithm['name']} has no more.")
    return recipe


def _setting(record: Record) -> str:
    """What a record has in common with others that differ in methods, seeds and unseen sites; options of the federation
    that are younger than the record have their defaults."""
    settings = record.recipe | {"federation": sorted(complete("datasets", record.recipe["federation"]).items())}
    return repr(sorted((name, repr(value)) for name, value in settings.items() if name not in _OF_RUNS))


def _describe(recipe: Recipe) -> dict:
    return {
        "run": recipe.label,
        "algorithm": recipe.algorithm_name,
        "augmentation": recipe.augmentation_name,
        "federation": recipe.full["federation"]["name"],
        "task": task(recipe.full["federation"]),
        "seed": recipe.seed,
        "dealt_by_seed": recipe.full["federation"].get("seed") == OF_THE_RUN,
    }
