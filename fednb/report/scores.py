"""Every image's scores in the rounds that a rule chose."""

import numpy
import pandas

_MEANS: dict[tuple, list] = {}  # by the file's checksum: the same runs stand in many tables of a notebook


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
