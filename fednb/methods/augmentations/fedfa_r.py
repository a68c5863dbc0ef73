"""FedFA-R: statistics are resampled with one fixed standard deviation; nothing is exchanged."""

from dataclasses import dataclass

from fednb.methods import option
from fednb.methods.augmentations.fedfa import FeatureStatistics


@dataclass(frozen=True)
class FedFAR(FeatureStatistics):
    r"""FedFA with random noise of one size for all channels.

    .. math:: \hat\Sigma_\mu = \hat\Sigma_\sigma = \lambda

    in the place of Eq. 7. Sends and keeps nothing.

    Args:
        scale: lambda, in units of the features, at least 0. 0.5 in Sec. 4.1. 0 is plain training up to rounding.
        stages, probability: as in FedFA.

    Reference: FedFA, Sec. 4.1 and Table 5. Not released.
    """

    printed = "FedFA-R"
    fusion = "random"

    scale: float = option(0.5, at_least=0)

    def layer_options(self) -> dict:
        return {"scale": self.scale}
