"""`fednb laws`: holds one method, anybody's, to the laws in tests/ that all of ours keep."""

import importlib.util
import os
import subprocess
import sys

from fednb import registry
from fednb.commands import notebooks
from fednb.errors import RecipeError, RunError, nearest
from fednb.registry import FOLDERS, searched

_FILES = ("laws", "worlds", "randomness", "task", "devices", "remote", "loop")
NONE_FOUND = 5  # pytest's exit status where it has collected no test
LAWS = tuple(f"tests/test_{name}.py" for name in _FILES)


def main(options) -> int:
    """The exit status of pytest: 0 where every law holds, 1 where ``tests/conftest.py`` has told which do not, and why.

    Raises RecipeError for an unknown method, RunError where there is no pytest, and for a method of ours without a row.
    """
    known = [name for room in registry.METHODS for name in registry.names(room)]
    if options.method not in known:
        raise RecipeError(
            f'no method is called "{options.method}": {nearest(options.method, known)} A folder of yours with a file '
            f"augmentations/{options.method}.py or algorithms/{options.method}.py is named by {FOLDERS}."
        )
    if importlib.util.find_spec("pytest") is None:
        raise RunError('the laws are tests, and pytest is not installed: pip install -e ".[test]" in a clone of fednb.')
    words = ["-qq", "--color=no", "--tb=no", "-rN", "-p", "no:cacheprovider", *LAWS]
    own = os.environ | {FOLDERS: searched(), "FEDNB_LAWS": options.method}
    status = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=notebooks.checkout("tests/"), env=own
    ).returncode
    if status == NONE_FOUND:
        room = next(room for room in registry.METHODS if options.method in registry.names(room))
        raise RunError(
            f"{options.method} has no row in tests/methods.py, so that no law was tried. Add "
            f'Row("{room}", "{options.method}") to ROWS there; the docstring of Row says what its fields are.'
        )
    told = {0: "every law holds", 1: "not every law holds; see above"}
    print(f"{options.method}: {told.get(status, 'the laws could not be tried; see above')}", flush=True)
    return status
