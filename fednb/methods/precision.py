"""The number formats that a recipe's ``precision`` names."""

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.float32, "fp64": torch.float64}  # of weights, images and losses


def autocast(precision: str, device: torch.device):
    """Inside, layers compute in bf16 where the recipe asks for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
