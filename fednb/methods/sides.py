"""The two sides that a method's doors are called on, all that it may use of client and server; and a step's batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from fednb.federation import Site, Split
from fednb.methods.messages import Message
from fednb.methods.task import Task
from fednb.recipe import Recipe


@dataclass
class Batch:
    """What one step sees.

    images: float ``[n, channels, height, width]``, in [0, 1] until a method's ``inputs`` changes them.
    targets: int64 ``[n]``, of segmentation uint8 ``[n, height, width]`` with 255 where a pixel is ignored.
    training: False at test time.
    features, logits: ``[n, d]`` and ``[n, classes]``, of segmentation ``[n, d, height, width]`` and
        ``[n, classes, height, width]``, set by ``client.forward``.
    label_shares: where images are mixed, the share of each class in the mixed labels, float ``[n, classes, ...]``, set
        together with ``features`` and ``logits``, which are of the mixtures; None where ``targets`` are their labels.
    aside: what a method's ``inputs`` leaves for its other doors.
    """

    images: Tensor
    targets: Tensor
    training: bool
    features: Tensor | None = None
    logits: Tensor | None = None
    label_shares: Tensor | None = None
    aside: dict = field(default_factory=dict)


class AMethod(Protocol):
    """What the sides know of a ``Method``: its name, and the entries of the network that it keeps at a client."""

    @property
    def name(self) -> str: ...

    def keeps(self, model: nn.Module) -> set[str]: ...


class Client(Protocol):
    """A site that takes part in a run. What it knows of others came in messages.

    name, site: of its images. task: what is asked of them, its loss and scores. classes: how many. model: its network,
    loaded anew with each message. methods: all of the run, in their order. keeps: names of the entries of the network
    that never leave it. optimiser: of this round's training, else None. round: from 1 (0 before the first). steps:
    training batches of this round so far. unseen: whether it is in no round. visiting: whether the network at hand is
    another client's, to be tested on this one's images.
    """

    name: str
    site: Site
    task: Task
    classes: int
    model: nn.Module
    methods: Sequence[AMethod]
    keeps: set[str]
    recipe: Recipe
    device: torch.device
    optimiser: torch.optim.Optimizer | None
    round: int
    steps: int
    unseen: bool
    visiting: bool

    def memory(self, method: AMethod) -> Message:
        """What a method keeps at this client between rounds."""

    def scratch(self, method: AMethod) -> dict:
        """What a method needs until the end of this round only."""

    def inbox(self, method: AMethod) -> Message:
        """What the method's server side sent to this client this round."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """The network's parameters that are sent, by name."""

    def generator(self, purpose: str) -> torch.Generator:
        """Draws for one purpose, keyed by seed, round and client; a second call goes on where it was."""

    def draws_twice(self) -> AbstractContextManager:
        """What is drawn inside is drawn again after it: by layers, and from this client's generators."""

    def train(self, epochs: int | None = None) -> float:
        """Local epochs or steps as the recipe has them, or so many epochs; returns the mean loss over the images.

        For ``adapt``: in a round the loop calls it. Raises RunError when loss or weights are not numbers.
        """

    def batch(self, split: Split, indices: Tensor, training: bool) -> Batch:
        """Images as floats, with the flow in training (a mask goes along), after every method's ``inputs``."""

    def test_batches(self, split: Split) -> Iterator[Batch]:
        """The images of a split in order, as at test time, in large batches."""

    def forward(self, batch: Batch) -> None:
        """Sets ``batch.features`` and ``batch.logits``."""

    def logits(self, batch: Batch) -> Tensor:
        """``batch.logits`` in the precision of the weights, for the loss."""

    def autocast(self) -> AbstractContextManager:
        """Inside, layers compute in bf16 where the recipe asks for it."""

    def objective(self, batch: Batch) -> Tensor:
        """The criterion and every method's added terms."""

    def backward(self, loss: Tensor, batch: Batch) -> None:
        """Fresh gradients, after every method's ``gradients``."""

    def descend(self, loss: Tensor, batch: Batch) -> None:
        """One backward pass and one optimiser step."""


class Server(Protocol):
    """Global weights, and what methods keep between rounds. It sees messages, never images.

    model: every entry of the network that is sent; parameters: the names of those that are trained. images:
    training images of each client, by name. weights: of this round's clients in the mean, with sum 1; share: the
    part of all images (or, where the recipe's weights are equal, of all clients) that they have. first: the entries of
    the network that never leave a client, as they are before round 1.
    """

    methods: Sequence[AMethod]
    recipe: Recipe
    model: Message
    parameters: list[str]
    images: dict[str, int]
    round: int
    weights: dict[str, float]
    share: float
    first: Message

    def memory(self, method: AMethod) -> Message:
        """What a method keeps at the server between rounds."""

    def replies(self, method: AMethod) -> dict[str, Message]:
        """This round's replies to a method, by client name."""

    def scratch(self, method: AMethod) -> dict:
        """What a method needs until the end of this round only."""

    def generator(self, purpose: str) -> torch.Generator:
        """Draws for one purpose, keyed by seed and round."""
