"""FedFA-C: statistics are resampled with the client's own variances alone; nothing is exchanged."""

from dataclasses import dataclass

from torch import nn

from fednb.augment import _feature_statistics as statistics
from fednb.augment._stages import append, stages_option
from fednb.doors import EVERY_TASK, Client, Method, option
from fednb.standalone.feature_augmentation import FeatureAugmentation


@dataclass(frozen=True)
class FedFAC(Method):
    r"""FedFA without the federation.

    .. math:: \hat\Sigma^2 = \Sigma^2

    in the place of Eq. 7, with the batch's variance of Eq. 3. Sends and keeps nothing.

    Args:
        stages, probability: as in FedFA; probability 0 is plain training.

    Reference: FedFA, Sec. 4.1 and Table 5. Not released.
    """

    printed = "FedFA-C"
    tasks = EVERY_TASK

    stages: tuple[int, ...] | None = stages_option(None)
    probability: float = option(0.5, within="[0, 1]")

    def build(self, model: nn.Module) -> nn.Module:
        append(model, self.stages, lambda channels: FeatureAugmentation(channels, self.probability, fusion="client"))
        return model

    def begin(self, client: Client) -> None:
        statistics.draw_apart(client)
