"""FRAug's two networks, the generator of embeddings and RTNet, which makes residuals of them, and how they learn."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.methods import Message

MOMENTUM = 0.5


class TwoLayers(nn.Sequential):
    """Two linear layers with batch normalisation, a ReLU between them, and one-hot labels (0 classes: without)."""

    def __init__(self, inputs: int, hidden: int, outputs: int, classes: int, positive: bool):
        first = [nn.Linear(inputs + classes, hidden), _normalisation(hidden), nn.ReLU()]
        second = [nn.Linear(hidden, outputs), _normalisation(outputs)]
        super().__init__(*first, *second, *([nn.ReLU()] if positive else []))
        self.classes = classes

    def forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        if self.classes:
            inputs = torch.cat([inputs, F.one_hot(labels, self.classes).to(inputs.dtype)], 1)
        return super().forward(inputs)


class Learner:
    """One of the two networks (given on the meta device) in a round, in eval mode between its steps, with its SGD."""

    def __init__(self, network: nn.Module, values: Message, momenta: Message, rate: float):
        some = next(iter(values.values()))
        self.network = network.to(some.dtype).to_empty(device=some.device).eval()
        own = self.values
        torch._foreach_copy_(list(own.values()), [values[name] for name in own])
        parameters = dict(self.network.named_parameters())
        self.momenta = {n: momenta[n].clone() if momenta else torch.zeros_like(p) for n, p in parameters.items()}
        self.rate = rate

    @property
    def values(self) -> Message:
        return self.network.state_dict()

    def descend(self, loss: Tensor) -> None:
        parameters, momenta = list(self.network.parameters()), list(self.momenta.values())
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_mul_(momenta, MOMENTUM)
            torch._foreach_add_(momenta, gradients)
            torch._foreach_add_(parameters, momenta, alpha=-self.rate)
        self.network.eval()


def _normalisation(width: int) -> nn.BatchNorm1d:
    layer = nn.BatchNorm1d(width)
    layer.num_batches_tracked = None  # nothing reads the counter, and whole numbers have no mean
    return layer
