"""One row for every method, and the small federation of the conformance tests.

A new file in ``fednb/methods/algorithms`` or ``fednb/methods/augmentations`` needs one row here: the conformance tests
follow from it.
"""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import cycle

import pytest
import torch

from fednb import registry
from fednb.federation import IGNORED, Federation, Site, Split
from fednb.loop.client import Client
from fednb.loop.loop import FederatedRun
from fednb.loop.server import Server
from fednb.methods import Method
from fednb.methods.augmentations.fedrdn import channel_statistics
from fednb.recipe import Recipe

SIZES = {"clinic": 12, "harbour": 7, "tower": 5}  # steps of 4 images: 3, 2 and 1 (5 = 4 + 1, joined)
EQUAL = {"clinic": 8, "harbour": 8, "tower": 8}
ONE = {"clinic": 12}

TINY = {
    "model": {"name": "digits_cnn", "channels": 4, "width": 64},
    "flow": ("flip", "rotation"),
    "rounds": 3,
    "batch_size": 4,
    "learning_rate": 0.1,
    "momentum": 0.5,
    "weight_decay": 1e-3,
}


LOOKS = {"plain": (1.0, (0, 0, 0)), "pale": (0.7, (40, 20, 20)), "blue": (0.85, (0, 0, 40))}  # contrast, colour cast
HELD_OUT = 24  # validation images of a site, and test images; one class for all gives 8 of them right


@cache
def federation(sizes: tuple = tuple(SIZES.items()), held_out: int = 0) -> Federation:
    """Sites whose class is the brightest channel, by more in some images than in others, each with its own look.

    held_out: seed of the validation and test images; training images do not depend on it.
    """
    sites = []
    for number, ((name, size), look) in enumerate(zip(sizes, cycle(LOOKS.values()), strict=False)):
        held = [_split(HELD_OUT, look, 1000 * held_out + 10 * number + part) for part in (1, 2)]
        sites.append(Site(name, _split(size, look, 10 * number), *held, _split(size, look, 10 * number + 3)))
    return Federation("toy", tuple(sites), ("red", "green", "blue"))


LEARNING = {"flow": (), "rounds": 7, "local_epochs": 4, "batch_size": 12, "learning_rate": 0.03}


@cache
def lessons(stripes: bool = False) -> Federation:
    """What every method surely learns: 36 images a site, in each of which one channel is far brighter.

    stripes: the class is the place of a bright stripe over all channels.
    """
    sizes = (36, HELD_OUT, HELD_OUT, 36)  # training, validation, test and unused images
    sites = [
        Site(name, *(_split(size, look, 100 + 10 * number + part, stripes, 150) for part, size in enumerate(sizes)))
        for number, (name, look) in enumerate(zip(SIZES, LOOKS.values(), strict=True))
    ]
    return Federation("lessons", tuple(sites), ("red", "green", "blue"))


PIXELS = {"model": {"name": "unet", "channels": 2}, "batch_size": 4, "flow": ("flip", "rotation")}


@cache
def pixel_federation(sizes: tuple = (("clinic", 8), ("tower", 5))) -> Federation:
    """Sites for segmentation: a bright square on noise, a frame of ignored pixels, brightness by the site."""
    sites = [
        Site(name, *(_masked(count, 25 * number, 10 * number + part) for part, count in enumerate((size, 3, 3))))
        for number, (name, size) in enumerate(sizes)
    ]
    return Federation("squares", sites, ("background", "square"), task="segmentation")


def _masked(size: int, brightness: int, seed: int) -> Split:
    draw = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 100, (size, 3, 32, 32), generator=draw) + brightness
    masks = torch.zeros(size, 32, 32, dtype=torch.uint8)
    for image, mask, (row, column) in zip(images, masks, torch.randint(4, 18, (size, 2), generator=draw), strict=True):
        square = slice(row, row + 10), slice(column, column + 10)
        image[:, *square] += 100
        mask[square] = 1
    masks[:, :2] = masks[:, -2:] = masks[:, :, :2] = masks[:, :, -2:] = IGNORED
    return Split(images.to(torch.uint8), masks)


