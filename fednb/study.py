"""A study: recipes that a notebook declares in plain sight, found among the records or trained, and what they measured.

Where a paper's images are missing and nothing on them is recorded, the same study runs on embedded images: a stand-in,
which is never held against the paper's numbers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from fednb import datasets, models, papers, registry
from fednb.errors import FednbError, RecipeError, RunError
from fednb.federation import Federation
from fednb.recipe import Recipe
from fednb.records.staleness import changed
from fednb.records.store import Record, Store
from fednb.records.training import federation_of
from fednb.records.workers import train

_OF_RUNS = ("algorithm", "augmentations", "seed", "evaluation", "unseen")  # what the runs of one setting differ in


def default_store() -> Store:
    """Reads ``results/`` of the project or the checkout, and reads and writes ``report/runs``, or the folder that
    ``FEDNB_RUNS`` names; ``FEDNB_STALE=again`` has it renew what is stale. A run that Flower carried is found where no
    other is, and in a project inside the checkout the checkout's ``results/``, too."""
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

    paper: which they reproduce; where its images are missing and nothing on them is recorded, its ``stand_in`` profile
    runs instead, or ``other``: recipes on other real data. store: where records are; ``default_store()`` unless given.
    federation: made in memory, in the place of the recipes' own; recipes and records hold its fingerprint."""

    def __init__(
        self,
        recipes: list[Recipe],
        paper: str | None = None,
        store: Store | None = None,
        other: list[Recipe] | None = None,
        federation: Federation | None = None,
    ):
        if not isinstance(recipes, list | tuple) or not all(isinstance(recipe, Recipe) for recipe in recipes):
            raise RecipeError(f"a study is of {recipes!r:.100}; expected a list of recipes, such as [Recipe()].")
        if federation is not None:
            given = {"name": registry.IN_MEMORY[federation.task], "fingerprint": federation.fingerprint}
            recipes = [recipe.with_(federation=given) for recipe in recipes]
        self.federation = federation
        self.recipes = list(dict.fromkeys(recipes))
        self.paper = paper
        self.store = store or default_store()
        self.other = other

    def run(self, data: str | None = None, device: str = "cpu", jobs: int = 1) -> Results:
        """Finds what is recorded, trains what is missing, and returns all of it; RunError where that is nothing.

        data: the folder of the data sets; ``FEDNB_DATA`` or ``./data`` unless given. jobs: processes side by side.
        What fails, or is missing while ``FEDNB_TRAIN=0`` forbids training, is named in ``Results.notes``."""
        if type(jobs) is not int or jobs < 1:
            raise RunError(f"jobs is {jobs!r}; expected a whole number of at least 1.")
        data, results, failed = data or None, self.recorded(), {}
        if results.missing:
            lacking = {recipe: None if self.federation else lacks(recipe, data) for recipe in results.missing}
            failed = {recipe: lack for recipe, lack in lacking.items() if lack}
            if instead := self.instead(set(failed)):
                lack = next(iter(failed.values())).replace(f"{datasets.data_root(data).absolute()}{os.sep}", "")
                return instead.run(data, device, jobs).with_notes(lack)  # which speaks of no machine
            trainable = [recipe for recipe in lacking if recipe not in failed]
            if os.environ.get("FEDNB_TRAIN") == "0":
                failed = dict.fromkeys(results.missing, "not recorded yet, and FEDNB_TRAIN=0 forbids training.")
            elif trainable:
                ended = train(trainable, self.store, jobs, device, data, None, self.federation)
                failed |= {recipe: error for recipe, error in ended.items() if error}
                results = self.recorded()
        if not results.records:
            raise RunError("no run of this study succeeded: " + _listed(failed))
        return results.with_notes(*_other_images(results.found, data), *([_listed(failed)] if failed else []))

    def recorded(self) -> Results:
        """What is recorded, without training anything."""
        found = self.store.found(self.recipes)
        of_records = (note for record in found.values() if record for note in record.notes)
        return Results(found, self.paper, tuple(dict.fromkeys((*self.store.notes, *of_records))), self.store)

    def instead(self, lacking: set[Recipe]) -> Study | None:
        """What runs where these recipes lack their images: ``other``, or a stand-in for those on the paper's data; None
        where some can go on."""
        if self.other and lacking.issuperset(self.recipes):
            return Study(self.other, self.paper, self.store)
        if not self.paper or not lacking.issuperset(_replaced(self.recipes, self.paper)):
            return None
        stands_in = self.as_stand_in()
        return stands_in if stands_in.recipes != self.recipes else None

    def as_stand_in(self) -> Study:
        """The same recipes on embedded images, with a network that fits them; one site is unseen for each choice of
        unseen sites."""
        away = _replaced(self.recipes, self.paper)
        kept = {each.name for each in fields(Recipe) if _differ(recipe.full[each.name] for recipe in away)}
        choices = list(dict.fromkeys(recipe.unseen for recipe in away if recipe.unseen))
        stands_in = {}
        for recipe in away:
            federation, unseen = recipe.full["federation"]["name"], ()
            on = federation if federation in papers.settings(self.paper).get("on", {}) else None
            settings = papers.recipe(self.paper, "stand_in", on)
            if recipe.unseen:
                sites = federation_of(Recipe(federation=settings["federation"]), None).sites
                unseen = (sites[choices.index(recipe.unseen) % len(sites)].name,)
            fitting = {name: value for name, value in settings.items() if name not in kept - {"federation", "model"}}
            stands_in[recipe] = recipe.with_(**fitting, unseen=unseen)
        return Study([stands_in.get(recipe, recipe) for recipe in self.recipes], self.paper, self.store)


