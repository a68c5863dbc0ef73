"""`fednb new paper NAME`: a project that runs at once, or one more paper in the project that we are in."""

import json
import keyword
import re
from importlib import metadata
from pathlib import Path

from fednb import papers, registry
from fednb.errors import RecipeError
from fednb.files import write_together

TEMPLATE = Path(__file__).with_name("template")


def main(options) -> int:
    """RecipeError, before anything is written, for a name that cannot be used and for a file that is there already."""
    _refuse(options.name)
    project = registry.project()
    root = project or Path.cwd() / options.name
    room = "algorithms" if options.algorithm else "augmentations"
    known = next((each for each in registry.METHODS if options.name in registry.names(each)), None)
    files = written(root, options.name, known or room, alone=project is None, method=known is None)
    there = [path for path in files if path.exists()]
    if there or (project is None and root.exists() and (root.is_file() or any(root.iterdir()))):
        found = (there or [root])[0]
        raise RecipeError(f"{found} is there already, and nothing was written. Move it, or take another name.")
    write_together({path: text.encode() for path, text in files.items()})
    for path in files:
        print(path.relative_to(root))
    if known:
        print(f"{options.name} is a method already, in {known}: the table's rows use it, and no file of it was written")
    inside = "" if project else f"cd {options.name}, then "
    print(f"{len(files)} files in {root}\nnext: {inside}`fednb run --profile smoke`; it says what is to be filled in")
    return 0


def written(root: Path, name: str, room: str, alone: bool, method: bool) -> dict[Path, str]:
    """The files of a paper of this name, and, ``alone``, those of a project around it.

    room: of the method that its table compares with FedAvg. method: whether a file of it is written.
    """
    algorithm = room == "algorithms"
    words = {
        "@NAME@": name,
        "@CLASS@": "".join(part.capitalize() for part in name.split("_")),
        "@ROOM@": room,
        "@ROW@": f"{name}," if algorithm else f"fedavg,{name}",
        "@LABEL@": name if algorithm else f"fedavg+{name}",
        "@SOURCE@": _installed_from(),
    }
    files = {}
    for path in sorted(TEMPLATE.rglob("*.in")):
        place, text = path.relative_to(TEMPLATE).as_posix(), path.read_text(encoding="utf-8")
        in_room = place.partition("/")[0]
        if in_room in registry.METHODS and not (method and in_room == room):
            continue
        if alone or "NAME" in place:
            place = place.removesuffix(".in").replace("NAME", name).replace("dot_", ".")
            for word, meaning in words.items():
                text = text.replace(word, meaning)
            files[root / place] = text
    return files


def _installed_from() -> str:
    """The folder, wheel or repository that pip installed fednb from, as a requirement names it."""
    try:
        origin = json.loads(metadata.distribution("fednb").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    repository = origin.get("vcs_info")
    if repository:
        return f"{repository['vcs']}+{origin['url']}@{repository['commit_id']}"
    return origin.get("url", "file:///TODO")


def _refuse(name: str) -> None:
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise RecipeError(f'"{name}" cannot name a paper; expected a name in Python, in lower case, such as third_way.')
    if name == "protocol":
        raise RecipeError('"protocol" cannot name a paper: papers/protocol.toml declares runs; take another name.')
    if name in papers.names():
        where = registry.source("papers", name) or "fednb/papers"
        raise RecipeError(f'there is a paper "{name}" already, in {where}; take another name.')
