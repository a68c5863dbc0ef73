"""FedAvg: local training, then the mean of the clients' weights."""

from fednb.methods import EVERY_TASK, Method


class FedAvg(Method):
    r"""Federated averaging, the loop with no hook used.

    .. math:: w \leftarrow \sum_k \frac{n_k}{\sum_j n_j} w_k

    Sends and keeps nothing of its own. The weights are the recipe's ``weights``: by size or equal.

    Reference: McMahan et al., *Communication-efficient learning of deep networks from decentralized data*, AISTATS
    2017, Algorithm 1; FedRDN, Eq. 1.
    """

    tasks = EVERY_TASK
