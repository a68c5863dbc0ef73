"""FRAug: a shared generator and a local network make features of each client's kind, for its head to train on."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.methods import DTYPES, Averaged, Batch, Client, Server, classification_only, option
from fednb.methods.augmentations._fraug_networks import Learner, TwoLayers
from fednb.methods.augmentations._fraug_steps import READINGS, Printed, sizes
from fednb.methods.messages import Message, entries, part
from fednb.randomness import seeded

ROUNDS = 300  # of the released runs, in which ``growth`` is meant


@dataclass(frozen=True)
class FRAug(Averaged):  # Algorithm 1, line 6 of the server
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

    with H the entropy of the softmax. L_syn moves the head h only. After each step of the model g takes a step on Eq. 5
    and m one on Eq. 6, with u encoded anew, as at test time. Sends g both ways each round; the server keeps its mean,
    with the weights of the model's. A client keeps m, the momenta of m and g, the prototypes, and its batch
    normalisation, as FedBN, which it is without generator, RTNet and EMA.

    Args:
        variant: "paper" or "released".
        generator: False takes g away: RTNet makes residuals of noise as wide as the features, which is not printed.
        rtnet: False takes m away: lambda_syn leads from u, or from the prototype, to v (released; text: v itself).
        ema: False takes the prototypes' terms out of Eq. 2 and 6. These three are the columns of Table 5.
        alpha, beta: at least 0. Not in the paper's main part; 1 as released for Digits (alpha) and PACS (beta).
        growth: g in lambda_syn = exp(300 g (r / R - 1)) for the rounds r = 0, ..., R - 1; 0: lambda_syn is 1. The
            paper prints "exponential" only. Released: exp(g (r - 300)) over 300 rounds, here rescaled to R.
        generator_rate, rtnet_rate: learning rates of g and m, by SGD with momentum 0.5. Not printed; the released ones.
            As printed steps are taken with a C-th of them (7 below).
        generator_distance, rtnet_distance: "mmd" as printed, or "mse": of v to the prototypes of its labels, of
            synthetic embeddings to those that they started from.

    Reference: Chen et al., *FRAug: tackling federated learning with non-IID features via representation
    augmentation*, ICCV 2023, Algorithm 1, Eq. 1 to 6, Tables 4 and 5.

    As printed (``variant="paper"``):

    1. z ~ N(0, I), drawn once for all of a step (Algorithm 1, line 6), and one z' for each class.
    2. The server draws g. RTNet takes v alone. Both are "2-layer MLPs" with the released widths (z and m's hidden layer
       half as wide as the features) and layers. Table 4's sizes, 394,240 and 262,912, are theirs without batch
       normalisation and Eq. 3's labels.
    3. Eq. 2 and 6 sum over all classes; the prototype of one never seen is 0. The kernel's scale is the batch's.
    4. Eq. 4 to the letter: a class absent from the batch decays, since only there its epsilon matters. Start: 0.
    5. lambda_c is ramped up "as proposed in" Laine and Aila: 0.3 exp(-5 (1 - t)^2), t from 0 to 1 in the first
       80/300 of the rounds, as there. The maximum is not printed; 0.3 is the released constant.
    6. Batch normalisation is local as in FedBN. Equal weights of clients are the recipe's ``weights="equal"``.
    7. The released rates belong to means, and Eq. 6 sums over C classes: with rtnet_rate / C m's steps are as long as
       the release's. By our choice g is slowed down by C, too; ``fraug/table5_ablation`` has both at C times the rate.

    As released (``variant="released"``):

    1. z is uniform on [0, 1), drawn anew for each use.
    2. g starts as the mean of the clients' own draws. RTNet takes v and the label.
    3. L_cls = (1 - a) L_real + a L_syn with a = min(0.5, lambda_syn) and L_syn the mean of its two terms. Here
       a (L_syn - L_real) is added to what the algorithm minimises, with L_real the cross entropy.
    4. The prototypes' terms and g's loss take as many labels as the batch has, all classes in turn from where the last
       step ended. L_rt is the mean of its two halves (prototypes first), each a distance, and lambda_syn = 1 in it.
    5. lambda_c is 0.3, and a class absent from the batch keeps its prototype.
    6. Batch normalisation is local as in FedBN, but a ResNet's down-sampling ("bn" is not in its name) and g's are not.
    7. Clients weigh by their images: the recipe's ``weights="size"``.
    8. Digits: alpha 1, beta one of 0.1, 1, 10, both rates 0.05 or 0.025, generator_distance "mse"; growth 0 here, as
       its 0.002 does not reach Eq. 3. PACS: alpha 10, beta 1, growth 0.01, both rates 0.05, rtnet_distance "mse".
       OfficeHome: alpha and beta of 0, 0.75, 1.25, 1.5, growth 0.01, rates 0.05 and 0.025 (our defaults).
    9. Not copied: the last round's training is never aggregated; each client is scored at its own best round.
    """

    tasks = classification_only("it makes one feature vector an image, for a class, for a linear head to train on")
    hard_labels = "its generator makes features of one class, and its prototypes are means over one class each"

    variant: str = option("paper", one_of=READINGS)
    generator: bool = True
    rtnet: bool = True
    ema: bool = True
    alpha: float = option(1.0, at_least=0)
    beta: float = option(1.0, at_least=0)
    growth: float = option(0.01, at_least=0)
    generator_rate: float = option(0.05, at_least=0)
    rtnet_rate: float = option(0.025, at_least=0)
    generator_distance: str = option("mmd", one_of=("mmd", "mse"))
    rtnet_distance: str = option("mmd", one_of=("mmd", "mse"))

    def lambda_syn(self, round: int, rounds: int) -> float:
        return math.exp(ROUNDS * self.growth * ((round - 1) / rounds - 1))

    @property
    def reading(self) -> type[Printed]:
        return READINGS[self.variant]

    def network(self, which: str, sizes: tuple[int, int]) -> nn.Module:
        """A new "generator" or "rtnet" for features of this width, and so many classes."""
        features, classes = sizes
        width = self.noise_width(features)
        if which == "generator":
            return TwoLayers(width, features, features, classes, positive=True)
        return TwoLayers(features, width, features, classes if self.reading.rtnet_sees_labels else 0, positive=False)

    @staticmethod
    def noise_width(features: int) -> int:
        return max(1, features // 2)

    @property
    def networks(self) -> list[str]:
        return [name for name in ("generator", "rtnet") if getattr(self, name)]

    def keeps(self, model: nn.Module) -> set[str]:
        return self.reading.keeps(model)

    def unseen(self, client: Client) -> None:
        """Nothing that is kept has a part in testing."""

    def prepare_offer(self, client: Client) -> Message:
        return self.reading(self, client).offer() if self.generator else {}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        if self.generator:
            server.memory(self).update(self.reading.start(self, server, offers))
        return {}

    def prepare_receive(self, client: Client, shared: Message) -> None:
        if not self.networks:
            return
        memory, recipe, (features, classes) = client.memory(self), client.recipe, sizes(client)
        memory["prototypes"] = torch.zeros(classes, features, dtype=DTYPES[recipe.precision], device=client.device)
        if self.variant == "released":
            memory["turn"] = torch.zeros((), dtype=torch.int64, device=client.device)  # as released, 4
        if self.rtnet:
            drawn = self.drawn("rtnet", (features, classes), recipe, client.device, client.name)
            memory.update(entries("rtnet", drawn))

    def begin(self, client: Client) -> None:
        memory, groups = client.memory(self), self.reading(self, client).groups
        received = {"generator": client.inbox(self), "rtnet": part(memory, "rtnet")}
        for which in self.networks:
            with torch.device("meta"):  # nothing is drawn
                network = self.network(which, sizes(client))
            momenta = part(memory, f"{which} momentum")
            rate = getattr(self, f"{which}_rate") / groups  # as printed, 7
            client.scratch(self)[which] = Learner(network, received[which], momenta, rate)

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.networks:
            batch.aside["fraug"] = {"draws": self.reading(self, client).draws(batch.targets)}

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        if not self.networks:
            return None
        reading, aside = self.reading(self, client), batch.aside["fraug"]
        real = batch.features.detach().to(batch.images.dtype)
        if "prototypes" not in aside:  # a second pass, as FedSAM's, takes those of the first
            aside["prototypes"] = reading.moved_prototypes(real, batch.targets)
        return reading.head_loss(batch, reading.starts(real, aside["prototypes"], aside["draws"]))

    def after_step(self, client: Client, batch: Batch) -> None:
        if not self.networks:
            return
        reading, learners, aside = self.reading(self, client), client.scratch(self), batch.aside["fraug"]
        real = _encoded(client, batch)
        client.memory(self)["prototypes"] = aside["prototypes"]
        for_g, for_m = reading.draws_after_step(batch.targets, aside["draws"])
        if self.generator:
            learners["generator"].descend(reading.generator_loss(real, *for_g))
        if self.rtnet:
            learners["rtnet"].descend(reading.rtnet_loss(reading.starts(real, aside["prototypes"], for_m)))

    def reply(self, client: Client) -> Message:
        memory, scratch = client.memory(self), client.scratch(self)
        for which in self.networks:
            memory.update(entries(f"{which} momentum", scratch[which].momenta))
        if self.rtnet:
            memory.update(entries("rtnet", scratch["rtnet"].values))
        return scratch["generator"].values if self.generator else {}

    def activity(self, client: Client) -> float:
        """The length of what Eq. 3 adds to the features of its first training images, in lengths of these."""
        if not self.networks:
            return 0.0
        self.begin(client)
        indices = torch.arange(min(256, len(client.site.train)))
        batch, reading = client.batch(client.site.train, indices, training=False), self.reading(self, client)
        with client.autocast():
            real = client.model.features(batch.images).to(batch.images.dtype)
        made = reading.synthetic(real, *reading.draw(batch.targets), reading.lambda_syn)
        return float((made - real).norm(dim=1).mean() / real.norm(dim=1).mean())

    def drawn(self, which: str, sizes, recipe, device: torch.device, owner: str) -> Message:
        """The first values of a "generator" or "rtnet" that this owner draws."""
        with seeded(recipe.seed, owner, f"fraug {which}"):
            network = self.network(which, sizes)
        return network.to(device, DTYPES[recipe.precision]).state_dict()


@torch.no_grad()
def _encoded(client: Client, batch: Batch) -> Tensor:
    """The features of a batch as at test time, so that no running statistics count it twice."""
    client.model.eval()
    with client.autocast():
        features = client.model.features(batch.images)
    client.model.train()
    return features.to(batch.images.dtype)
