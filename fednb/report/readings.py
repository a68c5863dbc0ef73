"""Dice as others compute it, and the distance of borders, from what a run kept of its predicted masks."""

import numpy
import pandas

from fednb.report.selection import selected
from fednb.report.wording import frame_of


def readings(results):
    r"""Dice by slice and by volume, with and without background, and the 95 % Hausdorff distance, for each site.

    From runs with ``evaluation=["masks"]``, of the last round. Columns as in ``fednb.report.selection.selected``, and

    - ``slice``: the Dice coefficient :math:`2 |A \cap B| / (|A| + |B|)` of prediction and truth, of each foreground
      class of each image, averaged. It is ``accuracy``, which all tables have.
    - ``slice_with_background``: the background is one of the classes. As released: FedFA's code has this one, as
      HarmoFL's before it (both with 1e-5 in the denominator, so that a class that neither has counts 0).
    - ``volume``, ``volume_with_background``: the pixels of all test slices of a volume are counted together, then as
      before; the mean over volumes. An image without a volume is one by itself. Where slices are dealt out one by one
      (``split="fedfa"`` of ``prostate_mri``), a volume is what the test has of it.
    - ``hd95``: the 95 % Hausdorff distance in pixels (``fednb.loop.evaluate.hausdorff_95``) of each foreground
      class of each image, averaged over those that have one.
    - ``undefined``: how many have none, as the class is in one of prediction and truth only.

    Dice in per cent; a class that neither has counts 100. NaN for a site without test images. As printed: FedFA and
    FedRDN (Table 2 of both) say "Dice" and not which; FedRDN released no segmentation. Distances are in neither.

    Raises StoreError for a run without such an evaluation.
    """
    rows = selected(frame_of(results), "last")
    records = {record.key: record for record in results.records}
    masks = {key: record.artefact("masks") for key, record in records.items()}
    told = []
    for row in rows.itertuples():
        here = masks[row.key]["sites"] == records[row.key].clients.index(row.client)
        told.append(_of_site(**{name: values[here] for name, values in masks[row.key].items() if name != "sites"}))
    return rows.join(pandas.DataFrame(told, index=rows.index))


def _of_site(common, found, truth, distances, volumes) -> dict[str, float]:
    numbers, places = numpy.unique(volumes, return_inverse=True)
    member = places == numpy.arange(len(numbers))[:, None]  # [volumes, n]
    told = {}
    for name, shared, both in (
        ("slice", common, found + truth),
        ("volume", member @ common, member @ (found + truth)),
    ):
        dice = 100 * numpy.divide(2.0 * shared, both, out=numpy.ones(shared.shape), where=both > 0)  # [n, classes]
        told |= {name: _mean(dice[:, 1:]), f"{name}_with_background": _mean(dice)}
    undefined = numpy.isnan(distances)
    return told | {"hd95": _mean(distances[~undefined]), "undefined": int(undefined.sum())}


def _mean(values) -> float:
    return float(values.mean(dtype=float)) if values.size else numpy.nan
