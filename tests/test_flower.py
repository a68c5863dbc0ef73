"""Flower carries the messages: every method in this process, through Flower's bytes; its simulation, slowly."""

import json
import os
import subprocess
import sys

import pytest
from loaders import picture
from methods import CASES, TINY, federation, label, row_of

from fednb.errors import RunError
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe
from fednb.records.record import checksum
from fednb.records.store import Store
from fednb.records.training import train_one

pytest.importorskip("flwr", reason='Flower is not installed: pip install -c constraints-flower.txt ".[flower]"')

from flwr.app import Context, Error, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.supercore.task_identity import TaskIdentity

from fednb.records import federate


class Grid:
    """Flower's grid in this process: messages go through their bytes.

    crashing: the numbers of nodes whose process dies when it trains or tests. asked: who was, by number.
    """

    def __init__(self, configs: dict[int, dict]):
        self.configs = configs
        self.crashing: set[int] = set()
        self.asked: list[int] = []

    def get_node_ids(self) -> list[int]:
        return list(self.configs)

    def send_and_receive(self, messages, *, timeout):
        replies = []
        for number, message in enumerate(messages):
            message.metadata.__dict__["_message_id"] = f"message {number}"  # as HttpGrid does
        for message in reversed(messages):
            node = message.metadata.dst_node_id
            self.asked.append(node)
            message = message_from_proto(message_to_proto(message))
            if node in self.crashing and message.metadata.message_type != "query":
                reply = FlowerMessage(Error(8, "it crashed\x1b[2J"), reply_to=message)
            else:
                reply = federate.client_app(message, Context(1, node, self.configs[node], RecordDict(), {}))
            replies.append(message_from_proto(message_to_proto(reply)))
        return replies


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """Every node finds the conformance tests' small federation, whatever its recipe names; every message a sender."""

    def found(recipe, root=None, site=None):
        return federation().only(site) if site else federation()

    monkeypatch.setattr(federate, "federation_of", found)
    monkeypatch.setattr(federate, "LOOKS", 0.01)
    monkeypatch.setenv("FEDNB_MEMORY", str(tmp_path / "memory"))
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def grid() -> Grid:
    return Grid({10 + number: {"site": site.name} for number, site in enumerate(federation().sites)})


def by_flower(recipe: Recipe, nodes: Grid, tmp_path):
    return federate.serve(nodes, recipe, Store(tmp_path / "runs"), 3, 0.1)


@pytest.mark.parametrize("case", [case for case in CASES if not row_of(case).method.pools], ids=label)
def test_every_method_gives_the_same_run(case, toy, tmp_path):
    recipe = Recipe(**TINY | case | {"rounds": 2})
    record, here = by_flower(recipe, grid(), tmp_path), FederatedRun(recipe, federation())
    assert record.rounds == [here.advance(), here.advance()]
    assert record.prepare == here.prepared and record.clients == list(here.clients)
    assert record.origin["engine"].startswith("flower ")


def test_in_flowers_simulation_a_node_has_the_site_of_its_number(toy, tmp_path):
    recipe = Recipe(**TINY | {"rounds": 1})
    nodes = Grid({7: {"partition-id": 1}, 8: {"partition-id": 0}, 9: {"partition-id": 2}})
    record = by_flower(recipe, nodes, tmp_path)
    assert record.rounds == [FederatedRun(recipe, federation()).advance()]
    assert record.fingerprint == federation().fingerprint


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


def test_a_node_that_crashes_is_absent_and_the_record_says_so(toy, tmp_path, before_round_2, capsys):
    recipe, nodes = Recipe(**TINY | {"rounds": 2}), grid()
    before_round_2(lambda: nodes.crashing.add(11))
    record = by_flower(recipe, nodes, tmp_path)
    assert "absent" not in record.rounds[0] and record.rounds[1]["absent"] == ["harbour"]
    assert any("harbour did not answer in round 2" in note and "it crashed?[2J" in note for note in record.notes)
    assert 'harbour did not answer "work" in round 2: it crashed?[2J' in capsys.readouterr().err


