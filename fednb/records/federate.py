"""A recipe over a network, by Flower: ``server_app`` and ``client_app``; ``fednb federate`` gives them to Flower.

Messages travel as ArrayRecords. A client's memory lies on its node's disk: there it outlives the node, and a run that
was interrupted.

A SuperNode's configuration: ``site`` (which site it has), and where they differ from the defaults ``data`` (the folder
of its images), ``device``, ``memory`` (the folder of its memory: ``FEDNB_MEMORY``, or ``fednb-memory`` where the node
was started). In Flower's simulation node 0 has the first site, and so on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import flwr
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fednb.datasets import available
from fednb.errors import DataError, FednbError, RunError, StoreError
from fednb.federation import Federation
from fednb.files import write_atomically
from fednb.loop.flower.client import Memories, answer
from fednb.loop.flower.handshake import Introduction, printable
from fednb.loop.flower.server import RemoteRun
from fednb.methods import Message
from fednb.recipe import Recipe
from fednb.records.provenance import code_version, source_hash
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
    """Answers the server; what fednb refuses goes back in words, and everything else is Flower's to report.

    A disk that is full or an image that cannot be read is this client's own trouble: the others go on.
    """
    asked = message.content["asked"]
    introducing = asked["kind"] == "introduce"
    try:
        recipe = _recipe(asked)
        records = introduce(recipe, context) if introducing else work(recipe, asked, message.content, context)
    except FednbError as error:
        own = not introducing and isinstance(error, DataError | StoreError)
        records = {"failed" if own else "refused": ConfigRecord({"why": str(error)})}
    return FlowerMessage(RecordDict(records), reply_to=message)


def _recipe(asked: ConfigRecord) -> Recipe:
    """What the server wants trained; RunError where it has another source of fednb, or other files from outside."""
    if asked["source"] != source_hash():
        raise RunError(
            f"the server runs fednb {asked['code']} (source {asked['source']}) and this client {code_version()} "
            f"(source {source_hash()}). Install one version on both."
        )
    recipe = Recipe(**json.loads(asked["recipe"]))
    here, there = used(recipe.full), json.loads(asked["used"])
    if differing := [name for name in here if here[name] != there.get(name)]:
        raise RunError(
            f"the server has another {', another '.join(differing)} than this client. Install the same package on "
            "both, or copy the same file to the folder that FEDNB_METHODS names."
        )
    return recipe


def introduce(recipe: Recipe, context: Context) -> dict:
    """Says which site this is."""
    introduction = Introduction.of(_own(recipe, context), _whole(recipe, context.node_config))
    return {"introduction": ConfigRecord({"text": json.dumps(asdict(introduction))})}


def _whole(recipe: Recipe, config: dict) -> Federation | None:
    """The federation with all sites, where this node happens to have the others' images as well."""
    root, simulated = config.get("data"), "partition-id" in config  # whose files are not looked through for each node
    if not simulated and available(root=root, **recipe.dealt):
        return None
    try:
        return federation_of(recipe, root)
    except DataError:  # the others' images are not whole: they are not this node's
        return None


def work(recipe: Recipe, asked: ConfigRecord, content: RecordDict, context: Context) -> dict:
    """One call of the client, who goes on from its memory and leaves it behind."""
    own, config = _own(recipe, context), context.node_config
    site = own.sites[0].name
    if asked["fingerprint"] != own.fingerprint:
        raise RunError(
            f"this node has {site} with images of fingerprint {own.fingerprint}, and was introduced with another site "
            "or other images. Start it again with what it had."
        )
    folder = Path(str(config.get("memory") or os.environ.get("FEDNB_MEMORY") or "fednb-memory"))
    file = folder / f"{recipe.key}_{checksum(site.encode())}.pt"
    memories, device = _remembered(file), str(config.get("device", "cpu"))
    sent, kept = answer(recipe, own, memories, asked["kind"], _message(content["message"]), asked["round"], device)
    if kept is not memories:
        write_atomically(file, partial(torch.save, kept))
    return {"message": _record(sent)}


def _remembered(file: Path) -> Memories:
    """What the client has kept; nothing where it has not, or the file is damaged."""
    try:
        return torch.load(file, map_location="cpu", weights_only=True) if file.exists() else {}
    except Exception:  # torch raises many kinds for a damaged file
        return {}


def _own(recipe: Recipe, context: Context) -> Federation:
    """The recipe's federation with this node's site alone."""
    config = context.node_config
    root, site = config.get("data"), config.get("site")
    if site is None and "partition-id" in config:
        whole = federation_of(recipe, root)
        return whole.only(whole.sites[int(config["partition-id"])].name)
    if site is None:
        raise RunError("a SuperNode does not say which site it has; start it with --node-config 'site=\"name\"'.")
    return federation_of(recipe, root, str(site))


