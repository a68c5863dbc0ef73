"""Effects: what one setting scores more than another on the same images, all of a table tested together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from fednb.errors import RecipeError
from fednb.report import intervals, words
from fednb.report.intervals import Cell, Measured, Spread
from fednb.report.selection import image_scores, selected
from fednb.report.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

OLDER, ONE_SEED, NOT_PAIRED = "older code", "one seed", "not paired"


class Pair(NamedTuple):
    """Two settings at a client, or on ``"average"``: rows of ``fednb.report.selection.selected``."""

    better: "DataFrame"
    worse: "DataFrame"
    client: str = "average"


class Effect(NamedTuple):
    """An effect in points, and whether it can be told from none.

    untested: why nothing can be said of it, one of ``OLDER``, ``ONE_SEED`` and ``NOT_PAIRED``, or "". clear: it leaves
    zero out when the whole table is tested together.
    """

    measured: Measured
    untested: str
    clear: bool = False

    @property
    def direction(self) -> str:
        """ "above", "below" or "undecided", or why nothing can be said."""
        if self.untested or not self.clear:
            return self.untested or "undecided"
        return "above" if self.measured.value > 0 else "below"


def effects_of(pairs: Sequence[Pair], records: Sequence) -> list[Effect]:
    """The effect of each pair of one table.

    From the scores of every image in the seeds that both have (``fednb.report.intervals``): the spread of runs is
    pooled over the pairs of one setting and client, and Holm's steps hold 5 % false effects for all of the table. Pairs
    whose records hold no scores, or were made from different images, get the images' interval from their counts.
    RecipeError where the two sides of a pair were run in different settings.
    """
    for pair in pairs:
        _require_one_setting(pair)
    by_key = {record.key: record for record in records}
    read: dict = {}  # scores of sides that are in several pairs
    cells = [_cell(pair, by_key, read) for pair in pairs]
    found: list[Measured | None] = [None] * len(pairs)
    tables = {}
    for number, (pair, cell) in enumerate(zip(pairs, cells, strict=True)):
        if cell is not None and not _stale(pair):
            tables.setdefault((pair.client, words.setting_of(pair.better)), []).append(number)
    for numbers in tables.values():
        for number, measured in zip(numbers, intervals.crossed([cells[n] for n in numbers]), strict=True):
            found[number] = measured
    found = [_from_counts(pair) if own is None else own for pair, own in zip(pairs, found, strict=True)]
    why = [_untested(pair, cell, own) for pair, cell, own in zip(pairs, cells, found, strict=True)]
    clear = intervals.holm([float("nan") if reason else own.p for own, reason in zip(found, why, strict=True)])
    return [Effect(*each) for each in zip(found, why, clear, strict=True)]


def effects(
    results,
    pairs: str | Sequence[tuple[str, str]],
    by: str | None = None,
    rule: str = "last",
    client: str = "average",
    unseen: bool = False,
) -> Table:
    """What one run scores more than another, in points, with its interval and one word for each.

    results: of a study. pairs: labels of runs (``run`` in its frame), one and the other; or one label, which all others
        are held against. by: a varied field, such as "local_epochs": pairs are made within each of its values; left out
        where the frame has no such column. rule: see ``fednb.report.selection``. client: a site instead of the average.
        unseen: at the sites that were in no round, see ``fednb.report.selection.selected``.

    Its frame holds better, worse, the value of ``by``, ours, low, high, p, seeds and direction: "above", "below" or
    "undecided", or why there is none. A pair that was not run is left out. RecipeError where a label has several
    settings.
    """
    import pandas

    everything = words.frame_of(results)
    chosen = selected(everything, rule, unseen)
    by = by if by in chosen else None
    runs = list(chosen["run"].unique())
    if isinstance(pairs, str):
        pairs = [(run, pairs) for run in runs if run != pairs]
    texts = words.row_names(runs)
    about, compared = [], []
    groups = (
        sorted(chosen.groupby(by), key=lambda each: each[0], reverse=by in words.DOWNWARDS) if by else [("", chosen)]
    )
    for value, part in groups:
        rows_of = {label: one_setting(part[part["run"] == label], label) for each in pairs for label in each}
        for labels in pairs:
            sides = [rows_of[label] for label in labels]
            if not any(side.empty for side in sides):
                compared.append(Pair(*sides, client))
                told = f"{words.spaced(by)} {value}: " if by else ""
                row = told + words.less(*(texts[label] for label in labels))
                about.append({"row": row, "better": labels[0], "worse": labels[1], by or "by": value})
    found = effects_of(compared, results.records)
    rows = [{**one, **columns(each), "direction": each.direction} for one, each in zip(about, found, strict=True)]
    frame = pandas.DataFrame(rows, columns=["row", "better", "worse", by or "by", *COLUMNS, "direction"])
    shown = {
        "verdict": frame["direction"],
        "points": frame["ours"].map(words.signed),
        "interval": told_bounds(frame),
        "seeds": frame["seeds"].astype(str),
    }
    cells, wide = short_and_wide(shown, frame["row"], "points")
    where = f"average over {words.which_sites(everything, unseen)}" if client == "average" else client
    caption = (
        *([words.stand_in_line(chosen, "the paper's images")] if words.mark(chosen) else []),
        f"Differences in test {words.measure(chosen)}, points, {where}, in the seeds that both have; "
        f"{words.rule_words(rule, chosen)}.",
    )
    numbers, marked = frame.drop(columns="row"), words.mark(chosen)
    return Table(numbers, caption, cells, tuple(words.effect_lines(frame)), wide, mark=marked)


COLUMNS = ("ours", "low", "high", "p", "seeds")


def columns(effect: Effect | None) -> dict:
    """An effect's numbers as columns of a frame; NaN and no seed where there is none."""
    if effect is None:
        return dict.fromkeys(COLUMNS, float("nan")) | {"seeds": 0}
    own = effect.measured
    return dict(zip(COLUMNS, (own.value, own.low, own.high, own.p, own.seeds), strict=True))


