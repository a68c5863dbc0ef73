"""FedBN: batch normalisation stays with the client."""

from torch import nn

from fednb.doors import EVERY_TASK, Client, Method


class FedBN(Method):
    r"""Federated averaging of everything but the layers of batch normalisation.

    .. math:: w_\ell \leftarrow \sum_k \tfrac{n_k}{\sum_j n_j} w_{\ell,k}
        \quad \text{for every layer } \ell \text{ but batch normalisation}

    Weights, biases and running statistics of those layers are neither sent nor averaged; each client keeps
    and is evaluated with its own. In a network without such layers it is FedAvg.

    A client that is in no round has weights and biases as at the start (1 and 0 unless pretrained) and its own
    statistics, of its training images: the clients' layers never leave them, so that nobody can tell it their mean.

    Reference: Li et al., *FedBN: federated learning on non-IID features via local batch normalization*,
    ICLR 2021, Algorithm 1.

    As printed:

    1. The layers are found by their type.

    As released:

    1. The layers are found by "bn" in their names (which in FedFA's U-Net takes more than they are).
    2. FedFA's server keeps the initial layers and evaluates a global model with them, which says nothing.
    """

    tasks = EVERY_TASK

    def unseen(self, client: Client) -> None:
        """Its statistics are its own by then, and that is all."""

    def keeps(self, model: nn.Module) -> set[str]:
        return {
            f"{place}.{name}"
            for place, layer in model.named_modules()
            if isinstance(layer, nn.modules.batchnorm._BatchNorm)
            for name in layer.state_dict()
        }
