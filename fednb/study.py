"""A study: recipes that a notebook declares in plain sight, their records, and one data frame of all of them."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from fednb import papers
from fednb.catalogue import IN_MEMORY, complete, task
from fednb.errors import FednbError, RecipeError, RunError
from fednb.federation import Federation
from fednb.files import write_text
from fednb.recipe import Recipe
from fednb.runs.behaviour import changed
from fednb.runs.progress import Display, expected_seconds
from fednb.runs.store import Record, Store
from fednb.runs.training import federation_of
from fednb.runs.workers import train

NO_TRAINING = "FEDNB_TRAIN"
_NAMED = ("federation", "algorithm", "augmentations", "seed")
_OF_RUNS = ("algorithm", "augmentations", "seed", "evaluation", "unseen")  # what the runs of one setting differ in
_plan: list[Recipe] | None = None


class Planned(Exception):
    """Ends a notebook's cells at its study while the notebook is only being planned."""


@contextmanager
def planning():
    """Inside, ``Study.run`` trains nothing: it adds its recipes to the yielded list and raises Planned."""
    global _plan
    _plan = []
    try:
        yield _plan
    finally:
        _plan = None


def default_store() -> Store:
    """Reads ``results/`` of the checkout, and reads and writes ``report/runs``, with checkpoints beside.

    ``FEDNB_RUNS`` names another folder to write to. A run that Flower carried is found where no other is.
    """
    checkout = Path(__file__).parents[1]
    home = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    runs, results = Path(os.environ.get("FEDNB_RUNS") or home / "report" / "runs"), home / "results"
    beside = home / "report" if runs == results else runs.parent
    return Store(runs, also=(results, runs / "flower", results / "flower"), checkpoints=beside / "checkpoints")


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
        the work. engine: ``"ray"``, the cluster that ``RAY_ADDRESS`` names or one on this machine, or ``"slurm"``; then
        ``jobs`` runs are trained at a time on its machines, which share the store's and the data's folders with this
        one, and ``device`` is cpu or cuda. A recipe that fails is named in ``Results.notes`` and the others go on; so
        are those that are missing while ``FEDNB_TRAIN=0`` forbids training. Raises RunError when there is no run at
        all, or when the engine is not there.
        """
        data = data or None
        chosen = self.at_hand(data)
        if chosen is not self:
            lack = _lack_below(data, lacks(self.recipes[0], data))
            return chosen.run(data, device, jobs, engine)._with_note(lack)
        if _plan is not None:
            _plan.extend(self.recipes)
            raise Planned
        results = self.recorded()
        if not results.missing:
            return results._compared_with(data)
        lacking = {recipe: None if self.federation else lacks(recipe, data) for recipe in results.missing}
        if stands_in := self.needs_stand_in({recipe for recipe, lack in lacking.items() if lack}):
            return stands_in.run(data, device, jobs, engine)._with_note(
                _lack_below(data, next(filter(None, lacking.values())))
            )
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
            raise RunError("no run of this study succeeded: " + _listed(failed))
        results = results._compared_with(data)
        return results._with_note(_listed(failed)) if failed else results

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
        if not self.paper or not self.recipes or not lacking.issuperset(self._replaced):
            return None
        stands_in = self.as_stand_in()
        return stands_in if stands_in.recipes != self.recipes else None

    def as_stand_in(self) -> Study:
        """The same study on embedded images, with a network that fits them; what else it varies, it varies.

        One of their sites is unseen for each choice of unseen sites. Recipes on another federation than the paper's
        stay, unless all are on such.
        """
        kept = set(_varied(self._replaced)) - {"federation", "model"}
        choices = list(dict.fromkeys(recipe.unseen for recipe in self._replaced if recipe.unseen))
        stands_in = {}
        for recipe in self._replaced:
            federation, unseen = recipe.full["federation"]["name"], ()
            on = federation if federation in papers.settings(self.paper).get("on", {}) else None
            settings = papers.recipe(self.paper, "stand_in", on)
            if recipe.unseen:
                sites = federation_of(Recipe(federation=settings["federation"]), None).sites
                unseen = (sites[choices.index(recipe.unseen) % len(sites)].name,)
            fitting = {name: value for name, value in settings.items() if name not in kept}
            stands_in[recipe] = recipe.with_(**fitting, unseen=unseen)
        return Study([stands_in.get(recipe, recipe) for recipe in self.recipes], self.paper, self.store)

    @property
    def _replaced(self) -> list[Recipe]:
        """The recipes whose place a stand-in takes: those on the paper's data, or all where there are none."""
        return [recipe for recipe in self.recipes if not is_stand_in(recipe, self.paper)] or self.recipes


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
        for record in self.store.like(list(found)):
            with suppress(RecipeError):  # by other options than a method or a loader has today
                if record.key not in known and _setting(record) in settings and not record.origin.get("outside"):
                    found[Recipe(**record.recipe)] = record
        return replace(self, found=found)

    @cached_property
    def stale(self) -> dict[Recipe, list[str]]:
        """The recipes whose record is by older code, each with what behaves otherwise today: ``["augment/fedfa"]``."""
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

        run (label), algorithm, augmentation, federation, task, seed, key, stand_in, stale (recorded by older code),
        every other varied setting (of unseen sites how many), round (from 1), client, took_part (not where it is
        unseen), split ("validation" or "test"), correct (the images' scores added up: a count, or a sum of Dice
        coefficients), images (a count), accuracy (their ratio in per cent).
        """
        import pandas

        varied = _varied_columns(list(self.found))
        rows = []
        for recipe, record in self.found.items():
            if record is None:
                continue
            head = _describe(recipe) | {
                "key": recipe.key,
                "stand_in": is_stand_in(recipe, self.paper),
                "stale": recipe in self.stale,
                **{name: _plain(value(recipe)) for name, value in varied.items()},
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
        return pandas.DataFrame(rows)

    def _with_note(self, note: str) -> Results:
        return replace(self, notes=(*self.notes, note))

    def _compared_with(self, data: str | None) -> Results:
        """Reports records that were made from other images than those at hand."""
        notes, at_hand = [], {}
        for recipe, record in self.found.items():
            if record is None:
                continue
            place = str(recipe.full["federation"])
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
        return replace(self, notes=(*self.notes, *notes))


def lacks(recipe: Recipe, data: str | None) -> str | None:
    """What is missing of the data that a recipe needs, in one sentence; None where nothing is."""
    from fednb.data import available

    return available(root=data, **recipe.full["federation"])


def _lack_below(data: str | None, lack: str) -> str:
    """The sentence of what is missing, with places below the data folder: a notebook that shows it speaks of no
    machine."""
    from fednb.data import data_root

    return lack.replace(f"{data_root(data).absolute()}{os.sep}", "")


def unwritable(*folders: Path) -> str | None:
    """Why no file can be written to one of these folders, tried before hours of training; None where all is well."""
    for folder in folders:
        trial = folder / ".writable"
        try:
            write_text(trial, "fednb")
            trial.unlink(missing_ok=True)  # another worker may look at the same time
        except (FednbError, OSError) as error:
            return str(error)
    return None


def is_stand_in(recipe: Recipe, paper: str | None) -> bool:
    """Whether a recipe uses another federation than those that the paper prints accuracies on: embedded data, or other
    real ones."""
    return paper is not None and recipe.full["federation"]["name"] not in papers.printed_federations(paper)


def _train(recipes, store, jobs, device, data, federation, engine) -> dict[Recipe, str | None]:
    if not recipes:
        return {}
    recorded = store.like(recipes)
    work = {recipe.key: expected_seconds(recipe, recorded, device, store.folder) for recipe in recipes}
    with Display(work, jobs) as display:
        display.say(f"{len(recipes)} runs to train")
        return train(recipes, store, jobs, device, data, display.runs(recipes), federation, engine)


def _setting(record: Record) -> str:
    """What a record has in common with others that differ in methods, seeds and unseen sites; options of the federation
    that are younger than the record have their defaults."""
    settings = record.recipe | {"federation": sorted(complete("data", record.recipe["federation"]).items())}
    return repr(sorted((name, repr(value)) for name, value in settings.items() if name not in _OF_RUNS))


def _describe(recipe: Recipe) -> dict:
    return {
        "run": recipe.label,
        "algorithm": recipe.algorithm_name,
        "augmentation": recipe.augmentation_name,
        "federation": recipe.full["federation"]["name"],
        "task": task(recipe.full["federation"]),
        "seed": recipe.seed,
    }


def _varied(recipes: list[Recipe]) -> list[str]:
    names = [field.name for field in fields(Recipe)]
    return [name for name in names if len({str(recipe.full[name]) for recipe in recipes}) > 1]


def _varied_columns(recipes: list[Recipe]) -> dict:
    """Column name -> its value for a recipe; where federation or model vary, a column for each option that does."""
    columns, settings = {}, {"split", *(field.name for field in fields(Recipe))}
    for name in _varied(recipes):
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


def _plain(value):
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return " + ".join(value) or "none"
    return value if isinstance(value, str | int | float | bool) else str(value)


def _listed(failed: dict[Recipe, str]) -> str:
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
        columns = {name: value for name, value in _varied_columns(of).items() if name not in ("evaluation", "unseen")}
        seeds, unseen = {}, {}
        for recipe in of:
            what = ", ".join((recipe.label, *(f"{name} {_plain(value(recipe))}" for name, value in columns.items())))
            what += ", unseen " if recipe.unseen else ""
            seeds.setdefault((what, " + ".join(recipe.unseen)), set()).add(recipe.seed)
        for (what, sites), found in seeds.items():
            unseen.setdefault((what, ", ".join(map(str, sorted(found)))), []).append(sites)
        runs = (f"{what}{' or '.join(sites)}, seed {found}" for (what, found), sites in unseen.items())
        told.append(f"on {federation}: {'; '.join(runs)}")
    return f"{len(recipes)} runs ({'. '.join(told)})"
