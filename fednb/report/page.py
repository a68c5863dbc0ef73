"""The form that all notebooks have: the study, its answer before everything else, tables, sentences, one footer."""

import html
import json
import re
from collections import Counter
from functools import cached_property
from pathlib import Path

import pandas
from pandas import DataFrame

from fednb import papers, report
from fednb.papers import protocol
from fednb.parameters import check_parameters
from fednb.recipe import Recipe
from fednb.report import labels, wording
from fednb.report.claims import judged
from fednb.report.convergence import late_rise, not_converged
from fednb.report.curves import curves
from fednb.report.sentences import WHY_UNTESTED, spans, though
from fednb.report.verdicts import AT, PRINTED, SMALL, TESTED, VERDICTS
from fednb.study import Results, Study

MOST_NAMED, MOST_SENTENCES = 4, 6


class Lines:
    """Rows of a word and its lines: a small table in a notebook, aligned text where it is printed or checked."""

    def __init__(self, rows: dict[str, list[str]], mark: str = ""):
        self.rows = {word: [line for line in lines if line] for word, lines in rows.items() if any(lines)}
        self.mark = f"{mark}: nothing here speaks of the paper." if mark else ""

    def __repr__(self) -> str:
        width = max(map(len, self.rows), default=0)
        texts = [(word if not n else "", line) for word, lines in self.rows.items() for n, line in enumerate(lines)]
        return "\n".join([*filter(None, [self.mark]), *(f"{word:<{width}}  {line}" for word, line in texts)])

    def _repr_html_(self) -> str:
        style = 'style="text-align: left; vertical-align: top; padding: .15em .8em"'
        rows = (
            f"<tr><th {style}>{word}</th><td {style}>{'<br>'.join(map(html.escape, lines))}</td></tr>"
            for word, lines in self.rows.items()
        )
        mark = f'<strong style="color: #a40000">{self.mark}</strong>'
        return f'{mark}<table class="mathjax_ignore tex2jax_ignore">{"".join(rows)}</table>'


