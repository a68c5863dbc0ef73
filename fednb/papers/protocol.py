"""The protocol: the rules by which claims are judged, and the runs that are declared before they are made."""

import hashlib
import json
from functools import cache
from pathlib import Path

from fednb import outside, papers
from fednb.errors import RecipeError, nearest

_HERE = Path(__file__).parent
PARTS = {  # of protocol.toml, what each of its tables has
    "precondition": {"paper", "federation", "better", "worse", "place"},
    "runs": {"paper", "profile", "federation", "seeds"},
}


def rules() -> dict:
    """``protocol.toml``: the rules by which claims are judged, and the runs that are declared; with the preconditions
    and the declared runs of papers from outside.

    RecipeError, naming the entry, where one is missing, unknown or out of range, where a seed of verdicts is one that
    settings are chosen on, where a precondition names what its paper does not print, or where declared runs are of no
    profile, on other seeds than the rules have, or of a recipe that deals out or scores otherwise than the rules say.
    Where a protocol from outside has rules, or speaks of a paper that does not lie beside it.
    """
    return _whole(_protocols())


def _protocols() -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """The protocols from outside, and the papers that each may speak of: those beside it."""
    beside = {}
    for name, place in papers.from_outside().items():
        beside.setdefault(outside.folder(place).with_name("protocol.toml"), []).append(name)
    return tuple((path, tuple(names)) for path, names in beside.items() if path.is_file())


@cache
def _whole(theirs: tuple[tuple[Path, tuple[str, ...]], ...]) -> dict:
    from fednb.recipe import Recipe

    told = papers.toml(_HERE / "protocol.toml")
    ranges = {
        "level": lambda value: 0 < value < 1,
        "margin": lambda value: value > 0,
        "least_margin": lambda value: value > 0,
        "selection": lambda value: isinstance(value, str),
        "level_curve": lambda value: value > 0,
        "seeds": lambda value: value == sorted({int(seed) for seed in value}),
        "choosing_seeds_from": lambda value: value > max(told["seeds"]),
        "partition": lambda value: value == "run",
        "second_test_set": lambda value: value == "spare",
        "as_printed": lambda value: set(value) <= Recipe.__dataclass_fields__.keys(),
        "precondition": lambda value: isinstance(value, list),
        "runs": lambda value: isinstance(value, list),
    }
    if wrong := sorted(ranges.keys() ^ told.keys()):
        raise RecipeError(f"protocol.toml has the entries {', '.join(told)}; expected {', '.join(ranges)}: {wrong[0]}.")
    for name, holds in ranges.items():
        try:
            kept = holds(told[name])
        except (TypeError, ValueError):
            kept = False
        if not kept:
            raise RecipeError(f"{name} is {told[name]} in protocol.toml, which cannot be; see its remark there.")
    _refuse_entries(told, told, "protocol.toml", papers.own())
    whole = dict(told)
    for path, beside in theirs:
        added = papers.toml(path)
        if wrong := [name for name in added if name not in PARTS or not isinstance(added[name], list)]:
            raise RecipeError(
                f"{path} has {wrong[0]}; expected [[{']] and [['.join(PARTS)}]] alone: the rules are fednb's."
            )
        _refuse_entries(told, dict.fromkeys(PARTS, []) | added, str(path), beside)
        whole |= {name: [*whole[name], *added[name]] for name in added}
    return whole


def _refuse_entries(rules: dict, told: dict, file: str, beside: tuple[str, ...]) -> None:
    """RecipeError where a precondition or declared runs contradict the rules, a paper or its recipes."""
    from fednb.recipe import Recipe

    for name, expected in PARTS.items():
        for each in told[name]:
            if not isinstance(each, dict) or each.keys() != expected:
                found = ", ".join(each) if isinstance(each, dict) else each
                raise RecipeError(f"{file} has a {name} with {found}; expected {', '.join(sorted(expected))}.")
            if each["paper"] not in beside:
                raise RecipeError(f"{file} has a {name} of {each['paper']}; expected one of {', '.join(beside)}.")
    for each in told["precondition"]:
        frames = [papers.printed(each["paper"], table) for table in papers.tables(each["paper"])]
        rows = [frame[frame["federation"] == each["federation"]] for frame in frames]
        named = {
            "+".join(filter(None, row))
            for own in rows
            for row in zip(own["algorithm"], own["augmentation"], strict=True)
        }
        if each["better"] == each["worse"]:
            raise RecipeError(
                f"a precondition of {file} on {each['federation']} holds {each['better']} against itself."
            )
        if missing := {each["better"], each["worse"]} - named:
            raise RecipeError(
                f"a precondition of {file} names {', '.join(sorted(missing))} on {each['federation']}, which "
                f"{each['paper']} does not print there; {nearest(sorted(missing)[0], named)}"
            )
    for each in told["runs"]:
        try:
            declared = Recipe(**papers.recipe(each["paper"], each["profile"], each["federation"])).full
        except RecipeError as error:
            raise RecipeError(f"{file} declares runs of {each['paper']} that cannot be: {error}") from error
        _refuse_runs(rules, each, declared, file)


def _refuse_runs(rules: dict, runs: dict, declared: dict, file: str = "protocol.toml") -> None:
    """RecipeError where declared runs contradict the rules; declared: the full recipe of their profile."""
    where = f"{file} declares runs of {runs['paper']} on {runs['federation']}"
    options, partition = declared["federation"], rules["partition"]
    if not isinstance(runs["seeds"], list) or not runs["seeds"] or len(set(runs["seeds"])) < len(runs["seeds"]):
        raise RecipeError(f"{where} on seeds {runs['seeds']}; expected a list of seeds, each once.")
    if options["name"] != runs["federation"]:
        raise RecipeError(f"{where}, and its profile {runs['profile']} is on {options['name']}. Name another profile.")
    if others := sorted(set(runs["seeds"]) - set(rules["seeds"])):
        raise RecipeError(
            f"{where} on seed {others[0]}, and its verdicts are made of seeds {', '.join(map(str, rules['seeds']))}."
        )
    if options.get("seed", partition) != partition:
        raise RecipeError(
            f"{where}, dealt out by seed {options['seed']} in the profile {runs['profile']}, and has "
            f'partition = "{partition}". Give the profile\'s federation that seed.'
        )
    if options.get("spare", False) != (rules["second_test_set"] in declared["evaluation"]):
        raise RecipeError(
            f"{where}, and the profile {runs['profile']} hands over spare images or scores them, not both. Give its "
            "federation spare = true and its evaluation spare, or neither."
        )


def rules_hash() -> str:
    """12 hex digits of the protocol's rules, without the runs that it declares: a record has those of its time."""
    return _hash({name: value for name, value in papers.toml(_HERE / "protocol.toml").items() if name != "runs"})


def declarations() -> list[str]:
    """``declaration`` of each entry of runs in protocols from outside: a record has those of its time."""
    told = (papers.toml(path) for path, _ in _protocols())
    return [_declaration(entry, each.get("precondition", [])) for each in told for entry in each.get("runs", [])]


def declaration(entry: dict) -> str:
    """12 hex digits of an entry of runs that a protocol from outside declares, with what its paper's argument needs. It
    stands in for the commit of fednb that has ours."""
    return _declaration(entry, rules()["precondition"])


def _declaration(entry: dict, needed: list[dict]) -> str:
    return _hash([entry, [each for each in needed if each["paper"] == entry["paper"]]])


def _hash(told) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
