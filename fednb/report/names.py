"""How methods are called: run labels taken apart, and the names that papers print."""

import re

from fednb import catalogue


def parts(run: str) -> list[tuple[str, str]]:
    """Names and options: ``"fedprox(mu=0.1)+fedrdn"`` -> ``[("fedprox", "mu=0.1"), ("fedrdn", "")]``."""
    return re.findall(r"(\w+)(?:\(([^)]*)\))?", run)


def printed(name: str) -> str:
    """What papers call a method: its class's ``printed``, or the class's own name; unknown names stay."""
    for room in ("algorithms", "augment"):
        if name in catalogue.names(room):
            method = catalogue.find(room, name)
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
}  # as the papers call them


def pretty(run: str, options: bool = False) -> str:
    """``"FedProx + FedRDN"``, with options ``"FedProx (mu=0.1) + FedRDN"``; unknown names stay."""
    return " + ".join(printed(name) + (f" ({given})" if options and given else "") for name, given in parts(run))


def alone(run: str) -> str:
    """Without FedAvg where a method follows it: ``"fedfa(stages=[1])"``, but ``"fedavg+normalise"``."""
    rest = run.removeprefix("fedavg+")
    return run if rest.startswith(("normalise", "image_noise")) else rest


def short(run: str) -> str:
    """With options, as ``alone``: ``"FedFA (stages=[1])"``, but ``"FedAvg + norm."``"""
    return pretty(alone(run), options=True)


def method(run: str) -> str:
    """What a run is named after, whichever room its parts come from: all names but FedAvg's, sorted.

    ``"fedavg+fedfa+fedmix"``, ``"fedfa+fedmix"`` and ``"fedavg+fedmix+fedfa"`` are all ``"fedfa+fedmix"``;
    plain ``"fedavg"`` stays ``"fedavg"``.
    """
    return "+".join(sorted({name for name, _ in parts(run)} - {"fedavg"})) or "fedavg"


def options(run: str) -> frozenset[tuple[str, str]]:
    """``"fedavg+fedfa(stages=[1, 2], p=0)"`` -> ``{("fedfa", "stages=[1, 2]"), ("fedfa", "p=0")}``."""
    return frozenset(
        (name, option) for name, given in parts(run) for option in re.findall(r"\w+=(?:\[[^]]*\]|[^,[])*", given)
    )


def printed_for(run: str, labels) -> str | None:
    """Which of the printed labels a run stands beside: the same methods, and no option that the run has not.

    Of several the one with the most options: ``"fedfa(stages=[1], variant=released)"`` stands beside
    ``"fedfa(stages=[1])"`` if that is printed, else beside ``"fedfa"``. None where no label fits.
    """
    fitting = [label for label in labels if method(label) == method(run) and options(label) <= options(run)]
    return max(fitting, key=lambda label: len(options(label)), default=None)
