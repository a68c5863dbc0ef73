"""A recipe over a network, by Flower: ``server_app`` and ``client_app``; ``fednb federate`` gives them to Flower.

A client's memory lies on its node's disk, where it outlives the node. A SuperNode's configuration: ``site``, and where
they differ from the defaults ``data`` (the folder of its images), ``device``, ``memory`` (``FEDNB_MEMORY``, or the
folder ``fednb-memory`` where the node was started). In Flower's simulation node 0 has the first site, and so on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import flwr
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fednb.errors import FednbError, RunError
from fednb.federation import Federation
from fednb.files import write_together
from fednb.loop.flower.checks import Introduction, printable
from fednb.loop.flower.client import answer
from fednb.loop.flower.server import RemoteRun
from fednb.methods import Message
from fednb.recipe import Recipe
from fednb.records.provenance import source_hash
from fednb.records.record import checksum
from fednb.records.staleness import used
from fednb.records.store import Record, Store
from fednb.records.training import federation_of, finish

TYPES = {"work": "train", "test": "evaluate"}  # of Flower's messages; "query" for all else
LOOKS = 3.0  # seconds between two looks at which nodes are there

client_app = ClientApp()
server_app = ServerApp()


@client_app.train()
@client_app.evaluate()
@client_app.query()
def reply(message: FlowerMessage, context: Context) -> FlowerMessage:
    """Answers the server; what fednb refuses goes back in words, and everything else is Flower's to report."""
    asked = message.content["asked"]
    try:
        recipe = _recipe(asked)
        if asked["kind"] == "introduce":
            introduction = Introduction.of(*_own(recipe, context.node_config))
            records = {"introduction": ConfigRecord({"text": json.dumps(asdict(introduction))})}
        else:
            records = work(recipe, asked, message.content, context)
    except FednbError as error:
        records = {"refused": ConfigRecord({"why": str(error)})}
    return FlowerMessage(RecordDict(records), reply_to=message)


def _recipe(asked: ConfigRecord) -> Recipe:
    """What the server wants trained; RunError where it has another source of fednb, or other files from outside."""
    recipe = Recipe(**json.loads(asked["recipe"]))
    here, there = {"fednb": source_hash()} | used(recipe.full), json.loads(asked["source"])
    if differing := [name for name in here if here[name] != there.get(name)]:
        advice = "Install the same version on both, or copy the same file to the folder that FEDNB_METHODS names"
        raise RunError(f"the server has another {', another '.join(differing)} than this client. {advice}.")
    return recipe


def work(recipe: Recipe, asked: ConfigRecord, content: RecordDict, context: Context) -> dict:
    config = context.node_config
    own, _ = _own(recipe, config)
    site = own.sites[0].name
    if asked["fingerprint"] != own.fingerprint:
        raise RunError(
            f"this node has {site} with images of fingerprint {own.fingerprint}, and was introduced with another site "
            "or other images. Start it again with what it had."
        )
    folder = Path(str(config.get("memory") or os.environ.get("FEDNB_MEMORY") or "fednb-memory"))
    file = folder / f"{recipe.key}_{checksum(site.encode())}.pt"
    memories = torch.load(file, map_location="cpu", weights_only=True) if file.exists() else {}
    message, device = _message(content["message"]), str(config.get("device", "cpu"))
    sent, kept = answer(recipe, own, memories, asked["kind"], message, asked["round"], device)
    if kept is not memories:
        write_together({file: partial(torch.save, kept)})
    return {"message": _record(sent)}


def _own(recipe: Recipe, config: dict) -> tuple[Federation, Federation | None]:
    """The recipe's federation with this node's site alone; and, in a simulation, with all sites."""
    if "site" in config:
        return federation_of(recipe, config.get("data"), str(config["site"])), None
    if "partition-id" not in config:
        raise RunError("a SuperNode does not say which site it has; start it with --node-config 'site=\"name\"'.")
    whole = federation_of(recipe, config.get("data"))
    return whole.only(whole.sites[int(config["partition-id"])].name), whole


