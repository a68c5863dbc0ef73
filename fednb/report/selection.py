"""Which rounds of a run are reported: four rules over what was recorded; and every image's scores in these."""

import numpy
import pandas

from fednb.errors import DataError, RecipeError, nearest
from fednb.papers import protocol
from fednb.records.scores import TIE

WINDOW = 10  # rounds at the end, of 100 and more; of fewer a tenth
RULES = ("last", "best_validation", "best_test", "mean_of_last")
_MEANS: dict[tuple, list] = {}  # by the file's checksum: the same runs stand in many tables of a notebook


def rounds_taken(frame, rule: str) -> dict[str, tuple[int, ...]]:
    """The rounds of each run, by key.

    last: the last recorded one. best_validation, best_test: with the best accuracy or Dice, an unweighted mean over
    clients; the earliest on ties. The latter looks at the test images, as some released code does (FedRDN's): not a
    fair estimate, shown to compare. mean_of_last: the last ten, or a tenth of all (rounded up) of fewer than 100.
    RecipeError for an unknown rule, DataError where a run has no images that it looks at.
    """
    if rule not in RULES:
        raise RecipeError(f'selection rule "{rule}" is not known; {nearest(rule, RULES)}')
    if rule.startswith("best_"):
        return _best(frame, rule.removeprefix("best_"))
    numbers = frame[["key", "round"]].drop_duplicates().sort_values("round").groupby("key", sort=False)["round"]
    every = {key: tuple(map(int, rounds)) for key, rounds in numbers}
    if rule == "last":
        return {key: rounds[-1:] for key, rounds in every.items()}
    return {key: rounds[-min(WINDOW, -(-len(rounds) // WINDOW)) :] for key, rounds in every.items()}


def _best(frame, split: str) -> dict[str, tuple[int, ...]]:
    scored = frame[(frame["split"] == split) & (frame["images"] > 0)]
    if lacking := ", ".join(frame.loc[~frame["key"].isin(scored["key"]), "run"].unique()):
        why = f'expected {split} images at some site. Choose another rule, for example "last"'
        raise DataError(f"no {split} accuracy is recorded for {lacking}; {why}.")
    means = scored.groupby(["key", "round"])["accuracy"].mean()
    best = means[means >= means.groupby("key").transform("max") - 100 * TIE].reset_index()
    return {key: (int(number),) for key, number in best.groupby("key")["round"].min().items()}


def best(results, by: str = "validation"):
    """Of recipes that differ in more than their seed the one with the highest accuracy on these images: mean over its
    seeds, and over sites and rounds as the protocol's rule takes them; with the first of its seeds.

    by: "validation", or "test", which is no fair choice. RecipeError for another word; DataError where a run is not
    recorded, or has no such image."""
    if by not in ("validation", "test"):
        raise RecipeError(f'a recipe is chosen by "validation" or "test" images, not by "{by}".')
    frame = results.frame
    scored = frame[(frame["split"] == by) & (frame["images"] > 0) & frame["took_part"]]
    taken, alike = rounds_taken(frame, protocol.rules()["selection"]), {}
    chosen = scored[[number in taken[key] for key, number in zip(scored["key"], scored["round"], strict=True)]]
    means = chosen.groupby("key")["accuracy"].mean()
    for recipe in results.found:
        if recipe.key not in means:
            raise DataError(f"{recipe} has no {by} accuracy on record; expected one of all runs.")
        alike.setdefault(recipe.with_(seed=0), []).append(recipe)
    return max(alike.values(), key=lambda own: means[[recipe.key for recipe in own]].mean())[0]


def selected(frame, rule: str = "last", unseen: bool = False):
    """The test rows of each run's chosen rounds, one per run and client that took part; see ``rounds_taken``.

    frame: one row per (run, round, client, split), columns ``key`` (of a run, which has one seed), ``round``,
    ``split``, ``took_part``, ``accuracy``, ... unseen: the rows of the sites that were in no round instead; rules do
    not look at them. ``correct`` and ``accuracy`` are means over the chosen rounds, other columns those of the last of
    them; added are ``rule`` and ``rounds_taken``.
    """
    took_part = frame["took_part"].astype(bool)
    tested = frame[(frame["split"] == "test") & (took_part != unseen)]
    taken = rounds_taken(frame[took_part], rule)
    chosen = tested.loc[[number in taken[key] for key, number in zip(tested["key"], tested["round"], strict=True)]]
    if any(len(rounds) > 1 for rounds in taken.values()):
        means = chosen.groupby(["key", "client"], sort=False)[["correct", "accuracy"]].transform("mean")
        chosen = chosen.assign(**means).drop_duplicates(["key", "client"], keep="last")
    return chosen.assign(rule=rule, rounds_taken=chosen["key"].map(taken)).reset_index(drop=True)


def image_scores(rows, records: dict, spare: bool = False) -> dict:
    """By client and seed the scores of each test image, with ``spare`` also of each spare one, float64 ``[n]`` in %:
    means over the chosen rounds and, where sites were left out in turn, over the runs of a seed.

    rows: of ``selected``, of one setting. records: by key. Empty where a record has no scores of its images.
    """
    found: dict = {}
    for row in rows[rows["images"] > 0].itertuples():
        record = records[row.key]
        if (by_client := _means(record, row.rounds_taken, spare)) is None:
            return {}
        own = by_client[record.clients.index(row.client)]
        found.setdefault(row.client, {}).setdefault(row.seed, []).append(own)
    return {client: {seed: sum(runs) / len(runs) for seed, runs in seeds.items()} for client, seeds in found.items()}


def _means(record, taken: tuple[int, ...], spare: bool) -> list | None:
    """Of each client its images' means over the rounds, per cent; None where one has no scores."""
    kept = record.checksums.get("scores"), taken, spare
    if kept in _MEANS:
        return _MEANS[kept]
    splits = [record.scores(), *([record.scores("spare")] if spare else [])]
    if any(number not in scores for scores in splits for number in taken):
        return None
    means = [
        100 * numpy.concatenate([sum(scores[number][place] for number in taken) / len(taken) for scores in splits])
        for place in range(len(record.clients))
    ]
    if kept[0]:
        _MEANS[kept] = means
    return means


def with_spare(rows, records: dict):
    """The rows of the runs whose spare images were scored in the chosen rounds; ``accuracy`` is that of test and spare
    images of a site as one set. rows, records: as in ``image_scores``."""
    kept = [rows[:0]]
    for key, own in rows[rows["images"] > 0].groupby("key", sort=False):
        asked = "spare" in records[key].recipe.get("evaluation", ())
        if scores := image_scores(own, records, spare=True) if asked else {}:
            kept.append(own.assign(accuracy=[scores[row.client][row.seed].mean() for row in own.itertuples()]))
    return pandas.concat(kept) if len(kept) > 1 else kept[0]
