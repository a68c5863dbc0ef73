"""The generated parts of README and docs/, of records and of methods, and the page of results/: what is recorded."""

from collections import Counter
from pathlib import Path

import gallery
from pandas import DataFrame

from fednb import papers, registry
from fednb.commands import notebooks
from fednb.commands.list import summaries
from fednb.errors import NotebookError
from fednb.files import write_text
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.records.record import read
from fednb.records.staleness import changed
from fednb.records.store import Store
from fednb.report import TESTED, common_seeds, judging, labels, selected
from fednb.report.verdicts import CLAIM, PRINTED, SMALL, VERDICTS
from fednb.report.wording import number, signed
from fednb.study import Study

BEGIN = "<!-- {0}: written by `fednb report --readme` -->"
END = "<!-- /{0} -->"
SHOWN = ("fedrdn", "fedfa", "fraug", "distrans", "fedavg", "fedprox", "scaffold", "fedbn")  # methods, in ten lines
PAGE = """# Recorded runs

Written by `fednb report --readme` from the {runs} records in this folder. Together they took {hours} hours. Each ran in
one process, except where the table names an engine. A record (`.json`) holds the whole recipe, the losses, scores and
bytes of every round, the version of the code, and hashes of the behaviour of what it used. The score of every test
image and what else the recipe asked for are next to it (`.npz`). A record has its own checksum and one of each file.
Images that many records show are kept once, in `shared/`, named by their checksum.

{table}

A row covers many settings: methods, options, numbers of images, heterogeneities. Each record has its own in full, and
`fednb/papers/*.toml` say where each is printed, or why it was taken. "At three seeds" counts the settings with three
seeds or more; the others have one or two. "By older code" counts runs that used something which behaves differently
today; they give no verdict.

Hours are of training and evaluation, per process. They are not timings: `fednb bench` makes those.

- On a CPU each run had one thread, and mostly two ran side by side on a machine of two cores (Linux, x86_64).
- On the H100 most runs shared it with up to fourteen others, so the GPU was busy for far fewer hours than listed.
- Few records name their processor, some processors multiply in bf16 and some do not, and some machines were busy.

Fourteen records of the H100 say `9f9943d7f34b-dirty`. They were made from a copy of 40c125b60f46 whose git was at an
earlier commit. `docs/protocol.md` lists which runs were declared before they were made.

A record can be read without the package. Its `rounds` are columns, with a value for each round. Long records have the
last round there, and the others in `earlier`:

```python
import base64, bz2, json
from functools import partial
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

To run the small settings again from nothing, remove the records first, as what is recorded is not trained again. The
data sets must be available (`fednb data` says which are):

```bash
git rm -qr 'results/*.json' 'results/*.npz' ':!results/flower' && git commit -qm "Record again"
.venv/bin/fednb run --record --data folder
```

Without the removal the last command trains what is missing; with `--only NAME` for one notebook, with `--profile paper`
at the printed settings. The run over Flower is made by `fednb federate` ([network](../notebooks/together/network.ipynb)
says how).
"""


def headline(claims: DataFrame) -> str:
    """FedAvg and FedRDN at the paper's setting next to what it prints, over the seeds that all have, by the protocol's
    rule; and the claim's verdict."""
    base = Recipe(**papers.recipe("fedrdn", "paper"))
    varied = base.vary(augmentations=[[], ["fedrdn"], [{"name": "fedrdn", "variant": "released"}]], seed=[0, 1, 2])
    results = Study(varied, paper="fedrdn", store=_store()).recorded()
    rows = common_seeds(selected(results.frame, protocol.rules()["selection"]))
    ours = rows.groupby("run")["accuracy"].mean().map(number)
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    theirs = printed.query("algorithm == 'fedavg' and site == 'average'").set_index("augmentation")["value"].map(number)
    of_the_paper = "of == 'fedrdn' and federation == 'office_caltech10' and effect == 'FedRDN - FedAvg'"
    [claim] = claims.query(f"{of_the_paper} and table == 'table1' and setting == '{PRINTED}'").itertuples()
    others = f"; by the paper's own rule, {claim.other_rules}" if claim.other_rules else ""
    gap = f"ours minus printed {signed(claim.ours - claim.paper)}, {signed(claim.gap_low)} to {signed(claim.gap_high)}"
    released = ours["fedavg+fedrdn(variant=released)"]
    return (
        f"At the paper's setting FedAvg reaches {ours['fedavg']} % (paper: {theirs['']}) and FedRDN "
        f"{ours['fedavg+fedrdn']} % (paper: {theirs['fedrdn']}); the released code's draw, one per batch, gives "
        f"{released} %. FedRDN's gain is {signed(claim.ours)} points (95 %: {signed(claim.low)} to "
        f"{signed(claim.high)}; printed: {signed(claim.paper)}). Verdict: "
        f"**{VERDICTS[claim.verdict].heading.lower()}** ({gap}, by the spread of runs{others}). "
        f"(Office-Caltech-10, four sites, {rows['seed'].nunique()} seeds, mean of the last ten rounds.)"
    )


