"""The generated parts of README and docs/, of records and of methods, and the page of results/: what is recorded."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

from pandas import DataFrame

from fednb import papers, registry
from fednb.commands import methods, notebooks
from fednb.errors import NotebookError
from fednb.files import write_text
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.records.record import read
from fednb.records.staleness import changed
from fednb.records.store import Store
from fednb.report import TESTED, by_paper, common_seeds, effects, selected, sentences, summary
from fednb.report.judging import read_board, write_board
from fednb.report.sentences import untested
from fednb.report.verdicts import PRINTED
from fednb.report.wording import number, rule_words
from fednb.study import Study

BEGIN = "<!-- {0}: written by `fednb report --readme` -->"
END = "<!-- /{0} -->"
SHOWN = ("fedrdn", "fedfa", "fraug", "distrans", "fedavg", "fedprox", "scaffold", "fedbn")  # methods, in ten lines
PAGE = """# Recorded runs

Written by `fednb report --readme` from the {runs} records in this folder, which took {hours} hours in all, each in one
process but where the table names an engine. A record (`.json`) holds the whole recipe, every round's losses, scores and
bytes, the version of the code, and hashes of the behaviour of what it used; beside it lie the score of every test image
and what else the recipe asked for (`.npz`). A record carries its own checksum and one of each file beside it. Images
that many records show lie once in `shared/`, under their checksum.

{table}

A row can be of many settings: methods, options, numbers of images, heterogeneities. Each record has its own in full;
where each is printed, or why it was taken, stands in `fednb/papers/*.toml`. "At three seeds": how many of these
settings have three seeds or more; the others have the first alone or two. "By older code": something that the run used
behaves otherwise today; such runs carry no verdict.

Hours are of training and evaluation, of one process each: on a CPU one thread a run, mostly two runs side by side on
machines of two cores (Linux, x86_64); on the H100 most runs shared it with up to fourteen others, and took far fewer
hours of the GPU than stand here. They are no timings: few records name their processor, some processors multiply in
bf16 and some do not, and the machines were not always quiet. `fednb bench` times.

Fourteen records of the H100 say `9f9943d7f34b-dirty`. They were made from a copy of 40c125b60f46, and the copy's git
stood at an earlier commit. `docs/protocol.md` lists which runs were declared before they were made.

A record can be read without the package. Its `rounds` are columns, with a value for each round; where these would be
long, they are of the last round alone, and `earlier` holds the others:

```python
import base64, bz2, json
from pathlib import Path
import numpy

path = Path("results/cifar10/fedavg_s0_e10c64.json")
record = json.loads(path.read_text())
rounds, test = record["rounds"], record["rounds"]["test"]
if "earlier" in rounds:
    test = json.loads(bz2.decompress(base64.b64decode(rounds["earlier"])))["test"] + test
accuracy = 100 * numpy.array(test) / record["images"]["test"]  # per cent, [rounds, clients]
scores = numpy.load(path.with_suffix(".scores.npz"))  # "rounds", and "test": of each image, right or wrong as bits
```

The small settings again, from nothing, where the data sets are at hand (`fednb data` says which). What is recorded is
not trained again, so that the records must go first:

```bash
git rm -qr 'results/*.json' 'results/*.npz' ':!results/flower' && git commit -qm "Record again"
.venv/bin/fednb run --record --data folder
```

