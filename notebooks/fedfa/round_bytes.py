"""What a method exchanges in a round, counted from the messages themselves."""

from fednb.federation import made
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe


def round_bytes(
    augmentation: str | dict, model: str | dict, image_shape: tuple[int, int, int]
) -> dict[str, dict[str, int]]:
    """Bytes of one client in one round by direction and name: ``{"up": {"model": ..., "fedfa": ...}, "down": ...}``.

    Of the second round, on made images: in the first a server may have nothing to send yet.
    """
    recipe = Recipe(model=model, augmentations=[augmentation], batch_size=2)
    run = FederatedRun(recipe, made(2, 2, image_shape))
    run.train_round()
    counted = run.train_round()
    return {way: {name: count // 2 for name, count in counted[way].items()} for way in ("up", "down")}
