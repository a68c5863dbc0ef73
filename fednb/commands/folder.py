"""What a command leaves behind: the folder of a report, and the outputs that recording commits."""

import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fednb import catalogue, datasets, outside
from fednb.commands import methods, notebooks, scoreboard
from fednb.commands.notebooks import Notebook
from fednb.commands.project import name as project_name
from fednb.errors import DataError, NotebookError
from fednb.files import write_atomically, write_text
from fednb.report import told
from fednb.site import book as site
from fednb.site import pages
from fednb.site.records import keys
from fednb.study import default_store

UNFINISHED = "its last execution did not end; what is shown is of the one before"


def place(named: str | None) -> Path:
    """The folder of the report: the named one, else report/ in ``notebooks.home``. NotebookError where it is a file."""
    report = Path(named).absolute() if named else notebooks.home() / "report"
    if report.is_file():
        raise NotebookError(f"{report} is a file; name a folder for the report with --report.")
    return report


def executed(report: Path, book: Notebook) -> Path:
    """Where the executed copy of a notebook lies in a report; its stamp lies beside it."""
    return report / "notebooks" / f"{book.name}.ipynb"


@cache
def _code() -> str:
    """Hash of the package and of the rooms outside, as they were when this command began."""
    own = Path(__file__).parent.parent.rglob("*")
    outer = (Path(folder) / room for folder in outside.searched().split(os.pathsep) if folder for room in outside.ROOMS)
    found = (
        path for room in outer for path in room.glob("*" if room.name == "datasets" else "**/*")
    )  # images lie in data/
    return _hash(path for path in (*own, *found) if path.suffix in (".py", ".csv", ".toml", ".json"))


def records(folders: Iterable[Path]) -> str:
    """Hash of all records and their artefacts."""
    return _hash(path for folder in folders for path in folder.rglob("*") if path.suffix in (".json", ".npz"))


def images(root: Path) -> str:
    """Hash of names, sizes and times of the files with images; their contents are too much for each command."""
    files = ((path, path.stat()) for path in sorted(root.rglob("*")) if path.is_file())
    told = "\0".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in files)
    return hashlib.sha256(told.encode()).hexdigest()


