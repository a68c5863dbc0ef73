"""README's tables: claims and notebooks, from the notebooks' metadata and the recorded runs, and some methods."""

from pathlib import Path

from fednb.command import methods, notebooks
from fednb.errors import NotebookError
from fednb.files import write_text

BEGIN = "<!-- {0}: written by `fednb report --readme` -->"
END = "<!-- /{0} -->"
SHOWN = 8  # methods, in ten lines


def claims() -> str:
    """One row for each notebook: what it reproduces, its claim, its data, its cost, its recorded runs."""
    rows = [
        "| notebook | result | claim | data | minutes at quick | recorded runs |",
        "|---|---|---|---|---|---|",
    ]
    for book in notebooks.found():
        about = book.about
        result = " ".join(filter(None, (about.get("paper"), about.get("result"))))
        minutes = about.get("minutes", {}).get("quick", "")
        told = f"{result} | {about.get('claim', '')} | {about.get('data', '')} | {minutes} | {_runs(book)}"
        rows.append(f"| [{book.name}](notebooks/{book.name}.ipynb) | {told} |")
    return "\n".join(rows)


def _runs(book: notebooks.Notebook) -> str:
    """ "quick 28 of 28, paper 6 of 84"; "none needed" where nothing is trained."""
    if not book.trains:
        return "none needed"
    from fednb.runs.store import Store

    store = Store(notebooks.checkout() / "results")
    counts = []
    for profile in ("quick", "paper"):
        recipes = set(notebooks.plan(book, PROFILE=profile))
        counts.append(f"{profile} {sum(store.find(recipe) is not None for recipe in recipes)} of {len(recipes)}")
    return ", ".join(counts)


def some_methods() -> str:
    """One row for each of the first methods: where it is from, what it changes, sends and keeps, on which tasks."""
    rows = ["| method | from | changes | sends | keeps | tasks |", "|---|---|---|---|---|---|"]
    found = methods.told()
    for method in found[:SHOWN]:
        link = f"[{method.printed}](fednb/{method.room}/{method.name}.py)"
        cells = (link, method.paper, method.changes, method.sends, method.keeps, method.tasks)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, "", f"`fednb list --methods` has the other {len(found) - SHOWN}."])


TABLES = {"claims": claims, "methods": some_methods}


def filled(text: str) -> str:
    """README's text with fresh tables, each between its two markers; NotebookError if they are not there."""
    for name, table in TABLES.items():
        opening, closing = BEGIN.format(name), END.format(name)
        before, begin, rest = text.partition(opening)
        _, end, after = rest.partition(closing)
        if not begin or not end:
            raise NotebookError(
                f"README.md has no two lines {opening!r} and {closing!r}; put them where the table belongs."
            )
        text = f"{before}{opening}\n{table()}\n{closing}{after}"
    return text


def update() -> int:
    """Write the tables into README.md; returns exit status 0."""
    path: Path = notebooks.checkout() / "README.md"
    write_text(path, filled(path.read_text(encoding="utf-8")))
    print(f"{path.name} is up to date")
    return 0
