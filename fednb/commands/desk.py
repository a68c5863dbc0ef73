"""What a command works on: the chosen notebooks, their parameters, the runs they need, where records are."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from fednb import outside, papers
from fednb.at_hand import lacks
from fednb.commands import folder, notebooks, project
from fednb.commands.notebooks import Notebook
from fednb.datasets import data_root
from fednb.errors import NotebookError, RunError
from fednb.outside import FOLDERS, searched
from fednb.records import workers
from fednb.records.progress import Display, expected_seconds, span
from fednb.records.store import Record, Store
from fednb.results import Results
from fednb.study import Study, default_store


@dataclass
class Needs:
    """The runs that one notebook asks for.

    found    recipe -> record, or None where the run is missing
    stale    recipe -> what its record used and what behaves otherwise today
    lacking  missing or stale recipe -> what is missing of its data, in one sentence; these cannot be trained here
    error    why the notebook cannot be planned, or None
    stand_in whether embedded data take the place of the paper's
    """

    found: dict = field(default_factory=dict)
    stale: dict = field(default_factory=dict)
    lacking: dict = field(default_factory=dict)
    error: str | None = None
    stand_in: bool = False

    @property
    def trainable(self) -> list:
        return [recipe for recipe, record in self.found.items() if not record and recipe not in self.lacking]

    @property
    def renewable(self) -> list:
        return [recipe for recipe in self.stale if recipe not in self.lacking]

    @property
    def records(self) -> list[Record]:
        return [record for record in self.found.values() if record]


@dataclass
class Desk:
    """The chosen notebooks with the parameters that they get; `store` finds and keeps runs.

    A report keeps its runs in report/runs and reads the recorded ones; recording writes to results/.
    again: whether runs by older code are trained again. known: what was found of each recipe, so that it is read once.
    """

    root: Path
    report: Path
    books: list[Notebook]
    given: dict[str, dict]
    store: Store
    profile: str
    device: str
    record: bool
    again: bool
    known: dict = field(default_factory=dict)

    @classmethod
    def open(cls, options) -> "Desk":
        """Everything is checked here, before anything starts. Raises NotebookError or RunError.

        Kernels and processes that train inherit three environment variables from here: FEDNB_DATA and FEDNB_METHODS,
        absolute, as a kernel starts in another folder; FEDNB_RUNS, the folder that new runs are written to. An engine
        has RAY_ADDRESS from here.
        """
        root, here = notebooks.home(), Path.cwd()
        if not here.is_relative_to(root):
            print(f"{here} is in no project: working on {root}, beside the package", file=sys.stderr)
        report = folder.place(options.report)
        record = getattr(options, "record", False)
        books = notebooks.found(options.only)
        given = {book.name: _given(book, options, alone=len(books) == 1) for book in books}
        for book in books:
            notebooks.check(book, given[book.name])
        if here := outside.project():
            project.refuse(here, books)
        device, engine = getattr(options, "device", "cpu"), getattr(options, "engine", None)
        if address := getattr(options, "address", None):
            if engine != "ray":
                raise RunError(f"--address {address} is that of a Ray cluster; it needs --engine ray.")
            os.environ["RAY_ADDRESS"] = address
        if engine:
            workers.check(engine, device)
        for each in () if engine else device.split(","):
            check_device(each)
        os.environ[FOLDERS] = searched()
        os.environ["FEDNB_DATA"] = str(data_root(getattr(options, "data", None)).absolute())
        os.environ["FEDNB_RUNS"] = str(root / "results" if record else report / "runs")
        store = Store(root / "results", checkpoints=report / "checkpoints") if record else default_store()
        again = getattr(options, "stale", False)
        return cls(root, report, books, given, store, options.profile, device, record, again)

    def plan(self, given: dict | None = None) -> list[tuple[Notebook, Needs]]:
        """What each notebook needs; where that takes long, stderr tells how far it is."""
        planned = []
        with Display(dict.fromkeys(book.name for book in self.books)) as display:
            display.told = display.start
            for number, book in enumerate(self.books, 1):
                display.update(book.name, f"planning notebook {number}/{len(self.books)}: {book.name}", 0.0)
                planned.append((book, self.needs(book, given)))
                display.share[book.name] = 1.0
        return planned

    def needs(self, book: Notebook, given: dict | None = None) -> Needs:
        """What the notebook's study looks for, with the parameters of this command unless others are given.

        Where the paper's images are missing and no run on them is recorded, a report shows the stand-in.
        """
        given = self.given[book.name] if given is None else given
        own = given.get("DATA") == os.environ["FEDNB_DATA"]
        try:
            recipes = list(dict.fromkeys(notebooks.plan(book, **given)))
        except NotebookError as error:
            return Needs(error=str(error))
        needs = self._look(recipes, own)
        paper = book.about.get("paper")
        if paper in papers.names() and not needs.records and not self.record:
            if stands_in := Study(recipes, paper).needs_stand_in(set(needs.lacking)):
                needs = self._look(stands_in.recipes)
                needs.stand_in = True
        return needs

    def _look(self, recipes: list, own: bool = False) -> Needs:
        self.known |= self.store.found([recipe for recipe in recipes if recipe not in self.known])
        results = Results({recipe: self.known[recipe] for recipe in recipes})
        lacking = {recipe: _lacks(recipe, own) for recipe in (*results.missing, *results.stale)}
        return Needs(results.found, results.stale, {recipe: lack for recipe, lack in lacking.items() if lack})

    def seconds(self, book: Notebook, needs: Needs, records: list[Record]) -> dict:
        """Seconds of each run to train or to train again, at least and at most: as recorded runs like it took, else as
        the notebook says."""
        stated = 60.0 * book.about.get("minutes", {}).get(self.profile, len(needs.found)) / max(1, len(needs.found))
        recipes = (*needs.trainable, *needs.renewable)
        here = self.report / "runs"
        return {r: expected_seconds(r, records, self.device, here) or span(stated, 0) for r in recipes}


def _given(book: Notebook, options, alone: bool) -> dict:
    """The command's own options where the notebook defines them, and every `--set`, which it must define.

    `--data` is the folder of the data sets, which a notebook finds by FEDNB_DATA; it is the user's own folder of sites
    where a notebook of such is the only one chosen.
    """
    shared = {name.upper(): getattr(options, name, None) for name in ("profile", "device", "jobs")}
    if alone and book.about.get("data") == "folders" and getattr(options, "data", None):
        shared["DATA"] = str(data_root(options.data).absolute())
    defined = notebooks.parameters(book)
    given = {name: value for name, value in shared.items() if value is not None and name in defined}
    return given | dict(getattr(options, "set", []))


def _lacks(recipe, own: bool) -> str | None:
    """own: whether the command itself was given the folder of sites."""
    if recipe.full["federation"]["name"] == "folders" and not own:
        return "images in a folder that only the notebook knows; the notebook itself trains these runs."
    return lacks(recipe, None)


def check_device(device: str) -> None:
    """RunError unless torch can use the device, in the double precision that sums are kept in."""
    import torch

    try:
        torch.zeros(1, device=device, dtype=torch.float64).item()
    except (RuntimeError, AssertionError, TypeError) as error:  # torch's own words are long; its first line says it
        reason = str(error).splitlines()[0]
        raise RunError(f'device "{device}" cannot be used: {reason} Choose cpu, or install a torch for it.') from error
