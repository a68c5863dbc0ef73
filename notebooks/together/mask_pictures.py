"""Pictures of masks, which pixels a network finds; and a table of Dice in other readings."""

import numpy

from fednb.federation import IGNORED
from fednb.report import readings
from fednb.report.plots._axes import as_written
from fednb.report.samples import rows
from fednb.report.style import BLACK, BLUE, ORANGE

READINGS = ["slice", "slice_with_background", "volume", "volume_with_background", "hd95"]


def masks(images, targets, predictions, sites):
    """For each site an image, its mask, and the prediction held against it: hits, missed and false pixels.

    images: uint8 ``[sites, channels, height, width]``; targets, predictions: uint8 ``[sites, height, width]``, 0 the
    background, 255 in targets where nothing is asked. As a record's artefact ``examples`` has them.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    colours = {"hit": BLACK, "missed": BLUE, "false": ORANGE, "not asked": "0.85"}
    figure, axes = rows(sites, 3, side=1.5)
    for row, image, target, prediction in zip(axes, images, targets, predictions, strict=True):
        asked = target != IGNORED
        truth, found = target.astype(bool) & asked, prediction.astype(bool) & asked
        cases = {"hit": truth & found, "missed": truth & ~found, "false": found & ~truth, "not asked": ~asked}
        row[0].imshow(image.transpose(1, 2, 0))
        for place, shown in zip(row[1:], ({"hit": truth, "not asked": ~asked}, cases), strict=True):
            picture = numpy.ones((*target.shape, 3))
            for case, where in shown.items():
                picture[where] = to_rgb(colours[case])
            place.imshow(picture)
    for place, text in zip(axes[0], ("image", "mask", "prediction"), strict=True):
        place.set_title(text, fontsize=10)
    handles = [Patch(facecolor=colour, edgecolor="0.4", label=case) for case, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return as_written(figure)


def readings_table(results):
    """``fednb.report.readings`` of each method: the mean over sites and seeds, to 0.1, and the sum of ``undefined``."""
    rows = readings(results).groupby("run", sort=False)
    return rows[READINGS].mean().round(1).assign(undefined=rows["undefined"].sum())
