"""The same budget for every method: which configurations are tried, and the runs of the one that is chosen."""

import federations
from fednb import Recipe, registry, report
from fednb.errors import RecipeError
from fednb.loop.network import rehearse
from fednb.randomness import random_state
from fednb.study import Results

TRIES, CHOSEN_ON = 6, 100
RATES = (0.001, 0.1)
NOTHING, COUNTS = "nothing more", "number of images of each class"
METHODS = {  # ranges of a method's own options; what the server learns of images, next to the model
    "fedavg": ({}, NOTHING),
    "fedavg+own_statistics": ({}, NOTHING),
    "fedprox": ({"mu": (1e-4, 1.0)}, NOTHING),
    "fedavgm": ({"beta": (0.1, 0.95)}, NOTHING),
    "scaffold": ({}, NOTHING),
    "fedbn": ({}, NOTHING),
    "moon": ({"mu": (0.1, 10.0), "tau": (0.1, 2.0)}, NOTHING),
    "fedproto": ({"mu": (0.01, 10.0), "share_model": [False, True]}, f"mean feature and {COUNTS}"),
    "harmofl": ({"alpha": (0.005, 0.5)}, "mean amplitude of the spectra"),
    "fedavg+fedrdn": ({"variant": ["paper", "released"]}, "mean and deviation of pixels, to all clients"),
    "fedavg+fedfa": ({"probability": (0.1, 1.0)}, "mean and deviation of features"),
    "fedavg+fraug": ({"alpha": (0.1, 10.0), "beta": (0.1, 10.0)}, "a generator of embeddings"),
    "fedavg+distrans": ({"alpha": (0.05, 0.5), "offset_rate": (1e-3, 1.0)}, f"an offset image and {COUNTS}"),
    "fedbn+fedrdn": ({"variant": ["paper", "released"]}, "mean and deviation of pixels, to all clients"),
    "fedbn+fedfa": ({"probability": (0.1, 1.0)}, "mean and deviation of features"),
    "fedbn+distrans": ({"alpha": (0.05, 0.5), "offset_rate": (1e-3, 1.0)}, f"an offset image and {COUNTS}"),
    "fedavg+mixup": ({"alpha": (0.05, 2.0)}, NOTHING),
    "fedavg+mixstyle": ({"probability": (0.1, 1.0), "alpha": (0.05, 1.0)}, NOTHING),
    "fedavg+normalise": ({}, NOTHING),
    "single": ({}, "nothing, not the model either"),
}
LOCAL = "single"  # local training: no rank, and a test of its own
CIFAR = {"name": "cifar10", "clients": 10, "classes_per_client": 4, "size": 32}
FEDERATIONS = {
    "Shifted digits": {"name": "shifted_digits"},
    "PACS": {"name": "pacs", "size": 32},
    "Label-skewed CIFAR-10": CIFAR | {"train_images": 2000, "test_images": 2000},
}
SITES = {  # each unseen in turn; a label skew has no such question
    "Shifted digits": ("plain", "photos", "blurred", "tinted"),
    "PACS": ("art_painting", "cartoon", "photo", "sketch"),
}


def bases(rounds: int, names: list[str]) -> dict[str, Recipe]:
    """FedAvg's recipes by the name of the federation."""
    return {name: federations.base(rounds).with_(federation=FEDERATIONS[name]) for name in names}


