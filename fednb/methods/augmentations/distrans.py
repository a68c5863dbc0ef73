"""DisTrans: each client learns an offset for its images, and the network sees them with it and against it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.methods import Batch, Client, Method, Recipe, Server, classification_only, frozen, option, overrides
from fednb.methods.augmentations._offset_network import Aggregator, Hypernetwork
from fednb.methods.augmentations._two_channels import InputChannels, along_offset, blend
from fednb.methods.augmentations.normalise import IMAGENET_MEAN, IMAGENET_STD
from fednb.methods.messages import Message, alike, entries, part
from fednb.randomness import generator, seeded

NETWORK_RATE = 1e-2  # released code; none is printed


@dataclass(frozen=True)
class DisTrans(Method):
    r"""Distributional transformation: a learned offset per client, in training and at test time.

    A client's offset t is one image, the same for all of its images x. The network gets two blends of them,

    .. math::
        x_t = ((1 - \alpha) x + \alpha t,\; (1 + \alpha) x - \alpha t)  \tag{1}

    runs one backbone on each and one linear head over both features. On each batch the client takes a step of plain
    SGD on the loss for t, blends again, and takes the model's step (Algorithm 1, lines 8 to 10). The server may
    aggregate the offsets; a client uses what it got back, in the next round and at test time. A client sends its number
    of training images of each class, once, and its offset each round, and receives one as large. The server keeps every
    client's offset and class fractions e, and the aggregation network.

    Args:
        variant: "paper" or "released".
        alpha: in [0, 1]; 0.3 in Sec. 5. With 0 there is no offset, and nothing is learned or sent for it.
        channels: 2, or 1 for the first blend alone (Table 3). With 1, alpha 0 and projection 0 it is plain training.
        projection: width of a dense layer between backbone and head (Sec. 4.1), or 0. The released AlexNet has 256.
        aggregation: of offsets: "none", "mean" (one for all), "network", or "default": by the network where the
            heterogeneity DH (``distributional_heterogeneity``) is below ``threshold``, else none.
        threshold: 0.5 in Sec. 4.4.
        offset_rate: eta_p, at least 0; 1e-3 in Sec. 5.
        at_unseen: of clients that are in no round (not printed): "mean" of all offsets, or "none", as with alpha 0.

    Raises RecipeError where an augmentation that touches batches comes after it.

    Reference: DisTrans, Sec. 4, Algorithm 1.

    As printed (``variant="paper"``):

    1. Two passes a batch. Running statistics of batch normalisation see the model's pass only and are each channel's
       own (ours; shared ones would fit neither).
    2. The server draws each first offset; we take U[0, 1) from the released code.
    3. The network takes (e, t) and is trained by SGD on the sum over clients of ||t_i - t'_i||^2, with t'_i what it
       last put out for client i: one step a round. Layers, start and rate are ours (``_offset_network.Aggregator``).
    4. Models are averaged with equal weights (the recipe's ``weights="equal"``).

    As released (``variant="released"``):

    1. One pass: both gradients at the same point, the model's step first, then the offset's.
    2. First offsets are drawn by the clients (ours: by the server) and normalised by ImageNet's statistics (0.5 and 0.5
       where images have not 3 channels, and for CelebA). So are the images; ours where ``normalise`` comes before.
    3. The network sees e alone and makes images of 3 x 64 x 64 (``_offset_network.Hypernetwork``): a step for each
       client in turn on the mean squared error, at rate 1e-2; what it puts out replaces the offset, from the start.
    4. Aggregated for i.i.d. clients (alpha 0.3, batches of 64), not otherwise (alpha 0.2, 32). Ours: by DH.
    5. Each client draws a head of its own before round 1. Not copied: all start from the server's.
    6. torchvision's AlexNet and ResNet-18 with ImageNet weights; both channels share running statistics.
    """

    tasks = classification_only("its heterogeneity goes by images of each class, its network by features of an image")
    ranges = {"counts": (0, 1e9)}

    variant: str = option("paper", one_of=("paper", "released"))
    alpha: float = option(0.3, within="[0, 1]")
    channels: int = option(2, allowed=(1, 2).__contains__, expected="1 or 2")
    projection: int = option(0, at_least=0)
    aggregation: str = option("default", one_of=("default", "mean", "network", "none"))
    threshold: float = option(0.5, within="[0, 1]")
    offset_rate: float = option(1e-3, at_least=0)
    at_unseen: str = option("mean", one_of=("mean", "none"))

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        later = methods[methods.index(self) + 1 :]
        changing = [m.name for m in later if overrides(m, "inputs") or overrides(m, "before_step")]
        if changing:
            why = f"the pass for its offset must see a batch as all others leave it. Name {self.name} last"
            raise RecipeError(f"{self.name} stands before {', '.join(changing)} among the augmentations; {why}.")

    def build(self, model: nn.Module) -> nn.Module:
        if self.channels == 1 and self.projection == 0 and self.alpha == 0:
            return model
        return InputChannels(model, self.channels, self.projection, own_statistics=self.variant == "paper")

    def prepare_offer(self, client: Client) -> Message:
        if self.alpha == 0:
            return {}
        train = client.site.train
        counts = torch.bincount(train.targets, minlength=client.classes)
        counts = counts.to(next(client.model.parameters()).dtype)
        return {"counts": counts, "shape": torch.tensor(train.images.shape[1:])}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        if self.alpha == 0:
            return {}
        memory, clients = server.memory(self), list(offers)
        counts = torch.stack([offer["counts"] for offer in offers.values()])
        fractions = counts / counts.sum(0).clamp(min=1)  # e: which part of all images of a class a client has
        memory["heterogeneity"] = torch.tensor(distributional_heterogeneity(counts), dtype=torch.float64)
        memory.update(_by_client("fractions", clients, fractions))
        draws = [server.generator(f"{self.name} {client}") for client in clients]
        shape = alike(offers, "shape").tolist()
        offsets = torch.stack([first_offset(shape, each, self.variant) for each in draws]).to(counts)  # line 1
        if self._way(server) == "network":
            network, seen = self._network(server, fractions.shape[1], offsets), _by_client("seen", clients, offsets)
            if self.variant == "released":
                with torch.no_grad():
                    offsets = network(fractions, offsets)
            memory.update(entries("network", network.state_dict()) | seen)
        memory.update(_by_client("offset", clients, offsets))
        return {}

    def send(self, server: Server, client: str) -> Message:
        if self.alpha == 0:
            return {}
        offsets = part(server.memory(self), "offset")
        if client in offsets:
            return {"offset": offsets[client]}
        return {"offset": torch.stack(list(offsets.values())).mean(0)} if self.at_unseen == "mean" else {}

    def begin(self, client: Client) -> None:
        client.scratch(self).update(client.inbox(self))

    def inputs(self, client: Client, batch: Batch) -> None:
        alpha = 0 if client.unseen and self.at_unseen == "none" else self.alpha
        offset = (client.inbox(self) | client.scratch(self))["offset"] if alpha else 0
        batch.images = blend(batch.images, offset, alpha, self.channels)

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.alpha == 0:
            return
        batch.images = batch.images.detach().requires_grad_()
        if self.variant == "released":
            return
        with frozen(client.model):
            loss = client.objective(batch)
        (gradient,) = torch.autograd.grad(loss, batch.images)
        moved = self._move_offset(client, gradient)  # line 8
        batch.images = batch.images.detach() + blend(0, moved, self.alpha, self.channels)  # line 9, Eq. 1 being linear

    def gradients(self, client: Client, batch: Batch) -> None:
        if self.alpha and self.variant == "released":
            batch.aside[self.name], batch.images.grad = batch.images.grad, None

    def after_step(self, client: Client, batch: Batch) -> None:
        if self.alpha and self.variant == "released":
            self._move_offset(client, batch.aside[self.name])

    def reply(self, client: Client) -> Message:
        return {"offset": client.scratch(self)["offset"]} if self.alpha else {}

    def aggregate(self, server: Server) -> None:
        if self.alpha == 0:
            return
        clients = list(server.replies(self))
        offsets = torch.stack([reply["offset"] for reply in server.replies(self).values()])
        way = self._way(server)
        if way == "mean":
            offsets = offsets.mean(0).expand_as(offsets)
        elif way == "network":
            offsets = self._through_network(server, clients, offsets)
        server.memory(self).update(_by_client("offset", clients, offsets))

    def activity(self, client: Client) -> float:
        """How far its offset is from the one that it was drawn as, in standard deviations of the latter."""
        if self.alpha == 0:
            return 0.0
        now = client.inbox(self)["offset"]
        draws = generator(client.recipe.seed, 0, "server", f"{self.name} {client.name}")  # line 1
        first = first_offset(now.shape, draws, self.variant).to(now)
        return float((now - first).square().mean().sqrt() / first.std())

    def _move_offset(self, client: Client, gradient: Tensor) -> Tensor:
        """A step of the offset, by the loss's gradient for the blended images; returns the change."""
        change = -self.offset_rate * along_offset(gradient, self.alpha, self.channels)
        client.scratch(self)["offset"] = client.scratch(self)["offset"] + change
        return change

    def _way(self, server: Server) -> str:
        if self.aggregation != "default":
            return self.aggregation
        return "network" if server.memory(self)["heterogeneity"] < self.threshold else "none"

    def _network(self, server: Server, classes: int, offsets: Tensor) -> nn.Module:
        kind = Aggregator if self.variant == "paper" else Hypernetwork
        with seeded(server.recipe.seed, self.name, "network"):
            return kind(classes, tuple(offsets.shape[1:])).to(offsets)

    def _through_network(self, server: Server, clients: list[str], offsets: Tensor) -> Tensor:
        memory = server.memory(self)
        fractions, seen = (torch.stack([memory[f"{kind}/{c}"] for c in clients]) for kind in ("fractions", "seen"))
        network = self._network(server, fractions.shape[1], offsets)
        network.load_state_dict(part(memory, "network"))
        with torch.enable_grad():
            network.learn(fractions, seen, offsets, NETWORK_RATE)
        aggregated = network(fractions, offsets)
        memory.update(entries("network", network.state_dict()) | _by_client("seen", clients, offsets))
        return aggregated


def first_offset(shape: Sequence[int], draws: torch.Generator, variant: str = "paper") -> Tensor:
    """A client's offset as it is drawn, uniform in [0, 1); as released it is normalised."""
    drawn = torch.rand(shape, generator=draws)
    if variant == "paper":
        return drawn
    mean, std = (IMAGENET_MEAN, IMAGENET_STD) if shape[0] == 3 else ([0.5], [0.5])
    return (drawn - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def _by_client(kind: str, clients, rows: Tensor) -> Message:
    return {f"{kind}/{client}": row.clone() for client, row in zip(clients, rows, strict=True)}


def distributional_heterogeneity(counts) -> float:
    r"""DH of a federation: 0 where every client has every class, 1 where no class is at two clients.

    .. math:: DH = 1 - \frac{\sum_j c_j}{N C}  \tag{3}

    with N classes, C clients, and c_j the number of clients that have class j, or 0 where fewer than two have it
    (Eq. 4). counts: images of each class, ``[clients, classes]``.
    """
    held = torch.as_tensor(counts) > 0
    clients = held.sum(0)
    shared = int(clients[clients > 1].sum())  # Eq. 4
    return (held.numel() - shared) / held.numel()  # Eq. 3
