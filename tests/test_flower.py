"""Flower carries the messages: every method in this process, through Flower's bytes; two nodes on loopback, slowly."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest
import torch
from loaders import picture
from methods import CASES, TINY, federation, label, row_of

from fednb import registry
from fednb.errors import DataError, RunError, StoreError
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe
from fednb.records.record import checksum
from fednb.records.store import Store
from fednb.records.training import train_one

pytest.importorskip("flwr", reason='Flower is not installed: pip install -c constraints-flower.txt ".[flower]"')

from flwr.app import Context, Error, RecordDict
from flwr.app import Message as Letter
from flwr.common.serde import message_from_proto, message_to_proto, recorddict_from_proto, recorddict_to_proto
from flwr.server.superlink.linkstate.utils import create_message_error_unavailable_res_message
from flwr.supercore.task_identity import TaskIdentity

from fednb.records import federate


class Grid:
    """Flower's grid in this process: letters and what nodes remember go through their bytes.

    dead: the numbers of nodes that are gone. crashing: of those whose process dies when it trains or tests; silent:
    where they go without a word, and the SuperLink says so. letters: after so many answers the server is interrupted.
    """

    def __init__(self, configs: dict[int, dict]):
        self.configs = configs
        self.states = {node: RecordDict() for node in configs}
        self.dead: set[int] = set()
        self.crashing: set[int] = set()
        self.silent = False
        self.letters = -1
        self.run_config: dict = {}

    def get_node_ids(self) -> list[int]:
        return [node for node in self.configs if node not in self.dead]

    def send_and_receive(self, letters, *, timeout):
        replies = []
        for number, letter in enumerate(letters):
            letter.metadata.__dict__["_message_id"] = f"letter {number}"  # as HttpGrid does
        for letter in reversed(letters):
            if self.letters == 0:
                raise KeyboardInterrupt
            self.letters -= 1
            node = letter.metadata.dst_node_id
            state = recorddict_from_proto(recorddict_to_proto(self.states[node]))
            context = Context(1, node, self.configs[node], state, self.run_config)
            letter = message_from_proto(message_to_proto(letter))
            if node in self.crashing and letter.metadata.message_type != "query":
                by_superlink = create_message_error_unavailable_res_message(letter.metadata, "node_unavail")
                replies.append(by_superlink if self.silent else Letter(Error(8, "it crashed"), reply_to=letter))
                continue
            reply = federate.client_app(letter, context)
            self.states[node] = context.state
            replies.append(message_from_proto(message_to_proto(reply)))
        return replies


@pytest.fixture
def toy(monkeypatch):
    """Every node finds the laws' small federation, whatever its recipe names."""

    def found(recipe, root=None, site=None):
        return federation().only(site) if site else federation()

    monkeypatch.setattr(federate, "federation_of", found)
    monkeypatch.setattr(federate, "LOOKS", 0.01)
    names_letters(monkeypatch)


