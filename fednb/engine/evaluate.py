"""Measures a client's network on images: what each of them earns, and what its features are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fednb.federation import Split

if TYPE_CHECKING:
    from fednb.engine.client import Client


@torch.inference_mode()
def scores(client: Client, split: Split) -> Tensor:
    """What each image of the split earns from the network in ``client.model``: float32 ``[n]``, 1 right, 0 wrong."""
    client.model.eval()
    found = [torch.zeros(0, device=client.device)]
    for batch in client.test_batches(split):
        logits = client.owner["predict"].predict(client, batch)
        found.append((logits.argmax(1) == batch.targets).float())
    return torch.cat(found)


@torch.inference_mode()
def features(client: Client, split: Split) -> Tensor:
    """What the head sees, float32 ``[n, d]`` on the CPU."""
    client.model.eval()
    found = []
    for batch in client.test_batches(split):
        client.forward(batch)
        found.append(batch.features.float().cpu())
    return torch.cat(found)


@torch.inference_mode()
def example(client: Client, split: Split) -> dict[str, Tensor]:
    """The first image of the split, its target and the predicted classes: uint8 ``[1, ...]`` each, on the CPU."""
    client.model.eval()
    first = split.select([0])
    batch = client.batch(split, torch.zeros(1, dtype=torch.int64), training=False)
    predicted = client.owner["predict"].predict(client, batch).argmax(1)
    shown = {"images": first.images, "targets": first.targets, "predictions": predicted}
    return {name: value.byte().cpu() for name, value in shown.items()}


def principal_components(rows: Tensor, count: int = 50) -> Tensor:
    """Coordinates of ``rows [n, d]`` on their first principal axes: float32 ``[n, min(count, n, d)]``."""
    centred = rows.double() - rows.double().mean(0)
    left, scale, _ = torch.linalg.svd(centred, full_matrices=False)
    return (left * scale)[:, :count].float()
