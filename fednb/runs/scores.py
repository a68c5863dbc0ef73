"""Every test image's score, in the rounds that a selection rule may choose: a small artefact beside a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import ndarray
    from torch import Tensor

LAST = 10
TIE = 1e-9  # of means in [0, 1]: sums in another order differ by less


def rounds_to_keep(rounds: list[dict], images: dict[str, list[int]]) -> set[int]:
    """The last ten rounds, and those of the best mean over clients on validation and on test images.

    rounds: as in a record. images: for each split, the number of images of each client; 0 for those that are unseen,
    which choose no round.
    """
    kept = {values["round"] for values in rounds[-LAST:]}
    for split in ("validation", "test"):
        means = [_mean(values[split], images[split]) for values in rounds]
        best = next((i for i, mean in enumerate(means) if mean >= max(means) - TIE), None)
        kept |= set() if best is None else {rounds[best]["round"]}
    return kept


def _mean(totals: list, counts: list[int]) -> float:
    shares = [total / count for total, count in zip(totals, counts, strict=True) if count]
    return sum(shares) / max(1, len(shares))


def packed(scores: dict[int, Tensor]) -> dict[str, ndarray]:
    """``rounds`` int32 ``[r]`` and ``test``, as small as it can be kept.

    scores: by round, float64 ``[n]`` in [0, 1], the images of all clients in the order of the sites. Right and wrong
    answers become bits, uint8 ``[r, ceil(n / 8)]``; other scores float16 ``[r, n]``.
    """
    import numpy

    rows = numpy.stack([scores[number].numpy() for number in sorted(scores)])
    counted = numpy.isin(rows, (0, 1)).all()
    kept = numpy.packbits(rows.astype(bool), axis=1) if counted else rows.astype(numpy.float16)
    return {"rounds": numpy.array(sorted(scores), dtype=numpy.int32), "test": kept}


def unpacked(arrays: dict, counts: list[int]) -> dict[int, list[ndarray]]:
    """By round the scores of each client's images, float64, from what ``packed`` made; counts: images of each.

    ValueError where there are not as many, or they are not in [0, 1].
    """
    import numpy

    rows, images = arrays["test"], sum(counts)
    bits = rows.dtype == numpy.uint8
    if rows.shape != (len(arrays["rounds"]), -(-images // 8) if bits else images):
        raise ValueError(f"test is {list(rows.shape)} for {len(arrays['rounds'])} rounds of {images} images")
    if not ((rows >= 0) & (rows <= 1)).all() and not bits:
        raise ValueError("some are not in [0, 1]")
    if bits:
        rows = numpy.unpackbits(rows, axis=1, count=sum(counts))
    ends = numpy.cumsum(counts)[:-1]
    return {int(n): numpy.split(row.astype(float), ends) for n, row in zip(arrays["rounds"], rows, strict=True)}