@dataclass(frozen=True)
class Results:
    """Records of a study: for each recipe one or None. notes: what a reader must know, each once."""

    found: dict[Recipe, Record | None]
    paper: str | None = None
    notes: tuple[str, ...] = ()
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
        """All but these recipes, and these alone: runs next to the paper's, which stand in for none of them."""
        others = {recipe: record for recipe, record in self.found.items() if recipe not in recipes}
        alone = {recipe: record for recipe, record in self.found.items() if recipe not in others}
        return replace(self, found=others), Results(alone, store=self.store)

    @cached_property
    def alike(self) -> Results:
        """All that is recorded in the settings of these runs, of methods from outside these runs' own alone."""
        if self.store is None:
            return self
        settings = {_setting(record) for record in self.records}
        found = {recipe: record for recipe, record in self.found.items() if record}
        for record in self.store.like(list(found)):
            with suppress(RecipeError):
                if not record.origin.get("outside") and _setting(record) in settings:
                    found.setdefault(recipe_of(record), record)
        return replace(self, found=found)

    @cached_property
    def stale(self) -> dict[Recipe, list[str]]:
        """The recipes whose record is by older code, and what behaves otherwise today: ``["augmentations/fedfa"]``."""
        named = {recipe: changed(record) for recipe, record in self.found.items() if record}
        return {recipe: names for recipe, names in named.items() if names}

    def record(self, **settings) -> Record:
        """The one record whose recipe has these settings, for example ``augmentation="fedrdn", seed=0``."""
        known = {recipe: recipe.full | _about(recipe) for recipe, record in self.found.items() if record}
        chosen = [self.found[recipe] for recipe, own in known.items() if own | settings == own]
        if len(chosen) != 1:
            raise RunError(f"{len(chosen)} of {len(self.found)} runs are recorded with {settings}; expected one.")
        return chosen[0]

    @cached_property
    def frame(self):
        """One row for each recipe, round, client and split, as a pandas data frame.

        run (the methods with their options), label (run, and what else varies, seeds apart), algorithm, augmentation,
        federation, task, seed, dealt_by_seed (whether each seed has a partition of its own), key, stand_in, stale
        (recorded by older code), every other varied setting (of unseen sites how many), round (from 1), client,
        took_part (not where it is unseen), split ("validation" or "test"), correct (the images' scores added up: a
        count, or a sum of Dice coefficients), images (a count), accuracy (their ratio in per cent), and every varied
        option of a method, such as ``fedfa.stages`` (None without FedFA)."""
        import pandas

        recipes = list(self.found)
        columns, labels = _columns(recipes), _labels(recipes)
        several = _differ(recipe.full["federation"]["name"] for recipe in recipes)
        rows = []
        for recipe, record in self.found.items():
            if record is None:
                continue
            on = f" on {recipe.full['federation']['name']}" if several else ""
            head = {"run": recipe.label, "label": labels[recipe] + on} | _about(recipe)
            head |= {"key": recipe.key, "stand_in": is_stand_in(recipe, self.paper), "stale": recipe in self.stale}
            head |= {name: _plain(values[recipe]) for name, values in columns.items()}
            for values in record.rounds:
                for split in ("validation", "test"):
                    counts = zip(record.clients, values[split], record.images[split], strict=True)
                    for client, correct, images in counts:
                        row = {"round": values["round"], "client": client, "took_part": client not in recipe.unseen}
                        rows.append(head | row | {"split": split, "correct": correct, "images": images})
        if not rows:
            return pandas.DataFrame()
        frame = pandas.DataFrame(rows)
        return frame.assign(accuracy=100 * frame["correct"] / frame["images"]).join(_options(recipes), on="key")

    def with_notes(self, *notes: str) -> Results:
        return replace(self, notes=(*self.notes, *notes))


