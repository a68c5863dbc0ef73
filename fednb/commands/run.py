"""`fednb run`: plan all notebooks, train what is missing, execute them, write a report or the records."""

import importlib.util
import os
import sys
from functools import partial
from pathlib import Path

from fednb import outside
from fednb.commands import folder, notebooks, project, trivial
from fednb.commands.desk import Desk, Needs
from fednb.commands.notebooks import Notebook
from fednb.errors import FednbError, NotebookError, RunError
from fednb.files import unwritable
from fednb.loop import parallel
from fednb.records import workers
from fednb.records.progress import Display, between, span
from fednb.report import gates
from fednb.study import NO_TRAINING

JUPYTER = ("papermill", "nbclient", "ipykernel")
NOTEBOOK_SECONDS = 8.0


def main(options) -> int:
    """The whole command; returns 0, or 1 when a run or a notebook failed. What is finished is kept."""
    recording = notebooks.tool("recording") if options.record else None
    if recording and (changes := recording.dirty(notebooks.home())):
        raise RunError("recording needs a clean work tree; commit or undo first:\n  " + "\n  ".join(changes))
    desk = Desk.open(options)
    written = [desk.store.folder, desk.store.checkpoints, desk.report / "notebooks"]
    if refusal := unwritable(*written, *((desk.root / "notebooks", desk.root / "figures") if desk.record else ())):
        raise RunError(refusal if desk.record else f"{refusal} --report names another folder.")
    absent = [name for name in JUPYTER if importlib.util.find_spec(name) is None]
    cores = os.cpu_count() or 1
    asked = options.jobs or (8 if options.engine or options.device == "cpu" else len(options.device.split(",")))
    jobs = min(asked, cores)  # here; an engine has cores elsewhere
    at_a_time = asked if options.engine else jobs
    if options.jobs and options.jobs > at_a_time:
        print(f"--jobs {options.jobs}: no more than {cores} side by side, one for each core", flush=True)
    print(f"planning {len(desk.books)} notebooks", flush=True)
    needs = desk.plan()
    _, damaged = folder.copies(desk.report, desk.books)
    if desk.record and not absent:  # the committed notebooks show their default parameters
        needs += desk.plan({})
    wanted, seconds = _wanted(desk, needs)
    mine = _part(wanted, needs, *options.part) if options.part else wanted
    if os.environ.get(NO_TRAINING) == "0":
        mine = {}
    others, wanted = len(wanted) - len(mine), mine
    if wanted:
        total = between((seconds[recipe] for recipe in wanted), min(at_a_time, len(wanted)))
        print(f"{len(wanted)} runs to train, about {total}", flush=True)
        print("Ctrl-C stops; the same command goes on from there", flush=True)
    if absent or options.part:
        due = []
    elif wanted or desk.record:  # a new run can change what any notebook shows
        due = desk.books
    else:
        state = _state(desk)
        due = [book for book in desk.books if not folder.fresh(desk.report, book, desk.given[book.name], state)]
    work = {recipe.key: seconds[recipe] for recipe in wanted} | {book.name: span(NOTEBOOK_SECONDS, 0) for book in due}
    desk.store.renew = desk.again  # from here on: the plan has read how long the older runs took
    with Display(work, at_a_time, sys.stdout) as display:
        failed = _train(desk, wanted, at_a_time, options.device, options.engine, display)
        if here := outside.project():
            trivial.add(here / "results" / gates.TRIVIAL.name, desk.store.folders)
        broken = _execute(desk, due, jobs, display)
    done, next_step, beside = _summary(desk, needs, (len(wanted), others), failed, broken, due, absent, options.part)
    told = [
        f"note: {why}"
        for why in (*damaged.values(), *desk.store.notes, *(project.lacking(here, desk.store.folders) if here else ()))
    ]
    told += [f"FAILED run {recipe}: {error}" for recipe, error in failed.items()]
    told += [f"FAILED notebook {name}: {error}" for name, error in broken.items()]
    told += [f"FAILED plan of {each.error}" for book, each in needs if each.error and book.name not in broken]
    place, shown = f"runs: {desk.store.folder}", True
    try:
        if desk.record:
            for book in due:
                if book.name not in broken:
                    recording.commit_outputs(desk.root, desk.report, book)
            place = f"recorded: results/, figures/ and notebooks/ in {desk.root}"
        elif not absent and not options.part:
            print(folder.writing(), flush=True)
            place = f"report: {folder.write_page(desk.report, notebooks.found(), [done, *told, *beside], broken)}"
    except (FednbError, OSError) as error:  # a full disk: the summary is told all the same
        shown = False
        told.append(f"FAILED {'recording' if desk.record else 'report'}: {error}")
    if any(line.startswith("FAILED") for line in told):
        next_step = "mend what FAILED; the same command tries it again, what is finished is kept"
    print("\n" + "\n".join([done, *told, place, f"next: {next_step}"]), flush=True)
    return 1 if failed or broken or not shown or any(each.error for _, each in needs) else 0


def _wanted(desk: Desk, needs: list[tuple[Notebook, Needs]]) -> tuple[dict, dict]:
    """For all runs that can be trained: recipe -> notebooks that wait for it, and recipe -> seconds.

    First all of the first seed: whoever stops has whole tables of one seed, not half of one table at three.
    """
    records = [record for _, each in needs for record in each.records]
    wanted, seconds = {}, {}
    for book, each in needs:
        seconds |= desk.seconds(book, each, records)
        for recipe in (*each.trainable, *(each.renewable if desk.again else ())):
            wanted.setdefault(recipe, {})[book.name] = None
    return {recipe: list(wanted[recipe]) for recipe in sorted(wanted, key=lambda recipe: recipe.seed)}, seconds


