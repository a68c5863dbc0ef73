"""A step of FRAug's variants. Numbers in comments are those of its "As printed" and "As released"."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.methods import DTYPES, Batch, Client, Message, Server, add, alike
from fednb.methods.algorithms.fedbn import FedBN

LAMBDA_C = 0.3
RAMP = 80 / 300  # the share of the training that Laine and Aila's ramp takes: 80 of 300 epochs
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of MMD's kernel

Draw = tuple[Tensor, Tensor]  # noise, and the labels that it is for


class Printed:
    """The losses of the head, g ("generator") and m ("rtnet") with a method's options, at a client."""

    noise = staticmethod(torch.randn)  # 1
    together = staticmethod(sum)  # the terms of Eq. 2 and 6
    rtnet_sees_labels = False  # 2
    one_scale = True  # of Eq. 6, 3

    def __init__(self, method, client: Client):
        self.method, self.client = method, client
        self.memory, self.learners = client.memory(method), client.scratch(method)
        self.lambda_syn = method.lambda_syn(client.round, client.recipe.rounds)

    @staticmethod
    def keeps(model: nn.Module) -> set[str]:
        return FedBN().keeps(model)  # 6

    @staticmethod
    def start(method, server: Server, offers: dict[str, Message]) -> Message:
        found = alike(offers, "sizes")
        return method.drawn("generator", found.tolist(), server.recipe, found.device, "server")  # 2

    def offer(self) -> Message:
        return {"sizes": torch.tensor(sizes(self.client), device=self.client.device)}

    def lambda_c(self, images: Tensor) -> float | Tensor:
        ramp = min(1.0, (self.client.round - 1) / (RAMP * self.client.recipe.rounds))
        return LAMBDA_C * math.exp(-5 * (1 - ramp) ** 2)  # 5

    @property
    def groups(self) -> int:
        """In how many groups Eq. 2 and 6 sum over the prototypes."""
        return self.client.classes

    def class_labels(self, count: int) -> Tensor:
        return torch.arange(self.client.classes, device=self.client.device)

    def draws(self, targets: Tensor) -> list[Draw]:
        labels = [targets] + [self.class_labels(len(targets))] * self.method.ema
        return [self.draw(each) for each in labels]

    def draw(self, labels: Tensor) -> Draw:
        features, _ = sizes(self.client)
        width = self.method.noise_width(features) if self.method.generator else features
        noise = self.noise(len(labels), width, generator=self.client.generator("fraug"))
        return noise.to(self.client.device, DTYPES[self.client.recipe.precision], non_blocking=True), labels

    def draws_after_step(self, targets: Tensor, draws: list[Draw]) -> tuple[Draw, list[Draw]]:
        return draws[0], draws

    def moved_prototypes(self, real: Tensor, targets: Tensor) -> Tensor:
        """Eq. 4; with its epsilon in the limit 0, the mean of an absent class is 0."""
        before = self.memory["prototypes"]
        member = F.one_hot(targets, self.client.classes).to(real.dtype)
        images = member.sum(0)[:, None]
        return before + self.lambda_c(images) * (member.T @ real / images.clamp(min=1) - before)

    def starts(self, real: Tensor, prototypes: Tensor, draws: list[Draw]) -> list[tuple]:
        """Of Eq. 3: base, noise, labels, and in how many groups Eq. 2 and 6 sum over them."""
        starts = [(real, *draws[0], 1)]
        if self.method.ema:
            noise, labels = draws[1]
            starts.append((prototypes[labels], noise, labels, self.groups))
        return starts

    def synthetic(self, base: Tensor, noise: Tensor, labels: Tensor, weight: float) -> Tensor:
        with torch.no_grad():
            agnostic = self.learners["generator"].network(noise, labels) if self.method.generator else noise
        if not self.method.rtnet:
            return torch.lerp(base, agnostic, weight)
        return base + weight * self.learners["rtnet"].network(agnostic, labels)  # Eq. 3

    def head_loss(self, batch: Batch, starts: list[tuple]) -> Tensor:
        """What is added to the loss of the real features (Eq. 1)."""
        terms = []
        for base, noise, labels, groups in starts:
            with torch.no_grad():
                made = self.synthetic(base, noise, labels, self.lambda_syn)
            terms.append(groups * self._cross_entropy(made, labels))
        return self.together(terms)  # Eq. 2

    def generator_loss(self, real: Tensor, noise: Tensor, labels: Tensor) -> Tensor:
        agnostic = self.learners["generator"].network.train()(noise, labels)
        goal = real if self.method.generator_distance == "mmd" else self.memory["prototypes"][labels]
        distance = _distance(self.method.generator_distance, agnostic, goal, spread(agnostic, goal))
        return self._cross_entropy(agnostic, labels) - self.method.alpha * distance  # Eq. 5

    def rtnet_loss(self, starts: list[tuple], weight: float | None = None) -> Tensor:
        self.learners["rtnet"].network.train()
        weight, scale, terms = self.lambda_syn if weight is None else weight, None, []
        for base, noise, labels, groups in starts:
            made = self.synthetic(base, noise, labels, weight)
            if scale is None or not self.one_scale:
                scale = spread(made, base)
            pair = made.unflatten(0, (groups, -1)), base.unflatten(0, (groups, -1))
            distance = _distance(self.method.rtnet_distance, *pair, scale).sum()
            logs = self._logits(made).log_softmax(1)
            entropy = -(logs.exp() * logs).sum(1).mean()
            terms.append(self.method.beta * distance - groups * entropy)
        return self.together(terms)  # Eq. 6

    def _cross_entropy(self, features: Tensor, labels: Tensor) -> Tensor:
        return self.client.task.loss(self._logits(features), labels)

    def _logits(self, features: Tensor) -> Tensor:
        with self.client.autocast():
            logits = self.client.model.head(features)
        return logits.to(features.dtype)


