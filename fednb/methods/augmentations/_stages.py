"""A layer after chosen stages of a network: the option that chooses them, and how it is put there."""

from collections.abc import Callable, Sequence

from torch import nn

from fednb.errors import RecipeError
from fednb.methods import option


def stages_option(default: tuple[int, ...] | None):
    """Of a method: stages counted from 1, or None for all."""
    return option(
        default,
        allowed=lambda given: given is None or are_numbers(given),
        expected="a list such as [1, 2], or None for all",
    )


def are_numbers(given) -> bool:
    return isinstance(given, list | tuple) and len(given) > 0 and all(type(number) is int for number in given)


def append(model: nn.Module, stages: Sequence[int] | None, make: Callable[[int], nn.Module]) -> list[nn.Module]:
    """Appends ``make(channels)``, without persistent state, to these stages; RecipeError for one that it lacks."""
    known = getattr(model, "stages", ())
    absent = [stage for stage in stages or () if not 1 <= stage <= len(known)]
    if absent or not known:
        asked = f"stage {absent[0]}" if absent else "its stages"
        raise RecipeError(
            f"a layer was asked for after {asked} of {type(model).__name__}, which has "
            f"{f'stages 1 to {len(known)}' if known else 'none'}. Name stages among them."
        )
    layers = []
    for stage in range(1, len(known) + 1) if stages is None else sorted(set(stages)):
        layers.append(make(model.stage_channels[stage - 1]))
        model.get_submodule(known[stage - 1]).append(layers[-1])
    return layers