def entrants(profile: str, joining: str) -> dict[str, dict]:
    """Each run's own options and their ranges: those of ``METHODS``, at ``smoke`` three of them, and a run that joins.

    joining: ``"fedavg+mine"``, or "". The file of its last method may have ``RANGES``, as in ``METHODS``:
    ``{"strength": (0.1, 1.0), "kind": ["a", "b"]}``. RecipeError for a range that is neither two numbers above 0 nor a
    list, or a method that is not found."""
    names = ["fedavg", "fedavg+own_statistics", "fedbn"] if profile == "smoke" else [*METHODS]
    found = {run: METHODS[run][0] for run in names}
    if joining:
        *before, name = joining.split("+")
        found[joining] = getattr(registry.file("augmentations" if before else "algorithms", name), "RANGES", {})
    for option, values in found.get(joining, {}).items():
        pair = isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, int | float) for v in values)
        if not (isinstance(values, list) and values or pair and 0 < values[0] < values[1]):
            wanted = "two numbers above 0 in brackets, (0.1, 1.0), or a list of values"
            raise RecipeError(f"{joining} joins with {option} from {values!r}; expected {wanted}.")
    return found


def with_method(base: Recipe, run: str, options: dict, rate: float) -> Recipe:
    """run: ``"algorithm"`` or ``"algorithm+augmentation"``, the last of which has the options."""
    algorithm, *augmentations = ({"name": name} for name in run.split("+"))
    (augmentations or [algorithm])[-1].update(options)
    return base.with_(algorithm=algorithm, augmentations=augmentations, learning_rate=rate)


def tries(base: Recipe, run: str, ranges: dict) -> list[Recipe]:
    """The default, then five draws of the learning rate and of the method's own options.

    Numbers are drawn log-uniformly, one from each fifth of their range, to three digits, in an order of their own for
    each option. Draws are the same on all federations."""
    draws, count = random_state("equal_budget", run), TRIES - 1
    wholes = {"rate": RATES} | ranges
    shares = {name: (draws.permutation(count) + draws.rand(count)) / count for name in wholes}
    drawn = [{name: _value(values, shares[name][place]) for name, values in wholes.items()} for place in range(count)]
    found = [with_method(base, run, {}, base.learning_rate)]
    found += [with_method(base, run, {name: own[name] for name in ranges}, own["rate"]) for own in drawn]
    return [recipe.with_(seed=CHOSEN_ON) for recipe in found]


def _value(values, share: float):
    if isinstance(values, list):
        return values[int(share * len(values))]
    low, high = values
    return float(f"{low * (high / low) ** share:.3g}")


def all_tries(bases: dict, entrants: dict) -> list[Recipe]:
    """Of all methods on all federations."""
    return [try_ for base in bases.values() for run, ranges in entrants.items() for try_ in tries(base, run, ranges)]


def chosen(base: Recipe, entrants: dict, tried: Results) -> dict[str, Recipe]:
    """Of each method whose tries are all recorded the one with the highest accuracy on validation images, in the mean
    over sites."""
    found = {}
    for run, ranges in entrants.items():
        own = tries(base, run, ranges)
        if all(tried.found.get(recipe) for recipe in own):
            found[run] = report.best(tried.apart(own)[1])
    return found


def defaults(base: Recipe, runs) -> dict[str, Recipe]:
    return {run: with_method(base, run, {}, base.learning_rate) for run in runs}


def runs(name: str, base: Recipe, chosen: dict, seeds: list[int], unseen_seeds: list[int]) -> dict[str, list[Recipe]]:
    """By what they are for the runs of all methods on one federation: ``tuned``; ``default``; ``unseen``, with each
    site left out of training in turn, of methods that have a model for it."""
    sites = [(site,) for site in SITES.get(name, ())]
    away = [recipe for recipe in chosen.values() if sites and unseen_seeds and _for_unseen(recipe, sites[0])]
    return {
        "tuned": [own for recipe in chosen.values() for own in recipe.vary(seed=seeds)],
        "default": [own for recipe in defaults(base, chosen).values() for own in recipe.vary(seed=seeds)],
        "unseen": [own for recipe in away for own in recipe.vary(unseen=sites, seed=unseen_seeds)],
    }


def _for_unseen(recipe: Recipe, site: tuple[str]) -> bool:
    """Whether its methods have a value for a site that was in no round."""
    try:
        rehearse(recipe.with_(unseen=site))
    except RecipeError:
        return False
    return True
