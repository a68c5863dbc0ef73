"""`fednb bench`, ``python tools/bench.py``: a federated round against a bare PyTorch loop of the same work, the four
methods against FedAvg."""

import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import scale
import torch
import torch.nn.functional as F

from fednb import cli, models, randomness, registry
from fednb.commands.run import require_device
from fednb.federation import Federation, Site, made
from fednb.files import write_text
from fednb.loop.loop import FederatedRun
from fednb.methods import DTYPES, flow
from fednb.recipe import Recipe
from fednb.records.provenance import maker
from fednb.report import speed

# name -> (sites, training images of a site, height and width, recipe). 10 steps a client, of many clients one; AlexNet:
# FedRDN's round.
ALEXNET = {"model": {"name": "alexnet", "width": 4096}, "flow": ["flip", "rotation"], "local_epochs": 5}
NARROW = {"model": {"name": "alexnet", "width": 1024}, "flow": ["flip", "rotation"]}
DIGITS = {"model": "digits_cnn", "flow": ["rotation"]}
WORKLOADS = {
    "alexnet 256, bf16": (4, 62, 256, Recipe(**ALEXNET, momentum=0.9, precision="bf16")),
    "alexnet 128, width 1024, bf16": (4, 64, 128, Recipe(**NARROW, local_epochs=5, precision="bf16")),
    "digits_cnn 32, fp32": (4, 320, 32, Recipe(**DIGITS, momentum=0.9)),
    "500 clients of 20 images, digits_cnn 32": (500, scale.IMAGES, 32, scale.RECIPE),
}
# The four methods on AlexNet at 128 x 128, 2 steps a client. DisTrans' released offset network makes 64 x 64 only.
COSTS = (4, 64, (3, 128, 128), Recipe(**NARROW, precision="bf16"))
# Every method with its defaults; FAug trains its generator before round 1, which is not timed.
EVERY = (4, 64, (3, 32, 32), scale.RECIPE)
BEFORE = {"faug": {"steps": 5}}
# group -> parts of the names of torch's operators, in the order in which they are tried
OPERATORS = {
    "convolutions": ("convolution",),
    "matrix products": ("mm",),
    "copies and casts": ("copy_",),
    "normalisation": ("batch_norm",),
    "pooling": ("pool",),
    "optimiser": ("_fused_", "Optimizer"),
}
RELEASED = {"variant": "released"}
METHODS = (
    *("fedrdn", {"name": "fedrdn", **RELEASED}),
    *("fedfa", {"name": "fedfa", **RELEASED}),
    *("fraug", {"name": "fraug", **RELEASED}),
    *("distrans", {"name": "distrans", **RELEASED, "aggregation": "none"}),
)


@dataclass(frozen=True)
class Cost:
    """A method's seconds of each round, FedAvg's of the rounds that were timed in turn with them, a round's bytes.

    sent: of all clients, both ways.
    """

    name: str
    method: list[float]
    fedavg: list[float]
    sent: int

    @property
    def ratios(self) -> list[float]:
        """Of each pair of rounds, sorted."""
        return sorted(m / f for m, f in zip(self.method, self.fedavg, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the pairs' ratios."""
        return statistics.median(self.ratios)

    def text(self) -> str:
        """What ``fednb bench`` prints of it."""
        ratios = self.ratios
        spread = f"median of {len(ratios)} pairs, {ratios[0]:.2f} to {ratios[-1]:.2f}"
        return f"{self.name:44} {self.ratio:.2f} times FedAvg's round ({spread})"


@dataclass(frozen=True)
class Timing:
    """One workload: seconds of each round, federated and bare, and the federated seconds by part and by operator."""

    name: str
    images: int
    federated: list[float]
    bare: list[float]
    parts: dict[str, float]
    operators: dict[str, float]

    @property
    def ratios(self) -> list[float]:
        """Federated time over bare time of each round, sorted."""
        return sorted(f / b for f, b in zip(self.federated, self.bare, strict=True))

    def text(self) -> str:
        """What ``fednb bench`` prints of it."""
        median, ratios = statistics.median(self.federated), self.ratios
        lines = [
            f"{self.name}: federated / bare {statistics.median(ratios):.3f} (median of {len(ratios)} rounds, "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}), {self.images / median:.0f} training images per second"
        ]
        for group in (self.parts, self.operators):
            total = sum(group.values())
            lines += [f"    {part:29} {100 * seconds / total:5.1f} %" for part, seconds in group.items()]
        return "\n".join(lines)


def bench(rounds: int = 5, device: str = "cpu", tell: Callable[[str], None] = print) -> list[Timing]:
    """Every workload, federated and bare in turn, after one round of each that is not counted.

    The bare loop runs the same forward and backward passes and optimiser steps on resident images, with the same
    precision and augmentation, on one network that nobody sends or averages. Evaluation is timed apart.
    """
    timings = []
    for name, (sites, images, size, recipe) in WORKLOADS.items():
        timings.append(_time(name, made(sites, images, (3, size, size)), recipe, rounds, device))
        tell(timings[-1].text())
    return timings


