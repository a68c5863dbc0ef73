"""What a method exchanges, counted from the messages themselves, on made images of any shape."""

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
    run = FederatedRun(_recipe(augmentation), made(clients, images, image_shape))
    name = run.recipe.augmentation_name
    return {direction: counts.get(name, 0) for direction, counts in run.prepare().items()}


def round_bytes(
    augmentation: str | dict, model: str | dict, image_shape: tuple[int, int, int]
) -> dict[str, dict[str, int]]:
    """Bytes of one client in one round by direction and name: ``{"up": {"model": ..., "fedfa": ...}, "down": ...}``.

    Of the second round: in the first a server may have nothing to tell yet.
    """
    recipe = Recipe(model=model, augmentations=[augmentation], batch_size=2)
    run = FederatedRun(recipe, made(2, 2, image_shape))
    run.train_round()
    counted = run.train_round()
    return {way: {name: count // 2 for name, count in counted[way].items()} for way in ("up", "down")}


def model_bytes(model: str | dict, image_shape: tuple[int, int, int], classes: int = 10) -> dict[str, int]:
    """Bytes of one network: its ``parameters``, and all that a message holds (``message``: with buffers)."""
    from fednb import models

    network = models.build(model, image_shape, classes)
    return {
        "parameters": sum(p.numel() * p.element_size() for p in network.parameters()),
        "message": sum(t.numel() * t.element_size() for t in network.state_dict().values()),
    }


def _recipe(augmentation: str | dict) -> Recipe:
    return Recipe(model={"name": "digits_cnn", "channels": 1, "width": 4}, augmentations=[augmentation])
