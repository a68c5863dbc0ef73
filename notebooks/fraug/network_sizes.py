"""Table 4: parameters of the networks and their operations for one image."""

import pandas
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fednb import models
from fednb.methods.augmentations._fraug_networks import TwoLayers


def networks(classes: int = 10) -> dict[str, tuple[nn.Module, tuple]]:
    """The networks of Table 4, each with an input; generator and RTNet as printed, and with labels as in Eq. 3."""
    resnet = models.build("resnet18", (3, 224, 224), classes)
    resnet.head = nn.Identity()  # the paper counts the body
    noise, label, feature = torch.rand(1, 256), torch.zeros(1, dtype=torch.int64), torch.rand(1, 512)
    return {
        "ResNet18": (resnet, (torch.rand(1, 3, 224, 224),)),
        "CNN for Digits": (models.build("digits_cnn", (3, 32, 32), classes), (torch.rand(1, 3, 32, 32),)),
        "Generator": (TwoLayers(256, 512, 512, 0, positive=True), (noise, label)),
        "RTNet": (TwoLayers(512, 256, 512, 0, positive=False), (feature, label)),
        "Generator with labels": (TwoLayers(256, 512, 512, classes, positive=True), (noise, label)),
        "RTNet with labels": (TwoLayers(512, 256, 512, classes, positive=False), (feature, label)),
    }


def sizes() -> pandas.DataFrame:
    """By network: parameters, those without batch normalisation, and multiply-accumulates in G by torch's counter."""
    rows = {}
    for name, (network, inputs) in networks().items():
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network.eval()(*inputs)
        layers = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)]
        normalisation = sum(p.numel() for layer in layers for p in layer.parameters())
        whole = sum(p.numel() for p in network.parameters())
        own = {"parameters": whole, "without BN": whole - normalisation, "million": whole / 1e6}
        rows[name] = own | {"MACs (G)": counter.get_total_flops() / 2e9}
    return pandas.DataFrame(rows).T


def added(table: pandas.DataFrame) -> pandas.DataFrame:
    """Per cent of each network's parameters that generator and RTNet have, both with labels."""
    own = table.loc[["Generator with labels", "RTNet with labels"], "parameters"]
    return pandas.DataFrame({name: 100 * own / table.loc[name, "parameters"] for name in table.index[:2]})