def _part(wanted: dict, needs: list[tuple[Notebook, Needs]], number: int, count: int) -> dict:
    """Of what is wanted what falls to one of so many parts. All recipes are dealt out, recorded or not, so that parts
    which start one after the other have nothing in common."""
    recipes = list(dict.fromkeys(recipe for _, each in needs for recipe in each.found))
    mine = set(recipes[number - 1 :: count])
    return {recipe: books for recipe, books in wanted.items() if recipe in mine}


def _train(desk: Desk, wanted: dict, jobs: int, device: str, engine: str | None, display: Display) -> dict:
    """Train every run; returns recipe -> what went wrong."""

    def whom(recipe) -> str:
        first, *others = wanted[recipe]
        return f", for {first}" + (f" and {len(others)} more" if others else "")

    ended = workers.train(list(wanted), desk.store, jobs, device, None, display.runs(list(wanted), whom), engine=engine)
    failed = {recipe: error for recipe, error in ended.items() if error}
    for recipe, error in failed.items():
        display.finish(recipe.key, f"run failed: {recipe}: {error}")
    return failed


def _execute(desk: Desk, books: list[Notebook], jobs: int, display: Display) -> dict[str, str]:
    """Execute notebooks in `jobs` processes; returns name -> what went wrong."""
    for book in books:
        folder.unstamp(desk.report, book)
    given = {book.name: {} if desk.record else desk.given[book.name] for book in books}

    def tell(book: Notebook, _) -> None:
        display.finish(book.name, f"notebook {book.name} executed")

    ended = parallel.in_processes(partial(_execute_one, desk.report, given), books, tell, jobs)
    broken = {book.name: error for book, error in ended.items() if error}
    for name, error in broken.items():
        display.finish(name, f"notebook {name} failed: {error}")
    state = _state(desk)
    for book in books:
        if book.name not in broken:
            try:
                folder.stamp(desk.report, book, given[book.name], state)
            except (FednbError, OSError) as error:
                broken[book.name] = str(error)
    return broken


def _execute_one(report: Path, given: dict[str, dict], book: Notebook, tell) -> None:
    if error := notebooks.execute(book, folder.executed(report, book), given[book.name]):
        raise NotebookError(error)
    tell("executed")


def _state(desk: Desk) -> str:
    """Changes with the records and the images at hand."""
    return folder.records(desk.store.folders) + folder.images(Path(os.environ["FEDNB_DATA"]))


def _summary(desk, needs, runs: tuple, failed: dict, broken: dict, due: list, absent: list, part) -> tuple:
    """What was done and what to do next, a sentence each, and the lines that only the report shows: on which data."""
    trained, others = runs
    recipes = {recipe for _, each in needs for recipe in each.found}
    older = {} if desk.again else {recipe for _, each in needs for recipe in each.stale}
    renewable = {recipe for _, each in needs for recipe in each.renewable} & {*older}
    left_out = {recipe: reason for _, each in needs for recipe, reason in each.lacking.items() if recipe not in older}
    before = len(recipes) - trained - others - len(left_out)
    themselves = [recipe for recipe, record in desk.store.found(list(left_out)).items() if record]
    for recipe in themselves:  # trained by the notebook that asks for them
        del left_out[recipe]
    trained += len(themselves) - len(failed)
    counts = {
        "failed": len(failed),
        "left out for want of data": len(left_out),
        "of the other parts" if part else f"missing and not trained, for {NO_TRAINING}=0": others,
    }
    counted = [f", {count} {what}" for what, count in counts.items() if count]
    done = f"{before:,} runs recorded{' before' if trained else ''}, {trained or 'none'} trained{''.join(counted)}"
    rest = len(desk.books) - len(due)
    done += f"; {len(due) - len(broken)} notebooks executed" + (f", {len(broken)} failed" if broken else "")
    done += f", {rest} {'not executed' if absent or part else 'up to date before'}" if rest else ""
    stand_ins = [
        f"stand-in data: {book.name} (proves nothing about the paper)" for book, each in needs if each.stand_in
    ]
    if absent:
        install = 'pip install -e ".[notebooks]" in a clone of fednb'
        next_step = f"notebooks need {', '.join(absent)}: {install}, then the same command"
    elif part:
        next_step = "when all parts are done, `fednb run` without --part executes the notebooks"
    elif renewable:
        next_step = (
            f"`fednb run --stale` trains {len(renewable)} runs again that older code made; `fednb status` names them"
        )
    elif older or left_out or stand_ins:
        next_step = "`fednb data` says which images are missing and where they come from"
    elif desk.record:
        next_step = "look at what has changed (git diff) and commit it"
    else:
        begin = "" if outside.project() else "; to try things yourself, begin with notebooks/together/quickstart.ipynb"
        next_step = f"open the report in a browser{begin}"
    copies, _ = folder.copies(desk.report, [] if absent else desk.books)
    told = folder.notes({name: content for name, content in copies.items() if name not in broken})
    missing = [f"data missing: {reason}" for reason in dict.fromkeys(left_out.values())]
    return done, next_step, [*stand_ins, *missing, *(f"note: {note}" for note in dict.fromkeys(told))]