def costs(
    rounds: int = 5,
    device: str = "cpu",
    tell: Callable[[str], None] = print,
    workload: tuple | None = None,
    settings: Iterable[dict] | None = None,
) -> list[Cost]:
    """Every method's round and FedAvg's in turn, on one network and made images, after one of each that is not counted.

    Training, messages and aggregation; not the preparation before round 1 and not the evaluation. workload: ``COSTS``
    unless given. settings: of the recipes that differ from FedAvg's, the four methods in both variants unless given.
    """
    *images, recipe = workload or COSTS
    federation = made(*images)
    plain = FederatedRun(recipe, federation, device)
    _seconds(plain.train_round, device)
    found = []
    for setting in settings or [{"augmentations": [method]} for method in METHODS]:
        chosen = recipe.with_(**setting)
        run = FederatedRun(chosen, federation, device)
        _seconds(run.train_round, device)
        pairs = _pairs(run.train_round, plain.train_round, rounds, device)
        found.append(Cost(chosen.label, *map(list, zip(*pairs, strict=True)), _bytes(run)))
        tell(found[-1].text())
    return found


def every_method() -> dict[str, dict]:
    """The settings of a recipe with one of the package's own methods, by its name."""
    algorithms = {name: {"algorithm": name} for name in registry.builtin("algorithms")}
    options = {name: {"name": name, **BEFORE.get(name, {})} for name in registry.builtin("augmentations")}
    return algorithms | {name: {"augmentations": [given]} for name, given in options.items()}


def _bytes(run: FederatedRun) -> int:
    counts = run.train_round()
    return sum(sum(counts[way].values()) for way in ("up", "down"))


def _time(name: str, federation: Federation, recipe: Recipe, rounds: int, device: str) -> Timing:
    run = FederatedRun(recipe, federation, device)
    bare = _bare_loop(recipe, federation, device)
    _seconds(run.train_round, device), _seconds(bare, device)
    pairs = _pairs(run.train_round, bare, rounds, device)
    images = sum(len(site.train) for site in federation.sites) * recipe.local_epochs
    operators = _operators(run, device)  # before the parts, whose clocks stay on
    return Timing(name, images, *map(list, zip(*pairs, strict=True)), _parts(run, device), operators)


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
                images = flow.apply(images, recipe.flow, draw).contiguous(memory_format=torch.channels_last)
                with torch.autocast(kind, torch.bfloat16, enabled=recipe.precision == "bf16"):
                    logits = model(images)
                loss = F.cross_entropy(logits.float(), site.train.targets[indices])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.detach()
            float(total)

    return train


def _operators(run: FederatedRun, device: str) -> dict[str, float]:
    """Seconds of one round by group of torch's operators, each without those that it calls."""
    kind = torch.device(device).type
    activities = [torch.profiler.ProfilerActivity.CPU]
    if kind == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        _seconds(run.train_round, device)
    seconds = dict.fromkeys([*OPERATORS, "other operators"], 0.0)
    for event in profile.key_averages():
        group = next(
            (g for g, parts in OPERATORS.items() if any(part in event.key for part in parts)), "other operators"
        )
        seconds[group] += (event.self_cpu_time_total if kind == "cpu" else event.self_device_time_total) / 1e6
    return seconds


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


def _pairs(one: Callable, other: Callable, rounds: int, device: str) -> list[tuple[float, float]]:
    """Seconds of both, in turn; each is the first of every other pair."""
    pairs = []
    for number in range(rounds):
        seconds = {work: _seconds(work, device) for work in ((one, other), (other, one))[number % 2]}
        pairs.append((seconds[one], seconds[other]))
    return pairs


def _seconds(work: Callable, device: str) -> float:
    begun = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - begun


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def main(options) -> int:
    """Federated rounds against a bare loop, and methods' against FedAvg's; or what ``record`` writes."""
    require_device(options.device)
    if options.record:
        return record(options.rounds, options.device)
    bench(options.rounds, options.device)
    costs(options.rounds, options.device)
    return 0


def record(rounds: int, device: str, tell: Callable[[str], None] = print) -> int:
    """Writes what the notebook on speed shows; returns the exit status 0."""
    settings = every_method()
    found = costs(rounds, device, tell, EVERY, settings.values())
    clients, *_, recipe = EVERY
    measured = {
        name: {
            **{"times": round(cost.ratio, 3), "least": round(cost.ratios[0], 3), "most": round(cost.ratios[-1], 3)},
            "bytes": cost.sent // clients,
        }
        for name, cost in zip(settings, found, strict=True)
    }
    machine = {"machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}
    origin = maker(FederatedRun(recipe, made(1, 2, (3, 32, 32)), device).model) | machine
    recorded = {"origin": origin, "methods": measured, "clients": scale.rows(rounds, device, tell)}
    write_text(speed.FILE, json.dumps(recorded, indent=1) + "\n")
    tell(f"recorded in {speed.FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(cli.parse(["bench", *sys.argv[1:]])))
