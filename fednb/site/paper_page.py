"""A paper as a page of the site: a report on its reproducibility, computed from its claims, its settings and the runs.

What cannot be computed, ``<paper>/report.md`` says: what was easy, what was difficult, what we would ask the authors.
"""

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fednb import catalogue, papers
from fednb.report import labels, wording
from fednb.report.deviations import labels_of
from fednb.report.sentences import on_data, untested
from fednb.report.verdicts import CLAIM, PRINTED, SMALL, TESTED
from fednb.site import scoreboard
from fednb.site.pages import Entry
from fednb.site.records import Runs
from fednb.site.sources import counted, grid, linked, literal, numbered, outcome

if TYPE_CHECKING:
    from pandas import DataFrame

COUNTS = ("claims", "as printed", "small", "on both boards", "not testable", "not run", "no verdict")
PROFILES = ("paper", "quick")  # the others prove that a notebook runs


def page(paper: str, entries: Sequence[Entry], claims: "DataFrame", curves: "DataFrame", methods: Sequence) -> str:
    """The report on a paper.

    entries: its notebooks. claims, curves: of ``fednb.commands.scoreboard``. methods: of ``fednb list``.
    """
    told, called = papers.settings(paper), labels.printed(paper)
    own, several = (frame[frame["of"] == paper] for frame in (claims, curves))
    shown = {entry.name for entry in entries if entry.content}
    rooms = [room for room in catalogue.METHODS if paper in catalogue.names(room)]
    about = (inspect.getdoc(catalogue.file(rooms[0], paper)) or "").partition("\n")[0] if rooms else ""
    method = f"How the printed method and the released code differ stands on [its page](/methods/{paper}.md)."
    return f"""# {called}: reproducibility report

*{told["title"]}*, [arXiv:{told["arxiv"]}](https://arxiv.org/abs/{told["arxiv"]}), {told["venue"]}. {about}

**{outcome(own)}**

{_ways(paper, entries, methods)}

## Scope of reproducibility

A claim is a sentence of the paper that one run scores more than another, with the two printed numbers. It is tested on
two boards: as printed, and at a smaller setting, which says nothing of what the paper found. {len(several)} more claims
are on orders and curves: {counted(several)}.

{scoreboard.bars(own)}

{_folded("The claims by table and data set", _scope(own, shown))}

## Methodology

{_not_printed(told)} {method if rooms else ""}

{_compute(entries)}

{_settings(told)}

{_folded("Our profiles", _profiles(paper))}

{_inconsistencies(paper)}

## Results

{_results(paper, own, shown)}

{_not_tested(own)}

{_several(several, shown)}

{linked(papers.report(paper), shown)}
"""


def _ways(paper: str, entries: Sequence[Entry], methods: Sequence) -> str:
    tables = [papers.printed(paper, table) for table in papers.tables(paper)]
    named = {name for table in tables for label in labels_of(table) for name, _ in labels.parts(label)} - {paper}
    rivals = ", ".join(f"[{each.printed}](/methods/{each.name}.md)" for each in methods if each.name in named)
    books = [_notebook(entry.name) for entry in entries if entry.content]
    notebooks = f"[Notebooks](/notebooks/{paper}/index.md): {', '.join(books)}" if books else "No notebook is executed"
    return (
        f'<a href="../board.html#paper={paper}">Each claim</a>. The method: '
        f"[{labels.printed(paper)}](/methods/{paper}.md). {notebooks}.\n\n"
        + _folded("The other methods of its tables", f"{rivals}.")
    )


def _notebook(name: str, called: str = "") -> str:
    return f"[{called or name.partition('/')[2]}](/notebooks/{name}.ipynb)"


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _tables(claims: "DataFrame", shown: set[str]) -> Iterable[tuple[str, "DataFrame"]]:
    """ "Table 1", a link to its notebook where that has a page, and the claims of the table."""
    for table in numbered(claims):
        rows = claims[claims["table"] == table]
        books = [name for name in rows["notebook"].unique() if name in shown]
        called = f"Table&nbsp;{table.removeprefix('table')}"
        yield _notebook(books[0], called) if books else called, rows


def counts(claims: "DataFrame") -> list[int]:
    """``COUNTS``: of all claims, of those tested on either board and on both, and of what became of the others.

    no verdict: what was run with one seed, by older code or over other sites.
    """
    tested = claims[claims["verdict"].isin(TESTED)]
    every, once = (len(rows.drop_duplicates([*CLAIM])) for rows in (claims, tested))
    boards = [int((tested["setting"] == board).sum()) for board in (PRINTED, SMALL)]
    others = untested(claims)["verdict"]
    why = [int((others == word).sum()) for word in ("not testable", "not run")]
    return [every, *boards, sum(boards) - once, *why, len(others) - sum(why)]


def _scope(claims: "DataFrame", shown: set[str]) -> str:
    rows = [
        (table, labels.federation(name), *(str(count or "") for count in counts(within)))
        for table, own in _tables(claims, shown)
        for name, within in own.groupby("federation", sort=False)
    ]
    return grid([*rows, ("all", "", *map(str, counts(claims)))], ("", "data", *COUNTS))


def _not_printed(told: dict) -> str:
    reasons = [each["reason"] for each in told["not_printed"].values()]
    taken = {"taken from the released code": "released code", "ours": "ours"}
    count = {what: sum(reason.startswith(begin) for reason in reasons) for what, begin in taken.items()}
    count["taken from elsewhere"] = len(reasons) - sum(count.values())
    parts = ", ".join(f"{number} {what}" for what, number in count.items() if number)
    return f"{len(reasons)} settings that decide a run are not printed: {parts}."


