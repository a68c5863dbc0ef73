"""Every notebook runs, and shows what is recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/**/[!.]*.ipynb"))


def ran(*words: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_notebooks_run(tmp_path):
    ran("fednb", "run", "--profile", "smoke", "--report", str(tmp_path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_is_recorded(path, tmp_path):
    if not any(cell.get("outputs") for cell in json.loads(path.read_text())["cells"]):
        pytest.skip("nothing is recorded yet: fednb run --record")
    ran("pytest", "-q", "--nbval-lax", str(path), FEDNB_TRAIN="0", FEDNB_RUNS=str(tmp_path))
