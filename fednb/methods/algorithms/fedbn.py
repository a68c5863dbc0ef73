"""FedBN: batch normalisation stays with the client."""

from dataclasses import dataclass

import torch
from torch import nn

from fednb.methods import EVERY_TASK, Averaged, Client, Message, Server, batch_norms, option


@dataclass(frozen=True)
class FedBN(Averaged):
    r"""Federated averaging of everything but the layers of batch normalisation.

    .. math:: w_\ell \leftarrow \sum_k \tfrac{n_k}{\sum_j n_j} w_{\ell,k}
        \quad \text{for every layer } \ell \text{ but batch normalisation}

    Weights, biases and running statistics of those layers, found by their type, are neither sent nor averaged; each
    client keeps and is evaluated with its own. In a network without such layers it is FedAvg.

    Args:
        at_unseen: at a client that is in no round (both suggested by the authors: med-air/FedBN, issue 9): "own",
            weights and biases as at the start (1 and 0 unless pretrained) and statistics of its own training images;
            or "mean": the clients of each round send their layers, and the server keeps their mean, for the unseen
            alone.

    Reference: Li et al., *FedBN: federated learning on non-IID features via local batch normalization*, ICLR 2021,
    Algorithm 1.

    As released: the layers are found by "bn" in their names (which in FedFA's U-Net takes more than they are).
    """

    tasks = EVERY_TASK

    at_unseen: str = option("own", one_of=("own", "mean"))

    def send(self, server: Server, client: str) -> Message:
        return {} if client in server.images else server.memory(self)

    def reply(self, client: Client) -> Message:
        if self.at_unseen == "own":
            return {}
        state = client.model.state_dict()
        return {n: state[n].clone() for n in sorted(self.keeps(client.model)) if state[n].is_floating_point()}

    @torch.no_grad()
    def unseen(self, client: Client) -> None:
        """What the server sent takes the place of its own statistics."""
        state = client.model.state_dict()
        for name, value in client.inbox(self).items():
            state[name].copy_(value)

    def keeps(self, model: nn.Module) -> set[str]:
        return {f"{place}.{name}" for place, layer in batch_norms(model).items() for name in layer.state_dict()}
