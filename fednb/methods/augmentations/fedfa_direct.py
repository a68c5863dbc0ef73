"""FedFA's ablation: the server's variances enter the fusion as they are, without the weights of Eq. 6."""

from torch import Tensor

from fednb.methods.augmentations.fedfa import ExchangedStatistics, client_sharing_variance


class FedFADirect(ExchangedStatistics):
    r"""FedFA with "Direct Fusion" of the clients' and the server's variances.

    .. math:: \hat\Sigma^2 = (\Sigma^2_\text{server} + 1)\, \Sigma^2

    in the place of Eq. 7, with the variance of Eq. 5. Sends and keeps what FedFA does. Until the first aggregation the
    server's variance is 0: all clients start from the same statistics.

    Args:
        stages, probability, momentum: as in FedFA; probability 0 is plain training.

    Reference: FedFA, Sec. 4.4 and Table 7. Not released.
    """

    printed = "Direct Fusion"
    fusion, first_gamma = "direct", 0.0

    def gamma(self, values: Tensor) -> Tensor:
        return client_sharing_variance(values)
