"""pFedMe: each client has a model of its own near its copy of the global weights, and is tested with it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import EVERY_TASK, Batch, Client, Message, Method, Server, option


@dataclass(frozen=True)
class PFedMe(Method):
    r"""Personalised federated learning with Moreau envelopes.

    A client starts a round at :math:`\theta_k = w_k = w`. On each batch it takes K steps towards

    .. math:: \theta_k \approx \arg\min_\theta \; f_k(\theta) + \tfrac{\lambda}{2} \lVert \theta - w_k \rVert^2  \tag{1}

    from the theta at hand, then one step of its copy of the global weights,

    .. math:: w_k \leftarrow w_k - \eta \lambda (w_k - \theta_k)  \tag{2}

    and at the end of the round the server moves towards the mean of these:

    .. math:: w \leftarrow (1 - \beta) w + \beta \sum_k p_k w_k  \tag{3}

    A client sends w_k, in the place of the model. It keeps theta_k, as large as the model, from its last round on, and
    is tested with it; before its first, or in no round, with the global model. The K steps are the recipe's
    optimiser's, at its learning rate; Eq. 1 and 2 are of the parameters that are shared. Running statistics are those
    of theta: they see all K passes and get the plain mean.

    Args:
        penalty: lambda, at least 0. 15 in the released commands for MNIST (15 to 30 in its others).
        steps: K, at least 1. 5 as released.
        local_rate: eta, at least 0; with eta lambda above 1, Eq. 2 steps over theta_k. 0.005 as released, where the
            inner learning rate is 0.09.
        beta: above 0. 1 as released in most commands, 2 where tuned; varied up to 4.
        personalised: True tests theta_k, the paper's "pFedMe (PM)". False tests the global model, "pFedMe (GM)", and
            keeps nothing; with steps 1, local_rate times penalty 1 and beta 1 that is FedAvg.

    Reference: Dinh et al., *Personalized federated learning with Moreau envelopes*, NeurIPS 2020, Algorithm 1. Values
    are those of the released commands, not checked against the paper's text; the numbers of the equations are ours.
    DisTrans prints no setting of its pFedMe.

    As printed: all clients train in every round and the server draws those whose w_k it averages, with equal weights;
    Eq. 1 is solved up to a given accuracy. Ours: those drawn train, weights are the recipe's (by size as released), and
    K steps are taken, as released (plain SGD with a weight decay of 0.001).

    As released (github.com/CharlieDinh/pFedMe): w_k is copied into the tensors that are tested as theta_k, so that, as
    we read it, the "personalized" results are those of w_k. Ours: theta_k.
    """

    printed = "pFedMe"
    tasks = EVERY_TASK

    penalty: float = option(15.0, at_least=0)
    steps: int = option(5, at_least=1)
    local_rate: float = option(0.005, at_least=0)
    beta: float = option(1.0, above=0)
    personalised: bool = True

    def begin(self, client: Client) -> None:
        parameters = list(client.parameters().values())
        client.scratch(self).update(parameters=parameters, local=[p.detach().clone() for p in parameters])

    def step(self, client: Client, batch: Batch) -> Tensor:
        first = super().step(client, batch)
        for _ in range(self.steps - 1):
            super().step(client, batch)
        scratch = client.scratch(self)
        with torch.no_grad():
            torch._foreach_lerp_(scratch["local"], scratch["parameters"], self.local_rate * self.penalty)  # Eq. 2
        return first

    def gradients(self, client: Client, batch: Batch) -> None:
        scratch = client.scratch(self)
        with torch.no_grad():
            distance = torch._foreach_sub(scratch["parameters"], scratch["local"])
            torch._foreach_add_([p.grad for p in scratch["parameters"]], distance, alpha=self.penalty)  # Eq. 1

    @torch.no_grad()
    def reply(self, client: Client) -> Message:
        scratch = client.scratch(self)
        if self.personalised:
            state = client.model.state_dict()
            client.memory(self).update({n: t.clone() for n, t in state.items() if n not in client.keeps})
        torch._foreach_copy_(scratch["parameters"], scratch["local"])
        return {}

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        return mean | {n: torch.lerp(server.model[n], mean[n], self.beta) for n in server.parameters}  # Eq. 3

    def adapt(self, client: Client) -> None:
        if not client.visiting:
            client.model.load_state_dict(client.memory(self), strict=False)
