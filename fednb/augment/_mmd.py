"""Maximum mean discrepancy: how far two samples are from coming from one distribution."""

import torch
from torch import Tensor

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


def mmd(one: Tensor, other: Tensor, scale: Tensor) -> Tensor:
    r"""The squared discrepancy of two samples, ``[..., n, d]`` and ``[..., m, d]``: one number for each leading index.

    .. math::
        \overline{k(x, x')} + \overline{k(y, y')} - 2\, \overline{k(x, y)}, \quad
        k(a, b) = \sum_i \exp(-\lVert a - b \rVert^2 / (w_i s)), \quad w_i = 1/4, 1/2, 1, 2, 4

    with means over all pairs, a row with itself included (the biased estimate); 0 for equal samples. The kernel
    is that of FRAug's released code, where the scale s is ``spread(one, other)``.
    """
    n, rows = one.shape[-2], _centred(one, other)
    products = rows @ rows.mT
    squares = products.diagonal(dim1=-2, dim2=-1)
    distances = (squares[..., :, None] + squares[..., None, :] - 2 * products).clamp(min=0)
    kernel = sum(torch.exp(-distances / (width * scale)) for width in WIDTHS)
    within = kernel[..., :n, :n].mean((-2, -1)) + kernel[..., n:, n:].mean((-2, -1))
    return within - 2 * kernel[..., :n, n:].mean((-2, -1))


@torch.no_grad()
def spread(one: Tensor, other: Tensor) -> Tensor:
    """The mean squared distance of two different rows of ``[n, d]`` and ``[m, d]`` together; without a gradient."""
    rows = _centred(one, other)
    return (2 * rows.square().sum() / (len(rows) - 1)).clamp(min=1e-12)


def _centred(one: Tensor, other: Tensor) -> Tensor:
    """All rows around their common mean: distances stay, rounding errors shrink."""
    rows = torch.cat([one, other], -2)
    return rows - rows.detach().mean(-2, keepdim=True)
