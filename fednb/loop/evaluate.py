"""Measures a client's network on images: what each of them scores, what is predicted, and what its features are."""

import math

import numpy
import torch
from numpy import ndarray
from scipy.ndimage import binary_erosion, distance_transform_edt
from torch import Tensor

from fednb.federation import IGNORED, Split
from fednb.methods import Client
from fednb.methods.task import overlap


@torch.inference_mode()
def scores(client: Client, split: Split) -> Tensor:
    """What each image earns with the network in ``client.model``, in [0, 1]: float64 ``[n]``."""
    client.model.eval()
    predict, none = client.owner["predict"].predict, torch.zeros(0, dtype=torch.float64, device=client.device)
    found = [client.task.scores(predict(client, batch), batch.targets) for batch in client.test_batches(split)]
    return torch.cat([none, *found])


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
def predictions(client: Client, split: Split) -> Tensor:
    """The class that the network predicts for each image, or each pixel: ``whole`` numbers of the targets' shape."""
    client.model.eval()
    kind, predict = whole(client.classes), client.owner["predict"].predict
    found = [client.task.prediction(predict(client, batch)).to(kind) for batch in client.test_batches(split)]
    return torch.cat([split.targets[:0].to(kind), *found])


def whole(count: int) -> torch.dtype:
    """The kind of numbers below ``count`` in an artefact: uint8, or int32 where they do not fit."""
    return torch.uint8 if count <= 256 else torch.int32


def example(client: Client, split: Split) -> dict[str, Tensor]:
    """The first image of the split, its target and the predicted classes, if it has one: ``[1 or 0, ...]``."""
    first = split.select(range(min(1, len(split))))
    targets = first.targets.to(whole(client.classes)).cpu()
    return {"images": first.images.cpu(), "targets": targets, "predictions": predictions(client, first).cpu()}


def masks(client: Client, split: Split) -> dict[str, Tensor]:
    """How the predicted mask of each image lies on the true one, on the CPU.

    ``common``, ``found``, ``truth`` int32 ``[n, classes]``: known pixels of a class in both, the predicted and the true
    mask. ``distances`` float32 ``[n, classes - 1]``: ``hausdorff_95`` of each class but the background; what is ignored
    is in neither mask. ``volumes`` int32 ``[n]``: the split's; an image without one is one by itself.
    """
    found, truth = predictions(client, split), split.targets
    names, numbers = ("common", "found", "truth"), range(client.classes)
    counts = (rows.T.int().cpu() for rows in overlap(found, truth, numbers))
    pairs = zip(torch.where(truth == IGNORED, truth, found).cpu().numpy(), truth.cpu().numpy(), strict=True)
    distances = [[hausdorff_95(one == number, other == number) for number in numbers[1:]] for one, other in pairs]
    volumes = torch.arange(len(split)) if split.volumes is None else split.volumes.cpu()
    return dict(zip(names, counts, strict=True)) | {
        "distances": torch.tensor(distances, dtype=torch.float32).reshape(len(split), len(numbers) - 1),
        "volumes": volumes.int(),
    }


def hausdorff_95(one: ndarray, other: ndarray) -> float:
    """The 95 % Hausdorff distance of two masks, bool ``[height, width]``, in pixels; 0 of two empty ones, NaN of one.

    Of the distances from each border pixel of one mask to the nearest of the other the 95th percentile, and of both
    directions the larger, as in MONAI (MedPy takes one percentile of both directions together). A border pixel has one
    of its four neighbours outside the mask, or lies at the image's edge.
    """
    if not (one.any() and other.any()):
        return math.nan if one.any() or other.any() else 0.0
    a, b = (mask & ~binary_erosion(mask) for mask in (one, other))
    return float(max(numpy.percentile(distance_transform_edt(~to)[start], 95) for start, to in ((a, b), (b, a))))
