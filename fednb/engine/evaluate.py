"""Measures a client's network on images: how many it gets right, and what its features are."""

import torch
from torch import Tensor

from fednb.engine.client import Client
from fednb.federation import Split


@torch.inference_mode()
def correct(client: Client, split: Split) -> int:
    """How many images of the split the network in ``client.model`` classifies correctly."""
    client.model.eval()
    right = torch.zeros((), dtype=torch.int64, device=client.device)
    for batch in client.test_batches(split):
        logits = client.owner["predict"].predict(client, batch)
        right += (logits.argmax(1) == batch.targets).sum()
    return int(right)


@torch.inference_mode()
def features(client: Client, split: Split) -> Tensor:
    """What the head sees, float32 ``[n, d]`` on the CPU."""
    client.model.eval()
    found = []
    for batch in client.test_batches(split):
        client.forward(batch)
        found.append(batch.features.float().cpu())
    return torch.cat(found)


def principal_components(rows: Tensor, count: int = 50) -> Tensor:
    """Coordinates of ``rows [n, d]`` on their first principal axes: float32 ``[n, min(count, n, d)]``."""
    centred = rows.double() - rows.double().mean(0)
    left, scale, _ = torch.linalg.svd(centred, full_matrices=False)
    return (left * scale)[:, :count].float()
