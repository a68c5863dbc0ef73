"""What an import must not import: the price of `import fednb` and of commands that only list."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "torchvision", "pandas", "matplotlib", "seaborn", "sklearn", "papermill", "nibabel", "flwr", "ray"}


@pytest.mark.parametrize("code", ["import fednb", "import fednb.cli", "import fednb.papers, fednb.commands.notebooks"])
def test_nothing_heavy_is_imported(code):
    found = f"import sys; {code}; print(*({HEAVY!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
