"""`fednb report`: the report's page again, from what was executed before, or the tables of README and docs/."""

from fednb.commands import folder, notebooks
from fednb.errors import NotebookError


def main(options) -> int:
    if options.readme:
        return notebooks.tool("readme").update()
    report = folder.place(options.report)
    books = notebooks.found()
    executed, damaged = folder.copies(report, books)
    if not executed:
        raise NotebookError(f"{report} has no executed notebook to show; fednb run executes them.")
    told = [f"{len(executed)} of {len(books)} notebooks were executed"]
    told += [f"note: {why} `fednb run` executes it again" for why in damaged.values()]
    print("\n".join([*told, folder.writing()]), flush=True)
    page = folder.write_page(report, books, [*told, *(f"note: {note}" for note in folder.notes(executed))], {})
    print(f"report: {page}")
    return 0
