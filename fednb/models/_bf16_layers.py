"""Layers that are torch's own, and on a CPU in bf16 faster: the same sums, in another order and layout.

A processor without bf16 multiplies in float32 what is rounded to bf16, and rounds what comes out.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW_PIXELS = 64  # of a feature map: above, oneDNN's weight gradient is faster than a product with patches


class Convolution(nn.Conv2d):
    """``nn.Conv2d`` with stride 1, a bias and zero padding.

    Where feature maps are small, the weight's gradient is one product of the gradients with the patches that the kernel
    saw, in the weight's own layout and type: oneDNN is slow there.
    """

    def forward(self, images: Tensor) -> Tensor:
        many = images.shape[-2] * images.shape[-1] > FEW_PIXELS
        if not _in_bf16(images) or (many and _multiplies_bf16()):
            return super().forward(images)
        return _Convolution.apply(images.to(torch.bfloat16), self.weight, self.bias, self.padding)


class StridedConvolution(nn.Conv2d):
    """AlexNet's first ``nn.Conv2d`` (kernel 11, stride s = 4, padding 2): stride 1 on s x s times as many channels.

    The kernel grows with zeros to a multiple of s, and every s x s pixels become one with all their channels.
    """

    def forward(self, images: Tensor) -> Tensor:
        if not _in_bf16(images):
            return super().forward(images)
        s, (height, width) = self.stride[0], images.shape[-2:]
        kernel = -self.kernel_size[0] % s
        weight = _fold(F.pad(self.weight, (0, kernel, 0, kernel)), s)
        near = self.padding[0]
        far = [-(size + near) % s for size in (width, height)]
        images = F.pad(images.to(torch.bfloat16).permute(0, 2, 3, 1), (0, 0, near, far[0], near, far[1]))
        return _product(F.conv2d, _fold(images.permute(0, 3, 1, 2), s), weight, self.bias)


class StridedDepthwise(nn.Conv2d):
    """MobileNetV2's ``nn.Conv2d`` with a kernel a channel and stride 2, summed in float32: in bf16 oneDNN is slow."""

    def forward(self, images: Tensor) -> Tensor:
        if not _in_bf16(images):
            return super().forward(images)
        with torch.autocast("cpu", enabled=False):
            found = self._conv_forward(images.bfloat16().float(), self.weight.bfloat16().float(), self.bias)
            return found.bfloat16()


class Linear(nn.Linear):
    """``nn.Linear`` with a bias, on rows. The gradient of its weight is computed in the weight's own type."""

    def forward(self, rows: Tensor) -> Tensor:
        if not _in_bf16(rows):
            return super().forward(rows)
        return _Linear.apply(rows.to(torch.bfloat16), self.weight, self.bias)


class AveragePool(nn.AdaptiveAvgPool2d):
    """``nn.AdaptiveAvgPool2d`` to a square. Where it only repeats pixels, a product with zeros and ones does so."""

    def forward(self, images: Tensor) -> Tensor:
        (*batch, height, width), size = images.shape, self.output_size
        if images.dtype != torch.bfloat16 or size % height or size % width:
            return super().forward(images)
        pixels = torch.eye(height * width, dtype=images.dtype, device=images.device).view(height, 1, width, 1, -1)
        repeated = pixels.expand(-1, size // height, -1, size // width, -1).reshape(size * size, -1)
        return (images.reshape(-1, height * width) @ repeated.t()).view(*batch, size, size)


def _in_bf16(values: Tensor) -> bool:
    return values.device.type == "cpu" and torch.is_autocast_enabled("cpu") and values.dtype != torch.float64


@cache
def _multiplies_bf16() -> bool:
    """Whether torch's oneDNN has bf16 on this processor."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _product(product, *terms: Tensor, **geometry) -> Tensor:
    """``product`` of bf16 tensors, in bf16."""
    if _multiplies_bf16():
        return product(*terms, **geometry)
    with torch.autocast("cpu", enabled=False):
        return product(*(each.bfloat16().float() for each in terms), **geometry).bfloat16()


def _fold(images: Tensor, s: int) -> Tensor:
    """``[n, c, height, width]`` -> ``[n, s * s * c, height / s, width / s]``, channels last."""
    n, c, height, width = images.shape
    parts = images.permute(0, 2, 3, 1).reshape(n, height // s, s, width // s, s * c).transpose(2, 3)
    return parts.reshape(n, height // s, width // s, s * s * c).permute(0, 3, 1, 2)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, images, weight, bias, padding):
        ctx.padding, ctx.lowered = padding, weight.to(images.dtype)
        ctx.save_for_backward(images, weight)
        return _product(F.conv2d, images, ctx.lowered, bias.to(images.dtype), padding=padding)

    @staticmethod
    def backward(ctx, gradient):
        images, weight = ctx.saved_tensors
        to_images = _product(F.conv_transpose2d, gradient, _lowered(ctx, weight), padding=ctx.padding)
        (above, beside), kernel = ctx.padding, weight.shape[-2:]
        images = F.pad(images.permute(0, 2, 3, 1), (0, 0, beside, beside, above, above))
        patches = images.unfold(1, kernel[0], 1).unfold(2, kernel[1], 1).permute(0, 1, 2, 4, 5, 3)
        gradient = gradient.movedim(1, 0).flatten(1).contiguous()  # [out, n * height * width]
        to_weight = _product(torch.matmul, gradient, patches.reshape(gradient.shape[1], -1)).to(weight.dtype)
        to_weight = to_weight.view(len(gradient), *kernel, -1).permute(0, 3, 1, 2)
        return to_images, to_weight, gradient.sum(1).to(weight.dtype), None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias):
        ctx.lowered = weight.to(rows.dtype)
        ctx.save_for_backward(rows, weight)
        return _product(F.linear, rows, ctx.lowered, bias.to(rows.dtype))

    @staticmethod
    def backward(ctx, gradient):
        rows, weight = ctx.saved_tensors
        to_rows = _product(torch.matmul, gradient, _lowered(ctx, weight))
        gradient = gradient.to(weight.dtype)
        return to_rows, gradient.t() @ rows.to(weight.dtype), gradient.sum(0)


def _lowered(ctx, weight: Tensor) -> Tensor:
    """The weight in bf16: that of the forward pass, or one that a second derivative reaches the weight through."""
    return weight.to(ctx.lowered.dtype) if torch.is_grad_enabled() else ctx.lowered
