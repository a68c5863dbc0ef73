"""Times a federated round against a bare PyTorch loop that does the same work, and shows where the time goes."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fednb import flow, models, randomness
from fednb.client import DTYPES
from fednb.federation import Federation, Site, Split
from fednb.loop import FederatedRun
from fednb.recipe import Recipe

# name -> (sites, training images of a site, height and width, recipe). 10 steps a client; AlexNet: FedRDN's round.
ALEXNET = {"model": {"name": "alexnet", "width": 4096}, "flow": ["flip", "rotation"], "local_epochs": 5}
DIGITS = {"model": "digits_cnn", "flow": ["rotation"]}
WORKLOADS = {
    "alexnet 256, bf16": (4, 62, 256, Recipe(**ALEXNET, momentum=0.9, precision="bf16")),
    "digits_cnn 32, fp32": (4, 320, 32, Recipe(**DIGITS, momentum=0.9)),
}


@dataclass(frozen=True)
class Timing:
    """One workload: seconds of each round, federated and bare, and the federated seconds by part."""

    name: str
    images: int
    federated: list[float]
    bare: list[float]
    parts: dict[str, float]

    @property
    def ratio(self) -> float:
        """Median over the rounds of federated time over bare time, in pairs."""
        return statistics.median(f / b for f, b in zip(self.federated, self.bare, strict=True))

    def text(self) -> str:
        """What ``fednb bench`` prints of it."""
        median = statistics.median(self.federated)
        ratios = sorted(f / b for f, b in zip(self.federated, self.bare, strict=True))
        lines = [
            f"{self.name}: federated / bare {self.ratio:.3f} (median of {len(ratios)} rounds, "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}), {self.images / median:.0f} training images per second"
        ]
        total = sum(self.parts.values())
        lines += [f"    {part:28} {100 * seconds / total:5.1f} %" for part, seconds in self.parts.items()]
        return "\n".join(lines)


def bench(rounds: int = 5, device: str = "cpu", tell: Callable[[str], None] = print) -> list[Timing]:
    """Every workload, federated and bare in turn, after one round of each that is not counted.

    The bare loop runs the same forward and backward passes and optimiser steps on resident images, with the same
    precision and augmentation, on one network that nobody sends or averages. Evaluation is timed apart.
    """
    timings = []
    for name, (sites, images, size, recipe) in WORKLOADS.items():
        timings.append(_time(name, _made(sites, images, size), recipe, rounds, device))
        tell(timings[-1].text())
    return timings


def _time(name: str, federation: Federation, recipe: Recipe, rounds: int, device: str) -> Timing:
    run = FederatedRun(recipe, federation, device)
    bare = _bare_loop(recipe, federation, device)
    _seconds(run.train_round, device), _seconds(bare, device)
    pairs = [(_seconds(run.train_round, device), _seconds(bare, device)) for _ in range(rounds)]
    images = sum(len(site.train) for site in federation.sites) * recipe.local_epochs
    return Timing(name, images, *map(list, zip(*pairs, strict=True)), _parts(run, device))


def _bare_loop(recipe: Recipe, federation: Federation, device: str) -> Callable[[], None]:
    """What anybody would write without a federation: one network over all images, site by site."""
    federation = federation.to(device)
    model = models.build(recipe.model, federation.image_shape, len(federation.classes))
    model.to(device, DTYPES[recipe.precision], memory_format=torch.channels_last)
    options = {"lr": recipe.learning_rate, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
    optimiser = torch.optim.SGD(model.parameters(), fused=True, **options)
    draw = randomness.generator("bench")
    kind = torch.device(device).type

    def epochs(site: Site) -> Iterator[torch.Tensor]:
        for _ in range(recipe.local_epochs):
            yield from torch.randperm(len(site.train), generator=draw).to(device).split(recipe.batch_size)

    def train() -> None:
        for site in federation.sites:
            total = torch.zeros((), device=device)
            for indices in epochs(site):
                images = site.train.images[indices].to(DTYPES[recipe.precision]).div_(255)
                images = flow.augment(images, recipe.flow, draw).contiguous(memory_format=torch.channels_last)
                with torch.autocast(kind, torch.bfloat16, enabled=recipe.precision == "bf16"):
                    scores = model(images)
                loss = F.cross_entropy(scores.float(), site.train.targets[indices])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.detach()
            float(total)

    return train


def _parts(run: FederatedRun, device: str) -> dict[str, float]:
    """Seconds of one round and its evaluation by part; the clocks cost a little, so this round is not counted."""
    seconds: dict[str, float] = defaultdict(float)

    def clock(part: str, function: Callable) -> Callable:
        def timed(*arguments, **settings):
            begun = time.perf_counter()
            result = function(*arguments, **settings)
            _wait(device)
            seconds[part] += time.perf_counter() - begun
            return result

        return timed

    for client in run.clients.values():
        client.receive = clock("load the message", client.receive)
        client.batch = clock("images and augmentation", client.batch)
        client.objective = clock("forward", client.objective)
        client.backward = clock("backward", client.backward)
    run.server.receive = clock("add up the replies", run.server.receive)
    run.server.finish = clock("new global model", run.server.finish)
    whole = _seconds(run.train_round, device)
    seconds["optimiser and the rest"] = whole - sum(seconds.values())
    training = dict(seconds)
    return training | {"evaluation (not in the ratio)": _seconds(run.evaluate, device)}


def _seconds(work: Callable, device: str) -> float:
    begun = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - begun


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def _made(sites: int, images: int, size: int, classes: int = 10) -> Federation:
    draw = randomness.generator("bench images")

    def split(count: int) -> Split:
        pixels = torch.randint(0, 256, (count, 3, size, size), generator=draw, dtype=torch.uint8)
        return Split(pixels, torch.arange(count) % classes)

    made = [Site(f"site {n + 1}", split(images), split(images // 2), split(images // 2)) for n in range(sites)]
    return Federation("made", tuple(made), tuple(map(str, range(classes))))