def short_and_wide(shown: dict, rows, value: str) -> tuple:
    """Cells of a table for text, and for a page, where the interval stands below the value and each rule has a line."""
    import pandas

    cells = pandas.DataFrame(shown).set_axis(rows, axis="index").rename_axis(None)
    wide = cells.assign(**{value: words.below(cells[value], cells["interval"])}).drop(columns="interval")
    if "by other rules" in wide:
        wide["by other rules"] = "\n" + wide["by other rules"].str.replace("; ", "\n")
    return cells, wide


def told_bounds(frame):
    """The interval of each row of effects, marked where it does not know all or is not the whole table's word."""
    marks = words.rests_on(frame).map({"images": " (images only)", "counts": " (counts only)", "": ""})
    return words.bounds(frame, words.signed) + marks + words.alone(frame).map({True: " (alone)", False: ""})


def one_setting(rows, label: str):
    """The rows themselves; RecipeError where they are of several settings."""
    labels = [own for own, _ in words.settings(rows)]
    if len(labels) > 1:
        raise RecipeError(f"{label} was run in several settings: {'; '.join(labels)}. Keep one.")
    return rows


def _require_one_setting(pair: Pair) -> None:
    better, worse = (rows.assign(stale=False) for rows in pair[:2])
    if words.setting_of(better) != words.setting_of(worse):
        labels = " and ".join(rows["run"].iloc[0] for rows in pair[:2])
        raise RecipeError(
            f"{labels} were run in different settings: {words.setting_of(better)} and {words.setting_of(worse)}. "
            "Compare runs that differ in their methods alone."
        )


def _cell(pair: Pair, records: dict, read: dict) -> Cell | None:
    """The scores' differences, or None where they are not recorded or the images differ.

    read: the scores that earlier pairs of the same rows have read.
    """
    import numpy

    seeds = _common(pair)
    sides = [rows[rows["seed"].isin(seeds)] for rows in pair[:2]]
    if sides[0].empty or len({records[key].fingerprint for rows in sides for key in rows["key"]}) > 1:
        return None
    for whole, rows in zip(pair[:2], sides, strict=True):
        if (id(whole), *seeds) not in read:
            read[id(whole), *seeds] = image_scores(rows, records)
    better, worse = scores = [read[id(whole), *seeds] for whole in pair[:2]]
    clients = [client for client in better if client in worse and pair.client in ("average", client)]
    whole = all(len(own) == len(seeds) for side in scores for own in side.values())
    if not clients or better.keys() != worse.keys() or not whole:
        return None
    differences = [numpy.stack([better[k][seed] - worse[k][seed] for seed in seeds]) for k in clients]
    return Cell(differences, tuple(frozenset(zip(rows["key"], rows["client"], strict=True)) for rows in pair[:2]))


def _common(pair: Pair) -> list[int]:
    return sorted(set(pair.better["seed"]) & set(pair.worse["seed"]))


def _from_counts(pair: Pair) -> Measured:
    """From right answers alone, as if the two had been tested on images of their own: rather too wide. In the seeds
    that both have; where they have none in common, in all."""
    seeds = _common(pair) or [*pair.better["seed"], *pair.worse["seed"]]
    sides = [rows[(rows["images"] > 0) & rows["seed"].isin(seeds)] for rows in pair[:2]]
    if pair.client != "average":
        sides = [rows[rows["client"] == pair.client] for rows in sides]
    a, b = (intervals.mean_over_clients(list(intervals.wilson_of_clients(rows).values())) for rows in sides)
    value = a.value - b.value
    down = ((a.value - a.low) ** 2 + (b.high - b.value) ** 2) ** 0.5
    up = ((a.high - a.value) ** 2 + (b.value - b.low) ** 2) ** 0.5
    seeds = min(rows["seed"].nunique() for rows in sides)
    return Measured(value, value - down, value + up, seeds, Spread())


def _stale(pair: Pair) -> bool:
    return any(words.older(rows) for rows in pair[:2])


def _untested(pair: Pair, cell: Cell | None, measured: Measured) -> str:
    if _stale(pair):
        return OLDER
    if cell is None:
        return NOT_PAIRED
    return ONE_SEED if measured.seeds < 2 else ""