def names_letters(monkeypatch) -> None:
    """Who writes a letter, as Flower's processes know it."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def grid(**more) -> Grid:
    return Grid({10 + number: {"site": site.name, **more} for number, site in enumerate(federation().sites)})


def by_flower(recipe: Recipe, nodes: Grid, tmp_path, timeout: float = 0.1):
    return federate.federate(recipe, nodes, Store(tmp_path / "runs"), 3, timeout)


@pytest.mark.parametrize("case", [case for case in CASES if not row_of(case).pools], ids=label)
def test_every_method_gives_the_same_run(case, toy, tmp_path):
    recipe = Recipe(**TINY | case | {"rounds": 2})
    record, here = by_flower(recipe, grid(), tmp_path), FederatedRun(recipe, federation())
    assert record.rounds == [here.advance(), here.advance()]
    assert record.prepare == here.prepared and record.clients == list(here.clients)
    assert record.fingerprint == federation().fingerprint
    assert record.origin["engine"].startswith("flower ")


def test_in_flowers_simulation_a_node_has_the_site_of_its_number(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(federate, "federation_of", lambda recipe, root: federation())  # no site is loaded once more
    monkeypatch.setattr(federate, "available", None)  # nor are its files looked through
    recipe = Recipe(**TINY | {"rounds": 1})
    nodes = Grid({7: {"partition-id": 1}, 8: {"partition-id": 0}, 9: {"partition-id": 2}})
    assert by_flower(recipe, nodes, tmp_path).rounds == [FederatedRun(recipe, federation()).advance()]


def test_a_node_without_a_device_takes_the_runs(toy, tmp_path, monkeypatch):
    used, nodes = [], grid()
    nodes.configs[11]["device"] = "cpu"
    nodes.run_config = {"device": "cpu:0"}
    answer = federate.answer
    monkeypatch.setattr(federate, "answer", lambda *given: used.append(given[-1]) or answer(*given))
    by_flower(Recipe(**TINY | {"rounds": 1}), nodes, tmp_path)
    assert used.count("cpu") * 2 == used.count("cpu:0") > 0


@pytest.fixture
def before_round_2(monkeypatch):
    """``before_round_2(happens)`` calls it between the first two rounds of a run that Flower carries."""
    advance = federate.RemoteRun.advance

    def then(happens) -> None:
        def watched(run):
            if run.rounds == 1:
                happens()
            return advance(run)

        monkeypatch.setattr(federate.RemoteRun, "advance", watched)

    return then


@pytest.mark.parametrize("silent", [False, True])
def test_a_node_that_crashes_is_absent_and_the_record_says_so(silent, toy, tmp_path, before_round_2, capsys):
    recipe, nodes = Recipe(**TINY | {"rounds": 2}), grid()
    nodes.silent = silent
    before_round_2(lambda: nodes.crashing.add(11))
    record = by_flower(recipe, nodes, tmp_path)
    assert "absent" not in record.rounds[0] and record.rounds[1]["absent"] == ["harbour"]
    assert record.rounds[1]["loss"].keys() == {"clinic", "tower"}
    assert record.rounds[1]["test"][1] == record.rounds[0]["test"][1]
    why = "Error: Node Unavailable .*" if silent else "it crashed"
    told = f"harbour did not answer in round 2: .* of its last test. What went wrong: {why}"
    assert any(re.fullmatch(told, note) for note in record.notes)
    assert re.search(f'harbour did not answer "work" in round 2: {why}', capsys.readouterr().err)


@pytest.mark.parametrize("remembers", ["by its configuration", "by the environment", ""])
def test_a_node_that_starts_again_goes_on_with_its_memory(remembers, toy, tmp_path, before_round_2, monkeypatch):
    """Harbour's node comes back under another number, with an empty context: its disk alone remembers."""
    recipe, folder = (
        Recipe(**TINY | {"rounds": 2, "algorithm": "fedbn", "optimiser_state": "kept"}),
        str(tmp_path / "m"),
    )
    nodes = grid(**{"memory": folder} if "configuration" in remembers else {})
    monkeypatch.setenv("FEDNB_MEMORY", folder if "environment" in remembers else "")

    def start_again():
        nodes.dead.add(11)
        nodes.configs[21], nodes.states[21] = nodes.configs[11], RecordDict()

    before_round_2(start_again)
    record = by_flower(recipe, nodes, tmp_path)
    undisturbed = FederatedRun(recipe, federation())
    assert (record.rounds == [undisturbed.advance(), undisturbed.advance()]) is bool(remembers)
    assert any("harbour came back in round 2 without its memory" in note for note in record.notes) is not bool(
        remembers
    )


def test_a_node_that_starts_again_before_the_run_begins_counts_once(toy, tmp_path, monkeypatch):
    recipe, nodes = Recipe(**TINY | {"rounds": 1}), grid()
    nodes.configs[21], nodes.states[21] = nodes.configs[11], RecordDict()
    looks = iter([[10, 11]])
    monkeypatch.setattr(nodes, "get_node_ids", lambda: next(looks, [10, 21, 12]))
    assert by_flower(recipe, nodes, tmp_path, timeout=5).rounds == [FederatedRun(recipe, federation()).advance()]


@pytest.mark.parametrize(
    "settings", [{}, {"algorithm": "scaffold"}, {"algorithm": "moon", "participation": 0.67}], ids=str
)
def test_an_interrupted_run_goes_on_with_the_same_numbers(settings, toy, tmp_path, capsys):
    """Interrupted in a round that some have trained; then nodes with empty contexts, which remember by their disks."""
    recipe, nodes = Recipe(**TINY | settings), grid(memory=str(tmp_path / "memory"))
    nodes.letters = 3 * 3 + (5 if recipe.participation < 1 else 6) + 2
    with pytest.raises(KeyboardInterrupt):
        by_flower(recipe, nodes, tmp_path)
    record = by_flower(recipe, grid(memory=str(tmp_path / "memory")), tmp_path)
    expected = by_flower(recipe, grid(), tmp_path / "undisturbed")
    assert capsys.readouterr().out.count("round 0/3") == 2
    assert (record.rounds, record.prepare, record.notes) == (expected.rounds, expected.prepare, expected.notes)
    assert (record.artefact("scores")["test"] == expected.artefact("scores")["test"]).all()
    assert not list((tmp_path / "checkpoints").rglob("*.pt"))


