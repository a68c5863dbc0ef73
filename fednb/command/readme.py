"""README's table of claims and notebooks, generated from the notebooks' metadata and the recorded runs."""

from pathlib import Path

from fednb.command import notebooks
from fednb.errors import NotebookError
from fednb.files import write_text

BEGIN = "<!-- claims: written by `fednb report --readme` -->"
END = "<!-- /claims -->"


def table() -> str:
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


def filled(text: str) -> str:
    """README's text with a fresh table between the two markers; NotebookError if they are not there."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NotebookError(f"README.md has no two lines {BEGIN!r} and {END!r}; put them where the table belongs.")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def update() -> int:
    """Write the table into README.md; returns exit status 0."""
    path: Path = notebooks.checkout() / "README.md"
    write_text(path, filled(path.read_text(encoding="utf-8")))
    print(f"{path.name} is up to date")
    return 0
