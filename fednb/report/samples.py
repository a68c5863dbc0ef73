"""Pictures of a federation's images: what the sites look like."""

from matplotlib import pyplot

from fednb.federation import IGNORED
from fednb.report.plots._axes import as_written, wrapped
from fednb.report.style import ORANGE

SHOWN = 8  # images of a site


def samples(federation):
    """The first eight training images of every site, one row for each: what feature shift looks like. Masks are lines
    around what is not background.

    federation: of images, uint8 ``[n, channels, height, width]``.
    """
    figure, axes = rows([site.name for site in federation.sites], SHOWN)
    for row, site in zip(axes, federation.sites, strict=True):
        images = site.train.images.permute(0, 2, 3, 1)
        for place, image, target in zip(row, images, site.train.targets, strict=False):
            place.imshow(image.numpy())
            drawn = (target > 0) & (target < IGNORED)
            if target.dim() and drawn.any() and not drawn.all():
                place.contour(drawn.numpy(), levels=[0.5], colors=ORANGE, linewidths=1)
    return as_written(figure)


def rows(names, columns: int, side: float = 0.9):
    """A figure of pictures and its axes ``[names, columns]``, a row for each name."""
    size = (side * columns + 0.8, side * len(names))
    figure, axes = pyplot.subplots(len(names), columns, figsize=size, squeeze=False, layout="constrained")
    pyplot.close(figure)
    for place in axes.flat:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    for place, name in zip(axes[:, 0], names, strict=True):
        place.set_ylabel(wrapped(name), rotation=0, horizontalalignment="right", verticalalignment="center")
    return figure, axes