@pytest.mark.parametrize("changed", ["site", "images", "code", "torch"])
def test_a_node_that_keeps_its_number_is_held_to_what_it_was(changed, toy, tmp_path, before_round_2, monkeypatch):
    """With node authentication a SuperNode that starts again has the number that it had."""
    recipe, nodes = Recipe(**TINY | {"rounds": 2}), grid()

    def start_again():
        if changed == "site":
            nodes.configs[11] = {"site": "tower"}
        elif changed == "images":
            own = federation().only("harbour")
            own.sites[0].train.images[0] += 1
            monkeypatch.setattr(federate, "_own", lambda recipe, context: own)
        else:
            monkeypatch.setattr(federate, "work", elsewhere)

    work = federate.work

    def elsewhere(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(federate, *{"code": ("source_hash", lambda: "another"), "torch": ("TORCH", "2.0")}[changed])
            return work(*arguments)

    before_round_2(start_again)
    with pytest.raises(RunError, match="refuses: this node has .* was introduced with another site, other images"):
        by_flower(recipe, nodes, tmp_path)
    assert list((tmp_path / "checkpoints").rglob("*.pt"))  # round 1 is not lost


def test_a_clients_own_trouble_is_noted_and_the_others_go_on(toy, tmp_path, before_round_2, monkeypatch):
    def full(*_):
        raise StoreError("No space left on device")

    def goes_wrong():
        write, own = federate.write_atomically, checksum(b"harbour")
        monkeypatch.setattr(
            federate, "write_atomically", lambda file, save: full() if own in file.name else write(file, save)
        )

    recipe = Recipe(**TINY | {"rounds": 2, "algorithm": "fedbn"})
    before_round_2(goes_wrong)
    record = by_flower(recipe, grid(memory=str(tmp_path / "memory")), tmp_path)
    assert record.rounds[1]["absent"] == ["harbour"] and any("No space left" in note for note in record.notes)


def test_a_damaged_memory_is_as_none(toy, tmp_path, before_round_2):
    def damage():
        for file in (tmp_path / "memory").glob(f"*_{checksum(b'harbour')}.pt"):
            file.write_bytes(b"no tensors")

    recipe = Recipe(**TINY | {"rounds": 2, "algorithm": "fedbn"})
    before_round_2(damage)
    record = by_flower(recipe, grid(memory=str(tmp_path / "memory")), tmp_path)
    assert any("harbour came back in round 2 without its memory" in note for note in record.notes)
    assert "absent" not in record.rounds[1]


def test_a_node_without_the_others_images_needs_none_of_them(toy, tmp_path, monkeypatch):
    def whole_is_damaged(recipe, root=None, site=None):
        if site is None:
            raise DataError("the images have the fingerprint x; the recipe asks for y")
        return federation().only(site)

    monkeypatch.setattr(federate, "federation_of", whole_is_damaged)
    record = by_flower(Recipe(**TINY | {"rounds": 1}), grid(), tmp_path)
    assert record.clients == sorted(site.name for site in federation().sites)


def test_a_stranger_who_comes_later_is_no_client(toy, tmp_path, before_round_2, capsys):
    nodes = grid()

    def come():
        nodes.configs[30], nodes.states[30] = {}, RecordDict()

    before_round_2(come)
    assert len(by_flower(Recipe(**TINY | {"rounds": 2}), nodes, tmp_path).rounds) == 2
    assert capsys.readouterr().err.count("node 30 refuses: a SuperNode does not say which site it has") == 1


def test_the_wire_carries_what_is_counted_and_a_little_more(toy, tmp_path):
    """Counted are a round's arrays; beside them letters have names, numpy's headers of 128 bytes, the recipe, tests."""
    recipe = Recipe(**TINY | {"rounds": 2, "algorithm": "scaffold"})
    record = by_flower(recipe, grid(), tmp_path)
    wire = record.origin["wire"]
    assert list(wire) == ["introduce", "offer", "learn", "work", "test"]
    entries = len(FederatedRun(recipe, federation()).server.send("clinic"))
    for way in ("down", "up"):
        counted = sum(sum(values[way].values()) for values in record.rounds)
        assert counted < wire["work"][way] < counted + 2 * 3 * (entries * 200 + 2000)
    assert wire["work"]["down"] == wire["test"]["down"] and wire["test"]["up"] < 3 * 2 * 2 * 24 * 8 + 3 * 2 * 2000


@pytest.mark.parametrize("who", ["server", "client"])
def test_a_message_of_other_shapes_is_refused_by_name_and_nothing_is_lost(
    who, toy, tmp_path, before_round_2, monkeypatch
):
    recipe, nodes = Recipe(**TINY | {"rounds": 2, "algorithm": "fedbn"}), grid()
    memories = {}

    def other_network(asked, content, context):
        if who == "server":
            content["message"]["model/head.bias"] = wide
        memories[context.node_id] = dict(context.state)
        sent = work(asked, content, context)
        if who == "client":
            sent["message"]["model/head.bias"] = wide
        return sent

    work, wide = federate.work, federate._record({"bias": torch.zeros(5)})["bias"]
    before_round_2(lambda: monkeypatch.setattr(federate, "work", other_network))
    told = "tower refuses: head.bias is .5. in what the server sent and .3. in the network here"
    with pytest.raises(RunError, match=told if who == "server" else "head.bias is .5. in what clinic sent and .3."):
        by_flower(recipe, nodes, tmp_path)
    assert not list((tmp_path / "runs").rglob("*.json"))
    if who == "server":
        assert len(memories) == 3 and all(dict(nodes.states[node]) == memory for node, memory in memories.items())


@pytest.mark.parametrize("named", [True, False])
def test_a_node_whose_site_has_other_classes_is_refused_by_name(named, tmp_path, monkeypatch):
    """Each hospital has a folder of its own; the recipe names the classes, or the sites' must agree."""
    names_letters(monkeypatch)
    classes = {"north": ("bike", "mug"), "south": ("bike", "cup")}
    for site, (first, second) in classes.items():
        for number in range(8):
            picture(tmp_path / site / "two" / site / (first, second)[number % 2] / f"{number}.png", number)
    nodes = Grid({1: {"site": "north", "data": str(tmp_path / "north")}})
    nodes.configs[2], nodes.states[2] = {"site": "south", "data": str(tmp_path / "south")}, RecordDict()
    chosen = {"name": "folders", "folder": "two", "size": 8} | ({"classes": ["bike", "mug"]} if named else {})
    told = (
        "node 2 refuses: .*south has the class folders cup, which the recipe does not name"
        if named
        else "north has classes bike, mug; south has bike, cup.* name the classes in the recipe"
    )
    store = Store(tmp_path / "runs")
    with pytest.raises(RunError, match=told):
        federate.federate(Recipe(**TINY | {"federation": chosen}), nodes, store, 2, 0.1)
    assert not list(store.folder.rglob("*.json"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "node 12 refuses: a SuperNode does not say which site it has"),
        ({"site": "towr"}, 'node 12 refuses: .*no site "towr"; did you mean "tower"'),
        ({"site": "clinic"}, "two clients say that they are clinic"),
    ],
)
def test_a_node_that_fits_no_site_is_named(config, message, toy, tmp_path):
    nodes = grid()
    nodes.configs[12] = config
    with pytest.raises(RunError, match=message):
        by_flower(Recipe(**TINY), nodes, tmp_path)


