"""FedFA's ablation: the server's variances enter the fusion as they are, without the weights of Eq. 6."""

from torch import Tensor

from fednb.methods.augmentations.fedfa import ExchangedStatistics, client_sharing_variance


class FedFADirect(ExchangedStatistics):
    r"""FedFA with "Direct Fusion" of the clients' and the server's variances.

    .. math:: \hat\Sigma^2 = (\Sigma^2_\text{server} + 1)\, \Sigma^2

    in the place of Eq. 7, with the variance of Eq. 5, 0 until the first aggregation. Sends and keeps what FedFA does.
    Options are those of FedFA.

    Reference: FedFA, Sec. 4.4 and Table 7. Not released.
    """

    printed = "Direct Fusion"
    fusion, first_gamma = "direct", 0.0

    def gamma(self, values: Tensor) -> Tensor:
        return client_sharing_variance(values)
