"""Random numbers that are needed in the middle of a step, and alike each time its loss is computed."""

import torch

from fednb.methods import Client


def seed(client: Client, purpose: str) -> int:
    """A seed to leave in ``batch.aside`` before the step: two generators of it draw the same."""
    return int(torch.randint(2**62, (), generator=client.generator(purpose)))