@pytest.mark.parametrize("sent", ["no arrays", "no record", "nothing", "another kind"])
def test_what_flower_carries_and_nobody_can_read_is_no_reply(sent, toy, tmp_path, before_round_2, monkeypatch):
    work, introduce = federate.work, federate.introduce
    array = federate.Array("float32", (10**9,), "numpy.ndarray", b"no array")
    records = {
        "no arrays": {"message": federate.ArrayRecord({"loss": array})},
        "no record": {"message": federate.ConfigRecord({"loss": 0.5})},
        "nothing": {},
        "another kind": {"failed": federate.ConfigRecord({"reason": 7})},
    }

    def odd(asked, content, context):
        return records[sent] if context.node_id == 11 and asked["kind"] == "work" else work(asked, content, context)

    before_round_2(lambda: monkeypatch.setattr(federate, "work", odd))
    record = by_flower(Recipe(**TINY | {"rounds": 2}), grid(), tmp_path)
    assert record.rounds[1]["absent"] == ["harbour"]
    why = "it does not say why" if sent == "another kind" else "what it sent cannot be read: "
    assert any(f"What went wrong: {why}" in note for note in record.notes)

    def odder(asked, context):
        return records["nothing"] if context.node_id == 11 else introduce(asked, context)

    monkeypatch.setattr(federate, "introduce", odder)
    with pytest.raises(RunError, match="3 clients are needed; after 0 s there are"):
        by_flower(Recipe(**TINY | {"rounds": 1}), grid(), tmp_path)


