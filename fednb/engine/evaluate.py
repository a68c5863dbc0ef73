"""Measures a client's network on images: what each of them scores, and what its features are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fednb.federation import Split

if TYPE_CHECKING:
    from fednb.engine.client import Client


@torch.inference_mode()
def scores(client: Client, split: Split) -> Tensor:
    """What each image of the split earns with the network in ``client.model``, in [0, 1]: float64 ``[n]``."""
    client.model.eval()
    found = [torch.zeros(0, dtype=torch.float64, device=client.device)]
    for batch in client.test_batches(split):
        found.append(client.task.scores(client.owner["predict"].predict(client, batch), batch.targets))
    return torch.cat(found)


def total(scores: Tensor) -> int | float:
    """The sum of scores: of right and wrong answers a whole number, else rounded to 6 digits."""
    value = round(float(scores.sum()), 6)
    return int(value) if value.is_integer() else value


@torch.inference_mode()
def features(client: Client, split: Split) -> Tensor:
    """What the head sees, float32 ``[n, d]`` on the CPU."""
    client.model.eval()
    found = [torch.zeros(0, client.model.head.in_features)]
    for batch in client.test_batches(split):
        client.forward(batch)
        found.append(batch.features.float().cpu())
    return torch.cat(found)


@torch.inference_mode()
def example(client: Client, split: Split) -> dict[str, Tensor]:
    """The first image of the split, its target and the predicted classes, if it has one: uint8 ``[1 or 0, ...]``."""
    client.model.eval()
    first = split.select(range(min(1, len(split))))
    shown = {"images": first.images, "targets": first.targets, "predictions": first.targets}
    for batch in client.test_batches(first):
        shown["predictions"] = client.task.prediction(client.owner["predict"].predict(client, batch))
    return {name: value.byte().cpu() for name, value in shown.items()}


def principal_components(rows: Tensor, count: int = 50) -> Tensor:
    """Coordinates of ``rows [n, d]`` on their first principal axes: float32 ``[n, min(count, n, d)]``."""
    centred = rows.double() - rows.double().mean(0)
    left, scale, _ = torch.linalg.svd(centred, full_matrices=False)
    return (left * scale)[:, :count].float()
