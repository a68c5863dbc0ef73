"""What tests share: one thread, a cache of their own, data, real images if there are any, a checkout."""

import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import loaders
import pytest
import torch
import warm_kernel

import fednb.datasets

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: tests of Ctrl-C would hear nothing
    signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "numba"))  # UMAP compiles
os.environ["OMP_NUM_THREADS"] = "1"  # kernels and commands too: more threads than cores wait for each other
CHECKED, BROKEN = os.environ.get("FEDNB_CHECK"), {}  # the method of `fednb check`; demand -> last line -> first test
LONGEST = ("test_committed_notebooks_show", "test_generated_tables", "test_site.py", "test_notebook_runs_at_smoke")
if not CHECKED:  # all other tests are of our own methods
    os.environ.pop("FEDNB_METHODS", None)


def pytest_configure(config):
    """Kernels of all tests, in whatever process, are forks of one that has the imports."""
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        patch, stack = pytest.MonkeyPatch(), contextlib.ExitStack()
        patch.setenv("JUPYTER_PATH", stack.enter_context(warm_kernel.jupyter_path()), prepend=os.pathsep)
        config.add_cleanup(patch.undo)
        config.add_cleanup(stack.close)


def pytest_collection_modifyitems(items):
    """What takes longest begins first, so that no worker is left with it; of one method its own tests alone."""
    items.sort(key=lambda item: [name not in item.nodeid for name in LONGEST])
    if CHECKED:
        items[:] = [item for item in items if re.search(rf"[\[-]{CHECKED}[](-]", item.nodeid.rpartition("::")[2])]


def pytest_exception_interact(node, call):
    """Notes what ``fednb check`` says of a test that fails: its docstring's first line, the traceback's last line, and
    where in the method's file it went wrong."""
    if not CHECKED:
        return
    demand, lines = "CONFORMANCE: name fields of Row in tests/methods.py", call.excinfo.exconly().splitlines()
    if isinstance(node, pytest.Function):
        demand = (node.function.__doc__ or node.originalname.removeprefix("test_").replace("_", " ")).splitlines()[0]
    places = [f" ({each.path}:{each.lineno + 1})" for each in call.excinfo.traceback if Path(each.path).stem == CHECKED]
    BROKEN.setdefault(demand, {}).setdefault("".join([lines[0], *places[-1:]]), node.nodeid)


def pytest_terminal_summary(terminalreporter):
    for demand, lines in BROKEN.items():
        terminalreporter.write_line(demand)
        for line, test in lines.items():
            terminalreporter.write_line(f"    {line}\n    FEDNB_CHECK={CHECKED} python -m pytest '{test}'")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Caches of tests do not mix with the user's (where platformdirs follows XDG)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real images: FEDNB_DATA, else the folder shared/data beside the repository, else skip."""
    named = os.environ.get("FEDNB_DATA")
    root = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no real images: FEDNB_DATA is not set and {root} is not there")
    return root


@pytest.fixture(scope="session")
def files_of(tmp_path_factory):
    """``files_of("pacs")``: a data folder with the files of that row of ``loaders.ROWS``, not to be changed."""
    roots = {}

    def make(name: str) -> Path:
        if name not in roots:
            roots[name] = tmp_path_factory.mktemp(name)
            next(row for row in loaders.ROWS if row.name == name).make(roots[name])
        return roots[name]

    return make


@pytest.fixture(scope="module")
def whole(request, files_of):
    """The files of the data set that a module is named by, such as test_data_rxrx1; not to be changed."""
    return files_of(request.module.__name__.removeprefix("test_data_"))


@pytest.fixture
def real(request, real_data) -> Path:
    """The folder of real images, where it has that data set; else skip."""
    if problem := fednb.datasets.available(request.module.__name__.removeprefix("test_data_"), real_data):
        pytest.skip(problem)
    return real_data


@pytest.fixture
def tree(whole, tmp_path):
    """A copy of ``whole``, of a module's own where it has one, for a test to change."""
    return loaders.copied(whole, tmp_path / "data")


@pytest.fixture
def store(tmp_path):
    """An empty store of runs."""
    from fednb.records.store import Store

    return Store(tmp_path / "runs")


@pytest.fixture
def toy(monkeypatch):
    """Every recipe gets the toy federation, whatever it names."""
    from small_runs import use_toy

    use_toy(monkeypatch)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A checkout of its own in a temporary folder, the current one; call it to write a notebook there.

    made("fedrdn/fig", ["a cell's code", ...], parameters="ROUNDS = 1", tags={1: ["a tag"]}, about={...})
    """
    import nbformat

    from fednb.commands.notebooks import Notebook

    monkeypatch.setattr("fednb.commands.report.build", lambda home, report: [])  # a site takes a minute
    root = tmp_path / "checkout"
    (root / "notebooks").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "fednb"\n')
    monkeypatch.chdir(root)
    monkeypatch.setenv("FEDNB_RUNS", str(root / "report" / "runs"))  # commands set both; restored afterwards
    monkeypatch.setenv("FEDNB_DATA", str(root / "no-data"))
    monkeypatch.setenv("FEDNB_STALE", "")

    def make(name, cells, parameters=None, tags=None, about=None) -> Notebook:
        sources = cells if parameters is None else [parameters, *cells]
        tags = {**({} if parameters is None else {0: ["parameters"]}), **(tags or {})}
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        content = nbformat.v4.new_notebook(metadata={"fednb": about or {}, "kernelspec": kernel})
        for number, source in enumerate(sources):
            metadata = {"tags": tags[number]} if number in tags else {}
            content.cells.append(nbformat.v4.new_code_cell(source, id=f"cell-{number}", metadata=metadata))
        path = root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        return Notebook(name, path)

    return make
