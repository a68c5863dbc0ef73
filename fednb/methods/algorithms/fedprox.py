"""FedProx: each client is held near the global weights by a proximal term."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.errors import RecipeError
from fednb.methods import EVERY_TASK, Batch, Client, Method, option
from fednb.recipe import Recipe


@dataclass(frozen=True)
class FedProx(Method):
    r"""Federated averaging with a proximal term in every local loss.

    .. math:: h_k(w; w^t) = F_k(w) + \frac{\mu}{2} \lVert w - w^t \rVert^2  \tag{1}

    with w^t the global weights at the start of the round. Sends and keeps nothing of its own.

    Args:
        mu: at least 0. 0 is FedAvg. 0.001 in FedRDN, Sec. 4.1.

    Raises RecipeError where SGD diverges on the proximal term alone: see ``refuse_divergence``.

    Reference: Li et al., *Federated optimization in heterogeneous networks*, MLSys 2020, Algorithm 2.

    As printed:

    1. The squared norm over all parameters that are sent, in every step of every round. (The first step of a
       round has no gradient from it.)
    2. Inexact local solutions are the recipe's fixed number of local epochs.

    As released (the paper's tables come from none of these):

    1. FedBN's code for digits skips round 1 and the first step of each epoch, mu 0.01.
    2. FedBN's code for Office-Caltech-10 and FedFA's take the norm, not its square, mu 0.001 and 0.01.
    3. FedRDN's code has no FedProx.
    """

    tasks = EVERY_TASK

    mu: float = option(0.001, at_least=0)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        refuse_divergence(self, "mu", recipe)

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


def refuse_divergence(method: Method, option: str, recipe: Recipe) -> None:
    """RecipeError where SGD's steps on h/2 times the squared distance d from a point lead away from it, with h the
    method's option and the weight decay. With rate eta and momentum m it goes d' = (1 + m - eta h) d - m d_before: both
    roots are below 1 if and only if eta h < 2 (1 + m). A convex loss beside it leaves less room.
    """
    strength, momentum = getattr(method, option), recipe.momentum
    pull = recipe.learning_rate * (strength + recipe.weight_decay)
    if recipe.optimiser == "sgd" and strength and pull >= 2 * (1 + momentum):
        raise RecipeError(
            f"{method.name} has {option} {strength}, and learning_rate x ({option} + weight_decay) is {pull:g}; with "
            f"momentum {momentum} expected less than 2 x (1 + momentum) = {2 * (1 + momentum):g}, from which on the "
            f"steps lead away from where it pulls. Lower {option} or the learning rate."
        )
