"""FedFA's ablation: the server's variances enter the fusion as they are, without the weights of Eq. 6."""

from dataclasses import dataclass

from torch import nn

from fednb.augment import _feature_statistics as statistics
from fednb.augment._stages import append, stages_option
from fednb.doors import EVERY_TASK, Client, Message, Method, Server, option
from fednb.standalone.feature_augmentation import FeatureAugmentation, client_sharing_variance


@dataclass(frozen=True)
class FedFADirect(Method):
    r"""FedFA with "Direct Fusion" of the clients' and the server's variances.

    .. math:: \hat\Sigma^2 = (\Sigma^2_\text{server} + 1)\, \Sigma^2

    in the place of Eq. 7, with the variance of Eq. 5. Sends and keeps what FedFA does. Until the first aggregation the
    server's variance is 0: all clients start from the same statistics.

    Args:
        stages, probability, momentum: as in FedFA; probability 0 is plain training.

    Reference: FedFA, Sec. 4.4 and Table 7. Not released.
    """

    printed = "Direct Fusion"
    tasks = EVERY_TASK

    stages: tuple[int, ...] | None = stages_option(None)
    probability: float = option(0.5, within="[0, 1]")
    momentum: float = option(0.99, within="[0, 1]")

    def build(self, model: nn.Module) -> nn.Module:
        append(
            model,
            self.stages,
            lambda channels: FeatureAugmentation(channels, self.probability, self.momentum, fusion="direct"),
        )
        return model

    def send(self, server: Server, client: str) -> Message:
        return dict(server.memory(self))

    def begin(self, client: Client) -> None:
        statistics.enter(client, client.memory(self), client.inbox(self), gamma=0)

    def reply(self, client: Client) -> Message:
        found = statistics.told(client)
        client.memory(self).update(found)
        return found

    def aggregate(self, server: Server) -> None:
        variances = statistics.over_clients(server.replies(self), client_sharing_variance)
        server.memory(self).update(statistics.as_gamma(variances))
