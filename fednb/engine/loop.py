"""One federated run: reads like Algorithm 1 of FedAvg."""

import torch
from torch import nn

from fednb import models
from fednb.catalogue import make
from fednb.doors import DTYPES, TASKS, Task, byte_counts
from fednb.engine import evaluate
from fednb.engine.allocator import keep_freed_memory
from fednb.engine.client import Client
from fednb.engine.server import Server
from fednb.errors import RecipeError
from fednb.federation import Federation
from fednb.randomness import seeded


class FederatedRun:
    """A recipe on a federation: prepares on first use, then goes one round at a time.

    ``rounds`` counts the finished ones. ``state`` and ``load_state`` carry a run over an interruption; on a CPU
    with the same number of threads the continued run gives exactly the numbers of an undisturbed one.
    """

    def __init__(self, recipe, federation: Federation, device: str | torch.device = "cpu"):
        keep_freed_memory()
        torch.backends.cudnn.allow_tf32 = False  # fp32 means fp32
        self.recipe = recipe
        self.federation = federation.to(device)
        methods = [make("algorithms", recipe.algorithm)]
        methods += [make("augment", augmentation) for augmentation in recipe.augmentations]
        task = TASKS[federation.task]
        for method in methods:
            method.tasks.require(method.name, federation.task, federation.name)
        model = models.build(recipe.model, federation.image_shape, len(federation.classes), recipe.seed)
        _refuse_other_task(task, model, recipe, federation)
        for method in methods:
            with seeded(recipe.seed, method.name, "build"):
                model = method.build(model)
        model.to(device, DTYPES[recipe.precision], memory_format=torch.channels_last)
        self.model = model
        classes = len(federation.classes)
        self.clients = {s.name: Client(s, task, classes, model, methods, recipe) for s in self.federation.sites}
        self.server = Server(model, methods, next(iter(self.clients.values())).keeps, recipe)
        self.rounds = 0
        self.prepared: dict | None = None

    def prepare(self) -> dict:
        """What clients and server exchange once before round 1; returns the bytes by name."""
        offers = {name: client.offer() for name, client in self.clients.items()}
        shared = self.server.prepare(offers)
        for client in self.clients.values():
            client.learn(shared)
        up = _total([byte_counts(offer) for offer in offers.values()])
        down = _total([byte_counts(shared)] * len(self.clients))
        self.prepared = {"up": up, "down": down}
        return self.prepared

    def advance(self) -> dict:
        """One round: send, train, reply, aggregate, evaluate.

        Returns a dictionary for the record: ``loss`` by client (those that took part), ``validation`` and
        ``test`` (the sum of the images' scores, one number per client, in the order of the sites: of a classification
        the images classified correctly), ``up`` and
        ``down`` (bytes by name over all clients), and ``cross_site`` in the last round where it is asked for.
        """
        trained = self.train_round()
        return trained | self.evaluate()

    def train_round(self) -> dict:
        """All of a round but the evaluation."""
        if self.prepared is None:
            self.prepare()
        number = self.rounds + 1
        losses, up, down, cross_site = {}, [], [], {}
        for name in self.server.sample(number):
            client, message = self.clients[name], self.server.send(name)
            client.receive(message, number)
            losses[name] = round(client.train(), 6)
            if number == self.recipe.rounds and "cross_site" in self.recipe.evaluation:
                cross_site[name] = self._on_every_site(client)
            reply = client.reply()
            self.server.receive(name, reply)
            up.append(byte_counts(reply))
            down.append(byte_counts(message))
        self.server.finish()
        self.rounds = number
        extra = {"cross_site": cross_site} if cross_site else {}
        return {"round": number, "loss": losses, "up": _total(up), "down": _total(down), **extra}

    def evaluate(self) -> dict[str, list[int | float]]:
        """The new global model at every client, with what the client keeps for itself."""
        totals: dict[str, list[int | float]] = {"validation": [], "test": []}
        for name, client in self.clients.items():
            client.receive(self.server.send(name), self.rounds)
            for split, found in totals.items():
                found.append(evaluate.total(evaluate.scores(client, getattr(client.site, split))))
        return totals

    def _on_every_site(self, source: Client) -> list[int | float]:
        """A local model, before aggregation, on every site's test images; inputs are prepared by the target, which
        knows this round's message.
        """
        local = {name: value.clone() for name, value in self.model.state_dict().items()}
        found = []
        for target in self.clients.values():
            if target is not source:
                target.receive(self.server.send(target.name), self.server.round)
            self.model.load_state_dict(local)
            found.append(evaluate.total(evaluate.scores(target, target.site.test)))
        self.model.load_state_dict(local)
        self.model.train()
        return found

    def features(self) -> dict[str, torch.Tensor]:
        """The global model's features of all test images, on their first 50 principal axes.

        ``features`` float16 ``[n, 50]``, ``labels`` and ``sites`` uint8 ``[n]``: small enough to keep.
        """
        rows, labels, sites = [], [], []
        for number, (name, client) in enumerate(self.clients.items()):
            client.receive(self.server.send(name), self.rounds)
            rows.append(evaluate.features(client, client.site.test))
            labels.append(client.site.test.targets.cpu())
            sites.append(torch.full_like(labels[-1], number))
        components = evaluate.principal_components(torch.cat(rows)).half()
        return {"features": components, "labels": torch.cat(labels).byte(), "sites": torch.cat(sites).byte()}

    def state(self) -> dict:
        """Everything that decides how the run goes on: named tensors and counts."""
        return {
            "rounds": self.rounds,
            "prepared": self.prepared,
            "images": self.server.images,
            "model": self.server.model,
            "server": self.server.memories,
            "clients": {name: client.memories for name, client in self.clients.items()},
        }

    def load_state(self, state: dict) -> None:
        """Goes on from what ``state`` returned."""
        if set(state["clients"]) != set(self.clients):
            raise RecipeError(
                f"this state has clients {', '.join(state['clients'])}; the run has {', '.join(self.clients)}."
            )
        self.rounds, self.prepared = state["rounds"], state["prepared"]
        self.server.images, self.server.model, self.server.memories = state["images"], state["model"], state["server"]
        for name, client in self.clients.items():
            client.memories = state["clients"][name]


def _refuse_other_task(task: Task, model: nn.Module, recipe, federation: Federation) -> None:
    """RecipeError where the network, or what the recipe measures, is not for the federation's task."""
    if not isinstance(model.head, task.head):
        name, head = recipe.full["model"]["name"], type(model.head)
        predicts = next((f"predicts {other.asks}" for other in TASKS.values() if other.head is head), "is for no task")
        raise RecipeError(
            f"{name} {predicts} (its head is {head.__name__}), and {federation.name} has {task.asks}. "
            f"Take a network for {task.name}."
        )
    if "features" in recipe.evaluation and task.name != "classification":
        raise RecipeError(
            f'the recipe asks for the evaluation "features", one vector for every image, and {federation.name} has '
            f"{task.asks}. Leave it out."
        )


def _total(counts: list[dict[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for count in counts for name in count)
    return {name: sum(count.get(name, 0) for count in counts) for name in names}
