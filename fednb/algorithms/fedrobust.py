"""FedRobust: each client trains against the affine shift of its images that raises its loss most."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.doors import DTYPES, EVERY_TASK, Batch, Client, Method
from fednb.errors import RecipeError


@dataclass(frozen=True)
class FedRobust(Method):
    r"""Federated averaging that is robust to affine distribution shifts.

    Each client k has one affine shift of all its training images, which raises the loss that the weights lower:

    .. math::
        \min_w \max_{\Lambda^k, \delta^k} \sum_k p_k \left[ F_k(w; \Lambda^k x + \delta^k)
        - \lambda \left( \lVert \Lambda^k - I \rVert^2 + \lVert \delta^k \rVert^2 \right) \right]  \tag{1}

    On each batch, with both gradients from the same pass, the weights take the recipe's step down and the shift a step
    up:

    .. math::
        \Lambda^k \leftarrow \Lambda^k + \eta \left( \nabla_{\Lambda} F_k - 2 \lambda (\Lambda^k - I) \right), \quad
        \delta^k \leftarrow \delta^k + \eta \left( \nabla_{\delta} F_k - 2 \lambda \delta^k \right)  \tag{2}

    Here Lambda is a matrix over the colour channels, ``[c, c]``, applied to every pixel, and delta an image,
    ``[c, h, w]``, both for pixels in [0, 1] as the flow leaves them, before all augmentations; shifted pixels may leave
    [0, 1]. F is the whole loss of the step, other methods' terms included. At test time images are as they are. Sends
    nothing of its own; a client keeps its Lambda and delta, which start at I and 0, from round to round.

    Args:
        rate: eta, at least 0. 0 is FedAvg: the shift stays at its start. 0.1 is ours.
        penalty: lambda, above 0. 1 is ours.

    Raises RecipeError where rate x penalty is 1 or more: Eq. 2 then overshoots I and 0 by more each step.

    Reference: Reisizadeh et al., *Robust federated learning: the case of affine distribution shifts*, NeurIPS 2020,
    Algorithm 1 (FedRobust).

    As printed (not checked against the text: the tags are ours, and eta and lambda were not found):

    1. Lambda is a full matrix over all numbers of an image: 39 billion numbers for 3 x 256 x 256. Ours, over channels,
       has the paper's own examples of a shift: intensity, contrast and brightness.
    2. One step down and one up from the same point, on every batch, between the rounds' means of w.

    No code is released that we know of. FedFA, which compares with it, prints no setting and has none either.
    """

    tasks = EVERY_TASK

    rate: float = 0.1
    penalty: float = 1.0

    def __post_init__(self):
        if self.rate < 0:
            raise RecipeError(f"fedrobust has rate {self.rate}; expected at least 0.")
        if self.penalty <= 0:
            raise RecipeError(f"fedrobust has penalty {self.penalty}; expected a value above 0.")
        if self.rate * self.penalty >= 1:
            raise RecipeError(
                f"fedrobust has rate {self.rate} and penalty {self.penalty}; expected a product below 1, else the "
                "shift overshoots by more each step. Lower the rate."
            )

    def begin(self, client: Client) -> None:
        shift, shape = client.memory(self), client.site.train.images.shape[1:]
        if self.rate and not shift:
            kind = {"dtype": DTYPES[client.recipe.precision], "device": client.device}
            shift.update(matrix=torch.eye(shape[0], **kind), offset=torch.zeros(shape, **kind))

    def inputs(self, client: Client, batch: Batch) -> None:
        if self.rate and batch.training:
            shift = {name: value.clone().requires_grad_() for name, value in client.memory(self).items()}
            shifted = torch.einsum("dc,nchw->ndhw", shift["matrix"], batch.images) + shift["offset"]  # Eq. 1
            batch.images = shifted.contiguous(memory_format=torch.channels_last)
            batch.aside[self.name] = shift

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.rate:
            batch.aside[self.name]["images"] = batch.images  # other methods may cut them off from the shift
            batch.images = batch.images.detach()

    def step(self, client: Client, batch: Batch) -> Tensor:
        if self.rate:
            batch.images = batch.images.detach().requires_grad_()
        return super().step(client, batch)

    def gradients(self, client: Client, batch: Batch) -> None:
        if self.rate:
            shift = batch.aside.pop(self.name)
            images = shift.pop("images")
            slopes = torch.autograd.grad(images, list(shift.values()), batch.images.grad)
            self._climb(client.memory(self), dict(zip(shift, slopes, strict=True)))

    def _climb(self, shift: dict[str, Tensor], slopes: dict[str, Tensor]) -> None:
        for name, value in shift.items():
            start = torch.eye(len(value), dtype=value.dtype, device=value.device) if name == "matrix" else 0
            shift[name] = value + self.rate * (slopes[name] - 2 * self.penalty * (value - start))  # Eq. 2
