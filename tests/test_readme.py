"""The generated part of README."""

import pytest

from fednb.command import readme
from fednb.command.notebooks import checkout
from fednb.errors import NotebookError


def test_readme_is_up_to_date():
    text = (checkout() / "README.md").read_text()
    assert readme.filled(text) == text, "write it again: fednb report --readme"


def test_readme_without_markers_is_refused():
    with pytest.raises(NotebookError, match="README.md has no two lines"):
        readme.filled("# fednb\n")