def lacks(recipe: Recipe, data: str | None) -> str | None:
    """What is missing of the data and weights that a recipe needs, in one sentence, or None."""
    return datasets.available(root=data, **recipe.dealt) or models.lacks(recipe.full["model"], data)


def is_stand_in(recipe: Recipe, paper: str | None) -> bool:
    """Whether a recipe uses another federation than those that the paper prints accuracies on."""
    return paper is not None and recipe.full["federation"]["name"] not in papers.printed_federations(paper)


def recipe_of(record: Record) -> Recipe:
    """The recipe of a record, without options that its methods have no more; RecipeError where that is another run."""

    def kept(room: str, given: dict) -> dict:
        known = {"name", *registry.options(registry.find(room, given["name"]))}
        return {name: given[name] for name in given if name in known}

    algorithm = kept("algorithms", record.recipe["algorithm"])
    augmentations = [kept("augmentations", given) for given in record.recipe["augmentations"]]
    recipe = Recipe(**record.recipe | {"algorithm": algorithm, "augmentations": augmentations})
    if recipe.key != record.key:
        raise RecipeError(f"{record.key} was made with options that its methods have no more.")
    return recipe


def _replaced(recipes: list[Recipe], paper: str) -> list[Recipe]:
    """The recipes whose place a stand-in takes: those on the paper's data, or all where there are none."""
    return [recipe for recipe in recipes if not is_stand_in(recipe, paper)] or recipes


def _other_images(found: dict[Recipe, Record | None], data: str | None) -> list[str]:
    notes, available = [], {}
    for recipe, record in ((recipe, record) for recipe, record in found.items() if record):
        choice = str(recipe.dealt)
        if choice not in available:
            try:
                available[choice] = None if lacks(recipe, data) else federation_of(recipe, data).fingerprint
            except FednbError as error:
                available[choice] = None
                notes.append(f"The available images cannot be compared with the recorded ones: {error}")
        if available[choice] not in (None, record.fingerprint):
            notes.append(f"{recipe} was recorded from other images than the available ones; the record is shown.")
    return notes


