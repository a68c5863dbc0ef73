"""The order of the rooms: what a file imports lies in its own room or below it, also inside functions; no circles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import fednb

HOUSE = Path(fednb.__file__).parent
FLOORS = [  # from the ground up; rooms of one floor do not import each other, the ground and the methods' floor apart
    {"errors", "federation", "files", "from_datasets", "parameters", "pixels", "randomness", "recipe", "registry"},
    {"methods", "models", "datasets"},
    {"loop"},
    {"papers"},
    {"records"},
    {"study"},
    {"report"},
    {"commands"},
    {"cli"},
]
OPEN_FLOORS = (0, 1)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(path.relative_to(HOUSE) for path in HOUSE.rglob("*.py") if path.parent != HOUSE or path.stem[0] != "_")
TOOLS = {path.stem for path in (HOUSE.parent / "tools").glob("*.py")}


def room(dotted: str) -> str:
    """``"fednb.datasets._images"`` -> ``"datasets"``."""
    return dotted.split(".")[1]


def module(path: Path) -> str:
    """``"datasets/_images.py"`` -> ``"fednb.datasets._images"``, a room's ``__init__.py`` -> the room."""
    return ".".join(("fednb", *path.with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


def imported(source: str) -> set[str]:
    """All modules that a source imports, wherever in it; not those that a method names for its types alone."""
    found = set()
    tree = ast.parse(source)
    typed = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for node in set(ast.walk(tree)) - {inner for each in typed for inner in ast.walk(each)}:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & MODULES.keys() or {node.module or ""} | (names & TOOLS)
    return found


def goes_up(own: str, other: str) -> bool:
    floors = FLOOR[own], FLOOR[other]
    return own != other and (floors[0] < floors[1] or (floors[0] == floors[1] and floors[0] not in OPEN_FLOORS))


def test_imports_go_down():
    for path in FILES:
        own = path.parts[0].removesuffix(".py")
        found = imported((HOUSE / path).read_text())
        wrong = [name for name in found if name.startswith("fednb.") and goes_up(own, room(name))]
        assert not wrong, f"{path} imports {', '.join(wrong)}"
        assert not found & TOOLS, f"{path}: tools/ is not installed with the package"


def test_no_files_import_each_other_in_a_circle():
    graph = {name: imported((HOUSE / path).read_text()) for name, path in MODULES.items()}
    TopologicalSorter(graph).prepare()  # or CycleError, with the circle


def test_the_house_stays_small():
    """What is added makes its room first."""
    lines = {
        folder: sum(len(path.read_text().splitlines()) for path in (HOUSE.parent / folder).rglob("*.py"))
        for folder in ("fednb", "tests")
    }
    assert lines["fednb"] <= 17_000 and lines["tests"] <= 15_500, lines
