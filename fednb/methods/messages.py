"""What server and clients exchange: dictionaries of named tensors.

What a method sends under the name of an entry of the network has the shape of that entry, or is a single number.
"""

from typing import TypeVar

import torch
from torch import Tensor

from fednb.errors import RunError

Message = dict[str, Tensor]
Value = TypeVar("Value")


def part(message: Message, name: str) -> Message:
    """The entries of a message that were sent under this name, without it: ``"model/head.bias"``."""
    prefix = f"{name}/"
    return {key[len(prefix) :]: value for key, value in message.items() if key.startswith(prefix)}


def entries(name: str, message: dict[str, Value]) -> dict[str, Value]:
    """The same entries with this name in front."""
    return {f"{name}/{key}": value for key, value in message.items()}


def alike(offers: dict[str, Message], name: str) -> Tensor:
    """The entry that all offers have with the same numbers; RunError, naming two clients, where they differ."""
    (first, expected), *others = ((client, offer[name]) for client, offer in offers.items())
    for client, found in others:
        if not torch.equal(found, expected):
            why = "expected the same of all clients. Both need the same recipe and the same version of fednb"
            raise RunError(f"{client} offers {name} {found.tolist()} and {first} {expected.tolist()}; {why}.")
    return expected


def byte_counts(message: Message) -> dict[str, int]:
    """Bytes of a message by the name that its entries were sent under."""
    counts: dict[str, int] = {}
    for key, value in message.items():
        name = key.partition("/")[0]
        counts[name] = counts.get(name, 0) + value.numel() * value.element_size()
    return counts


def add(total: Message, weight: float, values: Message) -> None:
    """``total + weight * values``, entry by entry and in place; an empty total starts with the first values."""
    new = [name for name in values if name not in total]
    if new:
        total.update(zip(new, torch._foreach_mul([values[name] for name in new], weight), strict=True))
    if old := [name for name in values if name not in new]:
        torch._foreach_add_([total[name] for name in old], [values[name] for name in old], alpha=weight)
