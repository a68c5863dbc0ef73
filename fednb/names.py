"""How methods are called: run labels taken apart, and the names that papers print."""

import re

PRINTED = {
    "fedavg": "FedAvg",
    "fedavgm": "FedAvgM",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "fednova": "FedNova",
    "fedproto": "FedProto",
    "fedbn": "FedBN",
    "fedsam": "FedSAM",
    "normalise": "norm.",
    "fedmix": "FedMix",
    "fedrdn": "FedRDN",
    "fedrdn_v": "FedRDN-V",
    "fedfa": "FedFA",
    "fraug": "FRAug",
    "distrans": "DisTrans",
}


def parts(run: str) -> list[tuple[str, str]]:
    """Names and options: ``"fedprox(mu=0.1)+fedrdn"`` -> ``[("fedprox", "mu=0.1"), ("fedrdn", "")]``."""
    return re.findall(r"(\w+)(?:\(([^)]*)\))?", run)


def pretty(run: str, options: bool = False) -> str:
    """``"FedProx + FedRDN"``, with options ``"FedProx (mu=0.1) + FedRDN"``; unknown names stay."""
    return " + ".join(
        PRINTED.get(name, name) + (f" ({given})" if options and given else "") for name, given in parts(run)
    )


def method(run: str) -> str:
    """What a run is named after, whichever room its parts come from: all names but FedAvg's, sorted.

    ``"fedavg+fedfa+fedmix"``, ``"fedfa+fedmix"`` and ``"fedavg+fedmix+fedfa"`` are all ``"fedfa+fedmix"``;
    plain ``"fedavg"`` stays ``"fedavg"``.
    """
    return "+".join(sorted({name for name, _ in parts(run)} - {"fedavg"})) or "fedavg"
