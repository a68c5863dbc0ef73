"""What a method exchanges before the first round, counted from the messages themselves."""

from fednb.federation import made
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe


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