class Page:
    """One notebook: what it runs, what it answers, and its footer; made in the cell below its parameters.

    name: its path below ``notebooks/``, such as ``"fedrdn/table1_main"``: where the folder is a paper's, runs are held
        against that paper's table or figure. space: the notebook's ``globals()``, which hold its parameters.
    shown: the results so far, in the order in which the notebook asked for them.

    Raises NotebookError where a parameter has another type than its cell says.
    """

    def __init__(self, name: str, space: dict):
        check_parameters(space)
        folder, _, self.stem = name.rpartition("/")
        file, place = Path(f"{self.stem}.ipynb"), re.match(r"(table|fig)\d+", self.stem)
        self.name, self.space, self.shown = name, space, list[Results]()
        self.paper = folder if folder in papers.names() else None
        self.place = place[0] if place else ""
        # A kernel starts in its notebook's folder; where it does not, only the strip and the footer say less.
        self.about = json.loads(file.read_text(encoding="utf-8"))["metadata"].get("fednb", {}) if file.is_file() else {}

    @property
    def base(self) -> Recipe:
        """The recipe of the paper's profile PROFILE, on FEDERATION where the notebook has that parameter."""
        return Recipe(**papers.recipe(self.paper, self.space["PROFILE"], self.space.get("FEDERATION")))

    @property
    def printed(self) -> DataFrame:
        """What the paper prints in the notebook's table for its federation: of ``fednb.papers.printed``."""
        own = Recipe(**papers.recipe(self.paper, "paper")).full["federation"]["name"]  # at smoke there is a stand-in
        return papers.printed(self.paper, self.place, self.space.get("FEDERATION") or own)

    def run(self, recipes: list[Recipe], **of_the_study) -> Results:
        """Finds these runs or trains them, as ``fednb.Study``, with the notebook's DATA, DEVICE and JOBS."""
        return self._kept(self.aside(recipes, **of_the_study))

    def aside(self, recipes: list[Recipe], **of_the_study) -> Results:
        """As ``run``, of runs that are in no claim and no table, such as one that keeps what the server sends."""
        how = {name.lower(): self.space[name] for name in ("DATA", "DEVICE", "JOBS") if name in self.space}
        return Study(recipes, self.paper, **of_the_study).run(**how)

    def run_each(self, recipes: dict[str, list[Recipe]]) -> dict[str, Results]:
        """``run`` of several settings in one go: of each that has any run its results, by the same names."""
        notes = self.aside([recipe for own in recipes.values() for recipe in own]).notes
        found = {name: Study(own, self.paper).recorded() for name, own in recipes.items()}
        return {name: self._kept(own.with_notes(*notes)) for name, own in found.items() if own.records}

    def at_paper(self, recipes: list[Recipe]) -> Results:
        """What is recorded of these recipes at the paper's setting: what they do not vary is as in its profile
        ``paper``, the seeds are the protocol's. Trains nothing."""
        base, printed = self.base.full, Recipe(**papers.recipe(self.paper, "paper", self.space.get("FEDERATION"))).full
        alike = {name for name in printed if all(recipe.full[name] == base[name] for recipe in recipes)}
        fixed = {name: printed[name] for name in alike - {"seed"}}
        moved = [recipe.with_(**fixed, seed=seed) for recipe in recipes for seed in protocol.rules()["seeds"]]
        known = Study(moved, self.paper).recorded()
        return self._kept(Study([recipe for recipe, record in known.found.items() if record], self.paper).recorded())

    def _kept(self, results: Results) -> Results:
        own, *known = ({record.key for record in each.records} for each in (results, *self.shown))
        if own and own not in known:
            self.shown.append(results)
        return results

    @cached_property
    def claims(self) -> list[DataFrame]:
        """The claims of the paper's table on the data that was run, judged by each of the results: frames of
        ``fednb.report.claims.judged``, with paper and federation, and the results' setting, board and seeds."""
        frames = []
        for results in self.shown if self.paper else ():
            on = {record.recipe["federation"]["name"] for record in results.records}
            asked = [c for c in papers.claims(self.paper) if self.place in c["tables"] and c["federation"] in on]
            if asked and not results.stand_in:
                where, frame = [claim["federation"] for claim in asked], judged(results, self.paper, claims=asked)
                more = {"at": setting(results), "seeds_run": results.frame["seed"].nunique()}
                more["board"] = max(frame["setting"], key=["", SMALL, PRINTED].index)
                frames.append(frame.assign(of=self.paper, federation=where, **more))
        return frames

    @cached_property
    def orders(self) -> list:
        """The paper's claims on orders and curves in the notebook's figure or table: rows of ``fednb.report.curves``
        of those that were run."""
        every = papers.curves(self.paper) if self.paper else ()
        asked = [claim for claim in every if claim["figure"] == self.place]
        real = [results for results in self.shown if not results.stand_in]
        frames = [curves(results, self.paper, claims=asked) for results in real] if asked else []
        return [row for frame in frames for row in frame.itertuples() if row.setting]

    def answer(self, *effects, found: str | list[str] = (), also: list[str] = ()) -> Lines:
        """What became of the claim, a line each: claim, ran at, found, how sure, at work, hours, data.

        effects: tables of ``fednb.report.effects``, or ``{name: table}``, in the place of the paper's claims. found:
        what was found, before these and in the place of the claims. also: more of it, behind what these say.
        """
        lines = [found] if isinstance(found, str) else list(found)
        moving = not_converged(self.shown[0].frame) if len(self.shown) == 1 else {}
        still = {run: f" (still {'rising' if rise > 0 else 'falling'})" for run, rise in moving.items()}
        named = [each for one in effects for each in (one.items() if isinstance(one, dict) else [("", one)])]
        lines += [f"{name}: " * bool(name) + line for name, table in named for line in _of_effects(table.frame, still)]
        if not lines and self.paper:
            lines = [line for frame in self.claims for line in _of_claims(frame)]
            lines += [f'claim "{row.claim.removesuffix(".")}": {row.verdict}' for row in self.orders]
        marks, names = [wording.mark(results.frame) for results in self.shown], self._names()
        return Lines(
            {
                "claim": [self.about.get("claim", "")],
                "ran at": list(dict.fromkeys(setting(results) for results in self.shown)),
                "found": [*(lines or ["No claim of the paper was run on its data."]), *also],
                "how sure": [*map("".join, zip(names, map(_how_sure, self.shown), strict=True))],
                "at work": [n + text for n, text in zip(names, map(_at_work, self.shown), strict=True) if text],
                "hours": [_hours(self.shown)],
                "data": [self.about.get("data", "")],
            },
            next(filter(None, marks), ""),
        )

    def _names(self) -> list[str]:
        """What tells several results apart: their claims' boards, else their data, pixels or rounds."""
        ran_at = [setting(results) for results in self.shown]
        boards = {frame["at"][0]: frame["board"][0] for frame in self.claims} if len(ran_at) > 1 else {}
        names = [AT[boards.get(at, "")] for at in ran_at]
        if len({*names} - {""}) < max(2, len(names)):
            parts = [at.partition(", seed")[0].split(", ") for at in ran_at]
            names = [", ".join(part for part in own if not all(part in each for each in parts)) for own in parts]
        return [f"{name}: " * bool(name) for name in names]

    def figure(self):
        """The tested claims as dots with their intervals next to what the paper prints."""
        from fednb.report import plots

        rows = pandas.concat(self.claims) if self.claims else None
        if rows is None or not rows["verdict"].isin(TESTED).any():
            return "No claim is tested here: see the strip above."
        return plots.claims(rows, self.paper)

    def tables(self) -> None:
        """Shows ours next to the paper's for each of the results; all but the first are folded."""
        from IPython.display import HTML, display

        for number, results in enumerate(self.shown):
            printed, caption = self.printed_for(results), papers.caption(self.paper, self.place)
            table = report.table(results, printed, caption=caption)
            head = html.escape(setting(results))
            whole = f"<details><summary>The same at {head}</summary>{table.html()}</details>"
            display(HTML(whole) if number else table)

    def printed_for(self, results: Results) -> DataFrame:
        """The printed rows of the results' federation, or of the only one that the table has."""
        there = papers.printed(self.paper, self.place)
        own = there[there["federation"].isin({record.recipe["federation"]["name"] for record in results.records})]
        alone = [rows for rows in (own, there) if rows["federation"].nunique() == 1]
        return alone[0].reset_index(drop=True) if alone else self.printed

    def sentences(self, *effects) -> Lines:
        """At most six sentences: one for each row of these tables of ``fednb.report.effects``, then on the claims, of
        each setting the first ones, and which have which verdict."""
        lines = [line for table in effects for line in report.sentences(table).splitlines()]
        lines += [line for frame in self.claims for line in _in_sentences(frame)]
        lines += [f'Claim "{row.claim.removesuffix(".")}": {row.verdict} ({row.why}).' for row in self.orders]
        if (more := len(lines) - MOST_SENTENCES) > 0:
            lines[MOST_SENTENCES - 1] += f" And {more} more sentence{'s' * (more > 1)}."
        return Lines({"": lines[:MOST_SENTENCES]})

    def footer(self) -> Lines:
        """What a reader may need besides: how the numbers were made, notes of the records, how to run it otherwise, and
        the notebooks before and after this one in its folder."""
        made = dict.fromkeys(line for results in self.shown for line in wording.setting_lines(results))
        costs = ", ".join(f"{profile} {minutes} min" for profile, minutes in self.about.get("minutes", {}).items())
        names = sorted(path.stem for path in Path.cwd().glob("*.ipynb"))
        place = names.index(self.stem) if self.stem in names else len(names)
        return Lines(
            {
                "settings": list(made),
                "notes": list(dict.fromkeys(note for results in self.shown for note in results.notes)),
                "run it": [
                    f"fednb run --only {self.name}" + " --profile paper" * ("PROFILE" in self.space),
                    f"minutes of one core: {costs}" if costs else "",
                ],
                "before": names[max(0, place - 1) : place],
                "next": names[place + 1 : place + 2],
            }
        )