def _split(size: int, look: tuple[float, tuple], seed: int, stripes: bool = False, least: int = 40) -> Split:
    draw, (contrast, cast) = torch.Generator().manual_seed(seed), look
    targets = torch.arange(size) % 3
    images = torch.randint(0, 60, (size, 3, 8, 8), generator=draw)
    bright = images.unflatten(2, (4, 2)).transpose(1, 2) if stripes else images  # a stripe is two rows
    bright[torch.arange(size), targets] += torch.randint(
        least, 190, (size,) + (1,) * (bright.dim() - 2), generator=draw
    )
    return Split((contrast * images + torch.tensor(cast).reshape(3, 1, 1)).to(torch.uint8), targets)


@dataclass
class Trained:
    """A run that has ended, or stands where ``rounds`` says."""

    run: FederatedRun
    rounds: list[dict]

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """What the last client is evaluated with, kept entries included."""
        return self.run.model.state_dict()


def train(settings: dict, data: Federation | None = None, rounds: int | None = None) -> Trained:
    """Trains a recipe of ``TINY`` with these settings."""
    recipe = Recipe(**TINY | settings)
    run = FederatedRun(recipe, data or federation())
    return Trained(run, [run.advance() for _ in range(recipe.rounds if rounds is None else rounds)])


def prepared(augmentations, data: Federation | None = None, **settings) -> FederatedRun:
    """A run after the exchange before round 1, in float64 and without the flow."""
    recipe = Recipe(**TINY | {"augmentations": augmentations, "flow": (), "precision": "fp64"} | settings)
    run = FederatedRun(recipe, data or federation())
    run.prepare()
    return run


def ready(run: FederatedRun, name: str = "clinic", round: int = 1) -> Client:
    """A client that has received what it trains from in a round."""
    client = run.clients[name]
    client.receive(run.server.send(name), round)
    client.model.train()
    return client


def messages(settings: dict, rounds: int | None = None) -> tuple[Trained, dict[str, list[dict]]]:
    """``train``, and copies of all messages: "up" those of the clients, "down" those of the server."""
    sent = {"up": [], "down": []}

    def keep(original, way):
        def kept(self, *arguments):
            message = original(self, *arguments)
            sent[way].append({key: value.clone() for key, value in message.items()})
            return message

        return kept

    with pytest.MonkeyPatch.context() as patch:
        for way, side, names in (("up", Client, ("offer", "reply")), ("down", Server, ("prepare", "send"))):
            for name in names:
                patch.setattr(side, name, keep(getattr(side, name), way))
        return train(settings, rounds=rounds), sent


def perturbed(build: Callable, seed: int, size: dict[torch.dtype, float]) -> Callable:
    """``network.build`` with every weight times 1 + size x a standard normal number: what another processor's last
    digits do to a run, and more. size: by the weights' type."""

    def built(*given, **named):
        model, methods = build(*given, **named)
        draw = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1 + size[weight.dtype] * torch.randn(weight.shape, generator=draw).to(weight))
        return model, methods

    return built


def reloaded(state: dict) -> dict:
    """A state after it was saved and loaded, as a checkpoint is."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def wired(message: dict) -> dict:
    """The message as it is after it was sent as bytes."""
    return reloaded({name: value.contiguous() for name, value in message.items()})


def same(one: dict, other: dict) -> bool:
    """Whether two nested dictionaries of tensors and plain values are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


