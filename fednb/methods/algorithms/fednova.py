"""FedNova: averages the clients' changes per local step, so that more steps do not weigh more."""

import torch

from fednb.errors import RecipeError
from fednb.methods import EVERY_TASK, Client, Message, Method, Recipe, Server


class FedNova(Method):
    r"""Federated normalised averaging.

    .. math::
        d_k = (w_k - w) / \lVert a_k \rVert_1  \tag{1}

        \tau_{\mathrm{eff}} = \sum_k \tfrac{n_k}{\sum_j n_j} \lVert a_k \rVert_1  \tag{2}

        w \leftarrow w + \tau_{\mathrm{eff}} \sum_k \tfrac{n_k}{\sum_j n_j} d_k  \tag{3}

    where a_k holds the weight of each local gradient in the client's change: with tau_k steps of SGD of momentum rho

    .. math::
        \lVert a_k \rVert_1 = \tfrac{1}{1 - \rho}
        \left[ \tau_k - \tfrac{\rho (1 - \rho^{\tau_k})}{1 - \rho} \right]  \tag{4}

    which is tau_k without momentum. Where all clients take the same number of steps this is FedAvg, up to rounding. A
    client sends d_k in place of its parameters, and one number; running statistics get the plain mean. Nothing is kept.

    Raises RecipeError for Adam and for a momentum kept from round to round, where Eq. 4 does not hold.

    Reference: Wang et al., *Tackling the objective inconsistency problem in heterogeneous federated optimization*,
    NeurIPS 2020, Sec. 5.

    As printed: tau_eff is the paper's default, Eq. 2, without server momentum or a proximal term; weight decay is part
    of the gradient.
    """

    tasks = EVERY_TASK
    ranges = {"gradients": (0, 1e9)}

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        require_fresh_sgd(self, recipe)

    def begin(self, client: Client) -> None:
        client.scratch(self).update({n: p.detach().clone() for n, p in client.parameters().items()})

    def reply(self, client: Client) -> Message:
        gradients = gradient_weight(client.steps, client.recipe.momentum)
        start = client.scratch(self)
        for name, parameter in client.parameters().items():
            parameter.data.sub_(start[name]).div_(gradients)  # Eq. 1
        return {"gradients": torch.tensor(gradients, dtype=torch.float64)}

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        gradients = {client: float(reply["gradients"]) for client, reply in server.replies(self).items()}
        effective = sum(weight * gradients[client] for client, weight in server.weights.items())  # Eq. 2
        return mean | {name: server.model[name] + effective * mean[name] for name in server.parameters}  # Eq. 3


def gradient_weight(steps: int, momentum: float) -> float:
    """With which total weight the gradients of ``steps`` steps enter SGD's change, over the rate (Eq. 4)."""
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)


def require_fresh_sgd(method: Method, recipe: Recipe) -> None:
    """RecipeError unless a client's change is a known sum of this round's gradients."""
    kept = recipe.momentum and recipe.optimiser_state == "kept"
    if recipe.optimiser != "sgd" or kept:
        found = f"momentum {recipe.momentum} kept from round to round" if kept else f'optimiser "{recipe.optimiser}"'
        raise RecipeError(
            f"{method.name} was given {found}; it takes what a client has changed for a sum of this round's gradients. "
            'Take optimiser "sgd" with optimiser_state "renewed", or another algorithm.'
        )
