"""`fednb laws`: holds one method, anybody's, to the laws in tests/ that all of ours keep."""

import importlib.util
import os
import subprocess
import sys

from fednb import catalogue
from fednb.command import notebooks
from fednb.errors import NotebookError, RecipeError, RunError, nearest
from fednb.outside import FOLDERS, absolute

_FILES = ("laws", "worlds", "randomness", "task", "devices", "remote", "loop")
LAWS = tuple(f"tests/test_{name}.py" for name in _FILES)


def main(options) -> int:
    """The exit status of pytest, whose report is shown, and one line below it: 0 where every law holds.

    The tests are in the repository and not in the installed package. Raises RecipeError for an unknown method, RunError
    where there is no repository or no pytest.
    """
    known = [name for room in catalogue.METHODS for name in catalogue.names(room)]
    if options.method not in known:
        raise RecipeError(
            f'no method is called "{options.method}": {nearest(options.method, known)} A folder of yours with a file '
            f"augment/{options.method}.py or algorithms/{options.method}.py is named by {FOLDERS}."
        )
    try:
        root = notebooks.checkout()
    except NotebookError as error:
        raise RunError(
            "the laws are the tests in the repository, which is not here. Clone it, install your package beside fednb "
            "or name your folder, and run the command inside it."
        ) from error
    if importlib.util.find_spec("pytest") is None:
        raise RunError('the laws are tests, and pytest is not installed: pip install "fednb[test]".')
    chosen = f"[{options.method} or -{options.method}"  # the beginning of a test's parameters, or one of two
    words = ["-qq", "-p", "no:cacheprovider", *LAWS, "-k", chosen]
    given = {FOLDERS: absolute(os.environ.get(FOLDERS, "")), "FEDNB_LAWS": options.method}
    status = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=root, env=os.environ | given).returncode
    print(f"{options.method}: " + ("a law does not hold; see above" if status else "every law holds"), flush=True)
    return status
