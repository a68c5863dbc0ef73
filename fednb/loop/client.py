"""A client: a site that takes part in a run."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, islice
from typing import Any

import torch
from torch import Tensor, nn

from fednb import randomness
from fednb.errors import DataError, RunError
from fednb.federation import Outline, Site, Split
from fednb.loop import evaluate
from fednb.loop.network import all_finite, require_same, state_of
from fednb.methods import DTYPES, TASKS, Batch, Message, Method, entries, flow, kept, overrides, owners, part
from fednb.methods.running_statistics import batch_norms, measured
from fednb.recipe import Recipe

TEST_BATCH = 128
OPTIMISERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


class Client:
    """Trains and evaluates on one site's images. What it knows of others came in messages.

    The network is a scratch pad that all clients of a process share: every message is loaded into it before use. What
    the client keeps between rounds is in ``memories``: dictionaries of named tensors, by the method's name. Its part in
    a run are calls that take a message and the round and give a message: ``offer`` and ``learn`` once before round 1,
    then ``work`` and ``test``; ``visit``, ``represent``, ``show``, ``compare`` where a recipe asks, and
    ``act`` in the end. DataError where a batch of one image would meet batch normalisation.

    task: what is asked of its images, loss and scores; classes: how many. model: its network, with ``features``,
    ``head`` and ``stages``. methods: all of the run, in order; owner: who of them owns each hook that one alone may
    own. keeps: names of the entries of the network that never leave it. optimiser: of this round's training, else None.
    round: from 1 (0 before the first). steps: training batches of this round so far. unseen: whether it is in no round.
    visiting: whether the network is another client's, to be tested on its images.
    """

    def __init__(self, site: Site, outline: Outline, model: nn.Module, methods: list[Method], recipe: Recipe):
        self.site = site
        self.task = TASKS[outline.task]
        self.classes = len(outline.classes)
        self.name = site.name
        self.model: Any = model
        self.methods = methods
        self.owner = owners(methods)
        self.recipe = recipe
        self.unseen = self.name in recipe.unseen
        self.device = next(model.parameters()).device
        self.visiting = False
        self.round = 0
        self.steps = 0
        self.optimiser: torch.optim.Optimizer | None = None
        self._forget()
        self.memories: dict[str, Message] = {}
        self._occasion: tuple[str, ...] = ()
        self.keeps = kept(model, methods, recipe)
        if self.keeps:
            self.memories["kept"] = {n: t.clone() for n, t in state_of(model).items() if n in self.keeps}
        size, batch = len(site.train), recipe.batch_size
        if min(size, batch) == 1 and batch_norms(model):
            raise DataError(
                f"client {self.name} has batches of one image ({size} training images, batch size {batch}); batch "
                "normalisation needs two. Add images, leave the site out, or take a larger batch."
            )

    def memory(self, method: Method) -> Message:
        """What a method keeps at this client between rounds."""
        return self.memories.setdefault(method.name, {})

    def scratch(self, method: Method) -> dict:
        """What a method needs until the end of this round only."""
        return self._scratch.setdefault(method.name, {})

    def inbox(self, method: Method) -> Message:
        """What the method's server side sent to this client this round."""
        return part(self._inbox, method.name)

    def parameters(self) -> dict[str, nn.Parameter]:
        """The network's parameters that are sent, by name."""
        return {name: p for name, p in self.model.named_parameters() if name not in self.keeps}

    def generator(self, purpose: str) -> torch.Generator:
        """Draws for one purpose, keyed by seed, round and client; a second call goes on where it was."""
        if purpose not in self._generators:
            self._generators[purpose] = randomness.generator(*self._key, purpose)
        return self._generators[purpose]

    def draw_seed(self, purpose: str) -> int:
        """A seed to leave in ``batch.aside`` before a step: what it draws is alike each time its loss is computed."""
        return int(torch.randint(2**62, (), generator=self.generator(purpose)))

    @property
    def _key(self) -> tuple:
        return self.recipe.seed, self.round, self.name, *self._occasion

    @contextmanager
    def draws_twice(self):
        """What layers and this client's generators draw inside is drawn again after it."""
        states = {purpose: generator.get_state() for purpose, generator in self._generators.items()}
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            yield
        for purpose, state in states.items():
            self._generators[purpose].set_state(state)

    def offer(self, message: Message, round: int) -> Message:
        """Before round 1: the number of training images, and what the methods tell of them."""
        offered = {"images": torch.tensor(len(self.site.train))}
        for method in self.methods:
            offered |= entries(method.name, method.prepare_offer(self))
        return offered

    def learn(self, message: Message, round: int) -> Message:
        """Before round 1: what the server shares of all offers. An unseen client measures its own and sends nothing."""
        if self.unseen:
            self.offer({}, round)
        for method in self.methods:
            method.prepare_receive(self, part(message, method.name))
        return {}

    def work(self, message: Message, round: int) -> Message:
        """A whole round: receives, trains, replies; for the record ``loss``, the mean over the images seen, and in the
        last round of a recipe with ``evaluation=["cross_site"]`` the whole network under ``local``.
        """
        self.receive(message, round)
        told = {"loss": torch.tensor(self.train(), dtype=torch.float64)}
        if round == self.recipe.rounds and "cross_site" in self.recipe.evaluation:
            told |= entries("local", {name: value.clone() for name, value in state_of(self.model).items()})
        return self.reply() | told

    def test(self, message: Message, round: int) -> Message:
        """The score of each image of what the recipe has ``scored``, float64 ``[n]``, with the network that came."""
        with self.at_test(message, round):
            return {split: evaluate.scores(self, getattr(self.site, split)) for split in self.recipe.scored(round)}

    def visit(self, message: Message, round: int) -> Message:
        """The scores of the test images with another client's whole network, ``local``; inputs are prepared here."""
        self.receive(message, round)
        self._copy(part(message, "local"))
        self.visiting = True
        with self.adapted():
            seen = evaluate.scores(self, self.site.test)
        self._forget()
        return {"test": seen}

    def act(self, message: Message, round: int) -> Message:
        """What shows each method at work (``Method.activity``), float64 by its name, where it has such a number."""
        with self.at_test(message, round), torch.no_grad():
            self.model.eval()
            found = {m.name: m.activity(self) for m in self.methods if overrides(m, "activity")}
        return {name: torch.tensor(float(value), dtype=torch.float64) for name, value in found.items()}

    def represent(self, message: Message, round: int) -> Message:
        """The features of the test images, float32 ``[n, d]``, and their targets, with the network that came."""
        with self.at_test(message, round):
            return {"features": evaluate.features(self, self.site.test), "targets": self.site.test.targets.cpu()}

    def show(self, message: Message, round: int) -> Message:
        """The first test image as it is on disk, its target and what is predicted for it, each ``[1, ...]`` uint8."""
        with self.at_test(message, round):
            return evaluate.example(self, self.site.test)

    def compare(self, message: Message, round: int) -> Message:
        """How the predicted masks of the test images lie on the true ones, as ``evaluate.masks``."""
        with self.at_test(message, round):
            return evaluate.masks(self, self.site.test)

    def receive(self, message: Message, round: int) -> None:
        """Loads the server's weights, and this client's own where they never leave it or a method has others."""
        self._forget()
        self.round = round
        self.visiting = False
        self._inbox = message
        sent = part(message, "model")
        require_same(sent, {n: t for n, t in state_of(self.model).items() if n not in self.keeps}, "the server")
        own = {name: value for method in self.methods for name, value in method.load(self, sent).items()}
        self._copy(sent | self.memories.get("kept", {}) | own)

    def _forget(self) -> None:
        self._inbox, self._scratch, self._generators, self.optimiser = {}, {}, {}, None

    def _copy(self, values: Message) -> None:
        here = state_of(self.model)
        torch._foreach_copy_([here[name] for name in values], list(values.values()))

    @contextmanager
    def at_test(self, message: Message, round: int):
        """Inside, the network that came is as it is tested at this client, who may be unseen."""
        self.receive(message, round)
        if self.unseen:
            measured(self, self.keeps)
            for method in self.methods:
                method.unseen(self)
        with self.adapted():
            yield
        self._forget()

    @contextmanager
    def adapted(self):
        """Inside, the network is as ``adapt`` leaves it, which shares no draws with a round; then all is forgotten."""
        if not any(overrides(method, "adapt") for method in self.methods):
            yield
            return
        memories = {name: dict(memory) for name, memory in self.memories.items()}
        self._generators, self._occasion = {}, ("adapt",)
        try:
            for method in self.methods:
                method.adapt(self)
            yield
        finally:
            self.memories, self._scratch, self.optimiser = memories, {}, None
            self._generators, self._occasion = {}, ()

    def train(self, epochs: int | None = None) -> float:
        """Local epochs or steps of the recipe, or so many epochs; the mean loss over the images. RunError where loss or
        weights are not finite. A method calls it in ``adapt`` alone: in a round the loop does.
        """
        self.model.train()
        self.optimiser, self.steps = self._make_optimiser(), 0
        total, seen = torch.zeros((), device=self.device, dtype=torch.float64), 0
        with randomness.seeded(*self._key, "layers", device=self.device):
            for method in self.methods:
                method.begin(self)
            for indices in self._batches(epochs):
                batch = self.batch(self.site.train, indices, training=True)
                for method in self.methods:
                    method.before_step(self, batch)
                total += self.owner["step"].step(self, batch) * len(indices)
                for method in self.methods:
                    method.after_step(self, batch)
                seen += len(indices)
                self.steps += 1
        total, finite = torch.stack([total, all_finite(state_of(self.model).values())]).tolist()  # a GPU is waited for
        loss = total / max(seen, 1)
        if not (finite and math.isfinite(loss)):
            raise RunError(
                f"the loss of client {self.name} is {loss}, or its weights are not finite after its last step, in "
                f"round {self.round} of {self.recipe}. Lower the learning rate, or look for empty images."
            )
        if self.recipe.optimiser_state == "kept":
            self._keep_optimiser()
        return loss

    def reply(self) -> Message:
        """After training: the shared network's own weights, not copies, that are not kept, and what the methods add."""
        added: Message = {}
        for method in self.methods:
            added |= entries(method.name, method.reply(self))
        self._forget()
        here = state_of(self.model)
        if self.keeps:
            self.memories["kept"] = {name: here[name].clone() for name in self.keeps}
        return entries("model", {n: t for n, t in here.items() if n not in self.keeps}) | added

    def batch(self, split: Split, indices: Tensor, training: bool) -> Batch:
        """Images as floats, with the flow in training (a mask goes along), after every method's ``inputs``."""
        split = split.select(indices)
        images, targets = split.images.to(DTYPES[self.recipe.precision]).div_(255), split.targets
        if training:
            operations = partial(flow.apply, flow=self.recipe.flow, generator=self.generator("flow"))
            images, targets = self.task.flow(images, targets, operations)
        batch = Batch(images.contiguous(memory_format=torch.channels_last), targets, training)
        for method in self.methods:
            method.inputs(self, batch)
        return batch

    def test_batches(self, split: Split) -> Iterator[Batch]:
        """The images of a split in order, as at test time, in large batches."""
        for indices in torch.arange(len(split)).split(TEST_BATCH) if len(split) else ():
            yield self.batch(split, indices, training=False)

    def forward(self, batch: Batch) -> None:
        """Sets ``batch.features`` and ``batch.logits``."""
        with self.autocast():
            batch.features = self.model.features(batch.images)
            batch.logits = self.model.head(batch.features)

    def logits(self, batch: Batch) -> Tensor:
        """``batch.logits`` in the precision of the weights, for the loss."""
        return batch.logits.to(DTYPES[self.recipe.precision])

    def autocast(self):
        """Inside, layers compute in bf16 where the recipe asks for it."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16")

    def objective(self, batch: Batch) -> Tensor:
        """The criterion and every method's added terms."""
        loss = self.owner["criterion"].criterion(self, batch)
        for method in self.methods:
            term = method.loss(self, batch)
            loss = loss if term is None else loss + term
        return loss

    def descend(self, loss: Tensor, batch: Batch) -> None:
        """One backward pass and one optimiser step."""
        self.backward(loss, batch)
        self.optimiser.step()

    def backward(self, loss: Tensor, batch: Batch) -> None:
        """Fresh gradients, after every method's ``gradients``."""
        self.optimiser.zero_grad()
        loss.backward()
        for method in self.methods:
            method.gradients(self, batch)

    def _batches(self, epochs: int | None) -> Iterator[Tensor]:
        """The batches of all epochs, or the recipe's ``local_steps`` of as many epochs as they need."""
        if epochs is None and self.recipe.local_steps:
            return islice(chain.from_iterable(self._epoch() for _ in count()), self.recipe.local_steps)
        return chain.from_iterable(self._epoch() for _ in range(self.recipe.local_epochs if epochs is None else epochs))

    def _epoch(self) -> list[Tensor]:
        size = self.recipe.batch_size
        order = torch.randperm(len(self.site.train), generator=self.generator("order"))
        batches = list(order.to(self.device, non_blocking=True).split(size))
        if len(batches) > 1 and len(batches[-1]) < size and self.recipe.last_batch == "drop":
            batches.pop()
        if len(batches) > 1 and len(batches[-1]) == 1 < size:
            batches[-2:] = [torch.cat(batches[-2:])]
        return batches

    def _make_optimiser(self) -> torch.optim.Optimizer:
        recipe = self.recipe
        options = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay, "fused": True}
        if recipe.optimiser == "sgd":
            options["momentum"] = recipe.momentum
        optimiser = OPTIMISERS[recipe.optimiser](self.model.parameters(), **options)
        parameters = dict(self.model.named_parameters())
        for key, value in self.memories.get("optimiser", {}).items():
            name, _, entry = key.rpartition("/")
            layout = parameters[name] if value.ndim else value  # fused steps read another memory layout wrongly
            optimiser.state[parameters[name]][entry] = torch.empty_like(layout, dtype=value.dtype).copy_(value)
        return optimiser

    def _keep_optimiser(self) -> None:
        self.memories["optimiser"] = {
            f"{name}/{entry}": value
            for name, parameter in self.model.named_parameters()
            for entry, value in self.optimiser.state[parameter].items()
            if value is not None
        }
