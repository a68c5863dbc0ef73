"""In what recorded runs differ from a paper's setting."""

from functools import cache, partial

from fednb import papers
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.report import labels
from fednb.report.wording import METHODS_AND_SEEDS, UNSAID, as_text, spaced

LACKING = [(name, None, value) for name, value in UNSAID]
DEALT = ("seed", "spare")  # options of a federation that no paper prints


@cache
def other_options(paper: str, run: str, label: str, table: str) -> list[str]:
    """In which options a run differs from what the paper has for a row of a table: ``["FedProx (μ = 0.1)"]``."""
    settings = papers.settings(paper)
    own = settings["algorithm"] | settings.get(table, {})  # an option that one table has of its own
    named = {name for name, _ in labels.parts(label)} & settings["algorithm"].keys()
    told = [Recipe(**papers.recipe(paper, "paper"), algorithm=own[name] | {"name": name}).label for name in named]
    wanted = labels.options(label).union(*map(labels.options, told))
    return [labels.pretty(f"{name}({option})") for name, option in sorted(labels.options(run) ^ wanted)]


def deviations(records, paper: str) -> dict[str, list[str]]:
    """In what each recorded run differs from the paper's setting, by key: ``["rounds 40 (paper: 100)"]``."""
    printed = cache(partial(_printed, paper))
    return {record.key: _differing(record.recipe, *printed(record.recipe["federation"]["name"])) for record in records}


def _printed(paper: str, federation: str) -> tuple[dict, set[str]]:
    """The paper's recipe on a federation, and the options of the federation that it has no single value of."""
    if federation not in papers.profiles_on(paper):
        return {}, set()
    full = Recipe(**papers.recipe(paper, "paper", federation), algorithm="fedavg").full
    left_out = (*METHODS_AND_SEEDS, "unseen", *protocol.rules()["as_printed"])
    made_by = papers.settings(paper).get("setting", {}).get(federation, {})  # what it prints rows under
    varied = {*DEALT, *(option for options in made_by.values() for option in options)}
    return {name: value for name, value in full.items() if name not in left_out}, varied


def _differing(own: dict, printed: dict, varied: set[str]) -> list[str]:
    if not printed:
        return [f"no profile of the paper's is for {own['federation']['name']}"]
    told = []
    for name, wanted in printed.items():
        found = own.get(name, wanted)
        pairs = [(name, found, wanted)]
        if name in ("federation", "model"):
            options = [o for o in {**found, **wanted} if name == "model" or o not in varied]
            if found["name"] != wanted["name"]:  # options that one of two networks lacks follow from the network
                options = [o for o in options if o in found and o in wanted]
            pairs = [(o if o != "name" else name, found.get(o), wanted.get(o)) for o in options]
        # an older record lacks an option that is off, or as a network has it where it says nothing
        pairs = [each for each in pairs if each[1] != each[2] and each[1:] != (None, False) and each not in LACKING]
        told += [f"{spaced(o)} {as_text(here, o)} (paper: {as_text(there, o)})" for o, here, there in pairs]
    return told


def of_unseen(printed) -> bool:
    """Whether the printed numbers are of sites that took no part."""
    return bool((printed["setting"] == papers.UNSEEN).all())
