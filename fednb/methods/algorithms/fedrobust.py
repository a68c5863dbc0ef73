"""FedRobust: each client trains against the affine shift of its images that raises its loss most."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import DTYPES, EVERY_TASK, Batch, Client, Method, option


@dataclass(frozen=True)
class FedRobust(Method):
    r"""Federated averaging that is robust to affine distribution shifts.

    Each client k has one affine shift of all its training images, which raises the loss that the weights lower:

    .. math::
        \min_w \max_{\Lambda^k, \delta^k} \sum_k p_k \left[ F_k(w; \Lambda^k x + \delta^k)
        - \lambda_1 \lVert \Lambda^k - I \rVert^2 - \lambda_2 \lVert \delta^k \rVert^2 \right]  \tag{1}

    On each batch, with both gradients from the same pass, the weights take the recipe's step down and the shift one up:

    .. math::
        \Lambda^k \leftarrow \Lambda^k + \eta_1 \left( \nabla_{\Lambda} F_k - 2 \lambda_1 (\Lambda^k - I) \right), \quad
        \delta^k \leftarrow \delta^k + \eta_2 \left( \nabla_{\delta} F_k - 2 \lambda_2 \delta^k \right)  \tag{2}

    Lambda is a matrix over the colour channels, ``[c, c]``, applied to every pixel, delta an image, ``[c, h, w]``, both
    for pixels in [0, 1] before all augmentations; shifted pixels may leave [0, 1]. F is the whole loss of the step,
    other methods' terms included. At test time images are as they are. Sends nothing of its own; a client keeps its
    Lambda and delta, which start at I and 0, from round to round.

    Args:
        matrix_rate, offset_rate: eta_1 of Lambda and eta_2 of delta, at least 0. 0 leaves a part at its start; 0 for
            both is FedAvg. 0.1 for each is ours.
        matrix_penalty, offset_penalty: lambda_1 of Lambda and lambda_2 of delta, above 0. 1 for each is ours. Where
            rate x penalty is 1 or more, Eq. 2 overshoots I or 0 by more each step.

    Reference: Reisizadeh et al., *Robust federated learning: the case of affine distribution shifts*, NeurIPS 2020,
    Algorithm 1 (FedRobust).

    As printed (the tags are ours; FedFA prints no rate or penalty): Lambda is a full matrix over all numbers of an
    image. Ours, over channels, has the paper's own examples of a shift: intensity, contrast and brightness.

    As released (github.com/farzanfarnia/RobustFL): clients are averaged after every step, and tested under shifts as
    well; delta has rate 1 (CIFAR-10: 1.25) and penalty 0.08, the full matrix Lambda 0.05 and 2.
    """

    tasks = EVERY_TASK

    matrix_rate: float = option(0.1, at_least=0)
    matrix_penalty: float = option(1.0, above=0)
    offset_rate: float = option(0.1, at_least=0)
    offset_penalty: float = option(1.0, above=0)

    def begin(self, client: Client) -> None:
        shift, shape = client.memory(self), client.site.train.images.shape[1:]
        if (self.matrix_rate or self.offset_rate) and not shift:
            kind = {"dtype": DTYPES[client.recipe.precision], "device": client.device}
            shift.update(matrix=torch.eye(shape[0], **kind), offset=torch.zeros(shape, **kind))

    def inputs(self, client: Client, batch: Batch) -> None:
        if batch.training and client.memory(self):
            shift = {name: value.clone().requires_grad_() for name, value in client.memory(self).items()}
            shifted = torch.einsum("dc,nchw->ndhw", shift["matrix"], batch.images) + shift["offset"]  # Eq. 1
            batch.images = shifted.contiguous(memory_format=torch.channels_last)
            batch.aside[self.name] = shift

    def before_step(self, client: Client, batch: Batch) -> None:
        if client.memory(self):
            batch.aside[self.name]["images"] = batch.images  # other methods may cut them off from the shift
            batch.images = batch.images.detach()

    def step(self, client: Client, batch: Batch) -> Tensor:
        if client.memory(self):
            batch.images = batch.images.detach().requires_grad_()
        return super().step(client, batch)

    def gradients(self, client: Client, batch: Batch) -> None:
        if client.memory(self):
            shift = batch.aside.pop(self.name)
            images = shift.pop("images")
            gradients = torch.autograd.grad(images, list(shift.values()), batch.images.grad)
            kept = client.memory(self)
            for (name, value), gradient in zip(kept.items(), gradients, strict=True):
                start = torch.eye(len(value), dtype=value.dtype, device=value.device) if name == "matrix" else 0
                rate, penalty = getattr(self, f"{name}_rate"), getattr(self, f"{name}_penalty")
                kept[name] = value + rate * (gradient - 2 * penalty * (value - start))  # Eq. 2
