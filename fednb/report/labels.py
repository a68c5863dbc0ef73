"""How runs, data sets and sites are called: run labels taken apart, and the names that papers print."""

import re

from fednb import papers, registry

FEDERATIONS = {  # as the papers call theirs
    **{"office_caltech10": "Office-Caltech-10", "domainnet": "DomainNet", "office_home": "OfficeHome", "pacs": "PACS"},
    **{"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "emnist": "EMNIST", "digits": "Digits", "rxrx1": "RxRx1"},
    **{"prostate_mri": "ProstateMRI", "retinal_vessels": "Retinal vessels", "ch_mnist": "CH-MNIST"},
    **{"bird200": "Bird-200", "bioid": "BioID", "celeba": "CelebA"},
    **{"shifted_digits": "Shifted digits", "shifted_strokes": "Shifted strokes", "shift_dial": "Shift dial"},
}
SITES = {
    **{name: name.upper() for name in ("mnist", "svhn", "usps", "dslr", "hepg2", "huvec", "rpe", "u2os")},
    **{name: name.capitalize() for name in ("amazon", "caltech", "webcam", "art", "cartoon", "photo", "sketch")},
    **{name: name.capitalize() for name in ("clipart", "product", "real", "infograph", "painting", "quickdraw")},
    **{"mnist_m": "MNIST-M", "art_painting": "Art painting"},
}
SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "sigma": "σ", "tau": "τ"}
ALGORITHM_2 = {"momentum": "alpha", "probability": "p"}  # FedFA's symbols
OPTIONS = {  # where neither a symbol nor the option's own name says it
    ("distrans", "aggregation=mean"): "mean of offsets",
    ("distrans", "aggregation=network"): "network for offsets",
    ("distrans", "aggregation=none"): "offsets not aggregated",
    ("distrans", "at_unseen=none"): "no offset at unseen sites",
    ("distrans", "channels=1"): "one channel",
    ("embedding_noise", "distribution=laplace"): "Laplace",
    ("embedding_noise", "distribution=uniform"): "uniform",
    ("fedbn", "at_unseen=mean"): "mean statistics at unseen sites",
    ("fedproto", "share_model=True"): "shared model",
    ("fraug", "ema=False"): "without EMA",
    ("fraug", "rtnet=False"): "without RTNet",
}
RELEASED, AS_RELEASED = "variant=released", ", as released"


def federation(name: str) -> str:
    """A data set as its papers call it: "Office-Caltech-10"; unknown names stay."""
    return FEDERATIONS.get(name, name)


def site(name: str) -> str:
    """A site as its papers call it: "MNIST-M"; unknown names, such as those of your own folders, stay."""
    return SITES.get(name, name)


def printed(name: str) -> str:
    """What papers call a method: its class's ``printed``, or the class's own name; unknown names stay."""
    for room in ("algorithms", "augmentations"):
        if name in registry.names(room):
            method = registry.find(room, name)
            return method.printed or method.__name__
    return name


def parts(run: str) -> list[tuple[str, list[str]]]:
    """Names and options: ``"fedprox(mu=0.1)+fedrdn"`` -> ``[("fedprox", ["mu=0.1"]), ("fedrdn", [])]``."""
    found = re.findall(r"(\w+)(?:\(([^)]*)\))?", run)
    return [(name, re.findall(r"\w+=(?:\[[^]]*\]|[^,[])*", given)) for name, given in found]


def method(run: str) -> str:
    """All names but FedAvg's, sorted: ``"fedavg+fedmix+fedfa"`` -> ``"fedfa+fedmix"``; plain ``"fedavg"`` stays."""
    return "+".join(sorted({name for name, _ in parts(run)} - {"fedavg"})) or "fedavg"


def options(run: str) -> frozenset[tuple[str, str]]:
    """``"fedavg+fedfa(stages=[1, 2], p=0)"`` -> ``{("fedfa", "stages=[1, 2]"), ("fedfa", "p=0")}``."""
    return frozenset((name, option) for name, given in parts(run) for option in given)


def option_values(run: str) -> dict:
    """``"fedavg+fedfa(stages=[1, 2], p=0.5)"`` -> ``{"fedfa.stages": (1, 2), "fedfa.p": 0.5}``: columns of a frame."""
    return {
        f"{choice['name']}.{option}": tuple(value) if isinstance(value, list) else value
        for choice in papers.choices(run)
        for option, value in choice.items()
        if option != "name"
    }


def printed_for(run: str, labels) -> str | None:
    """Which of the printed labels a run stands next to: the same methods, and no option that the run has not. Of
    several the one with the most options; None where no label fits."""
    fitting = [label for label in labels if method(label) == method(run) and options(label) <= options(run)]
    return max(fitting, key=lambda label: len(options(label)), default=None)


def pretty(run: str) -> str:
    """``"FedProx (μ = 0.1) + FedRDN"``, with each option that is not the default, so that no other run has this name.
    Unknown names stay."""
    texts = []
    for name, given in parts(run):
        words = ", ".join(_in_words(name, option) for option in given if option != RELEASED)
        texts.append(printed(name) + AS_RELEASED * (RELEASED in given) + (f" ({words})" if words else ""))
    return " + ".join(texts)


def _in_words(name: str, option: str) -> str:
    """ "α = 0.3", "stages {1, 2}", "without generator"."""
    key, _, value = option.partition("=")
    value, spaced = value.replace("[", "{").replace("]", "}").removesuffix(".0"), key.replace("_", " ")
    key = ALGORITHM_2.get(key, key) if name == "fedfa" else key
    if (name, option) in OPTIONS:
        return OPTIONS[name, option]
    if key in SYMBOLS or len(key) == 1:
        return f"{SYMBOLS.get(key, key)} = {value}"
    return {"True": f"with {spaced}", "False": f"without {spaced}"}.get(value, f"{spaced} {value}")


def short(run: str) -> str:
    """As ``pretty``, without FedAvg where a method follows it: ``"FedFA (stages {1})"``, but ``"FedAvg + norm."``"""
    rest = run.removeprefix("fedavg+")
    return pretty(run if rest.startswith(("normalise", "image_noise", "own_statistics")) else rest)
