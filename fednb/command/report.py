"""`fednb report`: the report's page again, from what was executed before, or README's table."""

from pathlib import Path

from fednb.command import folder, notebooks, readme
from fednb.errors import NotebookError


def main(options) -> int:
    if options.readme:
        return readme.update()
    report = Path(options.report) if options.report else notebooks.checkout() / "report"
    books = notebooks.found()
    executed = [book for book in books if folder.executed(report, book).exists()]
    if not executed:
        raise NotebookError(f"{report} has no executed notebook to show; fednb run executes them.")
    print(folder.write_page(report, books, [f"{len(executed)} of {len(books)} notebooks were executed"], {}))
    return 0
