"""FRAug: a shared generator and a local network make features of each client's kind, for its head to train on."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.algorithms.fedbn import FedBN
from fednb.augment._fraug_networks import Learner, generator, rtnet
from fednb.augment._mmd import mmd, spread
from fednb.doors import (
    DTYPES,
    Batch,
    Client,
    Message,
    Method,
    Server,
    add,
    alike,
    classification_only,
    entries,
    option,
    part,
)
from fednb.errors import DataError, RecipeError
from fednb.randomness import seeded

VARIANTS = ("paper", "released")
DISTANCES = ("mmd", "mse")
LAMBDA_C = 0.3
RAMP = 80 / 300  # the share of the training that Laine and Aila's ramp takes: 80 of 300 epochs
ROUNDS = 300  # of the released runs, in which ``growth`` is meant


@dataclass(frozen=True)
class FRAug(Method):
    r"""Federated representation augmentation.

    A generator g makes client-agnostic embeddings v = g(z, y) of noise and labels, a network m (RTNet) makes
    residuals of them, and these are added to the features u = f(x) of a batch and to prototypes of the classes:

    .. math::
        L_{cls} = L_{real} + L_{syn}  \tag{1}

        L_{syn} = \mathrm{CE}(h(\hat u), y) + \sum_c \mathrm{CE}(h(\hat u_c), c)  \tag{2}

        \hat u = u + \lambda_{syn}\, m(g(z, y)), \quad
        \hat u_c = \bar u_c + \lambda_{syn}\, m(g(z', c))  \tag{3}

        \bar u_c \leftarrow (1 - \lambda_c)\, \bar u_c
        + \lambda_c \frac{\sum_i 1(y_i = c)\, f(x_i)}{\sum_i 1(y_i = c) + \epsilon}  \tag{4}

        L_{gen} = \mathrm{CE}(h(v), y) - \alpha\, \mathrm{MMD}(v, u)  \tag{5}

        L_{rt} = -H(h(\hat u)) - \sum_c H(h(\hat u_c))
        + \beta \big[\mathrm{MMD}(\hat u, u) + \sum_c \mathrm{MMD}(\hat u_c, \bar u_c)\big]  \tag{6}

    with H the entropy of the softmax. L_syn moves the head h only: features, g and m are fixed in it. After each
    step of the model g takes a step on Eq. 5 and m one on Eq. 6, with u encoded anew, as at test time.

    Sends the generator g both ways each round; the server keeps its weighted mean, with the weights of the model's. A
    client keeps RTNet m, the momenta of m and g, the prototypes, and its batch normalisation. Without generator, RTNet
    and EMA it is FedBN. At a client that is in no round what is kept of batch normalisation is as in FedBN by default.

    Args:
        variant: "paper" or "released".
        generator: False takes g away and sends nothing: RTNet makes residuals of noise as wide as the features.
            What it takes then is not printed.
        rtnet: False takes m away: v itself is in the place of u + m(v), and lambda_syn leads from u, or from the
            prototype, to v. The text says that v is used; how is the released code's.
        ema: False takes the prototypes' terms out of Eq. 2 and 6. These three are the columns of Table 5.
        alpha, beta: at least 0. Not in the paper's main part (we do not have its appendices); 1 as released for Digits
            (alpha) and PACS (beta).
        growth: g in lambda_syn = exp(300 g (r / R - 1)) for the rounds r = 0, ..., R - 1; 0: lambda_syn is 1. The
            paper prints "exponential" only. Released: exp(g (r - 300)) over 300 rounds, here rescaled to R.
        latent: width of z, and hidden width of m; 0: half the width of the features, as released (256 of 512).
        generator_rate, rtnet_rate: learning rates of g and m, trained by SGD with momentum 0.5. Not printed; the
            released ones. As printed steps are taken with a C-th of them: m's, as Eq. 6 sums over C classes what the
            release averages; g's by our choice (7 below). C times the rate is the reading in which it is not divided.
        generator_distance, rtnet_distance: "mmd" as printed, or "mse", the mean squared difference: of v to the
            prototypes of its labels, of synthetic embeddings to those that they started from.

    Raises RecipeError for a network whose head is no linear layer, DataError where a client of the rounds has batches
    of one image.

    Reference: Chen et al., *FRAug: tackling federated learning with non-IID features via representation
    augmentation*, ICCV 2023, Algorithm 1, Eq. 1 to 6, Tables 4 and 5.

    As printed (``variant="paper"``):

    1. z ~ N(0, I), drawn once for all of a step (Algorithm 1, line 6), and one z' for each class.
    2. The server draws g. RTNet takes v alone. Both are "2-layer MLPs" with the released widths and layers. Table
       4's sizes, 394,240 and 262,912, are theirs without batch normalisation and without labels, which Eq. 3 has;
       without normalisation g made one far point of all v in our trials, which Eq. 5 rewards.
    3. Eq. 2 and 6 sum over all classes; one that the client has never seen has the prototype 0. With a kernel scaled
       by the distance of an embedding and its prototype alone their MMD would be constant: it takes the scale of the
       batch's in Eq. 6.
    4. Eq. 4 to the letter: a class absent from the batch decays, since only there its epsilon matters. So a
       prototype comes to rest at the class mean times the share of batches that have the class. Start: 0.
    5. lambda_c is ramped up "as proposed in" Laine and Aila: 0.3 exp(-5 (1 - t)^2), t from 0 to 1 in the first
       80/300 of the rounds, as there. The maximum is not printed; 0.3 is the released constant.
    6. Batch normalisation is local as in FedBN. Equal weights of clients are the recipe's ``weights="equal"``.
    7. No rate is printed, and the released ones belong to means. Eq. 6 sums over C classes what the release averages,
       and with rtnet_rate / C m's steps are as long as the release's (but for the 1/2 of its two halves). Eq. 2 sums
       likewise, so that the head follows what g makes C times as closely; Eq. 5 is a mean in both, and g is slowed
       down by C for the head's sake. Eq. 2 itself moves the head by the model's own rate, which is L_real's too. What
       one seed of Office-Caltech-10 does with rates undivided is in the notebook ``fraug/table5_ablation``.

    As released (``variant="released"``):

    1. z is uniform on [0, 1), drawn anew for each use.
    2. g starts as the mean of the clients' own draws. RTNet takes v and the label.
    3. L_cls = (1 - a) L_real + a L_syn with a = min(0.5, lambda_syn) and L_syn the mean of its two terms. Here
       a (L_syn - L_real) is added to what the algorithm minimises, with L_real the cross entropy.
    4. The prototypes' terms and g's loss take as many labels as the batch has, all classes in turn from where the
       last step ended. L_rt is the mean of its two halves, with one distance each, and lambda_syn = 1 in it. The
       prototypes pass m first: its running statistics weigh the last pass most.
    5. lambda_c is 0.3, and a class absent from the batch keeps its prototype.
    6. Batch normalisation is local as in FedBN, weights and all, though the mode's name says that running statistics
       alone are; a ResNet's down-sampling is averaged, as "bn" is not in its layers' names. g's are averaged (on
       OfficeHome they are local, which is not offered).
    7. Clients weigh by their images: the recipe's ``weights="size"``.
    8. Digits: alpha 1, beta one of 0.1, 1, 10, both rates 0.05 or 0.025, generator_distance "mse"; its growth
       0.002 is 0 here, as it does not reach Eq. 3 and a is 0.5 throughout. PACS: alpha 10, beta 1, growth 0.01,
       both rates 0.05, rtnet_distance "mse". OfficeHome: alpha and beta of 0, 0.75, 1.25, 1.5, growth 0.01, rates
       0.05 and 0.025 (our defaults), latent of 64 to 512.
    9. Not copied: the cyclic labels of 4 start where round, step and the nominal batch size say, ours go on from the
       batches seen; the batches of an epoch go on in the next round, ours begin a new epoch; the last round's
       training is never aggregated; each client is scored on its own validation images at its own best round (see
       ``fednb.report.selection`` for our rules).
    """

    tasks = classification_only("it makes one feature vector an image, for a class, for a linear head to train on")
    hard_labels = "its generator makes features of one class, and its prototypes are means over one class each"

    variant: str = option("paper", one_of=VARIANTS)
    generator: bool = True
    rtnet: bool = True
    ema: bool = True
    alpha: float = option(1.0, at_least=0)
    beta: float = option(1.0, at_least=0)
    growth: float = option(0.01, at_least=0)
    latent: int = option(0, at_least=0)
    generator_rate: float = option(0.05, at_least=0)
    rtnet_rate: float = option(0.025, at_least=0)
    generator_distance: str = option("mmd", one_of=DISTANCES)
    rtnet_distance: str = option("mmd", one_of=DISTANCES)

    def __post_init__(self):
        super().__post_init__()
        if self.ema and not self._networks:
            raise RecipeError(
                f"{self.name} has ema=True with neither generator nor rtnet: nothing is added to the prototypes. "
                "Leave one of them on, or set ema=False as well, which is FedBN."
            )

    def lambda_syn(self, round: int, rounds: int) -> float:
        """The weight of the residuals in a round, from 1, of so many."""
        return math.exp(ROUNDS * self.growth * ((round - 1) / rounds - 1))

    @property
    def _printed(self) -> bool:
        return self.variant == "paper"

    @property
    def _networks(self) -> list[str]:
        return [name for name in ("generator", "rtnet") if getattr(self, name)]

    def build(self, model: nn.Module) -> nn.Module:
        if self._networks and not isinstance(head := getattr(model, "head", None), nn.Linear):
            raise RecipeError(
                f"{self.name} was asked for a generator on {type(model).__name__}, whose head is {type(head).__name__}"
                ": it makes one feature vector an image for a linear head, which a segmentation task does not have. "
                f"Leave {self.name} out, or take a classification network."
            )
        return model

    def keeps(self, model: nn.Module) -> set[str]:
        return {name for name in FedBN().keeps(model) if self._printed or "downsample" not in name}

    def unseen(self, client: Client) -> None:
        """Its statistics are its own by then; nothing else that is kept has a part in testing."""

    def prepare_offer(self, client: Client) -> Message:
        if self._networks and not client.unseen:
            _refuse_batches_of_one(client)
        if not self.generator:
            return {}
        if self._printed:
            return {"sizes": torch.tensor(_sizes(client), device=client.device)}
        return self._drawn("generator", _sizes(client), client.recipe, client.device, client.name)

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        if self.generator and self._printed:
            sizes = alike(offers, "sizes")
            omega_0 = self._drawn("generator", sizes.tolist(), server.recipe, sizes.device, "server")
            server.memory(self).update(omega_0)
        elif self.generator:
            images = {name: server.images[name] if server.recipe.weights == "size" else 1 for name in offers}
            for name, offer in offers.items():
                add(server.memory(self), images[name] / sum(images.values()), offer)
        return {}

    def prepare_receive(self, client: Client, shared: Message) -> None:
        if not self._networks:
            return
        memory, sizes = client.memory(self), _sizes(client)
        memory["prototypes"] = torch.zeros(sizes[::-1], dtype=_dtype(client.recipe), device=client.device)
        if not self._printed:
            memory["turn"] = torch.zeros((), dtype=torch.int64, device=client.device)
        if self.rtnet:
            memory.update(entries("rtnet", self._drawn("rtnet", sizes, client.recipe, client.device, client.name)))

    def send(self, server: Server, client: str) -> Message:
        return server.memory(self)

    def begin(self, client: Client) -> None:
        memory = client.memory(self)
        received = {"generator": client.inbox(self), "rtnet": part(memory, "rtnet")}
        for which in self._networks:
            with torch.device("meta"):  # nothing is drawn
                network = self._network(which, _sizes(client))
            momenta, rate = part(memory, f"{which} momentum"), getattr(self, f"{which}_rate")
            if self._printed:
                rate /= client.classes  # Eq. 6 sums over the classes, the rate is for their mean; g: see 7
            client.scratch(self)[which] = Learner(network, received[which], momenta, rate)

    def before_step(self, client: Client, batch: Batch) -> None:
        if self._networks:
            batch.aside["fraug"] = {"draws": self._draws(client, batch)}

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        if not self._networks:
            return None
        aside, real = batch.aside["fraug"], batch.features.detach().to(batch.images.dtype)
        if "prototypes" not in aside:  # a second pass, as FedSAM's, takes those of the first
            aside["prototypes"] = self._moved_prototypes(client, real, batch.targets)
        weight, terms = self.lambda_syn(client.round, client.recipe.rounds), []
        for base, noise, labels, groups in self._starts(client, real, aside["prototypes"], aside["draws"]):
            with torch.no_grad():
                made = self._synthetic(client, base, noise, labels, weight)
            terms.append(groups * client.task.loss(_logits(client, made), labels))
        synthetic = self._together(terms)  # Eq. 2
        if self._printed:
            return synthetic  # Eq. 1
        return min(0.5, weight) * (synthetic - client.task.loss(client.logits(batch), batch.targets))

    def after_step(self, client: Client, batch: Batch) -> None:
        if not self._networks:
            return
        memory, aside, real = client.memory(self), batch.aside["fraug"], _encoded(client, batch)
        memory["prototypes"] = aside["prototypes"]
        if self.generator:
            labels = self._class_labels(client, batch)
            draw = aside["draws"][0] if self._printed else self._draw(client, labels)
            client.scratch(self)["generator"].descend(self._generator_loss(client, real, *draw))
        if self.rtnet:
            draws = aside["draws"] if self._printed else self._draws(client, batch)
            starts = self._starts(client, real, memory["prototypes"], draws)
            client.scratch(self)["rtnet"].descend(self._rtnet_loss(client, starts))
        if not self._printed:
            memory["turn"] = (memory["turn"] + len(batch.targets)) % client.classes

    def reply(self, client: Client) -> Message:
        memory, scratch = client.memory(self), client.scratch(self)
        for which in self._networks:
            memory.update(entries(f"{which} momentum", scratch[which].momenta))
        if self.rtnet:
            memory.update(entries("rtnet", scratch["rtnet"].values))
        return scratch["generator"].values if self.generator else {}

    def collect(self, server: Server, client: str, weight: float, reply: Message) -> None:
        add(server.scratch(self), weight, reply)

    def aggregate(self, server: Server) -> None:
        server.memory(self).update(server.scratch(self))  # Algorithm 1, line 6 of the server

    def _lambda_c(self, client: Client) -> float:
        if not self._printed:
            return LAMBDA_C
        ramp = min(1.0, (client.round - 1) / (RAMP * client.recipe.rounds))
        return LAMBDA_C * math.exp(-5 * (1 - ramp) ** 2)

    def _moved_prototypes(self, client: Client, real: Tensor, targets: Tensor) -> Tensor:
        """Eq. 4; with its epsilon in the limit 0, the mean of an absent class is 0."""
        before = client.memory(self)["prototypes"]
        member = F.one_hot(targets, client.classes).to(real.dtype)
        images = member.sum(0)[:, None]
        rate = self._lambda_c(client) * (1 if self._printed else images.clamp(max=1))
        return before + rate * (member.T @ real / images.clamp(min=1) - before)

    def _starts(self, client: Client, real: Tensor, prototypes: Tensor, draws: list) -> list[tuple]:
        """What Eq. 3 starts from: base, noise, labels, and in how many groups Eq. 2 and 6 sum over them."""
        starts = [(real, *draws[0], 1)]
        if self.ema:
            noise, labels = draws[1]
            starts.append((prototypes[labels], noise, labels, client.classes if self._printed else 1))
        return starts

    def _synthetic(self, client: Client, base: Tensor, noise: Tensor, labels: Tensor, weight: float) -> Tensor:
        learners = client.scratch(self)
        with torch.no_grad():
            agnostic = learners["generator"].network(noise, labels) if self.generator else noise
        if not self.rtnet:
            return torch.lerp(base, agnostic, weight)
        return base + weight * learners["rtnet"].network(agnostic, labels)  # Eq. 3

    def _generator_loss(self, client: Client, real: Tensor, noise: Tensor, labels: Tensor) -> Tensor:
        agnostic = client.scratch(self)["generator"].network.train()(noise, labels)
        goal = real if self.generator_distance == "mmd" else client.memory(self)["prototypes"][labels]
        distance = _distance(self.generator_distance, agnostic, goal, spread(agnostic, goal))
        return client.task.loss(_logits(client, agnostic), labels) - self.alpha * distance  # Eq. 5

    def _rtnet_loss(self, client: Client, starts: list) -> Tensor:
        client.scratch(self)["rtnet"].network.train()
        weight = self.lambda_syn(client.round, client.recipe.rounds) if self._printed else 1.0
        scale, terms = None, []
        for base, noise, labels, groups in starts if self._printed else reversed(starts):
            made = self._synthetic(client, base, noise, labels, weight)
            if scale is None or not self._printed:
                scale = spread(made, base)
            pair = made.unflatten(0, (groups, -1)), base.unflatten(0, (groups, -1))
            distance = _distance(self.rtnet_distance, *pair, scale).sum()
            terms.append(self.beta * distance - groups * _entropy(_logits(client, made)))
        return self._together(terms)  # Eq. 6

    def _together(self, terms: list[Tensor]) -> Tensor:
        return sum(terms) if self._printed else sum(terms) / len(terms)

    def _class_labels(self, client: Client, batch: Batch) -> Tensor:
        if self._printed:
            return torch.arange(client.classes, device=client.device)
        return (client.memory(self)["turn"] + torch.arange(len(batch.targets), device=client.device)) % client.classes

    def _draws(self, client: Client, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Noise and labels for the real features and, with ``ema``, for the prototypes."""
        labels = [batch.targets] + [self._class_labels(client, batch)] * self.ema
        return [self._draw(client, each) for each in labels]

    def _draw(self, client: Client, labels: Tensor) -> tuple[Tensor, Tensor]:
        features, _ = _sizes(client)
        draw = torch.randn if self._printed else torch.rand
        width = self._latent(features) if self.generator else features
        noise = draw(len(labels), width, generator=client.generator("fraug"))
        return noise.to(client.device, _dtype(client.recipe), non_blocking=True), labels

    def _latent(self, features: int) -> int:
        return self.latent or max(1, features // 2)

    def _network(self, which: str, sizes) -> nn.Module:
        features, classes = sizes
        if which == "generator":
            return generator(self._latent(features), features, classes)
        return rtnet(self._latent(features), features, 0 if self._printed else classes)

    def _drawn(self, which: str, sizes, recipe, device: torch.device, owner: str) -> Message:
        with seeded(recipe.seed, owner, f"fraug {which}"):
            network = self._network(which, sizes)
        return network.to(device, _dtype(recipe)).state_dict()


def _sizes(client: Client) -> tuple[int, int]:
    """Width of the features, and classes."""
    return client.model.head.in_features, client.classes


def _dtype(recipe) -> torch.dtype:
    return DTYPES[recipe.precision]


def _logits(client: Client, features: Tensor) -> Tensor:
    with client.autocast():
        logits = client.model.head(features)
    return logits.to(features.dtype)


@torch.no_grad()
def _encoded(client: Client, batch: Batch) -> Tensor:
    """The features of a batch as at test time, so that no running statistics count it twice."""
    client.model.eval()
    with client.autocast():
        features = client.model.features(batch.images)
    client.model.train()
    return features.to(batch.images.dtype)


def _entropy(logits: Tensor) -> Tensor:
    logs = logits.log_softmax(1)
    return -(logs.exp() * logs).sum(1).mean()


def _distance(kind: str, one: Tensor, other: Tensor, scale: Tensor) -> Tensor:
    return mmd(one, other, scale) if kind == "mmd" else (one - other).square().mean((-2, -1))


def _refuse_batches_of_one(client: Client) -> None:
    if min(len(client.site.train), client.recipe.batch_size) == 1:
        raise DataError(
            f"client {client.name} would train fraug's networks on batches of one image ({len(client.site.train)} "
            f"training images, batch size {client.recipe.batch_size}); their batch normalisation needs two. "
            "Add images, leave the site out, or take a larger batch."
        )
