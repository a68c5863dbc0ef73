"""What a command leaves behind: the folder of a report, and the outputs that recording commits."""

import hashlib
import json
from pathlib import Path

from fednb.command import notebooks
from fednb.command.notebooks import Notebook
from fednb.files import write_atomically, write_text
from fednb.site import pages


def executed(report: Path, book: Notebook) -> Path:
    """Where the executed copy of a notebook lies in a report; its page and its stamp lie beside it."""
    return report / "notebooks" / f"{book.name}.ipynb"


def digest(book: Notebook, given: dict, records: tuple[Path, ...]) -> str:
    """Changes with all that an executed notebook shows: its source and parameters, our code, the records."""
    here = Path(__file__).parent.parent
    sources = sorted(path for path in here.rglob("*") if path.suffix in (".py", ".csv", ".toml", ".json"))
    parts = [
        json.dumps(given, sort_keys=True),
        *(path.read_text(encoding="utf-8") for path in (book.path, *sources)),
    ]
    for folder in records:
        parts += [f"{path.name} {path.stat().st_size}" for path in sorted(folder.rglob("*.json"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def stamp(report: Path, book: Notebook, given: dict, records: tuple[Path, ...]) -> None:
    """Note what an executed copy was made from."""
    write_text(executed(report, book).with_suffix(".stamp"), digest(book, given, records))


def fresh(report: Path, book: Notebook, given: dict, records: tuple[Path, ...]) -> bool:
    """Whether the executed copy would come out the same again."""
    path = executed(report, book).with_suffix(".stamp")
    return path.exists() and path.read_text() == digest(book, given, records)


def write_page(report: Path, books: list[Notebook], summary: list[str], broken: dict[str, str]) -> Path:
    """index.html, a page for each executed notebook, and the figures as files; returns index.html's path.

    books: all notebooks of the checkout; those never executed into this report are listed as such.
    broken: name -> what went wrong.
    """
    entries = []
    for book in books:
        path = executed(report, book)
        content = None
        if path.exists():
            content = notebooks.Notebook(book.name, path).content
            page = path.with_suffix(".html")
            if not page.exists() or page.stat().st_mtime < path.stat().st_mtime:
                write_text(page, pages.notebook(path))
            write_figures(report / "figures", book, content)
        link = f"notebooks/{book.name}.html" if content else None
        entries.append(pages.Entry(book.name, book.about, content, link, broken.get(book.name)))
    index = report / "index.html"
    index.parent.mkdir(parents=True, exist_ok=True)
    write_text(index, pages.index(entries, summary))
    return index


def write_figures(folder: Path, book: Notebook, content: dict) -> None:
    """The figures of an executed notebook as <name>.png, or <name>-1.png and on where there are several.

    Figures that it had before and has no longer are removed.
    """
    figures = pages.figures(content)
    place = folder / book.name
    for old in (place.with_suffix(".png"), *place.parent.glob(f"{place.name}-[0-9]*.png")):
        old.unlink(missing_ok=True)
    for number, figure in enumerate(figures, 1):
        path = folder / (f"{book.name}.png" if len(figures) == 1 else f"{book.name}-{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file, figure=figure: file.write(figure))


def commit_outputs(root: Path, report: Path, book: Notebook) -> None:
    """Put the outputs of the executed copy into the notebook itself and its figures into figures/."""
    content = notebooks.Notebook(book.name, executed(report, book)).content
    notebooks.write(notebooks.settle(content), book.path)
    write_figures(root / "figures", book, content)