def _hash(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def digest(report: Path, book: Notebook, given: dict, state: str) -> str:
    """Changes with all that an executed notebook shows: its source and parameters, our code and what lies beside the
    notebook, records and images (``state``), and with the executed copy itself."""
    copy, beside = _hash([executed(report, book)]), _hash(book.path.parent.rglob("*.py"))
    parts = (json.dumps([given, notebooks.written(book.content)], sort_keys=True), _code(), beside, state, copy)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _stamp(report: Path, book: Notebook) -> Path:
    return executed(report, book).with_suffix(".stamp")


def unstamp(report: Path, book: Notebook) -> None:
    """Before it is executed: an execution that fails or is killed leaves no stamp."""
    _stamp(report, book).unlink(missing_ok=True)


def stamp(report: Path, book: Notebook, given: dict, state: str) -> None:
    """Note what an executed copy was made from."""
    write_text(_stamp(report, book), digest(report, book, given, state))


def fresh(report: Path, book: Notebook, given: dict, state: str) -> bool:
    """Whether the executed copy would come out the same again."""
    try:
        return _stamp(report, book).read_text() == digest(report, book, given, state)
    except (OSError, ValueError):
        return False


def copies(report: Path, books: list[Notebook]) -> tuple[dict[str, dict], dict[str, str]]:
    """Name -> executed copy, and name -> why it counts as none: half a notebook after a full disk."""
    whole, damaged = {}, {}
    for book in books:
        path = executed(report, book)
        if not path.exists():
            continue
        try:
            content = notebooks.Notebook(book.name, path).content
            pages.failure(content), pages.notes(content), pages.figures(content)
        except (NotebookError, AttributeError, KeyError, TypeError, ValueError) as error:
            damaged[book.name] = f"{path} is damaged and counts as not executed: {error!r}."
        else:
            whole[book.name] = content
    return whole, damaged


def notes(contents: dict[str, dict]) -> list[str]:
    """What executed notebooks say of their results that a reader must know, each once."""
    return list(dict.fromkeys(line for content in contents.values() for line in pages.notes(content)))


def writing() -> str:
    """What a command says before it writes the report: also why that is no site, and what to install."""
    return " ".join(filter(None, ("writing the report.", site.absent())))


def write_page(report: Path, books: list[Notebook], summary: list[str], broken: dict[str, str]) -> Path:
    """index.html and the figures as files; returns index.html's path.

    It forwards to the site in site/. Where Sphinx is not installed, it is a page of links to the executed notebooks.

    books: all notebooks of the project or the checkout; those never executed into this report are listed as such.
    broken: name -> what went wrong.
    """
    alone = site.absent()
    entries = []
    contents, _ = copies(report, books)
    for book in books:
        content = contents.get(book.name)
        error = broken.get(book.name)
        if content:
            write_figures(report / "figures", book, content)
            if not _stamp(report, book).exists():
                error = error or pages.failure(content) or UNFINISHED
            content = notebooks.settle(content)
        ran, asked = _runs(book) if content and not alone else (None, ())
        asked += _behind(content) if content and not alone else ()
        entries.append(pages.Entry(book.name, book.about, content, error, ran, tuple(dict.fromkeys(asked))))
    index = report / "index.html"
    index.parent.mkdir(parents=True, exist_ok=True)
    claims, curves = scoreboard.claims(), scoreboard.curves()
    said = told(claims)
    if alone:
        write_text(index, pages.links(entries, summary, said, alone))
    else:
        here = outside.project()
        called = project_name(here) if here else ""
        of_first = {"summary": summary, "told": said, "claims": claims, "curves": curves, "project": called}
        docs = notebooks.home() / "docs"
        site.build(report / "site", site.pages(docs, entries, methods.told(), _pictures(report), **of_first))
        write_text(index, pages.forward("site/index.html"))
    return index


def _runs(book: Notebook) -> tuple[frozenset[str] | None, tuple[Path, ...]]:
    """Methods, None without any, and records of the runs that the notebook asks for with the parameters in its file."""
    try:
        recipes = notebooks.plan(book)
    except NotebookError:  # the page tells of it where it was executed
        return None, ()
    full = [recipe.full for recipe in recipes]
    named = {each["name"] for recipe in full for each in (recipe["algorithm"], *recipe["augmentations"])}
    places = [[folder / recipe.filename for folder in default_store().folders] for recipe in recipes]
    records = (next((path for path in each if path.exists()), None) for each in places)
    return frozenset(named) or None, tuple(filter(None, records))


def _behind(content: dict) -> tuple[Path, ...]:
    """The records of the runs behind the rows of an executed notebook's tables, whatever study they are of."""
    named, found = {key[:6] for key in keys(content)}, {}
    for path in (path for folder in default_store().folders for path in folder.glob("*/*.json")):
        if path.stem[-6:] in named:
            found.setdefault(path.stem[-6:], path)
    return tuple(found.values())


def _pictures(report: Path) -> dict[str, bytes]:
    """The first images of each site of the data sets at hand, as PNG, kept while images and code are the same."""
    from fednb.report import samples

    place, state = report / "samples", f"{images(datasets.data_root())} {_code()}"
    stamp = place / "stamp"
    kept = stamp.exists() and stamp.read_text() == state
    made = {}
    for name in catalogue.names("datasets"):
        picture = place / f"{name}.png"
        if not kept:
            picture.unlink(missing_ok=True)
        if not picture.exists() and not datasets.available(name):
            with contextlib.suppress(DataError):  # damaged, which `fednb data` tells
                figure = samples.samples(datasets.load(name))
                write_atomically(picture, lambda file, figure=figure: figure.savefig(file, dpi=100, format="png"))
        if picture.exists():
            made[name] = picture.read_bytes()
    write_text(stamp, state)
    return made


def write_figures(folder: Path, book: Notebook, content: dict) -> None:
    """The figures of an executed notebook as <name>.png, or <name>-1.png and on where there are several.

    Figures that it had before and has no longer are removed.
    """
    figures = pages.figures(content)
    place = folder / book.name
    for old in (place.with_suffix(".png"), *place.parent.glob(f"{glob.escape(place.name)}-[0-9]*.png")):
        old.unlink(missing_ok=True)
    for number, figure in enumerate(figures, 1):
        path = folder / (f"{book.name}.png" if len(figures) == 1 else f"{book.name}-{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file, figure=figure: file.write(figure))
