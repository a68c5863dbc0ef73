"""A recipe over a network, by Flower: ``server_app`` and ``client_app``; ``fednb federate`` gives them to ``flwr run``.

Messages travel as ArrayRecords. A client's memory lies in Flower's context of its node or, where the node's
configuration or ``FEDNB_MEMORY`` names a folder for it, on its disk: there it outlives the node, and a run that was
interrupted. Who has lost it begins anew, and the record says so.

A SuperNode's configuration: ``site`` (which site it has), and where they differ from the defaults ``data`` (the folder
of its images), ``device``, ``memory`` (that folder). In Flower's simulation node 0 has the first site, and so on, and
``device`` is the run's.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from io import BytesIO
from pathlib import Path

import flwr
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.app import Message as Letter
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fednb.datasets import available
from fednb.errors import DataError, FednbError, RunError, StoreError
from fednb.files import write_atomically
from fednb.loop.introduction import TORCH, Introduction, worded
from fednb.loop.remote import RemoteRun, answer
from fednb.methods import Message
from fednb.recipe import Recipe
from fednb.records.provenance import code_version, source_hash
from fednb.records.record import checksum
from fednb.records.staleness import used
from fednb.records.store import Record, Store
from fednb.records.training import federation_of, finish

MEMORY = "memory"  # a record of a node's context
TYPES = {"work": "train", "test": "evaluate"}  # of Flower's messages; "query" for all else
LOOKS = 3.0  # seconds between two looks at which nodes are there

client_app = ClientApp()
server_app = ServerApp()


@client_app.train()
@client_app.evaluate()
@client_app.query()
def reply(letter: Letter, context: Context) -> Letter:
    """Answers the server; what fednb refuses goes back in words, and everything else is Flower's to report.

    A disk that is full or an image that cannot be read is this client's own trouble: the others go on.
    """
    asked = letter.content["asked"]
    introduced = asked["kind"] != "introduce"
    try:
        records = work(asked, letter.content, context) if introduced else introduce(asked, context)
    except FednbError as error:
        own = introduced and isinstance(error, DataError | StoreError)
        records = {"failed" if own else "refused": ConfigRecord({"why": str(error)})}
    return Letter(RecordDict(records), reply_to=letter)


def introduce(asked: ConfigRecord, context: Context) -> dict:
    """Says which site this is, once both sides are known to have the same source of fednb and files from outside."""
    source = asked.get("source", "unknown")  # an older server does not tell
    if source != source_hash():
        raise RunError(
            f"the server runs fednb {asked['code']} (source {source}) and this client {code_version()} (source "
            f"{source_hash()}). Install one version on both."
        )
    recipe = Recipe.from_dict(json.loads(asked["recipe"]))
    here, there = used(recipe), json.loads(asked["used"])
    if differing := [name for name in here if here[name] != there.get(name)]:
        raise RunError(
            f"the server has another {', another '.join(differing)} than this client. Install the same package on "
            "both, or copy the same file to the folder that FEDNB_METHODS names."
        )
    told = Introduction.of(_own(recipe, context), _whole(recipe, context.node_config))
    return {"introduction": ConfigRecord({"text": json.dumps(asdict(told))})}


def _whole(recipe: Recipe, config: dict):
    """The federation with all sites, where this node happens to have the others' images as well."""
    root, simulated = config.get("data"), "partition-id" in config  # whose files are not looked through for each node
    if not simulated and available(root=root, **recipe.dealt):
        return None
    try:
        return federation_of(recipe, root)
    except DataError:  # the others' images are not whole: they are not this node's
        return None


