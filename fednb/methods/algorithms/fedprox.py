"""FedProx: each client is held near the global weights by a proximal term."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import EVERY_TASK, Batch, Client, Method, option


@dataclass(frozen=True)
class FedProx(Method):
    r"""Federated averaging with a proximal term in every local loss.

    .. math:: h_k(w; w^t) = F_k(w) + \frac{\mu}{2} \lVert w - w^t \rVert^2  \tag{1}

    with w^t the global weights at the start of the round. Sends and keeps nothing of its own.

    Args:
        mu: at least 0. 0 is FedAvg. 0.001 in FedRDN, Sec. 4.1.

    Reference: Li et al., *Federated optimization in heterogeneous networks*, MLSys 2020, Algorithm 2.

    As printed: the squared norm over all parameters that are sent, in every step; inexact local solutions are the
    recipe's fixed number of local epochs.

    As released: FedBN's code for digits skips round 1 and the first step of each epoch (mu 0.01); its code for
    Office-Caltech-10 and FedFA's take the norm, not its square (mu 0.001 and 0.01). FedRDN's code has no FedProx.
    """

    tasks = EVERY_TASK

    mu: float = option(0.001, at_least=0)

    def begin(self, client: Client) -> None:
        parameters = list(client.parameters().values())
        start = [parameter.detach().clone() for parameter in parameters]
        client.scratch(self).update(parameters=parameters, start=start)

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        if self.mu == 0:
            return None
        scratch = client.scratch(self)
        distances = torch._foreach_norm(torch._foreach_sub(scratch["parameters"], scratch["start"]))
        return self.mu / 2 * torch.stack(distances).square().sum()  # Eq. 1
