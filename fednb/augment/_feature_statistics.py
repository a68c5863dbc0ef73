"""What FedFA and its variants have in common: layers after stages, and the statistics that clients exchange."""

from collections.abc import Callable

import torch
from torch import Tensor

from fednb.doors import Client, Message
from fednb.standalone.feature_augmentation import FeatureAugmentation

START = {"mean": 0.0, "std": 1.0}  # FedFA, Eq. 4


def layers(model) -> list[FeatureAugmentation]:
    """The layers of a network, in the order of its stages."""
    return [module for module in model.modules() if isinstance(module, FeatureAugmentation)]


def draw_apart(client: Client) -> None:
    """The layers draw from a stream of their own, so that dropout in the network draws what it would without them."""
    for layer in layers(client.model):
        layer.generator = client.generator("layers")


def enter(client: Client, kept: Message, received: Message, gamma: float) -> None:
    """Puts a client's running statistics and what the server sent into the layers, before the first batch.

    kept: ``"1/mean"``, ``"1/std"``, ``"2/mean"``, ... ``[C]`` each; empty at the start: 0 and 1. received: likewise
    ``"1/gamma_mean"``, ...; empty at the start: ``gamma``.
    """
    draw_apart(client)
    start = START | {"gamma_mean": gamma, "gamma_std": gamma}
    for number, layer in enumerate(layers(client.model), 1):
        for name, value in start.items():
            given = (kept if name in START else received).get(f"{number}/{name}")
            getattr(layer, name).copy_(torch.tensor(value) if given is None else given)


def told(client: Client) -> Message:
    """Copies of the layers' running statistics, named as in ``enter``."""
    found = enumerate(layers(client.model), 1)
    return {f"{number}/{name}": getattr(layer, name).clone() for number, layer in found for name in START}


def over_clients(replies: dict[str, Message], function: Callable[[Tensor], Tensor]) -> Message:
    """``function`` of each entry, stacked over the clients as float64 ``[clients, C]``, back in the entry's type."""
    first = next(iter(replies.values()))
    stacked = {name: torch.stack([reply[name].double() for reply in replies.values()]) for name in first}
    return {name: function(values).to(first[name].dtype) for name, values in stacked.items()}


def as_gamma(found: Message) -> Message:
    """The same entries under the names that ``enter`` takes from the server: ``"1/mean"`` as ``"1/gamma_mean"``."""
    return {name.replace("/", "/gamma_"): value for name, value in found.items()}
