"""FedFA-C: statistics are resampled with the client's own variances alone; nothing is exchanged."""

from fednb.methods.augmentations.fedfa import FeatureStatistics


class FedFAC(FeatureStatistics):
    r"""FedFA without the federation.

    .. math:: \hat\Sigma^2 = \Sigma^2

    in the place of Eq. 7, with the batch's variance of Eq. 3. Sends and keeps nothing. Options are those of FedFA.

    Reference: FedFA, Sec. 4.1 and Table 5. Not released.
    """

    printed = "FedFA-C"
    fusion = "client"