@dataclass(frozen=True)
class Row:
    """One method under the conformance tests.

    neutral: options at which it gives the run of the settings ``simpler``, on ``sizes``; ``simpler`` may be computed
    from the federation; None where nothing is simpler. exact: bit for bit, or only up to rounding. variants: the
    options of all other tests. sends_images: it has its clients send training images, which no other may.
    refuses_unseen: the variants that have no value at an unseen client. tells_what_it_keeps: those in which the server
    learns it, for the unseen. begins_in_round: the first in which its loss has all terms. untouched_images: it is
    refused with an algorithm that changes images; measures_images: with one that does so at test time too. weighs:
    clients count by the recipe's weights. takes_brightness: it leaves no class to learn where the class is how bright a
    channel is.
    """

    room: str
    name: str
    neutral: dict | None = None
    variants: tuple[dict, ...] = ({},)
    simpler: dict | Callable[[Federation], dict] = field(default_factory=dict)
    sizes: dict = field(default_factory=lambda: SIZES)
    exact: bool = True
    sends_images: bool = False
    refuses_unseen: tuple[dict, ...] = ()
    tells_what_it_keeps: tuple[dict, ...] = ()
    begins_in_round: int = 1
    untouched_images: bool = False
    measures_images: bool = False
    weighs: bool = True
    takes_brightness: bool = False

    @property
    def method(self) -> Method:
        """With its default options."""
        return registry.make(self.room, self.name)

    @property
    def masks(self) -> bool:
        return "segmentation" in self.method.tasks.names

    def cases(self, variants: tuple[dict, ...] | None = None) -> list[dict]:
        """Settings of a recipe, one for each variant; of all unless some are given."""
        chosen = [{"name": self.name, **options} for options in (self.variants if variants is None else variants)]
        return [{"algorithm": c} if self.room == "algorithms" else {"augmentations": (c,)} for c in chosen]


def own_statistics(data: Federation) -> dict:
    """Normalisation with the only client's own statistics."""
    (client,) = FederatedRun(Recipe(**TINY), data).clients.values()
    mean, std = channel_statistics(client, correction=0)
    return {"augmentations": ({"name": "normalise", "mean": mean.tolist(), "std": std.tolist()},)}