Without the removal the last command trains what is missing here, `--only NAME` what is missing for one notebook. With
`--profile paper` it trains at the printed settings: those of 256 x 256 pixels above, and all that nobody has run yet.
The run over Flower is made by `fednb federate` ([network](../notebooks/together/network.ipynb) says how).
"""


def headline(claims: DataFrame) -> str:
    """FedAvg with and without FedRDN, as printed and as released, at the printed setting, over the seeds that all have,
    beside the paper's, by the protocol's rule; and the claim's verdict."""
    base = Recipe(**papers.recipe("fedrdn", "paper"))
    varied = base.vary(augmentations=[[], ["fedrdn"], [{"name": "fedrdn", "variant": "released"}]], seed=[0, 1, 2])
    results = Study(varied, paper="fedrdn", store=_store()).recorded()
    rule = protocol.rules()["selection"]
    rows = common_seeds(selected(results.frame, rule))
    ours = rows.groupby("run")["accuracy"].mean().map(number)
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    theirs = printed.query("algorithm == 'fedavg' and site == 'average'").set_index("augmentation")["value"].map(number)
    seeds = ", ".join(map(str, sorted(rows["seed"].unique())))
    size = base.full["federation"]["size"]
    ended = f"{rule_words(rule, rows)}, average of the four sites"
    drawn, as_released = "fedavg+fedrdn", "fedavg+fedrdn(variant=released)"
    pairs = [(drawn, "fedavg"), (as_released, "fedavg"), (as_released, drawn)]
    of_the_paper = "of == 'fedrdn' and federation == 'office_caltech10' and effect == 'FedRDN - FedAvg'"
    [claim] = claims.query(f"{of_the_paper} and table == 'table1' and setting == '{PRINTED}'").itertuples()
    others = f" (by the paper's rule, {claim.other_rules})" if claim.other_rules else ""
    return (
        f"At the paper's setting ({size} x {size} pixels, {base.rounds} rounds; seeds: {seeds}; {ended}) FedAvg "
        f"reaches {ours['fedavg']} %, FedAvg + FedRDN {ours[drawn]} %, and {ours[as_released]} % as released, where "
        f"one draw is for a whole batch; the paper prints {theirs['']} and {theirs['fedrdn']}. "
        f"{sentences(effects(results, pairs))}\nThe paper's claim that FedRDN is above FedAvg is *{claim.verdict}*"
        f"{others}. FedRDN as released is a row of no table."
    )


def judged(claims: DataFrame) -> str:
    """The scoreboard in small: what is said of all claims, and a row of counts for each paper."""
    counts = by_paper(claims)
    rows = ["| | " + " | ".join(counts.columns) + " |", "|---" * (len(counts.columns) + 1) + "|"]
    rows += [f"| {name} | {' | '.join(map(str, row))} |" for name, *row in counts.itertuples()]
    curves = boards()[1].drop_duplicates(["of", "figure", "federation", "claim"])["verdict"].value_counts()
    others = f"{curves.sum()} more claims are on orders and curves: {_counted(curves)}."
    return " ".join([*summary(claims), others]) + "\n\n" + "\n".join(rows)


def claimed(claims: DataFrame) -> str:
    """One row for each notebook: what it reproduces, what the paper claims, our verdicts, and its data."""
    rows = [
        "| notebook | result | the paper claims | verdicts | data |",
        "|---|---|---|---|---|",
    ]
    curves = boards()[1]
    for notebook in notebooks.select():
        about = notebook.about
        result = " ".join(filter(None, (about.get("paper"), about.get("result"))))
        own = curves.loc[curves["notebook"] == notebook.name, "verdict"].value_counts()
        shapes = f"orders and curves: {_counted(own)}" if len(own) else ""
        verdicts = "; ".join(filter(None, (_verdicts(claims[claims["notebook"] == notebook.name]), shapes)))
        cells = (result, about.get("claim", ""), verdicts, about.get("data", ""))
        rows.append(f"| [{notebook.name}](../notebooks/{notebook.name}.ipynb) | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


@cache
def boards() -> tuple[DataFrame, DataFrame]:
    """Both boards of ``results/``, each row with the first ``notebook`` of its table or figure."""
    first = {}
    for notebook in notebooks.select():
        for kind, digits in re.findall(r"\b(Table|Figure) (\d+)", notebook.about.get("result", "")):
            place = {"Table": "table", "Figure": "fig"}[kind] + digits
            first.setdefault((notebook.about.get("paper"), place), notebook.name)

    def named(frame: DataFrame, column: str) -> DataFrame:
        places = zip(frame["of"], frame[column].str.partition(",")[0], strict=True)
        return frame.assign(notebook=[first.get(place, "") for place in places])

    claims, curves = read_board(notebooks.checkout() / "results")
    return named(claims, "table"), named(curves, "figure")


def _counted(verdicts) -> str:
    """ "1 otherwise than in print, 2 not told", of counts by verdict."""
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())