def _listed(failed: dict[Recipe, str]) -> str:
    """Each reason once, with the first runs that it is of: those that differ in their seeds alone together."""
    labels, alike = _labels(list(failed)), {}
    for recipe, error in failed.items():
        run = f"{labels[recipe]} on {recipe.full['federation']['name']}, seed "
        alike.setdefault(error, {}).setdefault(run, []).append(str(recipe.seed))
    named = {error: [run + ", ".join(seeds) for run, seeds in runs.items()] for error, runs in alike.items()}
    return " ".join(f"{'; '.join(runs[:12])}{' and more' * (len(runs) > 12)}: {e}" for e, runs in named.items())


def _about(recipe: Recipe) -> dict:
    federation = recipe.full["federation"]
    return {
        "run": recipe.label,
        "algorithm": recipe.algorithm_name,
        "augmentation": recipe.augmentation_name,
        "federation": federation["name"],
        "task": registry.task(federation),
        "seed": recipe.seed,
        "dealt_by_seed": federation.get("seed") == registry.OF_THE_RUN,
    }


def _setting(record: Record) -> str:
    """What a record has in common with others that differ in methods, seeds and unseen sites."""
    rooms = (("federation", "datasets"), ("model", "models"))
    full = {name: sorted(registry.complete(room, record.recipe[name]).items()) for name, room in rooms}
    settings = record.recipe | full
    return repr(sorted((name, repr(value)) for name, value in settings.items() if name not in _OF_RUNS))


def _columns(recipes: list[Recipe]) -> dict[str, dict]:
    """Column name -> its value for each recipe, of what varies apart from methods, seeds and the federation's name."""
    columns, settings = {}, [each.name for each in fields(Recipe)]
    for name in settings:
        values = {recipe: recipe.full[name] for recipe in recipes}
        if name in ("algorithm", "augmentations", "seed") or not _differ(values.values()):
            continue
        if name not in ("federation", "model"):
            columns[name] = {recipe: len(value) if name == "unseen" else value for recipe, value in values.items()}
            continue
        for option in dict.fromkeys(option for value in values.values() for option in value):
            found = {recipe: value.get(option) for recipe, value in values.items()}
            column = name if option == "name" else option
            if column in columns or column in {"split", *settings} - {name}:  # a federation's seed is not the run's
                column = f"{name}_{option}"
            if column != "federation" and _differ(found.values()):
                columns[column] = found
    return columns


def _labels(recipes: list[Recipe]) -> dict[Recipe, str]:
    """What each is called among these: its methods, and what else varies on its federation, seeds apart."""
    labels = {}
    for federation in dict.fromkeys(recipe.full["federation"]["name"] for recipe in recipes):
        alike = [recipe for recipe in recipes if recipe.full["federation"]["name"] == federation]
        columns = {n: values for n, values in _columns(alike).items() if n not in ("evaluation", "unseen")}
        for recipe in alike:
            varied = [f"{name} {_plain(values[recipe])}" for name, values in columns.items()]
            unseen = [f"unseen {' + '.join(recipe.unseen)}"] if recipe.unseen else []
            labels[recipe] = ", ".join((recipe.label, *varied, *unseen))
    return labels


def _options(recipes: list[Recipe]):
    """A row by key, a column for each option that differs among the runs of its method."""
    import pandas

    rows: dict[str, dict] = {recipe.key: {} for recipe in recipes}
    for recipe in recipes:
        for method in (recipe.full["algorithm"], *recipe.full["augmentations"]):
            plain = {name: tuple(value) if isinstance(value, list) else value for name, value in method.items()}
            rows[recipe.key] |= {f"{plain['name']}.{name}": plain[name] for name in plain if name != "name"}
    names = dict.fromkeys(name for row in rows.values() for name in row)
    varied = [name for name in names if _differ(row[name] for row in rows.values() if name in row)]
    values = [[row.get(name) for name in varied] for row in rows.values()]
    return pandas.DataFrame(values, index=list(rows), columns=varied, dtype=object)


def _differ(values) -> bool:
    return len({str(value) for value in values}) > 1


def _plain(value):
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return " + ".join(value) or "none"
    return value if isinstance(value, str | int | float | bool) else str(value)
