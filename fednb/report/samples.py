"""Pictures of a federation's images: what the sites look like, and which pixels a network finds."""

import numpy

from fednb.federation import IGNORED
from fednb.report.plots._axes import as_written, wrapped
from fednb.report.style import BLACK, BLUE, ORANGE

SHOWN = 8  # images of a site


def samples(federation):
    """The first eight training images of every site, one row for each: what feature shift looks like. Masks are lines
    around what is not background.

    federation: of images, uint8 ``[n, channels, height, width]``.
    """
    figure, axes = _rows([site.name for site in federation.sites], SHOWN)
    for row, site in zip(axes, federation.sites, strict=True):
        images = site.train.images.permute(0, 2, 3, 1)
        for place, image, target in zip(row, images, site.train.targets, strict=False):
            place.imshow(image.numpy())
            drawn = (target > 0) & (target < IGNORED)
            if target.dim() and drawn.any() and not drawn.all():
                place.contour(drawn.numpy(), levels=[0.5], colors=ORANGE, linewidths=1)
    return as_written(figure)


def masks(images, targets, predictions, sites):
    """For each site an image, its mask, and the prediction held against it: hits, missed and false pixels.

    images: uint8 ``[sites, channels, height, width]``; targets, predictions: uint8 ``[sites, height, width]``, 0 the
    background, 255 in targets where nothing is asked. As a record's artefact ``examples`` has them.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    colours = {"hit": BLACK, "missed": BLUE, "false": ORANGE, "not asked": "0.85"}
    figure, axes = _rows(sites, 3, side=1.5)
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


def _rows(names, columns: int, side: float = 0.9):
    """A figure of pictures, a row for each name."""
    from matplotlib import pyplot

    size = (side * columns + 0.8, side * len(names))
    figure, axes = pyplot.subplots(len(names), columns, figsize=size, squeeze=False, layout="constrained")
    pyplot.close(figure)
    for place in axes.flat:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    for place, name in zip(axes[:, 0], names, strict=True):
        place.set_ylabel(wrapped(name), rotation=0, horizontalalignment="right", verticalalignment="center")
    return figure, axes
