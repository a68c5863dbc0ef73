"""FedBABU: clients learn the body together under a head that stays as drawn, and tune both before they are tested."""

from dataclasses import dataclass

import torch
from torch import nn

from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, option


@dataclass(frozen=True)
class FedBABU(Method):
    r"""Federated averaging with body aggregation and body update.

    With b the body (all but the head) and h the head of the network, in every round

    .. math::
        b_k \leftarrow b_k - \eta \nabla_b F_k(b_k, h_0), \quad
        b \leftarrow \sum_k \tfrac{n_k}{\sum_j n_j} b_k  \tag{1}

    and for the test of client k

    .. math:: (b_k, h_k) = \text{local training of } (b, h_0) \text{ for } E_f \text{ epochs}  \tag{2}

    In rounds the head h_0 is as drawn at every client, an unseen one too: no gradient, weight decay or momentum moves
    it. A client tunes for each test with a fresh optimiser. Sends the body alone. Keeps the head. No setting is FedAvg.

    Args:
        tune_epochs: E_f, at least 0. 0 tests the common body under the drawn head. 5 in the authors' code, and
            in Flower's baseline, which follows the paper's Table 13.

    Reference: Oh et al., *FedBABU: toward enhanced representation for federated image classification*, ICLR 2022,
    Algorithm 1, from its abstract and code; the numbers of the equations are ours. FRAug (Table 2) prints no setting.

    As released (github.com/jhoon-oh/FedBABU, read in the copy github.com/junhyeog/FedBABU): clients count alike; the
    rate falls to a tenth after half and after three quarters of the rounds, and clients tune at the last one. Ours: the
    recipe's weights and one rate.
    """

    tasks = EVERY_TASK

    tune_epochs: int = option(5, at_least=0)

    def keeps(self, model: nn.Module) -> set[str]:
        return {f"head.{name}" for name in model.head.state_dict()}

    def unseen(self, client: Client) -> None:
        """Its head is as drawn, as everybody's."""

    def begin(self, client: Client) -> None:
        head = list(client.model.head.parameters())
        client.scratch(self).update(head=head, drawn=[parameter.detach().clone() for parameter in head])
        if "tuning" in client.scratch(self):
            client.optimiser.state.clear()  # momenta kept from rounds have none of the head's

    def gradients(self, client: Client, batch: Batch) -> None:
        if "tuning" not in client.scratch(self):
            for parameter in client.scratch(self)["head"]:
                parameter.grad = None  # Eq. 1: an optimiser passes it over, weight decay and momentum included

    @torch.no_grad()
    def reply(self, client: Client) -> Message:
        """Takes back what an augmentation, such as FedReg, has done to the head past the optimiser."""
        torch._foreach_copy_(client.scratch(self)["head"], client.scratch(self)["drawn"])
        return {}

    def adapt(self, client: Client) -> None:
        if self.tune_epochs:
            client.scratch(self)["tuning"] = True
            client.train(self.tune_epochs)  # Eq. 2
