"""Faster layers for bf16 on a CPU: torch's own layers, to rounding."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fednb import models
from fednb.models import _bf16_layers as layers
from fednb.models import alexnet
from fednb.randomness import generator, seeded

CASES = {
    "few pixels": (layers.Convolution, nn.Conv2d, (5, 7, {"kernel_size": 3, "padding": 1}), (4, 5, 7, 6)),
    "few pixels, one": (layers.Convolution, nn.Conv2d, (5, 7, {"kernel_size": 5, "padding": 2}), (4, 5, 1, 1)),
    "many pixels": (layers.Convolution, nn.Conv2d, (5, 7, {"kernel_size": 3, "padding": 1}), (4, 5, 9, 9)),
    "strides": (
        layers.StridedConvolution,
        nn.Conv2d,
        (3, 8, {"kernel_size": 11, "stride": 4, "padding": 2}),
        (4, 3, 64, 71),
    ),
    "strides, a kernel a channel": (
        layers.StridedDepthwise,
        nn.Conv2d,
        (6, 6, {"kernel_size": 3, "stride": 2, "padding": 1, "groups": 6, "bias": False}),
        (4, 6, 9, 10),
    ),
    "rows": (layers.Linear, nn.Linear, (33, 7, {}), (6, 33)),
    "repeats": (layers.AveragePool, nn.AdaptiveAvgPool2d, (6, {}), (4, 5, 3, 2)),
    "averages": (layers.AveragePool, nn.AdaptiveAvgPool2d, (6, {}), (4, 5, 7, 4)),
}
WEIGHTED = {name: case for name, case in CASES.items() if case[0] is not layers.AveragePool}
cases, weighted = (
    pytest.mark.parametrize(("ours", "torchs", "arguments", "shape"), chosen.values(), ids=chosen)
    for chosen in (CASES, WEIGHTED)
)


def pair(ours, torchs, arguments) -> list[nn.Module]:
    *sizes, options = arguments
    made = []
    for layer in (ours, torchs):
        with seeded("layer"):
            made.append(layer(*sizes, **options).to(memory_format=torch.channels_last))
    return made


def images(shape: tuple[int, ...]) -> torch.Tensor:
    # What bf16 holds exactly, so that only the layers round.
    return torch.randn(shape, generator=generator("images")).bfloat16().float().requires_grad_()


def derivatives(layer: nn.Module, shape: tuple[int, ...]) -> list[torch.Tensor]:
    """Output, gradients, and the gradients of a gradient's length: a second derivative."""
    weights = list(layer.parameters())
    seen = images(shape).detach().to(weights[0].dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=seen.dtype == torch.float32):
        out = layer(seen)
    first = torch.autograd.grad(out.square().sum(), [seen, *weights], create_graph=True)
    second = torch.autograd.grad(first[0].square().sum(), weights, materialize_grads=True)
    return [out, *first, *second]


@weighted
def test_in_bf16_they_are_as_near_to_float64_as_torchs(ours, torchs, arguments, shape, monkeypatch):
    monkeypatch.setattr(layers, "_multiplies_bf16", lambda: True)  # what they do elsewhere is looked at below
    mine, plain = pair(ours, torchs, arguments)
    found, usual = derivatives(mine, shape), derivatives(plain, shape)
    exact = derivatives(plain.double(), shape)
    for own, theirs, true in zip(found, usual, exact, strict=True):
        assert own.dtype == theirs.dtype and own.shape == true.shape
        scale = true.norm() + 1e-30
        assert (own - true).norm() / scale <= 1.5 * (theirs - true).norm() / scale + 0.002


@weighted
def test_a_processor_without_bf16_rounds_as_one_with_it(ours, torchs, arguments, shape, monkeypatch):
    monkeypatch.setattr(layers, "_multiplies_bf16", lambda: False)
    mine, plain = pair(ours, torchs, arguments)
    found = derivatives(mine, shape)
    plain.load_state_dict({name: value.bfloat16() for name, value in mine.state_dict().items()})
    exact = derivatives(plain.double(), shape)
    assert found[0].dtype == torch.bfloat16 and {own.dtype for own in found[1:]} == {torch.float32}
    assert (found[0] - exact[0].bfloat16()).norm() <= 3e-4 * exact[0].norm()  # rounded once; a tie can fall either way
    strays = [(own - true).norm() / (true.norm() + 1e-30) for own, true in zip(found, exact, strict=True)]
    first = 2 + len(
        list(mine.parameters())
    )  # the output and its gradients; second derivatives are rounded twice as often
    assert max(strays[:first]) <= 2**-8 and max(strays) <= 2 * 2**-8


@cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_other_precisions_they_are_torchs(ours, torchs, arguments, shape, dtype):
    seen = images(shape).to(dtype)
    for mine, plain in zip(*(layer.to(dtype)(seen) for layer in pair(ours, torchs, arguments)), strict=True):
        assert torch.equal(mine, plain)


def losses(order: torch.Tensor) -> torch.Tensor:
    """Eight steps of AlexNet in bf16 on the same batch, its images in this order."""
    model = models.build({"name": "alexnet", "width": 64}, (3, 128, 128), 10).to(memory_format=torch.channels_last)
    optimiser, found = torch.optim.SGD(model.parameters(), lr=0.01), []
    batch = torch.rand(16, 3, 128, 128, generator=generator("images")).contiguous(memory_format=torch.channels_last)
    for _ in range(8):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(batch[order])
        loss = F.cross_entropy(logits.float(), torch.arange(16)[order] % 10)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    return torch.stack(found)


def test_alexnets_losses_in_bf16_stray_no_further_than_with_images_in_another_order(monkeypatch):
    """From five starts that differ by one in a million they stray 0.7 to 1.5 times as far."""
    order = torch.arange(16)
    ours = losses(order)
    for name, layer in {"Convolution": nn.Conv2d, "StridedConvolution": nn.Conv2d, "Linear": nn.Linear}.items():
        monkeypatch.setattr(alexnet, name, layer)
    monkeypatch.setattr(alexnet, "AveragePool", nn.AdaptiveAvgPool2d)
    plain = losses(order)
    strays = [(losses(other) - plain).norm() for other in (order.flip(0), order.roll(5), order.roll(-3).flip(0))]
    assert (ours - plain).norm() <= 3 * torch.stack(strays).mean()
