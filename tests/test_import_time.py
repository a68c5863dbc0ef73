"""What an import must not import: the price of `import fednb` and of commands that only list."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "torchvision", "pandas", "matplotlib", "seaborn", "sklearn", "papermill", "nibabel", "flwr", "ray"}
OF_FEW_LOADERS = {"sklearn", "scipy", "platformdirs", "pandas", "torchvision", "nibabel"}
READ = "[(papers.settings(name), papers.claims(name), papers.curves(name)) for name in papers.names()]"
LOADERS = "[registry.file('datasets', name) for name in registry.names('datasets')]"


@pytest.mark.parametrize(
    ("code", "late"),
    [
        *((f"import {name}", HEAVY) for name in ("fednb", "fednb.cli", "fednb.papers, fednb.commands.notebooks")),
        (f"from fednb import papers; {READ}", HEAVY),
        ("from fednb import registry; registry.names('datasets')", HEAVY),
        (f"from fednb import registry; {LOADERS}", OF_FEW_LOADERS),
    ],
)
def test_nothing_heavy_is_imported(code, late):
    found = f"import sys; {code}; print(*({late!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