def work(asked: ConfigRecord, content: RecordDict, context: Context) -> dict:
    """One call of the client, who goes on from its memory and leaves it behind."""
    recipe, state = Recipe.from_dict(json.loads(asked["recipe"])), context.state
    own, config = _own(recipe, context), {"device": "cpu"} | context.run_config | context.node_config
    if asked["own"] != _own_marks(recipe, own.sites[0].name, own.fingerprint, TORCH):
        raise RunError(
            f"this node has {own.sites[0].name} with images of fingerprint {own.fingerprint} and fednb "
            f"{code_version()}, and was introduced with another site, other images, another fednb, another torch or "
            "other files from outside. Start it again with what it had."
        )
    folder = context.node_config.get("memory") or os.environ.get("FEDNB_MEMORY")
    file = Path(str(folder), f"{recipe.key}_{checksum(own.sites[0].name.encode())}.pt") if folder else None
    before = file if file and file.exists() else BytesIO(state[MEMORY]["bytes"]) if MEMORY in state else None
    try:
        memories = torch.load(before, map_location="cpu", weights_only=True) if before else {}
    except Exception:  # torch raises many kinds for a damaged file; the client begins anew, and the record says so
        memories = {}
    message = _message(content["message"])
    sent, kept = answer(recipe, own, memories, asked["kind"], message, asked["round"], str(config["device"]))
    if file and kept is not memories:
        write_atomically(file, partial(torch.save, kept))
    elif kept is not memories:
        torch.save(kept, buffer := BytesIO())
        state[MEMORY] = ConfigRecord({"bytes": buffer.getvalue()})
    return {"message": _record(sent)}


def _own_marks(recipe: Recipe, site: str, fingerprint: str, version: str) -> str:
    """In short, what a node may not change in a run: site, images, version of torch, fednb, what comes from outside."""
    marks = [site, fingerprint, version, source_hash(), used(recipe)]
    return hashlib.sha256(json.dumps(marks).encode()).hexdigest()[:16]


def _own(recipe: Recipe, context: Context):
    """The recipe's federation with this node's site alone."""
    config = context.node_config
    root, site = config.get("data"), config.get("site")
    if site is None and "partition-id" in config:
        number, whole = int(config["partition-id"]), federation_of(recipe, root)
        if number >= len(whole.sites):
            raise RunError(
                f"the simulation has a node {number}, and {recipe} {len(whole.sites)} sites; give it as many nodes."
            )
        return whole.only(whole.sites[number].name)
    if site is None:
        raise RunError("a SuperNode does not say which site it has; start it with --node-config 'site=\"name\"'.")
    return federation_of(recipe, root, str(site))


class Nodes:
    """The nodes of a grid by their sites' names; a site is found again when it comes back under another number.

    timeout: seconds that a reply may take, and that somebody who is needed is waited for. ``wire`` counts the bytes of
    all letters ``down`` and ``up`` by kind, without the headers of HTTP and TLS.
    """

    def __init__(self, recipe: Recipe, grid: Grid, timeout: float):
        self.recipe = recipe
        self.grid = grid
        self.timeout = timeout
        self.met: list[Introduction] = []
        self.node: dict[str, int] = {}
        self.heard: set[int] = set()
        self.open = True  # whether the run has not begun: who comes is one of its clients
        self.wire: dict[str, dict[str, int]] = {}

    def meet(self, count: int) -> list[Introduction]:
        """Waits until so many clients are there, and hears who they are; RunError when it is too late."""
        end = time.monotonic() + self.timeout
        self._look()
        while len(self.met) < count:
            if time.monotonic() > end:
                came = ", ".join(self.node) or "none"
                raise RunError(f"{count} clients are needed; after {self.timeout:.0f} s there are {came}. Start them.")
            time.sleep(LOOKS)
            self._look()
        self.open = False
        return self.met

    def ask(self, kind: str, round: int, messages: dict[str, Message], wait: bool = False) -> dict[str, Message | str]:
        """As ``RemoteRun`` asks: the replies of those who are there, in any order."""
        end = time.monotonic() + self.timeout * wait
        while missing := self._missing(messages):
            if time.monotonic() >= end:
                break
            time.sleep(LOOKS)
        names = {self.node[name]: name for name in messages if name not in missing}
        replies = self._send(kind, round, {node: messages[name] for node, name in names.items()})
        return {names[node]: reply if isinstance(reply, str) else _received(reply) for node, reply in replies.items()}

    def _missing(self, names: Iterable[str]) -> list[str]:
        there = self._look()
        return [name for name in names if self.node[name] not in there]

    def _look(self) -> list[int]:
        """The nodes that are there, after whoever is new has said who it is."""
        there = list(self.grid.get_node_ids())
        new = {node: {} for node in there if node not in self.heard}
        for node, content in self._send("introduce", 0, new).items():
            if isinstance(content, str):
                continue
            self.heard.add(node)
            try:
                told = _introduced(content)
            except RunError as error:
                _say(f"node {node} is no client of this run: {error}")
                continue
            if self.open:
                back = told.site in self.node and self.node[told.site] not in there  # started again
                self.met = [each for each in self.met if not back or each.site != told.site] + [told]
            elif told not in self.met:
                _say(f"node {node} is no client of this run, or has other images or another torch now: {told.site}")
                continue
            self.node[told.site] = node
        return there

    def _send(self, kind: str, round: int, messages: dict[int, Message]) -> dict[int, RecordDict | str]:
        """What each node replied, or what went wrong; RunError, in its own words, where one refuses."""
        given = {"kind": kind, "round": round, "recipe": json.dumps(self.recipe.short)}
        own = {
            self.node.get(each.site): {"own": _own_marks(self.recipe, each.site, each.fingerprint, each.torch)}
            for each in self.met
        }
        introducing = {"code": code_version(), "source": source_hash(), "used": json.dumps(used(self.recipe))}
        letters = [
            Letter(
                RecordDict({"asked": ConfigRecord(given | own.get(node, introducing)), "message": _record(message)}),
                dst_node_id=node,
                message_type=TYPES.get(kind, "query"),
                ttl=self.timeout,
            )
            for node, message in messages.items()
        ]
        replies, wire = {}, self.wire.setdefault(kind, {"down": 0, "up": 0})
        wire["down"] += sum(map(_size, letters))
        answers = self.grid.send_and_receive(letters, timeout=self.timeout) if letters else ()
        asked = {letter.metadata.message_id: letter.metadata.dst_node_id for letter in letters}
        for letter in answers:
            node = asked[letter.metadata.reply_to_message_id]  # what the SuperLink writes has its own number
            who = next((name for name, number in self.node.items() if number == node), f"node {node}")
            if letter.has_error() or "failed" in letter.content:
                why = letter.error.reason if letter.has_error() else _why(letter.content["failed"])
                replies[node] = worded(why)
                _say(f'{who} did not answer "{kind}" in round {round}: {why}')
            elif "refused" not in letter.content:
                wire["up"] += _size(letter)
                replies[node] = letter.content
            else:
                refusal = f"{who} refuses: {_why(letter.content['refused'])}"
                if kind != "introduce" or self.open:
                    raise RunError(refusal)
                self.heard.add(node)
                _say(refusal)
        return replies


