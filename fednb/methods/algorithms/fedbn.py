"""FedBN: batch normalisation stays with the client."""

from dataclasses import dataclass

import torch
from torch import nn

from fednb.methods import EVERY_TASK, Client, Message, Method, Server, add, option


@dataclass(frozen=True)
class FedBN(Method):
    r"""Federated averaging of everything but the layers of batch normalisation.

    .. math:: w_\ell \leftarrow \sum_k \tfrac{n_k}{\sum_j n_j} w_{\ell,k}
        \quad \text{for every layer } \ell \text{ but batch normalisation}

    Weights, biases and running statistics of those layers are neither sent nor averaged; each client keeps
    and is evaluated with its own. In a network without such layers it is FedAvg.

    For a client that is in no round the authors suggest the averaged layers, or statistics that are measured anew
    (med-air/FedBN, issue 9). Both readings are here.

    Args:
        at_unseen: "own", weights and biases as at the start (1 and 0 unless pretrained) and statistics of its own
            training images, as the clients' layers never leave them; or "mean", for which the clients of each round
            do send their layers and the server keeps the mean, with the weights of the model's, for the unseen alone.
            What takes part in rounds is the same with both.

    Reference: Li et al., *FedBN: federated learning on non-IID features via local batch normalization*,
    ICLR 2021, Algorithm 1.

    As printed: the layers are found by their type.

    As released:

    1. The layers are found by "bn" in their names (which in FedFA's U-Net takes more than they are).
    2. FedFA's server keeps the initial layers and evaluates a global model with them, which says nothing.
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

    def collect(self, server: Server, client: str, weight: float, reply: Message) -> None:
        add(server.scratch(self), weight, reply)

    def aggregate(self, server: Server) -> None:
        server.memory(self).update(server.scratch(self))

    @torch.no_grad()
    def unseen(self, client: Client) -> None:
        """Its statistics are its own by then; what the server sent takes their place."""
        state = client.model.state_dict()
        for name, value in client.inbox(self).items():
            state[name].copy_(value)

    def keeps(self, model: nn.Module) -> set[str]:
        return {
            f"{place}.{name}"
            for place, layer in model.named_modules()
            if isinstance(layer, nn.modules.batchnorm._BatchNorm)
            for name in layer.state_dict()
        }