class Nodes:
    """The nodes of a grid by their sites' names, which they keep from the first round on.

    timeout: seconds that a reply may take, and that somebody who is needed is waited for. ``wire`` counts the bytes of
    all messages ``down`` and ``up`` by kind, without the headers of HTTP and TLS.
    """

    def __init__(self, recipe: Recipe, grid: Grid, timeout: float):
        self.recipe = recipe
        self.grid = grid
        self.timeout = timeout
        self.known: set[int] = set()
        self.met: dict[int, Introduction] = {}
        self.node: dict[str, int] = {}
        self.wire: dict[str, dict[str, int]] = {}

    def meet(self, count: int) -> list[Introduction]:
        """Waits until so many clients are there, and hears who they are; RunError when it is too late."""
        end = time.monotonic() + self.timeout
        self._hear_new()
        while len(self.met) < count:
            if time.monotonic() > end:
                came = ", ".join(each.site for each in self.met.values()) or "none"
                raise RunError(f"{count} clients are needed; after {self.timeout:.0f} s there are {came}. Start them.")
            time.sleep(LOOKS)
            self._hear_new()
        self.node = {each.site: node for node, each in self.met.items()}
        return list(self.met.values())

    def ask(self, kind: str, round: int, messages: dict[str, Message], wait: bool = False) -> dict[str, Message | str]:
        """As ``RemoteRun`` asks: the replies of those who are there, in any order."""
        end = time.monotonic() + self.timeout * wait
        while missing := self._missing(messages):
            if time.monotonic() >= end:
                break
            time.sleep(LOOKS)
        names = {self.node[name]: name for name in messages if name not in missing}
        replies = self._send(kind, round, {node: messages[name] for node, name in names.items()})
        return {names[node]: came if isinstance(came, str) else _received(came) for node, came in replies.items()}

    def _missing(self, names: Iterable[str]) -> list[str]:
        there = set(self.grid.get_node_ids())
        for node in sorted(there - self.known):
            self.known.add(node)
            _say(f"node {node} came after the run had begun, and is no client of it")
        return [name for name in names if self.node[name] not in there]

    def _hear_new(self) -> None:
        """Before the run begins: whoever is new says who it is, and whoever is gone is forgotten."""
        there = set(self.grid.get_node_ids())
        self.met = {node: each for node, each in self.met.items() if node in there}
        for node, came in self._send("introduce", 0, {node: {} for node in there - self.known}).items():
            if isinstance(came, str):
                continue
            self.known.add(node)
            try:
                self.met[node] = Introduction.from_dict(json.loads(came["introduction"]["text"]))
            except (RunError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
                _say(f"node {node} is no client of this run: {type(error).__name__}: {error}")

    def _send(self, kind: str, round: int, messages: dict[int, Message]) -> dict[int, RecordDict | str]:
        """What each node replied, or what went wrong; RunError, in its own words, where one refuses."""
        given = {"kind": kind, "round": round, "recipe": json.dumps(self.recipe.short)}
        given |= {"code": code_version(), "source": source_hash(), "used": json.dumps(used(self.recipe.full))}
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
            if message.has_error() or "failed" in message.content:
                error = message.error.reason if message.has_error() else _why(message.content["failed"])
                replies[node] = printable(error)
                _say(f'{who} did not answer "{kind}" in round {round}: {error}')
            elif "refused" in message.content:
                raise RunError(f"{who} refuses: {_why(message.content['refused'])}")
            else:
                wire["up"] += _size(message)
                replies[node] = message.content
        return replies


def federate(recipe: Recipe, grid: Grid, store: Store, clients: int, timeout: float) -> Record:
    """The record of a recipe: found, or trained by so many clients of the grid, from its last checkpoint on."""
    with store.lock(recipe):
        if record := store.find(recipe, mend=True):
            store.drop_checkpoint(recipe)
            return record
        nodes = Nodes(recipe, grid, timeout)
        carried = {"engine": f"flower {flwr.__version__}", "wire": nodes.wire}
        run = RemoteRun(recipe, nodes.meet(clients), nodes.ask, carried)
        return finish(run, store, lambda _, rounds: print(f"round {rounds}/{recipe.rounds} of {recipe}", flush=True))


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    recipe = Recipe(**json.loads(str(config["recipe"])))
    store = Store(Path(os.environ.get("FEDNB_RUNS") or "report/runs"))
    try:
        serve(grid, recipe, store, int(config["clients"]), float(config["timeout"]))
    except FednbError as error:
        _say(error)
        raise


def serve(grid: Grid, recipe: Recipe, store: Store, clients: int, timeout: float) -> None:
    """Has a recipe trained and says where its record is, in ``flower`` below the store's own."""
    store = store.by("flower")
    try:
        record = federate(recipe, grid, store, clients, timeout)
    finally:
        for note in store.notes:
            _say(note)
    print(f"recorded: {record.path}", flush=True)


def _say(what) -> None:
    print(f"fednb: {printable(what, 5000)}", file=sys.stderr, flush=True)


def _size(message: FlowerMessage) -> int:
    return sum(record.count_bytes() for record in message.content.values())


def _record(message: Message) -> ArrayRecord:
    return ArrayRecord({name: Array(tensor.detach().cpu().numpy()) for name, tensor in message.items()})


def _message(record: ArrayRecord) -> Message:
    return {name: torch.from_numpy(array.numpy().copy()) for name, array in record.items()}


def _received(content: RecordDict) -> Message | str:
    """A client's reply, or why it is none."""
    try:
        return _message(content["message"])
    except Exception as error:  # whatever bytes that are no arrays, or no ArrayRecord at all, lead to
        return f"what it sent cannot be read: {type(error).__name__}: {error}"


def _why(said: ConfigRecord) -> str:
    return printable(said["why"], 2000) if isinstance(said, ConfigRecord) and "why" in said else "it does not say why."
