"""A recipe: everything that decides a run's numbers, and nothing that does not."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from fednb.errors import RecipeError, nearest
from fednb.registry import choice, complete, dealt, make, task

ROOMS = {"federation": "datasets", "model": "models", "algorithm": "algorithms"}
USUAL = {
    "lr": "learning_rate",
    "dataset": "federation",
    "data": "federation",
    "network": "model",
    "method": "algorithm",
}
LAST = 10  # rounds of which every image's score is kept


def _one_of(*names: str, some: bool = False):
    return field(default=() if some else names[0], metadata={"known": names})


def _number(default: float, fits: Callable, expected: str):
    return field(default=default, metadata={"fits": fits, "expected": expected})


@dataclass(frozen=True, eq=False)
class Recipe:
    """Federation, model, methods and settings of one run.

    Args:
        federation, model, algorithm: a name, or ``{"name": name, option: value}``; names are file names in
            ``fednb/datasets``, ``fednb/models`` and ``fednb/methods/algorithms``. Of a federation that is dealt out by
            chance the option ``"seed": "run"`` is this recipe's seed; a number deals it out alike for all runs.
        augmentations: such names from ``fednb/methods/augmentations``, called in this order.
        flow: basic augmentation of training images: "flip" (probability 0.5), "rotation" (within 30 degrees), "crop"
            (moved by up to 4 pixels, mirrored at the edges).
        rounds, local_epochs, batch_size: of the federated loop; a last batch of one image joins the one before.
        local_steps: mini-batches of a client in a round in the place of epochs, unless 0.
        last_batch: "keep" or "drop" an incomplete last batch (kept where it is the only one).
        optimiser: "sgd" or "adam", with ``learning_rate``, ``momentum`` (SGD), ``weight_decay``.
        optimiser_state: "renewed" each round, or "kept" at the client from round to round.
        weights: of the clients in the mean, by training-set "size" or "equal".
        buffers: running statistics of batch normalisation, "averaged" like weights or "local".
        participation: share of the clients drawn each round, in (0, 1].
        unseen: sites that are in no round and offer nothing; they are tested with the global model.
        precision: "fp32", "bf16" (autocast, weights in fp32) or "fp64" (for exact checks).
        seed: of every draw.
        evaluation: more than scores. After the last round "cross_site" (each local model on every site's test images),
            "features" (of the global model, of all test images), "examples" (what it predicts for each site's first
            test image), "masks" (how its masks of test images lie on the true ones: ``fednb.report.readings``),
            "server" (what methods keep there); in each of the last ten "spare" (scores of a second test set, the sites'
            spare images).

    Two recipes are equal when their keys are: hashes of the short form, which leaves out what equals a default, so that
    a new option changes no key. RecipeError for unknown names, options or values, and for methods that fit neither the
    task nor each other."""

    federation: str | dict = "shifted_digits"
    model: str | dict = "digits_cnn"
    algorithm: str | dict = "fedavg"
    augmentations: tuple = ()
    flow: tuple[str, ...] = _one_of("flip", "rotation", "crop", some=True)
    rounds: int = _number(10, lambda value: value >= 1, "a whole number of at least 1")
    local_epochs: int = _number(1, lambda value: value >= 1, "a whole number of at least 1")
    local_steps: int = _number(0, lambda value: value >= 0, "a whole number of at least 0")
    batch_size: int = _number(32, lambda value: value >= 1, "a whole number of at least 1")
    last_batch: str = _one_of("keep", "drop")
    optimiser: str = _one_of("sgd", "adam")
    learning_rate: float = _number(0.01, lambda value: 0 <= value < math.inf, "a number of at least 0")
    momentum: float = _number(0.0, lambda value: 0 <= value < 1, "a number in [0, 1)")
    weight_decay: float = _number(0.0, lambda value: 0 <= value < math.inf, "a number of at least 0")
    optimiser_state: str = _one_of("renewed", "kept")
    weights: str = _one_of("size", "equal")
    buffers: str = _one_of("averaged", "local")
    participation: float = _number(1.0, lambda value: 0 < value <= 1, "a share in (0, 1]")
    precision: str = _one_of("fp32", "bf16", "fp64")
    seed: int = _number(0, lambda value: True, "a whole number")
    unseen: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = _one_of("cross_site", "examples", "features", "masks", "server", "spare", some=True)

    def __new__(cls, *positional, **settings):
        known = [each.name for each in fields(cls)]
        for name in settings:
            if name not in known:
                hint = f'did you mean "{USUAL[name]}"?' if name in USUAL else nearest(name, known)
                raise RecipeError(f'a recipe has no setting "{name}"; {hint}')
        return super().__new__(cls)

    def __post_init__(self):
        for name, default, limits in ((each.name, each.default, each.metadata) for each in fields(self)):
            value = getattr(self, name)
            if isinstance(default, tuple):
                if not isinstance(value, list | tuple):
                    raise RecipeError(f"{name} is {value!r}; expected a list.")
                value = tuple(value)
            elif "fits" in limits:
                if type(value) not in (int, type(default)) or not limits["fits"](value):
                    raise RecipeError(f"{name} is {value!r}; expected {limits['expected']}.")
                value = float(value) if isinstance(default, float) else value  # 1 and 1.0 are one run
            for one in value if isinstance(value, tuple) else (value,):
                if one not in limits.get("known", (one,)):
                    raise RecipeError(f"{name} is {one!r}; {nearest(str(one), limits['known'])}")
            object.__setattr__(self, name, value)
        if self.local_steps and self.local_epochs != 1:
            both = f"local_steps is {self.local_steps} and local_epochs {self.local_epochs}"
            raise RecipeError(f"{both}; a round is counted in one of them. Leave one out.")
        if not all(isinstance(name, str) for name in self.unseen):
            raise RecipeError(f"unseen is {self.unseen!r}; expected names of sites.")
        for name in ("unseen", "evaluation"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        augmentations = [given["name"] for given in self.full["augmentations"]]  # all names are checked here
        if len(set(augmentations)) < len(augmentations):
            raise RecipeError(f"augmentations are {', '.join(augmentations)}; expected each of them once.")
        methods = [make("algorithms", self.algorithm), *(make("augmentations", given) for given in self.augmentations)]
        mixing = " and ".join(method.name for method in methods if method.mixes_labels)
        for method in methods:
            method.tasks.require(method.name, task(self.full["federation"]), self.full["federation"]["name"])
            if mixing and method.hard_labels:
                raise RecipeError(
                    f"{method.name} cannot be combined with {mixing}, which trains on mixtures of images and labels; "
                    f"{method.name} needs single ones: {method.hard_labels}. Leave one of them out."
                )
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
        settings = {each.name: getattr(self, each.name) for each in fields(self)}
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
        defaults = json.loads(json.dumps({each.name: each.default for each in fields(self)}))
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
        phrases = []
        for name, chosen in map(choice, (self.short["algorithm"], *self.short["augmentations"])):
            options = ", ".join(f"{option}={value}" for option, value in chosen.items())
            phrases.append(f"{name}({options})" if options else name)
        return "+".join(phrases)

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