notebook = Page  # as notebooks call it


def setting(results: Results) -> str:
    """Where results were run, in a line: ``"Office-Caltech-10, 256 pixels, 100 rounds, seeds 0, 1, 2"``."""
    recipes = [record.recipe for record in results.records]
    names = dict.fromkeys(labels.federation(recipe["federation"]["name"]) for recipe in recipes)
    sizes = dict.fromkeys(recipe["federation"]["size"] for recipe in recipes if "size" in recipe["federation"])
    rounds = dict.fromkeys(recipe["rounds"] for recipe in recipes)
    seeds = sorted({recipe["seed"] for recipe in recipes})
    pixels = [f"{_either(sizes)} pixels"] if sizes else []
    drawn = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    return ", ".join([_either(names), *pixels, f"{_either(rounds)} rounds", drawn])


def _of_claims(frame: DataFrame) -> list[str]:
    """What became of the first claims, and how many have which verdict."""
    counts = frame["verdict"].value_counts()
    words = {word: WHY_UNTESTED.get(word, word).removeprefix("run ") for word in VERDICTS if word in counts}
    of_all = f"of {len(frame)} claims: {', '.join(f'{counts[word]} {text}' for word, text in words.items())}"
    return _first(frame) + [of_all] * (len(frame) > 1)


def _first(frame: DataFrame, verb: str = "") -> list[str]:
    """The primary claims, else the paper's first; where these have no verdict, also the first claim that was tested."""
    first, tested = frame[frame["primary"]] if frame["primary"].any() else frame[:1], frame["verdict"].isin(TESTED)
    first = first if tested[first.index].any() else pandas.concat([first, frame[tested][:1]])
    return [_of_claim(row, AT[row["setting"] or row["board"]], verb) for row in first.to_dict("records")]


def _of_claim(row: dict, at: str, verb: str) -> str:
    called, word = ", ".join(filter(None, (at, row["effect"]))), row["verdict"]
    if row["ours"] != row["ours"]:
        return f"{called}: {WHY_UNTESTED[word]}, printed {wording.signed(row['paper'])}"
    more = row["marks"] if word in TESTED else row["why"]
    return f"{called} {verb}{_points(row)}: {word}{though(word, row)}" + f" ({more})" * bool(more)


