"""Runs of a fraction of a second, for the tests of the store, of training and of studies."""

import json
from functools import cache

import torch
from methods import TINY, federation

from fednb import datasets
from fednb.datasets import shifted_digits
from fednb.federation import Federation
from fednb.recipe import Recipe
from fednb.records import columns, training
from fednb.records.store import Record

SMALL = Recipe(**TINY | {"rounds": 2, "flow": ()})

# What a checkpoint must carry: kept normalisation, Adam's state, FedMix's averages, clients that were not drawn.
FULL = Recipe(
    federation={"name": "shifted_digits", "size": 8},
    model={"name": "digits_cnn", "channels": 2, "width": 8},
    algorithm="fedbn",
    augmentations=["fedmix"],
    flow=["flip", "rotation"],
    rounds=4,
    batch_size=64,
    optimiser="adam",
    optimiser_state="kept",
    participation=0.75,
    evaluation=["features"],
)


def use_toy(monkeypatch, found: Federation | None = None) -> None:
    """Every recipe gets the toy federation, or the given one, whatever it names."""
    toy = found or federation()
    monkeypatch.setattr(datasets, "load", lambda **asked: toy)
    monkeypatch.setattr(shifted_digits, "TASK", toy.task, raising=False)
    monkeypatch.setattr(training, "_load", cache(lambda choice, root: datasets.load()))


def entries_of(text: str) -> dict:
    """What a record's text says, its rounds one by one."""
    entries = json.loads(text)
    return entries | {"rounds": columns.to_rounds(entries["rounds"], entries["clients"])}


def record(recipe: Recipe, seconds: float = 1.0, fingerprint: str = "0" * 16, right: int = 3) -> Record:
    """What a run might have measured; nothing is trained."""
    rounds = [
        {
            "round": number,
            "loss": {"a": 0.5, "b": 0.25},
            "validation": [1, 2],
            "test": [right, min(right + number, 10)],
            "up": {"model": 8},
            "down": {"model": 8},
        }
        for number in range(1, recipe.rounds + 1)
    ]
    return Record(
        recipe=recipe.full,
        key=recipe.key,
        clients=["a", "b"],
        images={"train": [10, 10], "validation": [4, 4], "test": [5, 10]},
        prepare={"up": {}, "down": {}},
        rounds=rounds,
        fingerprint=fingerprint,
        notes=[],
        origin={"code": "abc", "torch": torch.__version__, "device": "cpu", "seconds": seconds},
    )
