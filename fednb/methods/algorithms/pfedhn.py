"""pFedHN: the server's hypernetwork makes each client's weights from an embedding of the client."""

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.methods import EVERY_TASK, Client, Message, Method, Recipe, Server, entries, measured, option, part

LIMIT = 2e9  # bytes of a hypernetwork


@dataclass(frozen=True)
class PFedHN(Method):
    r"""Personalised federated learning with a hypernetwork at the server.

    The weights of client i come from its embedding v_i, by a perceptron with parameters phi and a linear output for
    every tensor of the network:

    .. math:: \theta_i = h(v_i; \varphi)  \tag{1}

    The client trains them into :math:`\tilde\theta_i`, and its change is the gradient that the server goes on with:

    .. math::
        \varphi \leftarrow \varphi - \alpha \, (\nabla_\varphi \theta_i)^\top (\theta_i - \tilde\theta_i), \quad
        v_i \leftarrow v_i - \alpha \, (\nabla_{v_i} \theta_i)^\top (\theta_i - \tilde\theta_i)  \tag{2}

    by SGD with momentum and weight decay. There is no global model and no mean: the server sends a client its theta_i,
    the client its change; the server keeps phi, all embeddings and their momentum, phi being ``hidden`` + 1 times as
    large as the parameters. The clients of a round train one after the other, by name: Eq. 2 is one step as soon as a
    client has replied, whatever its number of images. All are tested with weights made from the round's last phi, and
    with running statistics of their training images, measured with these weights.

    A client that is in no round takes the mean of the others' embeddings; with a personal head that is refused.

    Args:
        personal_head: True is pFedHN-pc: the head is the client's own and is neither made nor sent.
        embedding: length of v_i, at least 0; 0 takes 1 + N / 4 for N clients, rounded down, as released.
        hidden: width of the perceptron, at least 0. 100 as released. 0 leaves nothing but the biases of its outputs,
            one model for all: with one client, rate 1 and neither momentum nor decay FedAvg, up to rounding.
        layers: hidden layers after the first, at least 0. 3 as released.
        rate: alpha, at least 0. 0.01 as released, 0.05 there for pFedHN-pc.
        momentum: in [0, 1). 0.9 as released.
        decay: weight decay, at least 0. 0.001 as released.

    Raises RecipeError for a hypernetwork of more than 2 GB.

    Reference: Shamsian et al., *Personalized federated learning using hypernetworks*, ICML 2021, Algorithm 1, checked
    against the released code; the numbers of the equations are ours. DisTrans prints no setting of its pFedHN.

    As printed: a new client learns an embedding for the finished phi.

    As released (github.com/AvivSham/pFedHN):

    1. One client, drawn at random, a step. Ours: each client of the round has one.
    2. All of phi starts as torch draws it. Ours: the biases of the outputs start as the network's own weights and their
       matrices as 0, so that every client starts from the network of all other methods.
    3. Gradients are clipped to norm 50, and momentum and decay move all embeddings in every step. Ours: no clipping,
       and the embedding whose client replied.
    """

    printed = "pFedHN"
    tasks = EVERY_TASK
    sequential = True

    personal_head: bool = False
    embedding: int = option(0, at_least=0)
    hidden: int = option(100, at_least=0)
    layers: int = option(3, at_least=0)
    rate: float = option(0.01, at_least=0)
    momentum: float = option(0.9, within="[0, 1)")
    decay: float = option(0.001, at_least=0)

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        if self.personal_head and recipe.unseen:
            raise RecipeError(
                f"{self.name} with a personal head keeps entries of the network at its clients and has no value for "
                f"them at an unseen one ({', '.join(recipe.unseen)}). Leave unseen empty, or take pfedhn."
            )

    def keeps(self, model: nn.Module) -> set[str]:
        return set(model.state_dict())

    def prepare_offer(self, client: Client) -> Message:
        """The names of the parameters that are made for it."""
        return {name: torch.tensor(parameter.numel()) for name, parameter in self._made(client).items()}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        first = {name: server.first[name] for name in next(iter(offers.values()))}
        size = (self.hidden + 1) * sum(value.numel() * value.element_size() for value in first.values())
        if size > LIMIT:
            raise RecipeError(
                f"{self.name} has hidden {self.hidden} and needs {size / 1e9:.1f} GB for its hypernetwork; expected at "
                f"most {LIMIT / 1e9:.0f} GB. Take a smaller hidden or network."
            )
        like, draws = next(iter(first.values())), server.generator(self.name)
        widths = [self.embedding or 1 + len(offers) // 4] + [self.hidden] * (self.layers + 1)
        memory = server.memory(self)
        for number, (before, after) in enumerate(pairwise(widths)):
            bound = max(before, 1) ** -0.5  # as torch draws a linear layer
            for kind, shape in (("weight", (after, before)), ("bias", (after,))):
                drawn = (2 * torch.rand(shape, generator=draws) - 1) * bound
                memory[f"phi/{kind}/{number}"] = drawn.to(like)
        memory |= entries("phi/output", {n: t.new_zeros(t.numel(), self.hidden) for n, t in first.items()})
        memory |= entries("phi/start", {n: t.clone() for n, t in first.items()})
        memory |= {f"embedding/{client}": torch.randn(widths[0], generator=draws).to(like) for client in offers}
        return {}

    @torch.no_grad()
    def send(self, server: Server, client: str) -> Message:
        memory = server.memory(self)
        known = part(memory, "embedding")
        embedding = known[client] if client in known else torch.stack(list(known.values())).mean(0)
        return weights(part(memory, "phi"), embedding)

    def begin(self, client: Client) -> None:
        self._load(client)

    def reply(self, client: Client) -> Message:
        start = client.inbox(self)
        return {name: start[name] - parameter.detach() for name, parameter in self._made(client).items()}

    def collect(self, server: Server, client: str, weight: float, reply: Message) -> None:
        memory, embedding = server.memory(self), f"embedding/{client}"
        used = {name: memory[name] for name in memory if name.startswith("phi/") or name == embedding}
        for name, gradient in zip(used, self._gradients(used, embedding, reply), strict=True):
            velocity = gradient + self.decay * memory[name]
            if self.momentum:
                velocity = velocity + self.momentum * memory.get(f"momentum/{name}", 0)
                memory[f"momentum/{name}"] = velocity
            memory[name] = memory[name] - self.rate * velocity  # Eq. 2

    def adapt(self, client: Client) -> None:
        if not client.visiting:
            self._load(client)
            measured(client, client.keeps)

    def unseen(self, client: Client) -> None:
        """Its weights come in the message, and its statistics are its own."""

    def _made(self, client: Client) -> dict[str, nn.Parameter]:
        """Parameters that the hypernetwork makes: no other method keeps them, nor is the head personal."""
        own = set().union(*(method.keeps(client.model) for method in client.methods if method is not self))
        found = {name: p for name, p in client.model.named_parameters() if name not in own}
        return {name: p for name, p in found.items() if not (self.personal_head and name.startswith("head."))}

    @torch.no_grad()
    def _load(self, client: Client) -> None:
        client.model.load_state_dict(client.inbox(self), strict=False)

    @torch.enable_grad()
    def _gradients(self, values: Message, embedding: str, change: Message) -> tuple[Tensor, ...]:
        """The Jacobian's transpose times the change, for each of the values."""
        leaves = {name: value.detach().requires_grad_() for name, value in values.items()}
        made = weights(part(leaves, "phi"), leaves[embedding])
        return torch.autograd.grad(list(made.values()), list(leaves.values()), [change[name] for name in made])


def weights(phi: Message, embedding: Tensor) -> Message:
    """The parameters of a network from an embedding ``[d]``, by name (Eq. 1).

    phi: ``weight/i`` and ``bias/i`` of layers with ReLU between them, ``start/name`` and ``output/name`` of outputs.
    """
    matrices, biases = part(phi, "weight"), part(phi, "bias")
    hidden = F.linear(embedding, matrices["0"], biases["0"])
    for number in range(1, len(matrices)):
        hidden = F.linear(hidden.relu(), matrices[f"{number}"], biases[f"{number}"])
    outputs = part(phi, "output")
    return {name: start + (outputs[name] @ hidden).view_as(start) for name, start in part(phi, "start").items()}
