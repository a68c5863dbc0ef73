"""One federated run: reads like Algorithm 1 of FedAvg."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import SPLITS, Federation, Outline, Site, Split
from fednb.loop import evaluate
from fednb.loop.client import Client
from fednb.loop.network import build, require_same
from fednb.loop.server import Server
from fednb.methods import Message, byte_counts
from fednb.recipe import Recipe

TESTED = ("validation", "test")
Addressed = tuple[str, Message]


class Rounds:
    """The rounds of a recipe as its server sees them, who needs no image: clients are names that answer messages.

    ``rounds`` counts the finished ones. ``scores`` is what every test image earned when it was last evaluated, float64
    ``[n]`` on the CPU, in the order of the clients; ``spare`` the same of spare images in rounds that score them, else
    None. ``state`` and ``load_state`` carry a run over an interruption, bit for bit on a CPU with as many threads. Who
    carries the messages overrides ``exchange``; ``clients`` has what is known of each, in the order of the sites.
    """

    clients: dict
    images: dict[str, list[int]]  # of each client, by split
    carried: dict = {}  # of a record's origin: what carries the messages; nothing where all are in this process
    saved_every_round = False  # as is needed where clients elsewhere keep no memory of rounds long ago

    def __init__(self, recipe: Recipe, outline: Outline, sites: list[str], device: str | torch.device = "cpu"):
        self.recipe = recipe
        self.model, self.methods = build(recipe, outline, device)
        for name in recipe.unseen:
            if name not in sites:
                raise DataError(f'federation {outline.name} has no site "{name}"; {nearest(name, sites)}')
        if len(recipe.unseen) == len(sites):
            raise RecipeError(f"all sites of {outline.name} are unseen; expected one at least to train on.")
        self.pooling = next((method for method in self.methods if method.pools), None)
        self.taking_part = [min(sites)] if self.pooling else [name for name in sites if name not in recipe.unseen]
        self.server = Server(self.model, self.methods, recipe)
        self.rounds = 0
        self.splits = (*SPLITS, "spare") if "spare" in recipe.evaluation else SPLITS
        self.scores = torch.zeros(0, dtype=torch.float64)
        self.spare: Tensor | None = None
        self.prepared: dict | None = None
        self._tested: dict[str, Message] = {}

    def exchange(self, kind: str, round: int, messages: Iterable[Addressed]) -> Iterator[Addressed]:
        """The one way between server and clients: each message goes to its client, whose reply comes back.

        kind: which of ``Client``'s calls answers. Replies come in the order of the messages; use each before the next
        is asked for. A reply to "work" or "test" may be missing, where ``Server.weigh`` had the others' names before
        the first. Each reply to "work" goes to ``Server.hear`` at once, and only then the next client of a sequential
        method is asked.
        """
        raise NotImplementedError

    def prepare(self) -> dict:
        """What clients and server exchange once before round 1; returns the bytes by name."""
        offers = dict(self.exchange("offer", 0, ((name, {}) for name in self.taking_part)))
        shared = self.server.prepare(offers)
        for _ in self.exchange("learn", 0, ((name, shared) for name in self.clients)):
            pass
        up = self._total([byte_counts(offer) for offer in offers.values()])
        self.prepared = {"up": up, "down": self._total([byte_counts(shared)] * len(offers))}
        return self.prepared

    def advance(self) -> dict:
        """One round: send, train, reply, aggregate, evaluate.

        Returns a dictionary for the record: ``loss`` by client (those that took part), ``validation`` and ``test`` (the
        sum of the images' scores, one number per client, in the order of the sites: of a classification the images
        classified correctly), ``up`` and ``down`` (bytes by name over all clients), and ``cross_site`` in the last
        round where it is asked for.
        """
        return self.train_round() | self.evaluate()

    def train_round(self) -> dict:
        """All of a round but the evaluation."""
        if self.prepared is None:
            self.prepare()
        number = self.rounds + 1
        losses, up, down, cross_site = {}, [], [], {}

        def messages() -> Iterator[Addressed]:
            for name in self.server.sample(number):
                message = self.server.send(name)
                down.append(byte_counts(message))
                yield name, message

        for name, reply in self.exchange("work", number, messages()):
            losses[name] = round(float(reply.pop("loss")), 6)
            local = {entry: reply.pop(entry) for entry in list(reply) if entry.startswith("local/")}
            up.append(byte_counts(reply))
            self.server.receive(name, reply)
            if local:  # a local model, before aggregation, on every site's test images
                asked = ((target, message | local) for target, message in self._to_all())
                seen = self.exchange("visit", number, asked)
                cross_site[name] = [evaluate.total(found["test"]) for _, found in seen]
        self.server.finish()
        self.rounds = number
        extra = {"cross_site": cross_site} if cross_site else {}
        return {"round": number, "loss": losses, "up": self._total(up), "down": self._total(down), **extra}

    def evaluate(self) -> dict[str, list[int | float]]:
        """The new global model at every client, with what it keeps for itself; the last test of who did not answer."""
        scored = self.recipe.scored(self.rounds)
        for name, reply in self.exchange("test", self.rounds, self._to_all()):
            self._tested[name] = {split: reply[split] for split in scored}
        earned = {s: torch.cat([self._tested[name][s] for name in self.clients]).cpu() for s in scored}
        self.scores, self.spare = earned["test"], earned.get("spare")
        parts = {split: earned[split].split(self.images[split]) for split in TESTED}
        return {split: [evaluate.total(part) for part in parts[split]] for split in TESTED}

    def _to_all(self) -> Iterator[Addressed]:
        return ((name, self.server.send(name)) for name in self.clients)

    def _total(self, counts: list[dict[str, int]]) -> dict[str, int]:
        """Bytes by name; none where what goes from server to client and back stays in one place."""
        names = dict.fromkeys(name for count in counts for name in count) if self.pooling is None else ()
        return {name: sum(count.get(name, 0) for count in counts) for name in names}

    def state(self) -> dict:
        """Everything that decides how the run goes on: named tensors and counts."""
        return {
            "rounds": self.rounds,
            "prepared": self.prepared,
            "images": self.server.images,
            "model": self.server.model,
            "server": self.server.memories,
        }

    def load_state(self, state: dict) -> None:
        """Goes on from what ``state`` returned; LookupError or RunError for the state of another run."""
        require_same(state["model"], self.server.model, "this state")
        self.rounds, self.prepared = state["rounds"], state["prepared"]
        self.server.round = self.rounds
        self.server.images, self.server.model, self.server.memories = state["images"], state["model"], state["server"]

    def features(self) -> dict[str, Tensor]:
        """The global model's features of all test images, on their first 50 principal axes: ``features`` float16
        ``[n, min(50, n, d)]``, ``labels`` and ``sites`` ``[n]``, uint8 (int32 where there are more than 256).
        """
        found = self.gathered("represent")
        labels, rows = found["targets"], found["features"].double()
        left, scale, _ = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
        return {
            "features": (left * scale)[:, :50].float().half(),
            "labels": labels.to(evaluate.whole(int(labels.max()) + 1)),
            "sites": found["sites"],
        }

    def activity(self) -> dict[str, float]:
        return {}  # over a network no client is asked for what no round needs

    def gathered(self, kind: str) -> dict[str, Tensor]:
        """The entries of all clients' replies to one of ``Client``'s calls in a row; ``sites``, the number of each."""
        replies = [reply for _, reply in self.exchange(kind, self.rounds, self._to_all())]
        found = {name: torch.cat([reply[name] for reply in replies]) for name in replies[0]}
        numbers = torch.arange(len(replies), dtype=evaluate.whole(len(replies)))
        counts = torch.tensor([len(next(iter(reply.values()))) for reply in replies])
        return found | {"sites": numbers.repeat_interleave(counts)}


class FederatedRun(Rounds):
    """A recipe on a federation: ``notes`` is what a reader of its numbers must know, ``fingerprint`` of the images."""

    def __init__(self, recipe: Recipe, federation: Federation, device: str | torch.device = "cpu"):
        super().__init__(recipe, federation.outline, [site.name for site in federation.sites], device)
        spare = {site.name: None if site.spare is None else len(site.spare) for site in federation.sites}
        refuse_without_spare(recipe, federation.name, spare)
        self.fingerprint = federation.fingerprint
        self.federation = federation.to(device)
        self.images = {split: [len(getattr(site, split)) for site in federation.sites] for split in self.splits}
        sites = _pooled(self.federation.sites) if self.pooling else self.federation.sites
        alike = federation.outline, self.model, self.methods, recipe
        self.clients = {site.name: Client(site, *alike) for site in sites}

    @property
    def notes(self) -> list[str]:
        if self.pooling is None:
            return list(self.federation.notes)
        return [
            f"{self.pooling.name} trains centrally on pooled data, the training images of all sites: its network is "
            f"tested at each, its loss stands under {self.taking_part[0]}, and nothing is exchanged.",
            *self.federation.notes,
        ]

    def exchange(self, kind: str, round: int, messages: Iterable[Addressed]) -> Iterator[Addressed]:
        """One client after the other in this process: they share one network, and a reply holds its very weights."""
        for name, message in messages:
            reply = getattr(self.clients[name], kind)(message, round)
            if kind == "work":
                self.server.hear(name, reply)
            yield name, reply

    def activity(self) -> dict[str, float]:
        """``Method.activity`` by the method's name, to six digits: the mean over the clients that took part."""
        asked = ((name, self.server.send(name)) for name in self.taking_part)
        replies = [reply for _, reply in self.exchange("act", self.rounds, asked)]
        return {name: float(f"{sum(float(each[name]) for each in replies) / len(replies):.6g}") for name in replies[0]}

    def state(self) -> dict:
        return super().state() | {"clients": {name: client.memories for name, client in self.clients.items()}}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        for name, client in self.clients.items():
            client.round, client.memories = self.rounds, state["clients"][name]


def refuse_without_spare(recipe: Recipe, federation: str, spare: dict[str, int | None]) -> None:
    """RecipeError where spare images are to be scored and a site hands none over (None), or there is not one at all."""
    if "spare" in recipe.evaluation and (None in spare.values() or not any(spare.values())):
        lacking = [name for name, count in spare.items() if not count]
        raise RecipeError(
            f'the recipe asks for "spare", the scores of images that no round trains on, and {len(lacking)} of '
            f"{len(spare)} sites of {federation} have none (first {lacking[0]}). Ask the loader for them, as in "
            'federation={"name": "office_caltech10", "spare": True}, where it has that option, or leave it out.'
        )


def _pooled(sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """The same sites, but the first by name has the training images of all, in the order of their names."""
    first, *others = sorted(sites, key=lambda site: site.name)
    parts = [site.train for site in (first, *others)]
    train = Split(torch.cat([part.images for part in parts]), torch.cat([part.targets for part in parts]))
    return tuple(replace(site, train=train) if site is first else site for site in sites)