def _of_effects(frame: DataFrame, still: dict[str, str]) -> list[str]:
    """Which runs are above, below or neither, against each that they are held against; where the effects are by the
    values of a field, each pair over these. still: what marks a run that has not converged."""
    by, lines = frame.columns[2], []
    if by != "by":
        for (better, worse), rows in frame.groupby(["better", "worse"], sort=False):
            at = zip(rows[by], rows["ours"], rows["direction"], strict=True)
            words = [f"{value}: {wording.signed(ours)} {word}" for value, ours, word in at]
            pair = wording.minus(labels.short(better), labels.short(worse))
            lines.append(f"{pair}, by {wording.spaced(by)}: {', '.join(words)}")
        return lines
    first = {"above": 0, "below": 1}
    ordered = frame.sort_values("direction", key=lambda words: words.map(first).fillna(len(first)), kind="stable")
    for (worse, word), rows in ordered.groupby(["worse", "direction"], sort=False):
        points = zip(rows["better"], rows["ours"], strict=True)
        effects = [f"{labels.short(run)} {wording.signed(ours)}{still.get(run, '')}" for run, ours in points]
        against = "" if word in ("above", "below") else " against"
        lines.append(f"{word}{against} {labels.short(worse)}{still.get(worse, '')}: {_some(effects)}")
    return lines


def _in_sentences(frame: DataFrame) -> list[str]:
    lines = [f"{line[0].upper()}{line[1:]}." for line in _first(frame, "is ")]
    for word, verdict in VERDICTS.items() if len(frame) > 1 else ():
        rows = frame[(frame["verdict"] == word) & frame["ours"].notna()]
        if len(rows):
            why = Counter(filter(None, rows["why"]))
            because = f" ({'mostly ' * (len(why) > 1)}because {why.most_common(1)[0][0]})" if why else ""
            lines.append(f"{verdict.heading}, {len(rows)} of {len(frame)}: {_some(list(rows['effect']))}{because}.")
    return lines


def _points(row: dict) -> str:
    """``"+11.4 points (95 %: +7.1 to +15.7), printed +7.3"``."""
    (alone, together), (ours, printed) = spans(row), (wording.signed(row[name]) for name in ("ours", "paper"))
    decides = f"simultaneous, which decides: {together}; " if together else ""
    seeds = f", {row['seeds']} of {row['seeds_run']} seeds" if row["seeds"] < row["seeds_run"] else ""
    return f"{ours} points ({decides}95 %: {alone}), printed {printed}{seeds}"


def _how_sure(results: Results) -> str:
    """Test images and seeds behind the numbers, and by how many points the last quarter of each curve that has not
    converged is off the quarter before."""
    images = dict.fromkeys(sum(record.images["test"]) for record in results.records)
    rows = sorted(wording.settings(results.frame), key=lambda each: each[1]["run"].iloc[0])
    rises = {label: late_rise(own).iloc[0] for label, own in rows}
    moving = [f"{label} {wording.signed(rise)}" for label, own in rows for rise in not_converged(own).values()]
    ends = f"not converged, points in the last quarter: {_some(moving)}" if moving else "converged"
    if all(rise != rise for rise in rises.values()):
        ends = "too few rounds to say whether it converged"
    seeds = results.frame["seed"].nunique()
    return f"{_either(images)} test images, {seeds} seed{'s' * (seeds > 1)}; {ends}"


def _at_work(results: Results) -> str:
    """By run the number that shows its method at work (``fednb.methods.Method.activity``), a mean over seeds."""
    found, runs = {}, dict(zip(results.frame["key"], results.frame["run"], strict=True))
    for record in results.records:
        for value in record.activity.values():
            found.setdefault(labels.short(runs[record.key]), []).append(value)
    numbers = [f"{run} {sum(values) / len(values):.2g}" for run, values in found.items()]
    return f"{_some(numbers)} (below {protocol.rules()['active']:g} a method is not active)" if numbers else ""


def _hours(every: list[Results]) -> str:
    records = {record.key: record for results in every for record in results.records}.values()
    hours = sum(record.origin["seconds"] for record in records) / 3600
    devices = _either(sorted({record.origin["device"] for record in records}))
    return f"{hours:.1f} for {len(records)} recorded run{'s' * (len(records) > 1)}, on {devices}" if records else ""


def _either(values) -> str:
    return " / ".join(map(str, values))


def _some(texts: list[str]) -> str:
    more = [f"and {len(texts) - MOST_NAMED} more"] if len(texts) > MOST_NAMED else []
    return ", ".join([*texts[:MOST_NAMED], *more])