algorithm, augmentation = partial(Row, "algorithms"), partial(Row, "augmentations")
SLOW = {"rate": 0.05, "momentum": 0.5}
SMALL = {"hidden": 20, "layers": 1, "rate": 0.1, "momentum": 0.5}
ALGORITHMS = [
    algorithm("all", {}, sizes=ONE, refuses_unseen=({},), weighs=False),
    algorithm("fedavg"),
    algorithm("fedavgm", {"beta": 0}),
    algorithm("fedaws", variants=({}, {"target": 1.0, "margin": 1.4, "spread": 1.0})),
    algorithm("fedbabu"),
    algorithm("fedbn", {}, ({}, {"at_unseen": "mean"}), sizes=ONE, tells_what_it_keeps=({"at_unseen": "mean"},)),
    algorithm("fednova", {}, sizes=EQUAL, exact=False),
    algorithm(
        "fedproto", {"mu": 0, "share_model": True}, ({}, {"share_model": True}), refuses_unseen=({},), begins_in_round=2
    ),
    algorithm("fedprox", {"mu": 0}, ({"mu": 1.0},)),
    algorithm("fedrobust", {"matrix_rate": 0, "offset_rate": 0}),
    algorithm("fedsam", {"rho": 0}),
    algorithm("harmofl", {"alpha": 0, "amplitude": False}, ({}, {"variant": "released"}), takes_brightness=True),
    algorithm("moon", {"mu": 0}, begins_in_round=2),
    algorithm("partialfed", {"layers": []}),
    algorithm("pfedavg", {"epochs": 0}),
    algorithm("pfedhn", variants=(SLOW,), weighs=False),
    algorithm("pfedhn_pc", variants=(SMALL,), refuses_unseen=(SMALL,), weighs=False),
    algorithm(
        "pfedme",
        {"penalty": 10, "steps": 1, "local_rate": 0.1, "personalised": False},
        ({"penalty": 0.5, "steps": 3, "local_rate": 1.0}, {"penalty": 1.0, "steps": 2, "local_rate": 1.0, "beta": 1.5}),
    ),
    algorithm("scaffold", {}, sizes=ONE),
    algorithm("single", {}, sizes=ONE, refuses_unseen=({},), weighs=False),
]
AUGMENTATIONS = [
    augmentation("additional_embeddings", {"epochs": 0}, ({"epochs": 30},)),
    augmentation("advprop", {"steps": 0}, ({"epsilon": 0.1, "step_size": 0.05, "steps": 2},)),
    augmentation(
        "distrans",
        {"channels": 1, "alpha": 0},
        (
            {},
            {"channels": 1, "aggregation": "mean", "offset_rate": 0.1},
            {"variant": "released", "aggregation": "none", "projection": 4},
            {"at_unseen": "none"},
        ),
    ),
    augmentation(
        "embedding_noise", {"gamma": 0}, ({}, {"distribution": "laplace"}, {"distribution": "uniform", "gamma": 0.5})
    ),
    augmentation("faug", None, ({"seeds": 2, "steps": 5},), sends_images=True, untouched_images=True),
    augmentation("fedfa", {"probability": 0}, ({}, {"variant": "released"})),
    augmentation("fedfa_c", {"probability": 0}),
    augmentation("fedfa_direct", {"probability": 0}, ({}, {"momentum": 0.5})),
    augmentation("fedfa_r", {"probability": 0}),
    augmentation("fedmix", {"ratio": 0}, ({"ratio": 0.2, "mean_batch": 4},), untouched_images=True),
    augmentation("fedrdn", {}, ({}, {"variant": "released"}), simpler=own_statistics, sizes=ONE, measures_images=True),
    augmentation("fedrdn_v", {}, simpler=own_statistics, sizes=ONE, measures_images=True),
    augmentation("fedreg", {"weight": 0, "gamma": 1}, ({"iterations": 2},)),
    augmentation(
        "fraug",
        {"generator": False, "rtnet": False, "ema": False},
        (
            {},
            {"variant": "released"},
            {"generator": False},
            {"rtnet": False, "ema": False, "growth": 0.0},
            {"variant": "released", "generator_distance": "mse", "rtnet_distance": "mse"},
        ),
        simpler={"algorithm": "fedbn"},
    ),
    augmentation("image_noise", {"sigma": 0}),
    augmentation("manifold_mixup", {"alpha": 0}, ({"alpha": 0.2}, {"alpha": 0.2, "stages": [1, 3]})),
    augmentation("mixstyle", {"probability": 0}, ({"probability": 0.1},)),
    augmentation("mixup", {"alpha": 0}),
    augmentation("moex", {"probability": 0}, ({"probability": 0.25}, {"probability": 0.5, "share": 0.5})),
    augmentation("normalise", {"mean": (0, 0, 0), "std": (1, 1, 1)}),
    augmentation("own_statistics", None, untouched_images=True),
]


def from_outside(name: str) -> list[Row]:
    """The row of a method from outside, one or none: its module's ``CONFORMANCE`` has fields of a row, by name."""
    return [
        Row(room, name, **getattr(registry.file(room, name), "CONFORMANCE", {}))
        for room in registry.METHODS
        if name in registry.names(room) and name not in registry.builtin(room)
    ]


HOOKS = [name for name, value in vars(Method).items() if callable(value) and name != "refuse" and name[0] != "_"]
CHECKED = os.environ.get("FEDNB_CHECK", "")  # set by `fednb check`
FULL = os.environ.get("FULL") == "1"  # weekly: pairs of methods and both precisions
ROWS = [*ALGORITHMS, *AUGMENTATIONS, *from_outside(CHECKED)]
ROW = {row.name: row for row in ROWS}
CASES = [case for row in ROWS for case in row.cases()]


def row_of(case: dict) -> Row:
    """The row that a case belongs to."""
    (given,) = case.get("augmentations") or (case["algorithm"],)
    return ROW[given["name"]]


def label(case: dict) -> str:
    """Names a case in a test's id: ``"fedavg+fedrdn(variant=released)"``."""
    return Recipe(**case).label.replace("fedavg+", "")


@cache
def _trained(key: str, precision: str) -> Trained:
    (case,) = [case for case in CASES if label(case) == key]
    return train(case | {"precision": precision})


def trained(case: dict, precision: str = "fp32") -> Trained:
    """The undisturbed run of a case, trained once for all tests; not to be advanced."""
    return _trained(label(case), precision)
