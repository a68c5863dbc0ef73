"""SCAFFOLD: control variates correct every local gradient for the drift of its client."""

import torch

from fednb.methods import EVERY_TASK, Averaged, Batch, Client, Message, Method, Recipe, Server
from fednb.methods.algorithms.fednova import gradient_weight, require_fresh_sgd


class Scaffold(Averaged):
    r"""Stochastic controlled averaging.

    A client k starts at y = w and steps with the corrected gradient; by the paper's option II,

    .. math::
        y \leftarrow y - \eta \, (g_k(y) + c - c_k)  \tag{3}

        c_k \leftarrow c_k + \Delta c_k, \quad \Delta c_k = \tfrac{1}{K_k \eta} (w - y) - c  \tag{4}

        w \leftarrow \sum_k p_k y_k, \quad
        c \leftarrow c + \tfrac{|S|}{N} \sum_k p_k \Delta c_k  \tag{5}

    with p_k the weights of the round's clients S of N. All variates start at 0. The server sends c and a client Delta
    c_k; the server keeps c and a client c_k: each as large as the parameters. With one client it is FedAvg.

    Raises RecipeError for Adam and for a momentum kept from round to round, where Eq. 4 does not hold.

    Reference: Karimireddy et al., *SCAFFOLD: stochastic controlled averaging for federated learning*, ICML 2020,
    Algorithm 1 and Eq. 3 to 5.

    As printed:

    1. The server's rate is 1, as in the paper's experiments; its p_k are equal (the recipe's ``weights="equal"``). By
       size, :math:`|S|/N` is the clients' share of all images, so that c stays the weighted mean of all c_k.
    2. Its clients take plain SGD steps. With momentum K_k in Eq. 4 is the sum of the weights with which gradients enter
       w - y (``fednova.gradient_weight``); else the variates would grow without limit.
    3. Weight decay counts as part of the gradient. Running statistics get the plain mean.
    """

    printed = "SCAFFOLD"
    tasks = EVERY_TASK

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        require_fresh_sgd(self, recipe)

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        server.memory(self).update({n: torch.zeros_like(server.model[n]) for n in server.parameters})
        return {}

    def prepare_receive(self, client: Client, shared: Message) -> None:
        client.memory(self).update({n: torch.zeros_like(p) for n, p in client.parameters().items()})

    def begin(self, client: Client) -> None:
        parameters, own, common = client.parameters(), client.memory(self), client.inbox(self)
        start = [parameter.detach().clone() for parameter in parameters.values()]
        correction = [common[name] - own[name] for name in parameters]
        client.scratch(self).update(parameters=list(parameters.values()), start=start, correction=correction)

    def gradients(self, client: Client, batch: Batch) -> None:
        scratch = client.scratch(self)
        torch._foreach_add_([p.grad for p in scratch["parameters"]], scratch["correction"])  # Eq. 3

    @torch.no_grad()
    def reply(self, client: Client) -> Message:
        scratch, own, common = client.scratch(self), client.memory(self), client.inbox(self)
        rate = client.recipe.learning_rate * gradient_weight(client.steps, client.recipe.momentum)
        moved = torch._foreach_sub(scratch["start"], scratch["parameters"])
        change = {n: m / rate - common[n] for n, m in zip(client.parameters(), moved, strict=True)}  # Eq. 4
        own.update({name: own[name] + change[name] for name in change})
        return change

    def aggregate(self, server: Server) -> None:
        common = server.memory(self)
        for name, total in server.scratch(self).items():
            common[name] = common[name] + server.share * total  # Eq. 5
