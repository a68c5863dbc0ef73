"""What a method exchanges before the first round, counted from the messages themselves."""

from fednb.federation import made
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe
from fednb.report.plots._axes import as_written, decorate, new_figure


def prepare_bytes(
    augmentation: str | dict, clients: int, images: int, image_shape: tuple[int, int, int]
) -> dict[str, int]:
    """Bytes by direction, over all clients: ``{"up": ..., "down": ...}``; what a receiver gets counts each time.

    clients sites of ``images`` training images of ``image_shape`` (channels, height, width) each. The pixels are
    made: bytes do not depend on them.
    """
    recipe = Recipe(model={"name": "digits_cnn", "channels": 1, "width": 4}, augmentations=[augmentation])
    run = FederatedRun(recipe, made(clients, images, image_shape))
    return {direction: counts.get(recipe.augmentation_name, 0) for direction, counts in run.prepare().items()}


def in_words(size: float) -> str:
    """ "39.0 MiB", or "384 bytes" of less than a tenth of one."""
    return f"{size / 2**20:.1f} MiB" if size > 2**20 / 10 else f"{size:.0f} bytes"


def mebibytes(sizes: dict[str, int], title: str):
    """Bars on a logarithmic axis, each with its size: ``{row: bytes}``."""
    figure, (axes,) = new_figure(1, width=7.6, height=0.9 + 0.4 * len(sizes))
    values = [size / 2**20 for size in sizes.values()]
    for place, (value, size) in enumerate(zip(values, sizes.values(), strict=True)):
        axes.barh(place, value, left=0, color="#0072B2", height=0.6)
        axes.annotate(f" {in_words(size)}", (value, place), verticalalignment="center", fontsize=9)
    axes.set(xscale="log", yticks=range(len(values)), ylim=(len(values) - 0.5, -0.5))
    axes.set(yticklabels=list(sizes), xlim=(1e-5, 20 * max(values)))
    decorate(axes, "MiB, logarithmic", "", title, grid="x")
    return as_written(figure)


def received(sent: dict, clients: dict, model: int) -> list[str]:
    """What all clients and each of them receive before round 1, next to one model, a line for each row."""
    return [
        f"{row}: {in_words(each['down'])} to all clients, {in_words(each['down'] / clients[row])} to each (one model: "
        f"{in_words(model)})"
        for row, each in sent.items()
    ]
