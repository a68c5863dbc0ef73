"""`fednb check`: holds one method, anybody's, to the conformance tests in tests/ that all of ours pass."""

import importlib.util
import os
import subprocess
import sys

from fednb import registry
from fednb.commands import notebooks
from fednb.errors import RecipeError, RunError, nearest
from fednb.registry import FOLDERS, searched

_FILES = ("conformance", "worlds", "randomness", "task", "devices", "remote", "loop")
NONE_FOUND = 5  # pytest's exit status where it has collected no test
TESTS = tuple(f"tests/test_{name}.py" for name in _FILES)


def main(options) -> int:
    """The exit status of pytest: 0 where every test passes, 1 where ``tests/conftest.py`` has said which fail, and why.

    Raises RecipeError for an unknown method, RunError where there is no pytest, and for a method of ours without a row.
    """
    known = [name for room in registry.METHODS for name in registry.names(room)]
    if options.method not in known:
        raise RecipeError(
            f'no method is called "{options.method}": {nearest(options.method, known)} A folder of yours with a file '
            f"augmentations/{options.method}.py or algorithms/{options.method}.py is named by {FOLDERS}."
        )
    if importlib.util.find_spec("pytest") is None:
        raise RunError('the conformance tests need pytest: pip install -e ".[test]" in a clone of fednb.')
    words = ["-qq", "--color=no", "--tb=no", "-rN", "-p", "no:cacheprovider", *TESTS]
    environment = os.environ | {FOLDERS: searched(), "FEDNB_CHECK": options.method}
    status = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=notebooks.checkout("tests/"), env=environment
    ).returncode
    room = next(room for room in registry.METHODS if options.method in registry.names(room))
    if status == NONE_FOUND:
        raise RunError(
            f"{options.method} has no row in tests/methods.py, so that nothing was tested. Add "
            f'Row("{room}", "{options.method}") to ROWS there; the docstring of Row says what its fields are.'
        )
    results = {0: "every conformance test passes", 1: "not every conformance test passes; see above"}
    print(f"{options.method}: {results.get(status, 'the conformance tests could not run; see above')}", flush=True)
    written = getattr(registry.file(room, options.method), "CONFORMANCE", {})
    if status == 0 and options.method not in registry.builtin(room) and "neutral" not in written:
        print(
            f"not tested: at which options {options.method} is a simpler method. Add CONFORMANCE = "
            f'{{"neutral": {{...}}}} to {options.method}.py, with the options at which it is FedAvg (docs/writing.md).'
        )
    return status
