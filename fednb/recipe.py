"""A recipe: everything that decides a run's numbers, and nothing that does not."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property

from fednb.errors import RecipeError, nearest
from fednb.registry import choice, complete, dealt, make, task

ROOMS = {"federation": "datasets", "model": "models", "algorithm": "algorithms"}
LISTS = ("augmentations", "flow", "unseen", "evaluation")
ONE_OF = {
    "last_batch": ("keep", "drop"),
    "optimiser": ("sgd", "adam"),
    "optimiser_state": ("renewed", "kept"),
    "weights": ("size", "equal"),
    "buffers": ("averaged", "local"),
    "precision": ("fp32", "bf16", "fp64"),
}
EACH_OF = {
    "flow": ("flip", "rotation", "crop"),
    "evaluation": ("cross_site", "examples", "features", "masks", "own_statistics", "server", "spare"),
}
NUMBERS = {
    "rounds": (int, lambda value: value >= 1, "a whole number of at least 1"),
    "local_epochs": (int, lambda value: value >= 1, "a whole number of at least 1"),
    "batch_size": (int, lambda value: value >= 1, "a whole number of at least 1"),
    "local_steps": (int, lambda value: value >= 0, "a whole number of at least 0"),
    "seed": (int, lambda value: True, "a whole number"),
    "learning_rate": (float, lambda value: 0 <= value < math.inf, "a number of at least 0"),
    "momentum": (float, lambda value: 0 <= value < 1, "a number in [0, 1)"),
    "weight_decay": (float, lambda value: 0 <= value < math.inf, "a number of at least 0"),
    "participation": (float, lambda value: 0 < value <= 1, "a share in (0, 1]"),
}
USUAL = {  # names in other libraries
    "lr": "learning_rate",
    "dataset": "federation",
    "data": "federation",
    "network": "model",
    "method": "algorithm",
}
LAST = 10  # rounds of which every image's score is kept


@dataclass(frozen=True, eq=False)
class Recipe:
    """Federation, model, methods and settings of one run.

    Args:
        federation, model, algorithm: a name, or ``{"name": name, option: value}``; names are file names in
            ``fednb/datasets``, ``fednb/models`` and ``fednb/methods/algorithms``. A federation that is dealt out by
            a ``seed`` of its own (0: one partition for all runs) takes ``"seed": "run"``: then the recipe's seed deals
            it out.
        augmentations: such names from ``fednb/methods/augmentations``, called in this order.
        flow: basic augmentation of training images: "flip" (probability 0.5), "rotation" (within 30 degrees), "crop"
            (moved by up to 4 pixels, mirrored at the edges).
        rounds, local_epochs, batch_size: of the federated loop; a last batch of one image joins the one before.
        local_steps: mini-batches of a client in a round, over as many epochs as that takes, in the place of
            ``local_epochs``; 0 counts epochs.
        last_batch: "keep" or "drop" an incomplete last batch (kept where it is the only one).
        optimiser: "sgd" or "adam", with ``learning_rate``, ``momentum`` (SGD), ``weight_decay``.
        optimiser_state: "renewed" each round, or "kept" at the client from round to round.
        weights: of the clients in the mean, by training-set "size" or "equal".
        buffers: running statistics of batch normalisation, "averaged" like weights or "local".
        participation: share of the clients drawn each round, in (0, 1].
        unseen: sites that are in no round and offer nothing; they are tested with the global model. What methods
            keep at a client has a value there that the method's docstring declares, or the method is refused.
        precision: "fp32", "bf16" (autocast, weights in fp32) or "fp64" (for exact checks).
        seed: of every draw.
        evaluation: more than scores: "cross_site" (each local model of the last round on every site's
            test images), "features" (of the last global model on all test images), "examples" (what it predicts for
            each site's first test image), "masks" (how the masks that it predicts for the test images lie on the true
            ones: see ``fednb.report.readings``), "own_statistics" (it at each site with statistics of batch
            normalisation that are measured on the site's own training images, seen as at test time), "server" (what the
            methods keep at the server in the end) and "spare" (the sites' spare images, in each of the last ten rounds,
            scored as test images are: a second test set, where the loader hands them over).

    Two recipes are equal when their keys are. The key is a hash of the canonical short form, which leaves out
    what equals a default: a new option does not change the keys of runs made before it. A record holds the full
    form, and a record whose full form disagrees with today's defaults is refused.

    Raises RecipeError for unknown names, options or values, naming the nearest valid one, for an option's value that
    its method refuses, for a method that has no meaning for the federation's task, for one that needs a single label an
    image beside one that mixes them, and for what a method refuses itself.
    """

    federation: str | dict = "shifted_digits"
    model: str | dict = "digits_cnn"
    algorithm: str | dict = "fedavg"
    augmentations: tuple = ()
    flow: tuple[str, ...] = ()
    rounds: int = 10
    local_epochs: int = 1
    local_steps: int = 0
    batch_size: int = 32
    last_batch: str = "keep"
    optimiser: str = "sgd"
    learning_rate: float = 0.01
    momentum: float = 0.0
    weight_decay: float = 0.0
    optimiser_state: str = "renewed"
    weights: str = "size"
    buffers: str = "averaged"
    participation: float = 1.0
    precision: str = "fp32"
    seed: int = 0
    unseen: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()

    def __new__(cls, *positional, **settings):
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                hint = f'did you mean "{USUAL[name]}"?' if name in USUAL else nearest(name, known)
                raise RecipeError(f'a recipe has no setting "{name}"; {hint}')
        return super().__new__(cls)

    def __post_init__(self):
        for name in LISTS:
            value = getattr(self, name)
            if not isinstance(value, list | tuple):
                raise RecipeError(f"{name} is {value!r}; expected a list.")
            object.__setattr__(self, name, tuple(value))
        for name, allowed in (ONE_OF | EACH_OF).items():
            for value in getattr(self, name) if name in EACH_OF else [getattr(self, name)]:
                if value not in allowed:
                    raise RecipeError(f"{name} is {value!r}; {nearest(str(value), allowed)}")
        for name, (kind, fits, expected) in NUMBERS.items():
            value = getattr(self, name)
            if type(value) not in (int, kind) or not fits(value):
                raise RecipeError(f"{name} is {value!r}; expected {expected}.")
            object.__setattr__(self, name, kind(value))  # 1 and 1.0 are one run
        if self.local_steps and self.local_epochs != 1:
            raise RecipeError(
                f"local_steps is {self.local_steps} and local_epochs {self.local_epochs}; a round is counted in one of "
                "them. Leave one out."
            )
        if not all(isinstance(name, str) for name in self.unseen):
            raise RecipeError(f"unseen is {self.unseen!r}; expected names of sites.")
        for name in ("unseen", "evaluation"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        augmentations = [given["name"] for given in self.full["augmentations"]]  # all names are checked here
        if len(set(augmentations)) < len(augmentations):
            raise RecipeError(f"augmentations are {', '.join(augmentations)}; expected each of them once.")
        methods = [make("algorithms", self.algorithm), *(make("augmentations", given) for given in self.augmentations)]
        for method in methods:
            method.tasks.require(method.name, task(self.full["federation"]), self.full["federation"]["name"])
        _refuse_mixed_labels(methods)
        for method in methods:
            method.refuse(self, methods)

    def vary(self, **values: list) -> list[Recipe]:
        """One recipe for every combination: ``recipe.vary(seed=[0, 1], algorithm=["fedavg", "fedbn"])``."""
        for name, given in values.items():
            if not isinstance(given, list | tuple | range) or not given:
                raise RecipeError(f"{name} varies over {given!r}; expected a list of at least one value.")
            if name == "seed" and len({repr(seed) for seed in given}) < len(given):
                raise RecipeError(f"seed varies over {given!r}; expected each of them once.")
        combinations = itertools.product(*values.values())
        return [replace(self, **dict(zip(values, combination, strict=True))) for combination in combinations]

    def with_(self, **settings) -> Recipe:
        """The same recipe with these settings changed."""
        return replace(self, **settings)

    @cached_property
    def full(self) -> dict:
        """Every setting, with every option of every name spelled out; plain values."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        settings |= {name: complete(room, settings[name]) for name, room in ROOMS.items()}
        settings["augmentations"] = [complete("augmentations", given) for given in self.augmentations]
        try:
            return json.loads(json.dumps(settings, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise RecipeError(f"a recipe holds plain values only: {error}.") from error

    @property
    def dealt(self) -> dict:
        """The federation as ``fednb.datasets.load`` takes it: its seed ``"run"`` is this recipe's."""
        return dealt(self.full["federation"], self.seed)

    @cached_property
    def short(self) -> dict:
        """The settings and options that differ from their defaults; federation, model and algorithm always."""
        defaults = json.loads(json.dumps({field.name: field.default for field in fields(self)}))
        settings = {name: value for name, value in self.full.items() if name in ROOMS or value != defaults[name]}
        settings |= {name: _shorten(room, self.full[name]) for name, room in ROOMS.items()}
        settings["augmentations"] = [_shorten("augmentations", given) for given in self.full["augmentations"]]
        return settings

    @cached_property
    def key(self) -> str:
        """12 hex digits of the canonical short form."""
        canonical = json.dumps(self.short, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def scored(self, round: int) -> tuple[str, ...]:
        """The splits whose images are scored after a round."""
        spare = "spare" in self.evaluation and round > self.rounds - LAST
        return ("validation", "test", "spare") if spare else ("validation", "test")

    @property
    def algorithm_name(self) -> str:
        return self.full["algorithm"]["name"]

    @property
    def augmentation_name(self) -> str:
        """Names of the augmentations, joined by "+"; empty without any."""
        return "+".join(augmentation["name"] for augmentation in self.full["augmentations"])

    @property
    def label(self) -> str:
        """Algorithm and augmentations with the options that differ from their defaults."""
        return "+".join(_phrase(given) for given in (self.short["algorithm"], *self.short["augmentations"]))

    @property
    def filename(self) -> str:
        """Where the record lies below ``results/``: found by a person, unique by its key."""
        methods = "+".join(filter(None, (self.algorithm_name, self.augmentation_name)))
        return f"{self.full['federation']['name']}/{methods}_s{self.seed}_{self.key[:6]}.json"

    def __eq__(self, other) -> bool:
        return isinstance(other, Recipe) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.label} on {self.full['federation']['name']}, seed {self.seed} ({self.key})"


def _shorten(room: str, full: dict) -> str | dict:
    defaults = json.loads(json.dumps(complete(room, full["name"])))
    differing = {key: value for key, value in full.items() if value != defaults[key]}
    return {"name": full["name"], **differing} if differing else full["name"]


def _phrase(given: str | dict) -> str:
    name, chosen = choice(given)
    options = ", ".join(f"{option}={value}" for option, value in chosen.items())
    return f"{name}({options})" if options else name


def _refuse_mixed_labels(methods: list) -> None:
    mixing = [method.name for method in methods if method.mixes_labels]
    for method in methods:
        if mixing and method.hard_labels:
            raise RecipeError(
                f"{method.name} cannot be combined with {' and '.join(mixing)}, which trains on mixtures of images and "
                f"labels; {method.name} needs single ones: {method.hard_labels}. Leave one of them out."
            )
