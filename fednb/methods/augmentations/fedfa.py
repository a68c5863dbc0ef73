"""FedFA: the channel statistics of hidden features are resampled, with variances that know the federation."""

from dataclasses import dataclass

from torch import Tensor

from fednb.methods import Client, Message, Server, option
from fednb.methods.augmentations._feature_statistics import ExchangedStatistics, over_clients, told
from fednb.standalone.feature_augmentation import client_sharing_variance, weights

EPS = 1e-6  # released code


@dataclass(frozen=True)
class FedFA(ExchangedStatistics):
    r"""Federated feature augmentation: a ``FeatureAugmentation`` layer (Eq. 2-4, 7-9) after chosen stages.

    Each client m keeps running statistics of each layer and sends them; the server takes their variance over the
    clients and makes of it the weights gamma that all clients receive for the next round:

    .. math::
        \Sigma^2 = \tfrac{1}{M} \sum_m (\bar\mu_m - \mathbb E[\bar\mu])^2  \tag{5}

        \gamma^{(j)} = \frac{C\,(1 + 1/\Sigma^{2,(j)})^{-1}}{\sum_c (1 + 1/\Sigma^{2,(c)})^{-1}}  \tag{6}

    and likewise for the standard deviations. A client sends 2 C numbers a layer and round and receives as many. The
    server keeps the weights gamma; clients keep their running statistics. Until the first aggregation gamma is 1, as
    released.

    Args:
        variant: "paper" or "released".
        stages: after which stages of the network, counted from 1; None is all (FedFA, Sec. 2.3.1; Table 8).
        probability: p, in [0, 1]; 0.5 in Algorithm 2. 0 is plain training.
        momentum: alpha of Eq. 4, in [0, 1]; 0.99 in Algorithm 2.
        reset: running statistics start anew in every round (Algorithm 1, line 3) instead of going on (Eq. 4).

    Raises RecipeError for a stage that the network lacks; ValueError from the layer where features have one pixel.

    Reference: FedFA, Sec. 2.3, Algorithms 1 and 2.

    As printed (``variant="paper"``):

    1. Eq. 5 for each channel, over the clients of the round; Eq. 6; population variances without eps.
    2. The text keeps the running statistics over the rounds, Algorithm 1 resets them: see ``reset``.

    As released (``variant="released"``):

    1. The server takes one variance of all M x C numbers, so that every gamma is 1: nothing of other clients enters the
       augmentation, which is FedFA-C with twice the variance.
    2. Running statistics are replaced by the clients' average in every round.
    3. Sample variances, with 1e-6 added to each, also inside Eq. 6.
    4. Clients also upload the two variances that they received; we leave them out of the bytes.
    """

    fusion, first_gamma = "adaptive", 1.0

    variant: str = option("paper", one_of=("paper", "released"))
    reset: bool = False

    def layer_options(self) -> dict:
        return super().layer_options() | {"correction": int(self.variant == "released")}

    def gamma(self, values: Tensor) -> Tensor:
        return gamma_of_one_variance(values) if self.variant == "released" else gamma_of_channels(values)

    def known(self, client: Client) -> Message:
        known = super().known(client)
        return {name: value for name, value in known.items() if "gamma" in name} if self.reset else known

    def reply(self, client: Client) -> Message:
        keeps = self.variant == "paper" and not self.reset
        return super().reply(client) if keeps else told(client)

    def aggregate(self, server: Server) -> None:
        super().aggregate(server)
        if self.variant == "released":
            server.memory(self).update(over_clients(server.replies(self), lambda values: values.mean(0)))


def gamma_of_channels(values: Tensor) -> Tensor:
    """Eq. 5 and 6: statistics ``[clients, C]`` -> gamma ``[C]``."""
    return weights(client_sharing_variance(values))


def gamma_of_one_variance(values: Tensor) -> Tensor:
    """The released code: one variance for all channels, ``[clients, C]`` -> gamma ``[C]``, which is 1 everywhere."""
    variance = values.var(correction=min(1, values.numel() - 1))
    return weights((variance + EPS).expand(values.shape[1]))
