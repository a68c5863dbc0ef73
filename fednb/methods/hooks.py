"""The hooks: what an algorithm or an augmentation may change. All of them do nothing here.

A method overrides only the hooks it needs. It has no state of its own: what it keeps between rounds lies in
``client.memory(self)`` or ``server.memory(self)``, dictionaries of named tensors that a checkpoint saves; what it needs
only until the end of the round lies in ``client.scratch(self)``.

Server and clients exchange messages only: dictionaries of named tensors. A method sees the entries that it sent itself,
and bytes are counted under its name. A round after which something sent or kept is not finite ends the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.methods.batch import Batch
from fednb.methods.messages import Message, add
from fednb.methods.options import require_allowed
from fednb.methods.task import Meaning, classification_only
from fednb.recipe import Recipe

if TYPE_CHECKING:
    from fednb.loop.client import Client
    from fednb.loop.server import Server


class Method:
    """A federated algorithm or an augmentation; a run has one algorithm and any number of augmentations.

    One with options is a dataclass, whose fields they are: see ``fednb.methods.option`` for their ranges.

    printed: what papers call it; the class's own name unless given.
    tasks: on which tasks the method has a meaning: ``EVERY_TASK``, as where it works by ``client.task`` alone, or
    ``classification_only`` and why; a run on another is refused. A cross entropy CE in equations is the task's loss.
    pools: whether it is no federation: one client trains on the images of all sites, and nothing is exchanged.
    mixes_labels: whether its ``criterion`` sets ``batch.label_shares``.
    hard_labels: why it needs a single label for an image, if it does not read ``batch.label_shares``.
    own_lengths: names of the entries of its offer or reply whose first dimension, the same for all of them in a
    message, differs from client to client. All else has the same names, kinds of numbers and shapes at every client.
    ranges: the least and the most of entries of its offer or reply, by name.
    images_become: what ``inputs`` makes of images in training and at test time alike, such as "normalised"; empty where
    they stay in their units. A method that has numbers for other images is refused after this one.
    sequential: whether what a client is sent in a round depends on the replies of those before it. The clients of a
    round then train one after the other, by name, and ``collect`` is called before the next is sent anything.
    """

    printed: ClassVar[str] = ""
    tasks: ClassVar[Meaning] = classification_only("it does not say what it does with a class for every pixel")
    pools: ClassVar[bool] = False
    mixes_labels: ClassVar[bool] = False
    hard_labels: ClassVar[str] = ""
    own_lengths: ClassVar[tuple[str, ...]] = ()
    ranges: ClassVar[dict[str, tuple[float, float]]] = {}
    images_become: ClassVar[str] = ""
    sequential: ClassVar[bool] = False

    def __post_init__(self):
        """RecipeError for an option out of its range. A class that checks how options go together calls this first."""
        require_allowed(self)

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        """Raises RecipeError for a recipe in which it has no meaning, when the recipe is made; methods: all of it."""

    def build(self, model: nn.Module) -> nn.Module:
        """Changes the network when it is made, or refuses it; also one for other images, before any are loaded."""
        return model

    def keeps(self, model: nn.Module) -> set[str]:
        """Names of parameters and buffers of ``model`` that never leave a client."""
        return set()

    def prepare_offer(self, client: Client) -> Message:
        """Once, before round 1: what a client tells the server about its training images."""
        return {}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        """Once, before round 1: what the server tells every client, from all offers by client name."""
        return {}

    def prepare_receive(self, client: Client, shared: Message) -> None:
        """Once, before round 1: what a client keeps of it; by default all."""
        if shared:
            client.memory(self).update(shared)

    def send(self, server: Server, client: str) -> Message:
        """Adds to the server's message for one client: each round, and for each evaluation. Changes no state."""
        return {}

    def load(self, client: Client, received: Message) -> Message:
        """Entries of the network that a client has in the place of those ``received``: in rounds and for tests."""
        return {}

    def begin(self, client: Client) -> None:
        """The message is received (``client.inbox(self)``), the weights are loaded, no batch is seen yet."""

    def inputs(self, client: Client, batch: Batch) -> None:
        """Changes ``batch.images`` in training and at test time (``batch.training`` tells which)."""

    def before_step(self, client: Client, batch: Batch) -> None:
        """Once per training batch, after all ``inputs`` and before the step; may change ``batch.images`` again."""

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        """The loss before any added term: the task's, or what its one owner puts there; runs ``client.forward``."""
        client.forward(batch)
        return client.task.loss(client.logits(batch), batch.targets)

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        """Adds a term to the loss."""

    def gradients(self, client: Client, batch: Batch) -> None:
        """After the backward pass, before the optimiser: changes the gradients in place."""

    def step(self, client: Client, batch: Batch) -> Tensor:
        """Owns one whole optimisation step; has one owner. Returns the detached loss."""
        loss = client.objective(batch)
        client.descend(loss, batch)
        return loss.detach()

    def after_step(self, client: Client, batch: Batch) -> None:
        """Once per training batch, when the optimiser's step is done: trains what the method trains besides."""

    def reply(self, client: Client) -> Message:
        """Adds to the client's message for the server. May change ``client.model``, which is sent after it."""
        return {}

    def collect(self, server: Server, client: str, weight: float, reply: Message) -> None:
        """One client's reply arrives; by default it is kept for ``aggregate``, large entries are better added up here.

        weight: in the mean; of a sequential method in that of all who were drawn.
        """
        server.replies(self)[client] = reply

    def aggregate(self, server: Server) -> None:
        """All replies of the round are in: updates ``server.memory(self)`` by ``server.weights``."""

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        """New global weights from the clients' weighted mean; has one owner."""
        return mean

    def adapt(self, client: Client) -> None:
        """Before a client is tested: may train ``client.model``, by ``client.train``; what is learned is forgotten."""

    def unseen(self, client: Client) -> None:
        """Before a client that is in no round is tested: gives a value to what the method keeps at others.

        Kept entries are as at the start by then, kept running statistics those of the client's training images. A
        method that keeps entries and does not override this is refused in a recipe with unseen clients.
        """

    def activity(self, client: Client) -> float:
        """After the last round, at each client that took part, with the network as it is tested there: one number that
        shows the method at work, 0 where it does nothing. Recorded as a mean over clients; changes no state."""
        return 0.0

    def predict(self, client: Client, batch: Batch) -> Tensor:
        """Test time: logits ``[n, classes]``, of segmentation for every pixel, the largest wins; has one owner."""
        client.forward(batch)
        return batch.logits


