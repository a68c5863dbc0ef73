"""How runs, data sets and sites are called: run labels taken apart, and the names that papers print."""

import ast
import re

from fednb import registry


def parts(run: str) -> list[tuple[str, str]]:
    """Names and options: ``"fedprox(mu=0.1)+fedrdn"`` -> ``[("fedprox", "mu=0.1"), ("fedrdn", "")]``."""
    return re.findall(r"(\w+)(?:\(([^)]*)\))?", run)


def printed(name: str) -> str:
    """What papers call a method: its class's ``printed``, or the class's own name; unknown names stay."""
    for room in ("algorithms", "augmentations"):
        if name in registry.names(room):
            method = registry.find(room, name)
            return method.printed or method.__name__
    return name


FEDERATIONS = {
    "office_caltech10": "Office-Caltech-10",
    "domainnet": "DomainNet",
    "prostate_mri": "ProstateMRI",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "emnist": "EMNIST",
    "digits": "Digits",
    "pacs": "PACS",
    "office_home": "OfficeHome",
    "rxrx1": "RxRx1",
    "ch_mnist": "CH-MNIST",
    "bird200": "Bird-200",
    "bioid": "BioID",
    "celeba": "CelebA",
    "retinal_vessels": "Retinal vessels",
    "shifted_digits": "Shifted digits",
    "shifted_strokes": "Shifted strokes",
}  # as the papers call theirs
SITES = {
    **{name: name.upper() for name in ("mnist", "svhn", "usps", "dslr", "hepg2", "huvec", "rpe", "u2os")},
    **{name: name.capitalize() for name in ("amazon", "caltech", "webcam", "art", "cartoon", "photo", "sketch")},
    **{name: name.capitalize() for name in ("clipart", "product", "real", "infograph", "painting", "quickdraw")},
    **{"mnist_m": "MNIST-M", "art_painting": "Art painting"},
}
SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "sigma": "σ", "tau": "τ"}
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


def pretty(run: str, options: bool = True) -> str:
    """``"FedProx (μ = 0.1) + FedRDN"``, with each option that is not the default, so that no other run has this name;
    without options "FedProx + FedRDN". As released is always said. Unknown names stay."""
    return " + ".join(_pretty(name, given, options) for name, given in parts(run))


def _pretty(name: str, given: str, options: bool) -> str:
    of = _split(given)
    texts = ", ".join(_in_words(name, option) for option in of if option != RELEASED) if options else ""
    return f"{printed(name)}{AS_RELEASED * (RELEASED in of)}" + (f" ({texts})" if texts else "")


def _in_words(name: str, option: str) -> str:
    """ "α = 0.3", "stages {1, 2}", "without generator"."""
    key, _, value = option.partition("=")
    value, spaced = value.replace("[", "{").replace("]", "}").removesuffix(".0"), key.replace("_", " ")
    if name == "fedfa":
        key = {"momentum": "alpha", "probability": "p"}.get(key, key)  # Algorithm 2's symbols
    if (name, option) in OPTIONS:
        return OPTIONS[name, option]
    if key in SYMBOLS or len(key) == 1:
        return f"{SYMBOLS.get(key, key)} = {value}"
    return {"True": f"with {spaced}", "False": f"without {spaced}"}.get(value, f"{spaced} {value}")


def short(run: str) -> str:
    """As ``pretty``, without FedAvg where a method follows it: ``"FedFA (stages {1})"``, but ``"FedAvg + norm."``"""
    rest = run.removeprefix("fedavg+")
    return pretty(run if rest.startswith(("normalise", "image_noise")) else rest)


def method(run: str) -> str:
    """What a run is named after, whichever room its parts come from: all names but FedAvg's, sorted.

    ``"fedavg+fedfa+fedmix"``, ``"fedfa+fedmix"`` and ``"fedavg+fedmix+fedfa"`` are all ``"fedfa+fedmix"``;
    plain ``"fedavg"`` stays ``"fedavg"``.
    """
    return "+".join(sorted({name for name, _ in parts(run)} - {"fedavg"})) or "fedavg"


def options(run: str) -> frozenset[tuple[str, str]]:
    """``"fedavg+fedfa(stages=[1, 2], p=0)"`` -> ``{("fedfa", "stages=[1, 2]"), ("fedfa", "p=0")}``."""
    return frozenset((name, option) for name, given in parts(run) for option in _split(given))


def _split(given: str) -> list[str]:
    return re.findall(r"\w+=(?:\[[^]]*\]|[^,[])*", given)


def option_values(run: str) -> dict:
    """``"fedavg+fedfa(stages=[1, 2], p=0.5)"`` -> ``{"fedfa.stages": (1, 2), "fedfa.p": 0.5}``: columns of a frame."""
    return {f"{name}.{option.partition('=')[0]}": _value(option.partition("=")[2]) for name, option in options(run)}


def _value(text: str):
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    return tuple(value) if isinstance(value, list) else value


def printed_for(run: str, labels) -> str | None:
    """Which of the printed labels a run stands beside: the same methods, and no option that the run has not.

    Of several the one with the most options: ``"fedfa(stages=[1], variant=released)"`` stands beside
    ``"fedfa(stages=[1])"`` if that is printed, else beside ``"fedfa"``. None where no label fits.
    """
    fitting = [label for label in labels if method(label) == method(run) and options(label) <= options(run)]
    return max(fitting, key=lambda label: len(options(label)), default=None)
