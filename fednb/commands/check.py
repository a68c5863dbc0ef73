"""`fednb check`: holds one method to the conformance tests that all of ours pass, by ``tools/check.py``."""

from fednb.commands.notebooks import tool
from fednb.errors import NotebookError, RunError


def main(options) -> int:
    try:
        check = tool("check")
    except NotebookError as error:
        advice = "Clone it, install your package next to fednb or name your folder, and run the command inside it"
        raise RunError(f"the conformance tests are in the repository, which is not here. {advice}.") from error
    return check.main(options)
