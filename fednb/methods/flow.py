"""The basic augmentation flow of the papers, on a whole batch on its device, each image with its own draw."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

ROTATION_DEGREES = 30.0
CROP_MARGIN = 4  # pixels on each side


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirrors each image left to right with probability 0.5."""
    chosen = torch.rand(len(images), generator=generator) < 0.5
    columns = torch.arange(images.shape[-1])
    columns = torch.where(chosen[:, None], columns.flip(0), columns).to(images.device, non_blocking=True)
    return images.gather(-1, columns[:, None, None].expand_as(images))


def rotation(images: Tensor, generator: torch.Generator) -> Tensor:
    """Turns each image by an angle uniform within 30 degrees, nearest sampling, black where nothing falls."""
    degrees = (2 * torch.rand(len(images), generator=generator) - 1) * ROTATION_DEGREES
    return rotate(images, degrees.to(images.device, non_blocking=True))


def crop(images: Tensor, generator: torch.Generator) -> Tensor:
    """Moves each image by up to 4 pixels along rows and columns, all alike likely; mirrored at its edges."""
    moved = torch.randint(-CROP_MARGIN, CROP_MARGIN + 1, (2, len(images)), generator=generator)
    for axis, by in zip((-2, -1), moved, strict=True):
        last = images.shape[axis] - 1
        seen = last - (last - (torch.arange(last + 1) + by[:, None]).abs()).abs()  # [n, height or width]
        shape = (len(images), 1, -1, 1) if axis == -2 else (len(images), 1, 1, -1)
        images = images.gather(axis, seen.to(images.device, non_blocking=True).view(shape).expand_as(images))
    return images


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Turns image i of ``[n, channels, height, width]`` counter-clockwise by ``degrees[i]`` about its centre."""
    height, width = images.shape[-2:]
    angle = degrees.to(torch.float64) * (math.pi / 180)
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    ratio = height / width
    rows = [torch.stack([cosine, -sine * ratio, zero], 1), torch.stack([sine / ratio, cosine, zero], 1)]
    turn = torch.stack(rows, 2).to(images.dtype)  # [n, 3, 2]
    unturned = torch.eye(2, 3, dtype=turn.dtype, device=turn.device)
    centres = F.affine_grid(unturned[None], [1, 1, height, width], align_corners=False)
    centres = F.pad(centres, (0, 1), value=1).view(1, -1, 3).expand(len(images), -1, -1)
    grid = (centres @ turn).view(-1, height, width, 2)
    return F.grid_sample(images, grid, mode="nearest", padding_mode="zeros", align_corners=False)


FLOWS = {"flip": flip, "rotation": rotation, "crop": crop}


def apply(images: Tensor, flow: tuple[str, ...], generator: torch.Generator) -> Tensor:
    """Images ``[n, channels, height, width]`` in [0, 1] after the named operations, in order.

    Source: released code of FedBN and FedRDN (flip 0.5, rotation within 30 degrees) and of NIID-Bench (crop).
    """
    for operation in flow:
        images = FLOWS[operation](images, generator)
    return images
