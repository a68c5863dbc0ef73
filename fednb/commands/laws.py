"""`fednb laws`: holds one method to the laws that all of ours keep, by ``tools/laws.py`` of the repository."""

from fednb.commands.notebooks import tool
from fednb.errors import NotebookError, RunError


def main(options) -> int:
    try:
        laws = tool("laws")
    except NotebookError as error:
        raise RunError(
            "the laws are the tests in the repository, which is not here. Clone it, install your package beside fednb "
            "or name your folder, and run the command inside it."
        ) from error
    return laws.main(options)