class Released(Printed):
    """What the released code does otherwise."""

    noise = staticmethod(torch.rand)  # 1
    rtnet_sees_labels = True  # 2
    one_scale = False
    groups = 1

    @staticmethod
    def keeps(model: nn.Module) -> set[str]:
        return {name for name in FedBN().keeps(model) if "downsample" not in name}  # 6

    def offer(self) -> Message:
        client = self.client
        return self.method.drawn("generator", sizes(client), client.recipe, client.device, client.name)

    @staticmethod
    def start(method, server: Server, offers: dict[str, Message]) -> Message:
        mean: Message = {}
        images = {name: server.images[name] if server.recipe.weights == "size" else 1 for name in offers}
        for name, offer in offers.items():
            add(mean, images[name] / sum(images.values()), offer)  # 2
        return mean

    @staticmethod
    def together(terms: list[Tensor]) -> Tensor:
        return sum(terms) / len(terms)  # 3, 4

    def lambda_c(self, images: Tensor) -> Tensor:
        return LAMBDA_C * images.clamp(max=1)  # 5

    def class_labels(self, count: int) -> Tensor:
        return (self.memory["turn"] + torch.arange(count, device=self.client.device)) % self.client.classes  # 4

    def draws_after_step(self, targets: Tensor, draws: list[Draw]) -> tuple[Draw | None, list[Draw]]:
        count = len(targets)
        for_g = self.draw(self.class_labels(count)) if self.method.generator else None
        for_m = self.draws(targets) if self.method.rtnet else []
        self.memory["turn"] = (self.memory["turn"] + count) % self.client.classes
        return for_g, for_m

    def head_loss(self, batch: Batch, starts: list[tuple]) -> Tensor:
        real = self.client.task.loss(self.client.logits(batch), batch.targets)
        return min(0.5, self.lambda_syn) * (super().head_loss(batch, starts) - real)  # 3

    def rtnet_loss(self, starts: list[tuple], weight: float = 1.0) -> Tensor:
        return super().rtnet_loss(starts[::-1], weight)  # 4


READINGS = {"paper": Printed, "released": Released}  # by FRAug's option ``variant``


def sizes(client: Client) -> tuple[int, int]:
    return client.model.head.in_features, client.classes


def _distance(kind: str, one: Tensor, other: Tensor, scale: Tensor) -> Tensor:
    return mmd(one, other, scale) if kind == "mmd" else (one - other).square().mean((-2, -1))


def mmd(one: Tensor, other: Tensor, scale: Tensor) -> Tensor:
    r"""The squared discrepancy of two samples, ``[..., n, d]`` and ``[..., m, d]``, with the released code's kernel.

    .. math::
        \overline{k(x, x')} + \overline{k(y, y')} - 2\, \overline{k(x, y)}, \quad
        k(a, b) = \sum_i \exp(-\lVert a - b \rVert^2 / (w_i s)), \quad w_i = 1/4, 1/2, 1, 2, 4

    with means over all pairs, a row with itself included, and the scale s, ``spread``.
    """
    n, rows = one.shape[-2], _centred(one, other)
    products = rows @ rows.mT
    squares = products.diagonal(dim1=-2, dim2=-1)
    distances = (squares[..., :, None] + squares[..., None, :] - 2 * products).clamp(min=0)
    kernel = sum(torch.exp(-distances / (width * scale)) for width in WIDTHS)
    within = kernel[..., :n, :n].mean((-2, -1)) + kernel[..., n:, n:].mean((-2, -1))
    return within - 2 * kernel[..., :n, n:].mean((-2, -1))


@torch.no_grad()
def spread(one: Tensor, other: Tensor) -> Tensor:
    """The mean squared distance of two different rows of ``[n, d]`` and ``[m, d]`` together; without a gradient."""
    rows = _centred(one, other)
    return (2 * rows.square().sum() / (len(rows) - 1)).clamp(min=1e-12)


def _centred(one: Tensor, other: Tensor) -> Tensor:
    rows = torch.cat([one, other], -2)  # around their common mean distances stay, rounding errors shrink
    return rows - rows.detach().mean(-2, keepdim=True)