def _verdicts(claims: DataFrame) -> str:
    """ "3 reproduced, 1 smaller, 25 not tested"."""
    counts = claims["verdict"].value_counts()
    told = [f"{counts[word]} {word}" for word in TESTED if word in counts]
    others = len(untested(claims))
    return ", ".join([*told, *([f"{others} not tested"] if others else [])])


def _store() -> Store:
    return Store(notebooks.checkout() / "results")


def some_methods(_) -> str:
    """One row for each of eight methods: where it is from, what it does, its tasks, its cost."""
    heads = ("method", "from", "what it does", "tasks", "a round over FedAvg's")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    found = {method.name: method for method in methods.summaries() if not method.source}
    for method in (found[name] for name in SHOWN):
        link = f"[{method.printed}](../{registry.folder(method.room)}/{method.name}.py)"
        cells = (link, method.paper, method.line, method.tasks, method.cost)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(
        [
            *rows,
            "",
            f"`fednb list --methods` has the other {len(found) - len(SHOWN)}, with `--only NAME` all of one is shown.",
        ]
    )


# Of each page its generated parts, each of which gets the claims.
PAGES = {
    "README.md": {"headline": headline, "scoreboard": judged},
    "docs/notebooks.md": {"claims": claimed},
    "docs/methods.md": {"methods": some_methods},
}


def recorded(folder: Path) -> str:
    """The page of a folder of records: what is recorded at which settings, by what, and in how many hours."""
    groups = {}
    for path in sorted(folder.rglob("*.json")):
        record = read(path)
        groups.setdefault(_setting(record), []).append(record)
    rows = [
        "| federation | network | rounds | precision | on | runs | settings | at three seeds | by older code | hours |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for setting, records in sorted(groups.items()):
        seeds = Counter(repr(record.recipe | {"seed": None}) for record in records)
        enough = sum(count >= 3 for count in seeds.values())
        older = sum(bool(changed(record)) for record in records)
        told = (len(records), len(seeds), enough, older or "", f"{_hours(records):.1f}")
        rows.append("| " + " | ".join(map(str, (*setting, *told))) + " |")
    every = [record for records in groups.values() for record in records]
    return PAGE.format(runs=len(every), hours=f"{_hours(every):.0f}", table="\n".join(rows))


def _setting(record) -> tuple[str, ...]:
    recipe, origin = record.recipe, record.origin
    federation, model = recipe["federation"], recipe["model"]
    size = f", {federation['size']} x {federation['size']}" if "size" in federation else ""
    width = next((f", {name} {model[name]}" for name in ("width", "channels") if name in model), "")
    work = f"{recipe['local_steps']} steps" if recipe.get("local_steps") else f"{recipe['local_epochs']} epochs"
    on = ", ".join((origin["device"], f"torch {origin['torch']}", *filter(None, [origin.get("engine")])))
    rounds = f"{recipe['rounds']} of {work}"
    return federation["name"] + size, model["name"] + width, rounds, recipe["precision"], on


def _hours(records) -> float:
    return sum(record.origin["seconds"] for record in records) / 3600


def filled(page: str, text: str, claims: DataFrame) -> str:
    """The text of one of ``PAGES`` with fresh tables, each between its two markers; NotebookError where one lacks."""
    for name, table in PAGES[page].items():
        opening, closing = BEGIN.format(name), END.format(name)
        before, found, rest = text.partition(opening)
        _, ended, after = rest.partition(closing)
        if not (found and ended):
            raise NotebookError(
                f"{page} has no two lines {opening!r} and {closing!r}; put them where the table belongs."
            )
        text = f"{before}{opening}\n{table(claims)}\n{closing}{after}"
    return text


def update() -> int:
    """Write the boards from the records, the tables into the pages, and results/README.md; returns exit status 0."""
    root = notebooks.checkout()
    write_board(_store(), root / "results")
    claims, _ = boards()
    texts = {root / page: filled(page, (root / page).read_text(encoding="utf-8"), claims) for page in PAGES}
    for path, text in (texts | {root / "results" / "README.md": recorded(root / "results")}).items():
        write_text(path, text)
    print(f"{', '.join(PAGES)} and results/README.md are up to date")
    return 0
