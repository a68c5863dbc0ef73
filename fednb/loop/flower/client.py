"""A client that lives for one message: it forgets all but its memory."""

import torch

from fednb.errors import RunError
from fednb.federation import Federation
from fednb.loop.client import Client
from fednb.loop.network import build
from fednb.methods import Message
from fednb.recipe import Recipe

ASKED = ("offer", "learn", "work", "test")  # the calls of a client; the first needs no memory, the last changes none

Memories = dict[int, dict[str, Message]]  # what a client keeps, by the number of the round after which it did


def answer(
    recipe: Recipe,
    federation: Federation,
    memories: Memories,
    kind: str,
    message: Message,
    round: int,
    device: str | torch.device = "cpu",
) -> tuple[Message, Memories]:
    """One call of a client that lives for this call alone: its reply, and its memories from now on.

    federation: with the client's own site and no other; the classes are those of all. The message says by ``after``
    which memory the client goes on from, and the reply which one it has by then (-1: none). Two before it are kept as
    well: for a server that has not seen the reply and asks again, or steps back a round.
    """
    if kind not in ASKED:
        raise RunError(f'a client is asked to "{kind}"; expected one of {", ".join(ASKED)}.')
    (site,) = federation.to(device).sites
    after = -1 if kind == "offer" else int(message["after"])
    if after not in (-1, *memories):
        raise RunError(
            f"{site.name} has lost what it kept after round {after} of {recipe}. Put the folder back that its "
            "configuration names as memory; or remove the run's checkpoint at the server, and all of it starts again."
        )
    client = Client(site, federation.outline, *build(recipe, federation.outline, device), recipe)
    for name, memory in memories.get(after, {}).items():
        client.memories[name] = {entry: value.to(device, copy=True) for entry, value in memory.items()}
    reply = getattr(client, kind)({name: value.to(device) for name, value in message.items()}, round)
    if kind != "test":
        before = sorted(number for number in memories if number <= after)[-2:]
        memories = {number: memories[number] for number in before} | {round: client.memories}
        after = round if any(client.memories.values()) else -1
    return reply | {"after": torch.tensor(after)}, memories