class Nodes:
    """The nodes of a grid by their sites' names, which they keep from the first round on.

    timeout: seconds that a reply may take, and that clients are waited for before round 1. ``wire`` counts the bytes of
    all messages ``down`` and ``up`` by kind, without the headers of HTTP and TLS."""

    def __init__(self, recipe: Recipe, grid: Grid, timeout: float):
        self.recipe = recipe
        self.grid = grid
        self.timeout = timeout
        self.met: dict[int, Introduction] = {}
        self.wire: dict[str, dict[str, int]] = {}

    def meet(self, count: int) -> list[Introduction]:
        """Waits until so many clients are there, and hears who they are; RunError when it is too late."""
        end = time.monotonic() + self.timeout
        while True:
            there = set(self.grid.get_node_ids())
            self.met = {node: each for node, each in self.met.items() if node in there}
            for node, came in self._send("introduce", 0, {node: {} for node in there - self.met.keys()}).items():
                if not isinstance(came, str):
                    self.met[node] = Introduction.from_dict(json.loads(came["introduction"]["text"]))
            if len(self.met) >= count:
                return list(self.met.values())
            if time.monotonic() > end:
                came = ", ".join(each.site for each in self.met.values()) or "none"
                raise RunError(f"{count} clients are needed; after {self.timeout:.0f} s there are {came}. Start them.")
            time.sleep(LOOKS)

    def ask(self, kind: str, round: int, messages: dict[str, Message]) -> dict[str, Message | str]:
        """As ``RemoteRun`` asks: the replies of those who are there, in any order."""
        there = set(self.grid.get_node_ids())
        names = {node: each.site for node, each in self.met.items() if node in there and each.site in messages}
        replies = self._send(kind, round, {node: messages[name] for node, name in names.items()})
        return {names[node]: came if isinstance(came, str) else _received(came) for node, came in replies.items()}

    def _send(self, kind: str, round: int, messages: dict[int, Message]) -> dict[int, RecordDict | str]:
        """What each node replied, or what went wrong; RunError, in its own words, where one refuses."""
        given = {"kind": kind, "round": round, "recipe": json.dumps(self.recipe.short)}
        given["source"] = json.dumps({"fednb": source_hash()} | used(self.recipe.full))
        out = []
        for node, message in messages.items():
            own = {"fingerprint": self.met[node].fingerprint if node in self.met else "unknown"}
            content = RecordDict({"asked": ConfigRecord(given | own), "message": _record(message)})
            out.append(FlowerMessage(content, node, TYPES.get(kind, "query"), ttl=self.timeout))
        wire = self.wire.setdefault(kind, {"down": 0, "up": 0})
        wire["down"] += sum(map(_size, out))
        came = list(self.grid.send_and_receive(out, timeout=self.timeout)) if out else []
        asked = {message.metadata.message_id: message.metadata.dst_node_id for message in out}
        replies: dict[int, RecordDict | str] = {}
        for message in came:
            node = asked[message.metadata.reply_to_message_id]  # what the SuperLink writes has its own number
            who = self.met[node].site if node in self.met else f"node {node}"
            if message.has_error():
                replies[node] = printable(message.error.reason)
                _say(f'{who} did not answer "{kind}" in round {round}: {replies[node]}')
            elif "refused" in message.content:
                raise RunError(f"{who} refuses: {printable(message.content['refused'].get('why'), 2000)}")
            else:
                wire["up"] += _size(message)
                replies[node] = message.content
        return replies


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    recipe = Recipe(**json.loads(str(config["recipe"])))
    store = Store(Path(os.environ.get("FEDNB_RUNS") or "report/runs"))
    serve(grid, recipe, store, int(config["clients"]), float(config["timeout"]))


def serve(grid: Grid, recipe: Recipe, store: Store, clients: int, timeout: float) -> Record:
    """The record of a recipe, in ``flower`` below the store's own: found, or trained by clients of the grid."""
    store, nodes = store.by("flower"), Nodes(recipe, grid, timeout)
    try:
        with store.lock(recipe):
            record = store.find(recipe, mend=True)
            if record is None:
                carried = {"engine": f"flower {flwr.__version__}", "wire": nodes.wire}
                run = RemoteRun(recipe, nodes.meet(clients), nodes.ask, carried)
                record = finish(run, store, lambda _, done: _say(f"round {done}/{recipe.rounds} of {recipe}"))
            store.drop_checkpoint(recipe)
    finally:
        for note in store.notes:
            _say(note)
    _say(f"recorded: {record.path}")
    return record


def _say(what) -> None:
    print(f"fednb: {printable(what, 5000)}", file=sys.stderr, flush=True)


def _size(message: FlowerMessage) -> int:
    return sum(record.count_bytes() for record in message.content.values())


def _record(message: Message) -> ArrayRecord:
    return ArrayRecord({name: Array(tensor.detach().cpu().numpy()) for name, tensor in message.items()})


def _message(record: ArrayRecord) -> Message:
    return {name: torch.from_numpy(array.numpy().copy()) for name, array in record.items()}


def _received(content: RecordDict) -> Message | str:
    try:
        return _message(content["message"])
    except Exception as error:  # whatever bytes that are no arrays, or no ArrayRecord at all, lead to
        return f"what it sent cannot be read: {type(error).__name__}: {error}"
