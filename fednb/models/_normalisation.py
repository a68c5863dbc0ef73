"""The layer that normalises what another gives: over the batch, over groups of channels, or none."""

from torch import nn

from fednb.errors import RecipeError


def normalised(channels: int, normalisation: bool, groups: int, batch: type[nn.Module] = nn.BatchNorm2d) -> list:
    """One layer in a list, or none without normalisation.

    groups: of channels, for group normalisation (Wu and He, ECCV 2018), as Hsieh et al. take it in federated learning
        (ICML 2020, Sec. 5), two in FedDyn's code; 0 for batch normalisation, of the kind ``batch``. RecipeError
        where they do not divide the channels, or normalisation is off.
    """
    if groups and not normalisation:
        raise RecipeError(f"groups is {groups} without normalisation; leave it at 0, or normalisation at true.")
    norm = group(groups, channels) if groups else batch(channels)
    return [norm] if normalisation else []


def group(groups: int, channels: int) -> nn.GroupNorm:
    if groups < 0 or channels % groups:
        raise RecipeError(f"{channels} channels do not make {groups} groups; expected a number that divides them.")
    return nn.GroupNorm(groups, channels)