def test_too_few_nodes_are_counted(toy, tmp_path):
    nodes = grid()
    nodes.dead.add(12)
    with pytest.raises(RunError, match="3 clients are needed; after 0 s there are"):
        by_flower(Recipe(**TINY), nodes, tmp_path)


def test_versions_that_differ_are_refused_by_name(toy, tmp_path, monkeypatch):
    """Two copies without git say one version, whatever is in them."""
    sources = iter(["one"] + ["other"] * 9)
    monkeypatch.setattr(federate, "code_version", lambda: "0.1")
    monkeypatch.setattr(federate, "source_hash", lambda: next(sources))
    told = r"the server runs fednb 0.1 \(source one\) and this client 0.1 \(source other\). Install one version"
    with pytest.raises(RunError, match=told):
        by_flower(Recipe(**TINY), grid(), tmp_path)


def test_a_method_from_outside_is_the_same_file_on_both_sides(toy, tmp_path, monkeypatch):
    (tmp_path / "mine" / "augmentations").mkdir(parents=True)
    (tmp_path / "mine" / "augmentations" / "plain.py").write_text(
        "import fednb\n\n\nclass Plain(fednb.Method):\n    pass\n"
    )
    monkeypatch.setenv("FEDNB_METHODS", str(tmp_path / "mine"))
    recipe = Recipe(**TINY | {"rounds": 1, "augmentations": ["plain"]})
    record = by_flower(recipe, grid(), tmp_path)
    assert record.origin["outside"] == {"augmentations/plain": "folder mine"}

    def on_the_client(asked, context, introduce=federate.introduce):
        with monkeypatch.context() as patch:
            patch.setattr(registry, "_imported", lambda *file: (imported(*file)[0], "another hash"))
            return introduce(asked, context)

    imported = registry._imported
    monkeypatch.setattr(federate, "introduce", on_the_client)
    with pytest.raises(RunError, match="refuses: the server has another augmentations/plain than this client. Install"):
        by_flower(recipe, grid(), tmp_path / "other")


def test_a_method_that_the_client_does_not_have_is_named(toy, tmp_path):
    class Newer(Recipe):
        short = {"algorithm": "fedfuture"}

    with pytest.raises(RunError, match='refuses: "fedfuture" is not in fednb/methods/algorithms'):
        by_flower(Newer(**TINY), grid(), tmp_path)


def test_the_server_app_reads_its_configuration(toy, tmp_path):
    recipe = Recipe(**TINY | {"rounds": 1})
    config = {"recipe": json.dumps(recipe.short), "runs": str(tmp_path / "runs"), "clients": 3, "timeout": 1}
    config["checkpoints"] = str(tmp_path / "unfinished")
    federate.main(grid(), SimpleNamespace(run_config=config))
    assert Store(tmp_path / "runs").find(recipe) is None
    assert Store(tmp_path / "runs").by("flower").find(recipe).clients == ["clinic", "harbour", "tower"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["supernodes", "simulation"])
def test_a_superlink_on_loopback_gives_the_run_of_one_process(way, tmp_path):
    """A process that imports torch for each of ten messages; in the simulation, one for each processor core."""
    if way == "simulation":
        pytest.importorskip("ray", reason='Ray is not installed: pip install "flwr[simulation]"')
    for site in ("north", "south"):
        for number in range(12):
            picture(tmp_path / "images" / "two" / site / ("bike", "mug")[number % 2] / f"{number}.png", number)
    chosen = {"federation": {"name": "folders", "folder": "two", "size": 8}, "algorithm": "scaffold"}
    recipe = Recipe(**TINY | chosen | {"rounds": 1, "augmentations": ["fedrdn"]})
    words = [json.dumps(recipe.short), "--data", str(tmp_path / "images"), "--timeout", "1200"]
    words += ["--simulation"] if way == "simulation" else ["--nodes", "2"]
    there = Store(tmp_path / "there" / "runs").by("flower")
    with started(words, tmp_path / "there") as command:
        told, _ = command.communicate(timeout=1800)
    assert command.returncode == 0, told
    found = there.find(recipe)
    here = train_one(recipe, Store(tmp_path / "here" / "runs"), root=tmp_path / "images")
    assert found.rounds == here.rounds and found.prepare == here.prepare and found.fingerprint == here.fingerprint


@contextmanager
def started(words: list[str], folder):
    """`fednb federate` with its runs in a folder; none of its processes outlives this."""
    command = subprocess.Popen(
        [sys.executable, "-m", "fednb", "federate", *words],
        env=os.environ | {"FEDNB_RUNS": str(folder / "runs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield command
    finally:
        command.terminate()
        with suppress(subprocess.TimeoutExpired):
            command.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
