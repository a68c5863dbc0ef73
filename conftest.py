"""How pytest runs the notebooks themselves (one kernel each, no training); and a checkout made for a test."""

import json

import pytest


def pytest_collection_modifyitems(items):
    """All cells of a notebook stay in one of the processes of `pytest -n`, in their order."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """A committed notebook must find its runs in results/: its kernel, started here, may not train."""
    if item.path.suffix != ".ipynb":
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDNB_TRAIN", "0")
        return (yield)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A checkout of its own in a temporary folder, the current one; call it to write a notebook there.

    made("fedrdn/fig", ["a cell's code", ...], parameters="ROUNDS = 1", tags={1: ["a tag"]}, about={...})
    """
    from fednb.command.notebooks import Notebook

    root = tmp_path / "checkout"
    (root / "notebooks").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "fednb"\n')
    monkeypatch.chdir(root)
    monkeypatch.setenv("FEDNB_RUNS", str(root / "report" / "runs"))  # commands set both; restored afterwards
    monkeypatch.setenv("FEDNB_DATA", str(root / "no-data"))

    def cell(number: int, source: str, tags: list[str]) -> dict:
        metadata = {"tags": tags} if tags else {}
        shell = {"cell_type": "code", "execution_count": None, "id": f"cell-{number}", "outputs": []}
        return {**shell, "metadata": metadata, "source": source}

    def make(name, cells, parameters=None, tags=None, about=None) -> Notebook:
        sources = cells if parameters is None else [parameters, *cells]
        tags = {**({} if parameters is None else {0: ["parameters"]}), **(tags or {})}
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        content = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"fednb": about or {}, "kernelspec": kernel},
            "cells": [cell(number, source, tags.get(number, [])) for number, source in enumerate(sources)],
        }
        path = root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        return Notebook(name, path)

    return make
