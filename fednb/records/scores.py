"""Every test image's score, in the rounds that a selection rule may choose: an artefact next to a record."""

import numpy
from numpy import ndarray
from torch import Tensor

from fednb.recipe import LAST

TIE = 1e-9  # of means in [0, 1]: sums in another order differ by less


def rounds_to_keep(rounds: list[dict], images: dict[str, list[int]]) -> set[int]:
    """The last ten rounds, and those of the best mean over clients on validation and on test images. rounds: as in a
    record. images: for each split, of each client; 0 where it is unseen and chooses no round."""
    kept = {values["round"] for values in rounds[-LAST:]}
    for split in ("validation", "test"):
        shares = [[n / c for n, c in zip(values[split], images[split], strict=True) if c] for values in rounds]
        means = [sum(own) / max(1, len(own)) for own in shares]
        kept |= {next(values["round"] for values, mean in zip(rounds, means, strict=True) if mean >= max(means) - TIE)}
    return kept


def packed(scores: dict[int, Tensor], spare: dict[int, Tensor]) -> dict[str, ndarray]:
    """``rounds`` int32 ``[r]``, ``test`` and, where there is any, ``spare``: bits, uint8 ``[r, ceil(n / 8)]``, of right
    and wrong answers, float16 ``[r, n]`` of other scores.

    scores, spare: by round, float64 ``[n]`` in [0, 1], the images of all clients in the order of the sites."""
    arrays = {"rounds": numpy.array(sorted(scores), dtype=numpy.int32)}
    for split, values in {"test": scores, "spare": spare}.items():
        if values:
            rows = numpy.stack([values[number].numpy() for number in sorted(values)])
            counted = numpy.isin(rows, (0, 1)).all()
            arrays[split] = numpy.packbits(rows.astype(bool), axis=1) if counted else rows.astype(numpy.float16)
    return arrays


def unpacked(arrays: dict, counts: list[int], split: str = "test") -> dict[int, list[ndarray]]:
    """By round the scores of each client's images, float64, from what ``packed`` made; counts: images of each."""
    rows, rounds = arrays[split], arrays["rounds"]
    if split == "spare":
        rounds = rounds[-LAST:]
    if rows.dtype == numpy.uint8:
        rows = numpy.unpackbits(rows, axis=1, count=sum(counts))
    ends = numpy.cumsum(counts)[:-1]
    return {int(n): numpy.split(row.astype(float), ends) for n, row in zip(rounds, rows, strict=True)}
