"""The server of a run: sends, adds up the replies as they come, and makes new global weights."""

import torch
from torch import nn

from fednb import randomness
from fednb.errors import RunError
from fednb.loop.network import all_finite, require_same
from fednb.methods import Message, Method, add, entries, kept, owners, part
from fednb.recipe import Recipe


class Server:
    """Sees messages, never images. What it holds does not grow with the number of clients: the weighted mean of their
    models is a running sum.

    model: every entry of the network that is sent; parameters: names of those that are trained; first: the entries that
    never leave a client, as they are before round 1. images: training images by client. round: from 1 (0 before the
    first). weights: of this round's clients in the mean, with sum 1; share: the part of all images (or, where the
    recipe's weights are equal, of all clients) that they have. memories: what methods keep between rounds.
    """

    def __init__(self, model: nn.Module, methods: list[Method], recipe: Recipe):
        self.methods = methods
        self.owner = owners(methods)
        self.recipe = recipe
        keeps = kept(model, methods, recipe)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        self.model: Message = {name: value for name, value in state.items() if name not in keeps}
        self.first: Message = {name: value for name, value in state.items() if name in keeps}
        self.parameters = [n for n, _ in model.named_parameters() if n not in keeps]
        self.memories: dict[str, Message] = {}
        self.images: dict[str, int] = {}
        self.round = 0
        self.weights: dict[str, float] = {}
        self.share = 0.0
        self._mean: Message = {}
        self._replies: dict[str, dict[str, Message]] = {}
        self._scratch: dict[str, dict] = {}

    def memory(self, method: Method) -> Message:
        """What a method keeps at the server between rounds."""
        return self.memories.setdefault(method.name, {})

    def remembered(self) -> Message:
        """What all methods keep, with the method's name in front: ``"fedfa/1/gamma_mean"``."""
        return {name: value for key, memory in self.memories.items() for name, value in entries(key, memory).items()}

    def replies(self, method: Method) -> dict[str, Message]:
        """This round's replies to a method, by client name."""
        return self._replies.setdefault(method.name, {})

    def scratch(self, method: Method) -> dict:
        """What a method needs until the end of this round only."""
        return self._scratch.setdefault(method.name, {})

    def generator(self, purpose: str) -> torch.Generator:
        """Draws for one purpose, keyed by seed and round."""
        return randomness.generator(self.recipe.seed, self.round, "server", purpose)

    def prepare(self, offers: dict[str, Message]) -> Message:
        """Before round 1: what every client is told of all offers, taken in the order of their names."""
        offers = dict(sorted(offers.items()))
        self.images = {client: int(offer["images"]) for client, offer in offers.items()}
        shared: Message = {}
        for method in self.methods:
            own = {client: part(offer, method.name) for client, offer in offers.items()}
            shared |= entries(method.name, method.prepare_share(self, own))
        self.require_finite(shared)
        return shared

    def sample(self, round: int) -> list[str]:
        """The clients of this round, by name."""
        self.round = round
        self._mean, self._replies, self._scratch = {}, {}, {}
        names = list(self.images)
        wanted = max(1, int(self.recipe.participation * len(names) + 0.5))
        chosen = torch.randperm(len(names), generator=self.generator("participation"))[:wanted]
        clients = [names[i] for i in sorted(chosen.tolist())]
        self.weigh(clients)
        return clients

    def weigh(self, clients: list[str]) -> None:
        """The weights in the mean of the clients whose replies will come, once more where some of a round's will not:
        n_k / sum of n over the round's clients (FedAvg; FedRDN, Eq. 1), or equal (FedFA, Eq. 1).
        """
        sizes = {c: n if self.recipe.weights == "size" else 1 for c, n in self.images.items()}
        taken = sum(sizes[client] for client in clients)
        self.weights = {client: sizes[client] / taken for client in clients}
        self.share = taken / sum(sizes.values())

    def send(self, client: str) -> Message:
        """The message for one client: global weights and what the methods add."""
        message = entries("model", self.model)
        for method in self.methods:
            message |= entries(method.name, method.send(self, client))
        return message

    @torch.no_grad()
    def hear(self, client: str, reply: Message, sequential: bool = True) -> None:
        """One client's reply has come: sequential methods collect what is theirs, before the next is sent anything."""
        for method in self.methods:
            if method.sequential is sequential:
                method.collect(self, client, self.weights[client], part(reply, method.name))

    @torch.no_grad()
    def receive(self, client: str, reply: Message) -> None:
        """Adds one client's weights to the running mean and lets all other methods collect what is theirs."""
        sent = part(reply, "model")
        require_same(sent, self.model, client)
        add(self._mean, self.weights[client], {n: v if v.is_floating_point() else v.double() for n, v in sent.items()})
        self.hear(client, reply, sequential=False)

    @torch.no_grad()
    def finish(self) -> None:
        """All replies are in: every method updates its state, one of them makes the new weights."""
        mean = {
            name: value if self.model[name].is_floating_point() else value.round().to(self.model[name].dtype)
            for name, value in self._mean.items()
        }
        for method in self.methods:
            method.aggregate(self)
        self.model = self.owner["aggregate_model"].aggregate_model(self, mean)
        self._mean, self._replies, self._scratch = {}, {}, {}
        self.require_finite(entries("model", self.model))

    def require_finite(self, also: Message) -> None:
        """RunError where something is not finite in what methods keep here, or in ``also``."""
        held = also | self.remembered()
        if not all_finite(held.values()):
            first = next(name for name, value in held.items() if not all_finite([value]))
            advice = "Lower the learning rate, or a rate of the method's own, or look at the images"
            raise RunError(f"{first} is not finite at the server after round {self.round} of {self.recipe}. {advice}.")
