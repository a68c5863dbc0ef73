"""Federations of five kinds of real images and of embedded digits, small enough for many runs: FedAvg's recipes."""

import fednb
from fednb import papers, registry

SMALL_DIGITS_CNN = {"name": "digits_cnn", "channels": 16, "width": 128}
SMALLER = {  # than the papers' quick settings, by data set: paper, profile, federation, what differs
    "Digits": ("fraug", "quick", None, {}),
    "Office-Caltech-10": (
        "fedrdn",
        "quick",
        None,
        {
            "federation": {"name": "office_caltech10", "split": "fedbn", "size": 64},
            "model": {"name": "alexnet", "width": 256},
            "local_epochs": 1,
            "precision": "fp32",
            "evaluation": [],
        },
    ),
    "PACS": (
        "fraug",
        "quick",
        "pacs",
        {
            "federation": {"name": "pacs", "size": 32},
            "model": SMALL_DIGITS_CNN,
            "learning_rate": 0.01,
            "precision": "fp32",
        },
    ),
    "PACS from ImageNet": (
        "fraug",
        "pretrained",
        "pacs",
        {"federation": {"name": "pacs", "size": 64, "seed": "run"}, "rounds": 15, "precision": "fp32"},
    ),
    "Retinal vessels": (
        "fedrdn",
        "quick",
        "retinal_vessels",
        {"federation": {"name": "retinal_vessels", "fraction": 0.333}, "rounds": 40, "evaluation": []},
    ),
}


def methods(names: list[str], base: fednb.Recipe) -> list[list]:
    """Each alone and as printed, those that have a meaning for the task of the federation; FedFA not after AlexNet's
    fifth stage, which at 64 pixels is one pixel, without deviation."""
    task = registry.task(base.full["federation"])
    apt = [name for name in names if task in registry.make("augmentations", name).tasks.names]
    small = base.full["model"]["name"] == "alexnet" and base.full["federation"].get("size") == 64
    return [[{"name": "fedfa", "stages": [1, 2, 3, 4]}] if name == "fedfa" and small else [name] for name in apt]


def base(rounds: int) -> fednb.Recipe:
    """On the embedded digits, and on the shift dial."""
    return fednb.Recipe(model=SMALL_DIGITS_CNN, rounds=rounds, momentum=0.9)


def bases(profile: str, rounds: int) -> dict[str, fednb.Recipe]:
    """FedAvg's recipes by the name of the data; ``smoke`` has the embedded digits alone, ``paper`` the papers' own.

    rounds: on the embedded digits.
    """
    found = {"Shifted digits": base(rounds)}
    for name, (paper, own, federation, smaller) in SMALLER.items() if profile != "smoke" else ():
        if profile != "quick":
            own, smaller = "pretrained" if own == "pretrained" else profile, {}
        found[name] = fednb.Recipe(**papers.recipe(paper, own, federation) | smaller)
    return found