def federate(recipe: Recipe, grid: Grid, store: Store, clients: int, timeout: float) -> Record:
    """The record of a recipe: found, or trained by so many clients of the grid, from its last checkpoint on."""
    with store.lock(recipe):
        if record := store.find(recipe, mend=True):
            store.drop_checkpoint(recipe)
            return record
        nodes = Nodes(recipe, grid, timeout)
        carried = {"engine": f"flower {flwr.__version__}", "wire": nodes.wire}
        begin = partial(RemoteRun, recipe, nodes.meet(clients), nodes.ask, carried)
        return finish(begin, store, lambda _, rounds: print(f"round {rounds}/{recipe.rounds} of {recipe}", flush=True))


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    recipe = Recipe.from_dict(json.loads(str(config["recipe"])))
    runs = Path(str(config["runs"] or os.environ.get("FEDNB_RUNS") or "report/runs"))
    checkpoints = Path(str(config["checkpoints"])) if config["checkpoints"] else None
    store = Store(runs, checkpoints=checkpoints).by("flower")
    try:
        record = federate(recipe, grid, store, int(config["clients"]), float(config["timeout"]))
    except FednbError as error:
        _say(error)
        raise
    finally:
        for note in store.notes:
            _say(note)
    print(f"recorded: {record.path}", flush=True)


def _say(what) -> None:
    print(f"fednb: {what}", file=sys.stderr, flush=True)


def _size(letter: Letter) -> int:
    return sum(record.count_bytes() for record in letter.content.values())


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


def _introduced(content: RecordDict) -> Introduction:
    """Who a client says that it is; RunError where that cannot be read."""
    try:
        return Introduction.from_dict(json.loads(content["introduction"]["text"]))
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise RunError(f"what it sent cannot be read: {type(error).__name__}: {error}") from error


def _why(told: ConfigRecord) -> str:
    return str(told["why"]) if isinstance(told, ConfigRecord) and "why" in told else "it does not say why."
