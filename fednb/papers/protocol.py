"""The protocol: the rules by which claims are judged, what the papers' arguments need, and the declared runs."""

from functools import cache
from pathlib import Path

from fednb import papers, registry
from fednb.errors import RecipeError, nearest

PARTS = ("precondition", "runs")  # of a protocol from outside
_PRECONDITION = {"paper", "federation", "better", "worse", "place"}


def rules() -> dict:
    """``protocol.toml``, with the preconditions and declared runs of papers from outside; RecipeError where these have
    rules, speak of another paper, or have a precondition that names what theirs does not print."""
    beside = {}  # each protocol from outside, and the papers next to it
    for name, place in registry.outside("papers").items():
        beside.setdefault(place / "papers" / "protocol.toml", []).append(name)
    return _whole(tuple((path, tuple(names)) for path, names in beside.items() if path.is_file()))


@cache
def _whole(theirs: tuple[tuple[Path, tuple[str, ...]], ...]) -> dict:
    whole = dict(papers.toml(Path(__file__).with_name("protocol.toml")))
    for path, names in theirs:
        added = papers.toml(path)
        if wrong := [name for name in added if name not in PARTS or not isinstance(added[name], list)]:
            raise RecipeError(f"{path} has {wrong[0]}; expected [[{']] and [['.join(PARTS)}]]: the rules are fednb's.")
        for part, entries in added.items():
            for entry in entries:
                if entry.get("paper") not in names:
                    raise RecipeError(f"{path} has a {part} {entry}; expected one of the paper {' or '.join(names)}.")
                if part == "precondition":
                    require_printed(entry, path)
            whole[part] = [*whole[part], *entries]
    return whole


def require_printed(precondition: dict, file: Path) -> None:
    """RecipeError where a precondition is not of two rows that its paper prints on the data set."""
    if precondition.keys() != _PRECONDITION:
        found, expected = ", ".join(precondition), ", ".join(sorted(_PRECONDITION))
        raise RecipeError(f"{file} has a precondition with {found}; expected {expected}.")
    paper, federation = precondition["paper"], precondition["federation"]
    frames = [papers.printed(paper, table) for table in papers.tables(paper)]
    printed = {label for own in frames for label in papers.labels_of(own[own["federation"] == federation])}
    for side in ("better", "worse"):
        if precondition[side] not in printed:
            found = f"{precondition[side]} on {federation}, which {paper} does not print there"
            raise RecipeError(f"{file} has a precondition of {found}; {nearest(precondition[side], printed)}")