def judged(claims: DataFrame) -> str:
    """The primary claims, at the paper's setting and at a smaller one; then one sentence on all."""
    heads = ("primary claim", "setting", "printed", "ours (95 %)", "verdict", "at work")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    primary = claims[claims["primary"].astype(bool)]
    nearest = primary.assign(far=primary["setting"] != PRINTED).sort_values(["of", "effect", "far"], kind="stable")
    for row in nearest.itertuples():
        ours = f"{signed(row.ours)} ({signed(row.low)} to {signed(row.high)})" if row.ours == row.ours else ""
        at = {PRINTED: "paper's", SMALL: "smaller"}.get(row.setting, "")
        why = f": {row.why}" if row.why else ", marked" if row.marks else ""
        work = f"{row.activity:.2g}" if row.activity == row.activity else ""
        cells = (f"{row.effect}, {labels.federation(row.federation)}", at, signed(row.paper), ours)
        rows.append(f"| {' | '.join((*cells, f'{row.verdict}{why}', work))} |")
    claim, tested = ["of", *CLAIM], claims[claims["verdict"].isin(TESTED)]
    at_paper, small = (tested[tested["setting"] == board] for board in (PRINTED, SMALL))
    one, all_ = (len(frame.drop_duplicates(claim)) for frame in (tested, claims))
    sentence = (
        f"We tested {one} of all {all_} claims that compare two runs: {len(at_paper)} at the paper's setting "
        f"({_counted(at_paper['verdict'])}) and {len(small)} at a smaller one ({_counted(small['verdict'])}), which "
        "says nothing of what the paper found. Most others lack data."
    )
    return "\n".join([*rows, "", sentence])


QUESTIONS = {  # by the notebook that answers it
    "batch_norm": "Is it the method, or batch normalisation?",
    "equal_budget": "Which method, at the same budget?",
}


def answers(_) -> str:
    """What each notebook of ``QUESTIONS`` found, from its outputs."""
    found = {notebook.name: gallery.outcome_of(notebook) for notebook in notebooks.select()}
    lines = []
    for name, question in QUESTIONS.items():
        outcome = found[f"together/{name}"]
        lines.append(f"**{question}** {outcome[0].upper()}{outcome[1:]} ([{name}](notebooks/together/{name}.ipynb)).")
    return "\n\n".join(lines)


def _counted(verdicts) -> str:
    """ "6 reproduced, 7 larger", or "none"."""
    counts = verdicts.value_counts()
    return ", ".join(f"{counts[word]} {word}" for word in TESTED if word in counts) or "none"


def _store() -> Store:
    return Store(notebooks.checkout() / "results")


def some_methods(_) -> str:
    """One row for each of eight methods: where it is from, what it does, its tasks, its cost."""
    heads = ("method", "from", "what it does", "tasks", "a round over FedAvg's")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    found = {method.name: method for method in summaries() if not method.source}
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
    "README.md": {"headline": headline, "questions": answers, "scoreboard": judged},
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
        seeds = Counter(repr(_whole(record.recipe) | {"seed": None}) for record in records)
        enough = sum(count >= 3 for count in seeds.values())
        older = sum(bool(changed(record)) for record in records)
        counts = (len(records), len(seeds), enough, older or "", f"{_hours(records):.1f}")
        rows.append("| " + " | ".join(map(str, (*setting, *counts))) + " |")
    every = [record for records in groups.values() for record in records]
    return PAGE.format(runs=len(every), hours=f"{_hours(every):.0f}", table="\n".join(rows))


def _whole(recipe: dict) -> dict:
    """With the options of its network that came later than its record."""
    return recipe | {"model": registry.complete("models", recipe["model"])}


def _setting(record) -> tuple[str, ...]:
    recipe, origin = _whole(record.recipe), record.origin
    federation, model = recipe["federation"], recipe["model"]
    size = f", {federation['size']} x {federation['size']}" if "size" in federation else ""
    width = next((f", {name} {model[name]}" for name in ("width", "channels") if name in model), "")
    width += f", {model['groups']} groups" if model.get("groups") else ""
    width += ", no normalisation" if model.get("normalisation") is False else ""
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


def write_board(store: Store, folder: Path) -> None:
    """``board.csv`` and ``curves.csv`` of our own papers, from the records of the store."""
    for name, judge in zip(judging.BOARDS, (judging.claims, judging.curves), strict=True):
        write_text(folder / name, judge(store, papers.own()).to_csv(index=False))


def update() -> int:
    """Write the boards from the records, the tables into the pages, and results/README.md; returns exit status 0."""
    root = notebooks.checkout()
    write_board(_store(), root / "results")
    claims, _ = judging.read_board(root / "results")
    texts = {root / page: filled(page, (root / page).read_text(encoding="utf-8"), claims) for page in PAGES}
    texts[root / "results" / "README.md"] = recorded(root / "results")
    texts[root / "notebooks" / "README.md"] = gallery.write(root, notebooks.select())
    for path, text in texts.items():
        write_text(path, text)
    print(f"{', '.join(PAGES)}, notebooks/README.md and results/README.md are up to date")
    return 0
