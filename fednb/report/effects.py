"""Effects: what one setting scores more than another on the same images, all that are tested together at one level."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from math import hypot, nan
from typing import NamedTuple

import numpy
from pandas import DataFrame

from fednb.errors import RecipeError
from fednb.report import intervals, wording
from fednb.report.intervals import Interval, Measured, Spread, spreads_of
from fednb.report.scores import image_scores, with_spare

OLDER, ONE_SEED, NOT_PAIRED, INCONCLUSIVE = "older code", "one seed", "not paired", "inconclusive"
EFFECT = ("ours", "low", "high", "p", "together_low", "together_high", "smallest", "seeds")
SPARE = ("with_spare", "with_spare_low", "with_spare_high")


class Pair(NamedTuple):
    """Rows of ``selected`` of two settings, at a client or on ``"average"``. runs: the spreads of one run that add up
    to their difference's, where they are not those of the two sides."""

    better: DataFrame
    worse: DataFrame
    client: str = "average"
    runs: tuple[Spread, ...] = ()


class Effect(NamedTuple):
    """An effect in points, and why nothing can be said of it: ``OLDER``, ``ONE_SEED``, ``NOT_PAIRED`` or "". level:
    0.05 / m of m effects that are tested together (Bonferroni)."""

    measured: Measured
    untested: str
    level: float = 0.05

    @property
    def together(self) -> Interval:
        """The interval that decides; NaN where nothing can be said."""
        return Interval(self.measured.value, nan, nan) if self.untested else self.measured.at(self.level)

    @property
    def direction(self) -> str:
        """ "above", "below" or "inconclusive", or why nothing can be said."""
        if self.untested or not self.together.low * self.together.high > 0:
            return self.untested or INCONCLUSIVE
        return "above" if self.measured.value > 0 else "below"


def columns(effect: Effect | str | None) -> dict:
    """``EFFECT`` of an effect; NaN and no seed where there is none. low, high: 95 %, what is drawn. together_low,
    together_high: what decides. smallest: the true effect that would be significant in 80 of 100 cases."""
    if not isinstance(effect, Effect):
        return dict.fromkeys(EFFECT, nan) | {"seeds": 0}
    own, together = effect.measured, effect.together
    smallest = nan if effect.untested else own.smallest_detectable(effect.level)
    values = (own.value, own.low, own.high, own.p, together.low, together.high, smallest, own.seeds)
    return dict(zip(EFFECT, values, strict=True))


def effects_of(
    pairs: Sequence[Pair], results, spreads: dict, level: float | None = None, spare: bool = False
) -> list[Effect]:
    """The effect of each pair, from every image's scores in the seeds that both have; where there are none, or of other
    images, the images' interval is from their counts. RecipeError where sides were run in different settings.

    spreads: of ``spreads_of``. level: see ``Effect``; that of all these pairs together unless given. spare: over test
    and spare images as one set.
    """
    records, found = {record.key: record for record in results.records}, []
    for pair in pairs:
        _require_one_setting(pair)
        paired = None if _stale(pair) else _paired(pair, records, spreads, spare)
        measured = paired or _from_counts(pair)
        why = OLDER if _stale(pair) else NOT_PAIRED if paired is None else ONE_SEED if measured.seeds < 2 else ""
        found.append((measured, why))
    together = level or 0.05 / max(1, sum(not why for _, why in found))
    return [Effect(*each, together) for each in found]


def spare_effects(pairs: Sequence[Pair], results, known) -> list[dict]:
    """For each pair ``SPARE``: its effect and 95 % bounds over test and spare images of each site as one set; empty
    where its sides have such scores in no common seed, or are of older code. known: the rows of all runs that moderate
    the spreads."""
    records = {record.key: record for record in results.records}
    owns = [Pair(*(with_spare(rows, records) for rows in pair[:2]), pair.client) for pair in pairs]
    there = [bool(_common(own)) and not _stale(own) for own in owns]
    spreads = spreads_of(with_spare(known, {own.key: own for own in results.alike.records})) if any(there) else {}
    effects = iter(effects_of(list(compress(owns, there)), results, spreads, spare=True))
    found = [next(effects) if is_there else None for is_there in there]
    paired = [own if own and own.untested != NOT_PAIRED else None for own in found]
    return [dict(zip(SPARE, own.measured[:3], strict=True)) if own else {} for own in paired]


def one_setting(rows, label: str):
    """The rows themselves; RecipeError where they are of several settings."""
    labels = [own for own, _ in wording.settings(rows)]
    if len(labels) > 1:
        raise RecipeError(f"{label} was run in several settings: {'; '.join(labels)}. Keep one.")
    return rows


def _require_one_setting(pair: Pair) -> None:
    better, worse = (wording.setting_of(rows.assign(stale=False)) for rows in pair[:2])
    if better != worse:
        labels = " and ".join(rows["run"].iloc[0] for rows in pair[:2])
        advice = "Compare runs that differ in their methods alone"
        raise RecipeError(f"{labels} were run in different settings: {better} and {worse}. {advice}.")


def _paired(pair: Pair, records: dict, spreads: dict, spare: bool) -> Measured | None:
    """From the scores' differences in the seeds in which both saw the same images; None where there are none."""
    own_partitions = wording.dealt_by_seed(pair.better)
    seeds = _same_images(pair, records, own_partitions)
    sides = [rows[rows["seed"].isin(seeds)] for rows in pair[:2]]
    better, worse = (image_scores(rows, records, spare) for rows in sides)
    clients = [client for client in better if pair.client in ("average", client)]
    seeds_of = [{client: own.keys() for client, own in side.items()} for side in (better, worse)]
    if not clients or seeds_of[0] != seeds_of[1]:
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
    down, up = hypot(a.value - a.low, b.high - b.value), hypot(a.high - a.value, b.value - b.low)
    return Measured(value, value - down, value + up, min(rows["seed"].nunique() for rows in sides), Spread())


def _stale(pair: Pair) -> bool:
    return any(wording.older(rows) for rows in pair[:2])