def test_a_second_node_of_a_living_site_is_never_asked(toy, tmp_path, before_round_2):
    recipe, nodes = Recipe(**TINY | {"rounds": 2}), grid()
    before_round_2(lambda: nodes.configs.update({21: nodes.configs[11]}))
    record, here = by_flower(recipe, nodes, tmp_path), FederatedRun(recipe, federation())
    assert record.rounds == [here.advance(), here.advance()] and 21 not in nodes.asked


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("memory", "harbour has lost what it kept after round 1"),
        ("site", "this node has .* introduced with another site or other"),
        ("code", "the server has another fednb than this client"),
    ],
)
def test_a_node_is_held_to_what_it_was_and_the_checkpoint_stays(
    changed, said, toy, tmp_path, before_round_2, monkeypatch
):
    """With node authentication a SuperNode that starts again has the number that it had."""
    nodes = grid()

    def start_again():
        if changed == "memory":
            (file,) = (tmp_path / "memory").glob(f"*_{checksum(b'harbour')}.pt")
            file.unlink()
        elif changed == "site":
            nodes.configs[11] = {"site": "tower"}
        else:
            sources = iter(["the server's"])
            monkeypatch.setattr(federate, "source_hash", lambda: next(sources, "the client's"))

    before_round_2(start_again)
    with pytest.raises(RunError, match=f"refuses: {said}"):
        by_flower(Recipe(**TINY | {"rounds": 2, "algorithm": "fedbn"}), nodes, tmp_path)
    assert list((tmp_path / "checkpoints").rglob("*.pt"))


def test_the_wire_carries_what_is_counted_and_a_little_more(toy, tmp_path):
    """Counted are a round's arrays; beside them messages have names, numpy's headers of 128 bytes, the recipe."""
    record = by_flower(Recipe(**TINY | {"rounds": 2, "algorithm": "scaffold"}), grid(), tmp_path)
    wire = record.origin["wire"]
    assert list(wire) == ["introduce", "offer", "learn", "work", "test"]
    for way in ("down", "up"):
        counted = sum(sum(values[way].values()) for values in record.rounds)
        assert counted < wire["work"][way] < counted + 2 * 3 * 30_000


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


def test_what_flower_carries_and_nobody_can_read_is_no_reply(toy, tmp_path, before_round_2, monkeypatch):
    work, array = federate.work, federate.Array("float32", (10**9,), "numpy.ndarray", b"no array")
    spoilt = [{"message": federate.ArrayRecord({"loss": array})}, {"message": federate.ConfigRecord({"loss": 0.5})}, {}]

    def odd(recipe, asked, content, context):
        given = recipe, asked, content, context
        return spoilt[asked["round"] - 2] if context.node_id == 11 and asked["kind"] == "work" else work(*given)

    before_round_2(lambda: monkeypatch.setattr(federate, "work", odd))
    record = by_flower(Recipe(**TINY | {"rounds": 4}), grid(), tmp_path)
    assert [values.get("absent") for values in record.rounds] == [None, *[["harbour"]] * 3]
    assert record.notes[-1].count("what it sent cannot be read: ") == 3


@pytest.mark.slow
def test_flowers_simulation_gives_the_run_of_one_process(tmp_path):
    pytest.importorskip("ray", reason='Ray is not installed: pip install "flwr[simulation]"')
    for site in ("north", "south"):
        for number in range(12):
            picture(tmp_path / "images" / "two" / site / ("bike", "mug")[number % 2] / f"{number}.png", number)
    chosen = {"federation": {"name": "folders", "folder": "two", "size": 8}, "algorithm": "scaffold"}
    recipe = Recipe(**TINY | chosen | {"rounds": 2, "augmentations": ["fedrdn"]})
    words = [sys.executable, "-m", "fednb", "federate", json.dumps(recipe.short), "--data", str(tmp_path / "images")]
    there = tmp_path / "there" / "runs"
    done = subprocess.run(
        words, env=os.environ | {"FEDNB_RUNS": str(there)}, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    found, here = Store(there).by("flower").find(recipe), train_one(recipe, Store(tmp_path), root=tmp_path / "images")
    assert found.rounds == here.rounds and found.prepare == here.prepare and found.fingerprint == here.fingerprint
