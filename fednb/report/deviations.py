"""In what recorded runs differ from a paper's setting, and which of them the protocol declares."""

from functools import cache

from fednb import papers
from fednb.papers import protocol
from fednb.report import labels
from fednb.report.wording import METHODS_AND_SEEDS, spaced

DEALT = ("seed", "spare")  # options of a federation that no paper prints and the protocol fixes


def declared_runs(records, paper: str) -> set[str]:
    """The keys of those that the protocol declares, made under its rules of today; the others are exploratory.

    So is a run that was dealt out or scored otherwise than the profile says, one of a method that the paper's tables on
    the data set do not have, or of one with other options, and a record of a changed copy of the code ("-dirty"), of
    which nobody can say what it declared.
    """
    from fednb.recipe import Recipe

    rules, found = protocol.rules(), set()
    under = [
        record
        for record in records
        if record.origin.get("protocol") == protocol.rules_hash() and not record.origin["code"].endswith("-dirty")
    ]
    for entry in rules["runs"]:
        if entry["paper"] == paper:
            there = [record for record in under if record.recipe["federation"]["name"] == entry["federation"]]
            differing = deviations(there, paper, entry["profile"])
            wanted = Recipe(**papers.recipe(paper, entry["profile"], entry["federation"])).full
            told = papers.source(paper) and protocol.declaration(entry)
            found |= {
                record.key
                for record in there
                if (not told or told in record.origin.get("declared", ()))
                and record.recipe["seed"] in entry["seeds"]
                and not differing[record.key]
                and all(record.recipe["federation"].get(name) == wanted["federation"].get(name) for name in DEALT)
                and set(wanted["evaluation"]) <= set(record.recipe.get("evaluation", ()))
                and _is_printed(paper, record)
            }
    return found


def _is_printed(paper: str, record) -> bool:
    """Whether a table of the paper has a row of the run's methods and options, at its sites, on its data."""
    from fednb.recipe import Recipe

    run, unseen = Recipe(**record.recipe).label, bool(record.recipe.get("unseen"))
    return any(
        labels.method(label) == labels.method(run) and not other_options(paper, run, label, table)
        for table in papers.tables(paper)
        for printed in [papers.printed(paper, table)]
        if of_unseen(printed) == unseen
        for label in labels_of(printed[printed["federation"] == record.recipe["federation"]["name"]])
    )


def labels_of(printed) -> list[str]:
    rows = zip(printed["algorithm"], printed["augmentation"], strict=True)
    return list(dict.fromkeys("+".join(filter(None, row)) for row in rows))


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


def deviations(records, paper: str, profile: str = "paper") -> dict[str, list[str]]:
    """In what each recorded run differs from a profile of the paper, by key: ``["rounds 40 (paper: 100)"]``."""
    from fednb.recipe import Recipe

    rules, found = protocol.rules(), {}

    @cache
    def printed(federation: str) -> dict:
        return Recipe(**papers.recipe(paper, profile, federation), algorithm="fedavg").full

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
                pairs = [(o, own[name].get(o), wanted.get(o)) for o in options if o not in ("seed", "spare", *varied)]
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
