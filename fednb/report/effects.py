"""Effects: what one setting scores more than another on the same images, all that are tested together at one level."""

from collections import Counter
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, NamedTuple

from fednb.errors import RecipeError
from fednb.report import intervals, wording
from fednb.report.intervals import Interval, Measured, Spread, spreads_of
from fednb.report.scores import image_scores, with_spare

if TYPE_CHECKING:
    from pandas import DataFrame

OLDER, ONE_SEED, NOT_PAIRED, NOT_TOLD = "older code", "one seed", "not paired", "not told"


class Pair(NamedTuple):
    """Two settings at a client, or on ``"average"``: rows of ``fednb.report.selection.selected``.

    runs: the spreads of one run that add up to their difference's, where they are not those of the two sides.
    """

    better: "DataFrame"
    worse: "DataFrame"
    client: str = "average"
    runs: tuple[Spread, ...] = ()


class Effect(NamedTuple):
    """An effect in points, and whether it can be told from none.

    untested: why nothing can be said of it, ``OLDER``, ``ONE_SEED`` or ``NOT_PAIRED``, or "". level: 0.05 / m of m
    effects that are tested together (Bonferroni): 95 of 100 families have no true value outside ``together``.
    """

    measured: Measured
    untested: str
    level: float = 0.05

    @property
    def together(self) -> Interval:
        """The interval that decides; NaN where nothing can be said."""
        return Interval(self.measured.value, nan, nan) if self.untested else self.measured.at(self.level)

    @property
    def direction(self) -> str:
        """ "above", "below" or "not told", or why nothing can be said."""
        if self.untested or not self.together.low * self.together.high > 0:
            return self.untested or NOT_TOLD
        return "above" if self.measured.value > 0 else "below"


def effects_of(
    pairs: Sequence[Pair],
    records: Sequence,
    spreads: dict[str, dict[str, Spread]],
    level: float | None = None,
    spare: bool = False,
) -> list[Effect]:
    """The effect of each pair.

    From the scores of every image in the seeds that both have (``fednb.report.intervals``). Pairs whose records hold no
    scores, or were made from different images, get the images' interval from their counts; where each seed has a
    partition of its own, the images are those of a seed. RecipeError where the two sides of a pair were run in
    different settings.

    spreads: of ``fednb.report.intervals.spreads_of``. level: see ``Effect``; that of all these pairs together unless
        given. spare: over test and spare images as one set.
    """
    for pair in pairs:
        _require_one_setting(pair)
    by_key = {record.key: record for record in records}
    read: dict = {}  # scores of sides that are in several pairs
    found = []
    for pair in pairs:
        paired = None if _stale(pair) else _paired(pair, by_key, read, spreads, spare)
        measured = paired or _from_counts(pair)
        why = OLDER if _stale(pair) else NOT_PAIRED if paired is None else ONE_SEED if measured.seeds < 2 else ""
        found.append((measured, why))
    together = level or 0.05 / max(1, sum(not why for _, why in found))
    return [Effect(*each, together) for each in found]


COLUMNS = ("ours", "low", "high", "p", "together_low", "together_high", "smallest", "seeds")


def columns(effect: Effect | None) -> dict:
    """An effect's numbers as columns of a frame; NaN and no seed where there is none.

    low, high: 95 %, what is drawn. together_low, together_high: what decides. smallest: the true effect that would be
    told in 80 of 100 cases.
    """
    if effect is None:
        return dict.fromkeys(COLUMNS, nan) | {"seeds": 0}
    own, together = effect.measured, effect.together
    smallest = nan if effect.untested else own.smallest_told(effect.level)
    values = (own.value, own.low, own.high, own.p, together.low, together.high, smallest, own.seeds)
    return dict(zip(COLUMNS, values, strict=True))


SPARE = ("with_spare", "with_spare_low", "with_spare_high")