class Averaged(Method):
    """A method whose replies the server averages by the clients' weights, keeps, and sends, entry by entry."""

    def send(self, server: Server, client: str) -> Message:
        return server.memory(self)

    def collect(self, server: Server, client: str, weight: float, reply: Message) -> None:
        add(server.scratch(self), weight, reply)

    def aggregate(self, server: Server) -> None:
        server.memory(self).update(server.scratch(self))


def overrides(method: Method, hook: str) -> bool:
    """Whether a method changes this hook."""
    return getattr(type(method), hook) is not getattr(Method, hook)


def kept(model: nn.Module, methods: list[Method], recipe: Recipe) -> set[str]:
    """Names of the entries of a network that never leave a client: what methods keep, and buffers that are local."""
    buffers = {name for name, _ in model.named_buffers()} if recipe.buffers == "local" else set()
    return buffers.union(*(method.keeps(model) for method in methods)) & model.state_dict().keys()


def owners(methods: list[Method]) -> dict[str, Method]:
    """Which method owns each hook that only one may own: the algorithm, or who overrides it; RecipeError for two."""
    owned = {}
    for hook in ("criterion", "step", "aggregate_model", "predict"):
        wanting = [method for method in methods if overrides(method, hook)]
        if len(wanting) > 1:
            why = f'each of them replaces the "{hook}" of a run, which can have only one owner. Leave one of them out'
            raise RecipeError(f"{' and '.join(method.name for method in wanting)} cannot be combined: {why}.")
        owned[hook] = (wanting or methods)[0]
    return owned
