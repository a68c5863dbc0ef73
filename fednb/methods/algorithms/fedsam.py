"""FedSAM: each client minimises the worst loss in a small ball around its weights."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import EVERY_TASK, Batch, Client, Method, frozen, option


@dataclass(frozen=True)
class FedSAM(Method):
    r"""Federated averaging with sharpness-aware minimisation at the clients.

    .. math::
        \epsilon = \rho \, \frac{\nabla F(w)}{\lVert \nabla F(w) \rVert}  \tag{1}

        w \leftarrow w - \eta \nabla F(w + \epsilon)  \tag{2}

    on one batch, with the same draws in both passes; the step of Eq. 2 is the recipe's optimiser's. Sends and keeps
    nothing of its own; each step takes two passes.

    Args:
        rho: radius, at least 0. 0 is FedAvg. 0.05 in FedFA's released code; FedFA prints none.

    Reference: Qu et al., *Generalized federated learning via sharpness aware minimization*, ICML 2022, Algorithm 1
    (FedSAM); Foret et al., *Sharpness-aware minimization for efficiently improving generalization*, ICLR 2021.

    As released (FedFA's code): running statistics see the first pass only, as ours; the base optimiser is Adam.
    """

    tasks = EVERY_TASK

    rho: float = option(0.05, at_least=0)

    def step(self, client: Client, batch: Batch) -> Tensor:
        if self.rho == 0:
            return super().step(client, batch)
        parameters = list(client.model.parameters())
        with client.draws_twice():
            loss = client.objective(batch)
        client.backward(loss, batch)
        start = [parameter.detach().clone() for parameter in parameters]
        with torch.no_grad():
            gradients = [parameter.grad for parameter in parameters]
            norm = torch.stack(torch._foreach_norm(gradients)).norm()
            torch._foreach_add_(parameters, torch._foreach_mul(gradients, self.rho / (norm + 1e-12)))  # Eq. 1
        with frozen(client.model):
            worst = client.objective(batch)
        client.backward(worst, batch)
        with torch.no_grad():
            torch._foreach_copy_(parameters, start)
        client.optimiser.step()  # Eq. 2
        return loss.detach()