def spare_effects(pairs: Sequence[Pair], records: Sequence, alike, alike_records: Sequence) -> list[dict]:
    """For each pair ``SPARE``: its effect and 95 % bounds over test and spare images of each site as one set.

    Empty where the sides have no seed in common in which both have scores of spare images, or are of older code. alike:
    the rows of all runs that moderate the spreads, and their records.
    """
    by_key = {record.key: record for record in records}
    owns = [Pair(*(with_spare(rows, by_key) for rows in pair[:2]), pair.client) for pair in pairs]
    there = [bool(len(_common(own))) and not _stale(own) for own in owns]
    # of nearly all results there are no spare images, and the spreads take long
    spreads = spreads_of(with_spare(alike, {record.key: record for record in alike_records})) if any(there) else {}
    found = []
    for own, is_there in zip(owns, there, strict=True):
        effects = effects_of([own], records, spreads, spare=True) if is_there else []
        found.append(
            {n: v for e in effects if e.untested != NOT_PAIRED for n, v in zip(SPARE, e.measured[:3], strict=True)}
        )
    return found


def one_setting(rows, label: str):
    """The rows themselves; RecipeError where they are of several settings."""
    labels = [own for own, _ in wording.settings(rows)]
    if len(labels) > 1:
        raise RecipeError(f"{label} was run in several settings: {'; '.join(labels)}. Keep one.")
    return rows


def _require_one_setting(pair: Pair) -> None:
    better, worse = (rows.assign(stale=False) for rows in pair[:2])
    if wording.setting_of(better) != wording.setting_of(worse):
        labels = " and ".join(rows["run"].iloc[0] for rows in pair[:2])
        raise RecipeError(
            f"{labels} were run in different settings: {wording.setting_of(better)} and {wording.setting_of(worse)}. "
            "Compare runs that differ in their methods alone."
        )


def _paired(
    pair: Pair, records: dict, read: dict, spreads: dict[str, dict[str, Spread]], spare: bool
) -> Measured | None:
    """From the scores' differences in the seeds in which both saw the same images, or None where there is no such seed
    or no score recorded.

    read: the scores that earlier pairs of the same rows have read.
    """
    import numpy

    own_partitions = wording.dealt_by_seed(pair.better)
    seeds = _same_images(pair, records, own_partitions)
    if not seeds:
        return None
    sides = [rows[rows["seed"].isin(seeds)] for rows in pair[:2]]
    for whole, rows in zip(pair[:2], sides, strict=True):
        if (id(whole), *seeds) not in read:
            read[id(whole), *seeds] = image_scores(rows, records, spare)
    better, worse = scores = [read[id(whole), *seeds] for whole in pair[:2]]
    clients = [client for client in better if pair.client in ("average", client)]
    in_seeds = [{client: own.keys() for client, own in side.items()} for side in scores]
    if not clients or in_seeds[0] != in_seeds[1]:
        return None
    runs = pair.runs or tuple(spreads[rows["key"].iloc[0]].get(pair.client, Spread()) for rows in sides)
    if own_partitions:
        differences = [{k: better[k][seed] - worse[k][seed] for k in clients if seed in better[k]} for seed in seeds]
        return intervals.nested(differences, runs) if all(differences) else None
    if any(len(own) < len(seeds) for own in better.values()):
        return None
    differences = [numpy.stack([better[k][seed] - worse[k][seed] for seed in seeds]) for k in clients]
    return intervals.crossed(differences, runs)


def _same_images(pair: Pair, records: dict, own_partitions: bool) -> list[int]:
    """The seeds in which both sides saw the same images; of one set of images, the one of most seeds, unless each seed
    has a partition of its own. Libraries decode and resize a little otherwise from one version to the next."""
    seen, other = ({row.seed: records[row.key].fingerprint for row in rows.itertuples()} for rows in pair[:2])
    same = {seed: images for seed, images in seen.items() if other.get(seed) == images}
    if not same or own_partitions:
        return sorted(same)
    most = Counter(same.values()).most_common(1)[0][0]
    return sorted(seed for seed, images in same.items() if images == most)


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
    return any(wording.older(rows) for rows in pair[:2])
