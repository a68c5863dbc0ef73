"""`fednb report`: the report's page again, from what was executed before, or README's tables."""

from fednb.command import folder, notebooks, readme
from fednb.errors import NotebookError


def main(options) -> int:
    if options.readme:
        return readme.update()
    report = folder.place(options.report)
    books = notebooks.found()
    executed, damaged = folder.copies(report, books)
    if not executed:
        raise NotebookError(f"{report} has no executed notebook to show; fednb run executes them.")
    lines = [f"{len(executed)} of {len(books)} notebooks were executed"]
    lines += [f"note: {note}" for note in folder.notes(executed)]
    lines += [f"note: {why} `fednb run` executes it again" for why in damaged.values()]
    page = folder.write_page(report, books, lines, {})
    print("\n".join([*lines, str(page)]))
    return 0
