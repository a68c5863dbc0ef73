"""What FedFA and its variants have in common: layers after stages, and the statistics that clients exchange."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fednb.methods import EVERY_TASK, Client, Message, Method, Server, option
from fednb.methods.augmentations._stages import append, stages_option
from fednb.standalone.feature_augmentation import FeatureAugmentation

START = {"mean": 0.0, "std": 1.0}  # FedFA, Eq. 4


@dataclass(frozen=True)
class FeatureStatistics(Method):
    """A ``FeatureAugmentation`` layer after each of the stages; nothing is exchanged.

    The layers draw from a stream of their own, so that dropout in the network draws what it would without them.

    fusion: the layer's. Options are explained at FedFA.
    """

    tasks = EVERY_TASK
    fusion: ClassVar[str]

    stages: tuple[int, ...] | None = stages_option(None)
    probability: float = option(0.5, within="[0, 1]")

    def layer_options(self) -> dict:
        """Of the layer, beside the options that all variants have."""
        return {}

    def build(self, model: nn.Module) -> nn.Module:
        own = {"probability": self.probability, "fusion": self.fusion} | self.layer_options()
        append(model, self.stages, lambda channels: FeatureAugmentation(channels, **own))
        return model

    def begin(self, client: Client) -> None:
        for layer in layers(client.model):
            layer.generator = client.generator("layers")


@dataclass(frozen=True)
class ExchangedStatistics(FeatureStatistics):
    """Clients keep the layers' running statistics and send them; what the server makes of them is each layer's gamma.

    first_gamma: until the first aggregation.
    """

    first_gamma: ClassVar[float]

    momentum: float = option(0.99, within="[0, 1]")

    def layer_options(self) -> dict:
        return {"momentum": self.momentum}

    def gamma(self, values: Tensor) -> Tensor:
        """Of one statistic of all clients, float64 ``[clients, C]`` -> ``[C]``."""
        raise NotImplementedError

    def known(self, client: Client) -> Message:
        """What is in the layers before the first batch: ``"1/mean"``, ``"1/gamma_std"``, ``"2/mean"``, ... ``[C]``."""
        return client.memory(self) | client.inbox(self)

    def send(self, server: Server, client: str) -> Message:
        return dict(server.memory(self))

    def begin(self, client: Client) -> None:
        super().begin(client)
        known = self.known(client)
        start = START | {"gamma_mean": self.first_gamma, "gamma_std": self.first_gamma}
        for number, layer in enumerate(layers(client.model), 1):
            for name, value in start.items():
                getattr(layer, name).copy_(known.get(f"{number}/{name}", torch.tensor(value)))

    def reply(self, client: Client) -> Message:
        found = told(client)
        client.memory(self).update(found)
        return found

    def aggregate(self, server: Server) -> None:
        found = over_clients(server.replies(self), self.gamma)
        server.memory(self).update({name.replace("/", "/gamma_"): value for name, value in found.items()})


def layers(model) -> list[FeatureAugmentation]:
    """The layers of a network, in the order of its stages."""
    return [module for module in model.modules() if isinstance(module, FeatureAugmentation)]


def told(client: Client) -> Message:
    """Copies of the layers' running statistics: ``"1/mean"``, ``"1/std"``, ``"2/mean"``, ... ``[C]``."""
    found = enumerate(layers(client.model), 1)
    return {f"{number}/{name}": getattr(layer, name).clone() for number, layer in found for name in START}


def over_clients(replies: dict[str, Message], function: Callable[[Tensor], Tensor]) -> Message:
    """``function`` of each entry, stacked over the clients as float64 ``[clients, C]``, back in the entry's type."""
    first = next(iter(replies.values()))
    stacked = {name: torch.stack([reply[name].double() for reply in replies.values()]) for name in first}
    return {name: function(values).to(first[name].dtype) for name, values in stacked.items()}
