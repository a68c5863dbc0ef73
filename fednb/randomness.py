"""Keyed randomness: every draw comes from a generator seeded by what it is for, not by what ran before it."""

import hashlib
from contextlib import contextmanager

import numpy as np
import torch


def seed_for(*key) -> int:
    """A 63-bit seed from (seed, round, client, purpose) or any other key of plain values."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8]) >> 1


def generator(*key) -> torch.Generator:
    """A CPU generator for this key."""
    return torch.Generator().manual_seed(seed_for(*key))


def random_state(*key) -> np.random.RandomState:
    """numpy's generator for this key. Its stream is frozen by numpy's promise, unlike that of a Generator."""
    return np.random.RandomState(seed_for(*key) % 2**32)


@contextmanager
def seeded(*key, device="cpu"):
    """Layers that draw from torch's global generators (initialisation, dropout) draw by this key inside."""
    device, seed = torch.device(device), seed_for(*key)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def drawn_from(generator: torch.Generator | None):
    """torch's global CPU draws come from this generator inside, which goes on from there; None changes nothing."""
    if generator is None:
        yield
        return
    outside = torch.get_rng_state()
    torch.set_rng_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(torch.get_rng_state())
        torch.set_rng_state(outside)