def _settings(told: dict) -> str:
    """What is printed and where, and what we take for the rest and why, as folded tables."""
    printed, others = told["printed"], told["not_printed"]
    tables = [
        grid(
            (
                (wording.spaced(name), literal(_value(each["value"])), literal(each[last]))
                for name, each in rows.items()
            ),
            ("", "value", heading),
        )
        for rows, last, heading in ((printed, "place", "where"), (others, "reason", "why"))
    ]
    return (
        f"{_folded(f'Printed: {len(printed)} settings, and where', tables[0])}\n\n"
        f"{_folded(f'Not printed: {len(others)} settings, what we take for them and why', tables[1])}"
    )


def _value(value) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{wording.spaced(name)}: {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _profiles(paper: str) -> str:
    """The fields of the paper's own federation side by side, then what differs on the others."""
    chosen = [papers.recipe(paper, profile) for profile in PROFILES]
    cells = (
        (name, *(literal(wording.as_text(each[name])) if name in each else "" for each in chosen)) for name in chosen[0]
    )
    differing = [
        f"- {labels.federation(federation)}, {profile}: "
        + literal("; ".join(f"{wording.spaced(name)} {wording.as_text(value)}" for name, value in fields.items()))
        for federation, profiles in papers.settings(paper).get("on", {}).items()
        for profile, fields in profiles.items()
        if profile not in ("smoke", "stand_in")
    ]
    others = f"\n\nWhat differs on other data:\n\n{chr(10).join(differing)}" if differing else ""
    table = grid(((wording.spaced(name), *each) for name, *each in cells), ("", *PROFILES))
    return f"Where a cell is empty, the default of a recipe holds.\n\n{table}{others}"


def _inconsistencies(paper: str) -> str:
    found = papers.inconsistencies(paper)
    rows = (
        (
            f"Table&nbsp;{one.table.removeprefix('table')}",
            labels.pretty("+".join(filter(None, (one.algorithm, one.augmentation)))),
            ", ".join(
                filter(
                    None, (labels.federation(one.federation), one.setting, *map(labels.site, (one.source, one.site)))
                )
            ),
            str(one.printed),
            str(one.expected),
            literal(one.reason),
        )
        for one in found.itertuples()
    )
    heads = ("", "row", "where", "printed", "expected", "why")
    return _folded(f"Printed numbers that contradict others of the paper: {len(found)}", grid(rows, heads))


def _compute(entries: Sequence[Entry]) -> str:
    """The runs behind the notebooks, their hours and what they ran on."""
    runs = Runs(path for entry in entries for path in entry.records).records.values()
    if not runs:
        return "**Compute.** No run of this paper is recorded."
    hours, count = Counter(), Counter()
    for run in runs:
        place = ", ".join((run.origin["device"], run.origin.get("processor", "processor not named")))
        hours[place] += run.origin["seconds"] / 3600
        count[place] += 1
    told = "; ".join(f"{place}: {count[place]} runs, {spent:.1f} hours" for place, spent in hours.most_common())
    on_a_gpu = any(run.origin["device"] != "cpu" for run in runs)
    shared = " Hours on a GPU are those of each process: where several shared it, it was busy for fewer." * on_a_gpu
    return (
        f"**Compute.** {len(runs)} recorded runs stand behind its notebooks; other papers may share them. "
        f"They took {sum(hours.values()):.1f} hours in all: {literal(told)}.{shared}"
    )


def _results(paper: str, claims: "DataFrame", shown: set[str]) -> str:
    """The figure of all tested claims, their verdicts by table, and where their runs leave the paper's setting."""
    tested = claims[claims["verdict"].isin(TESTED)]
    if not len(tested):
        return "No claim is tested yet."
    alt = f"Each tested claim of {labels.printed(paper)}: the printed effect, ours and its intervals"
    rows = []
    for table, own in _tables(claims, shown):
        boards = [own[own["verdict"].isin(TESTED) & (own["setting"] == board)] for board in (PRINTED, SMALL)]
        rows.append((table, *map(counted, (*boards, untested(own)))))
    verdicts = grid(rows, ("", "as printed", "small", "not tested"))
    differing = Counter(text for texts in tested["deviations"] for text in texts.split("; ") if text)
    others = grid(((literal(text), str(count)) for text, count in differing.most_common()), ("", "claims"))
    folded = _folded(f"In what tested runs differ from the paper's setting: {len(differing)}", others)
    return f"![{alt}](/{paper}.svg)\n\n{verdicts}\n\n{folded}"


def _not_tested(claims: "DataFrame") -> str:
    """How many claims are not tested, on which data, and each reason with how many it keeps from it."""
    others = untested(claims)
    if not len(others):
        return ""
    of_word = {word: others.loc[others["verdict"] == word, "federation"] for word in others["verdict"].unique()}
    lines = "\n".join(f"- {word}: {len(data)} ({on_data(data)})" for word, data in of_word.items())
    gated = others[others["why"] != ""]
    reasons = Counter(zip(gated["verdict"], gated["federation"].map(labels.federation), gated["why"], strict=True))
    rows = [(word, data, literal(why), str(count)) for (word, data, why), count in reasons.most_common()]
    why = _folded("Why, by reason", grid(rows, ("", "data", "why", "claims"))) if rows else ""
    return f"### What could not be tested\n\n{lines}\n\n{why}"


def _several(curves: "DataFrame", shown: set[str]) -> str:
    """The claims on orders and curves, those that are not run folded."""
    ran, waiting = (curves[(curves["verdict"] == "not run") == state] for state in (False, True))
    parts = ["### Orders and curves"] if len(curves) else []
    parts += [scoreboard.curves(ran, shown, "../")] if len(ran) else []
    parts += [_folded(f"Not run: {len(waiting)}", scoreboard.curves(waiting, shown, "../"))] if len(waiting) else []
    return "\n\n".join(parts)
