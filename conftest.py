"""How pytest runs the notebooks themselves: one kernel for each, and no training."""

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
