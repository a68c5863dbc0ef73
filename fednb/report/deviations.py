"""In what recorded runs differ from a paper's setting."""

from functools import cache

from fednb import papers
from fednb.papers import protocol
from fednb.report import labels
from fednb.report.wording import METHODS_AND_SEEDS, spaced

DEALT = ("seed", "spare")  # options of a federation that no paper prints


@cache
def other_options(paper: str, run: str, label: str, table: str) -> list[str]:
    """In which options a run differs from what the paper has for a row of a table: ``["FedProx (μ = 0.1)"]``."""
    from fednb.recipe import Recipe

    settings = papers.settings(paper)
    own = settings["algorithm"] | settings.get(table, {})  # an option that one table has of its own
    named = {name for name, _ in labels.parts(label)} & settings["algorithm"].keys()
    base = papers.recipe(paper, "paper")
    told = [Recipe(**base, algorithm=own[name] | {"name": name}).label for name in named]
    wanted = labels.options(label) | {option for each in told for option in labels.options(each)}
    return [labels.pretty(f"{name}({option})", options=True) for name, option in sorted(labels.options(run) ^ wanted)]


def deviations(records, paper: str) -> dict[str, list[str]]:
    """In what each recorded run differs from the paper's setting, by key: ``["rounds 40 (paper: 100)"]``."""
    from fednb.recipe import Recipe

    rules, found = protocol.rules(), {}

    @cache
    def printed(federation: str) -> dict:
        return Recipe(**papers.recipe(paper, "paper", federation), algorithm="fedavg").full

    for record in records:
        own, federation = record.recipe, record.recipe["federation"]["name"]
        if federation not in papers.profiles_on(paper):
            found[record.key] = [f"no profile of the paper's is for {federation}"]
            continue
        told = []
        for name, wanted in printed(federation).items():
            if name in (*METHODS_AND_SEEDS, "unseen", *rules["as_printed"]) or name not in own:
                continue
            if name in ("federation", "model"):
                varied = _varied(paper, federation) if name == "federation" else ()
                options = dict.fromkeys((*own[name], *wanted))
                pairs = [(o, own[name].get(o), wanted.get(o)) for o in options if o not in (*DEALT, *varied)]
            else:
                pairs = [(name, own[name], wanted)]
            told += [
                f"{spaced(option) if option != 'name' else name} {here} (paper: {there})"
                for option, here, there in pairs
                if here != there
            ]
        found[record.key] = told
    return found


def _varied(paper: str, federation: str) -> set[str]:
    """The options of a federation that make what the paper prints rows under."""
    made_by = papers.settings(paper).get("setting", {}).get(federation, {})
    return {option for options in made_by.values() for option in options}


def of_unseen(printed) -> bool:
    """Whether the printed numbers are of sites that took no part."""
    return bool((printed["setting"] == papers.UNSEEN).all())
