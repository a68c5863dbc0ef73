"""Training: killed and resumed, side by side, and what happens when one of many recipes fails."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import active_children

import pytest
import torch
from methods import HELD_OUT, SIZES, federation, same
from small_runs import FULL, SMALL, use_toy

from fednb.errors import RecipeError
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe
from fednb.records import scores, training
from fednb.records.store import Store
from fednb.records.training import train_one
from fednb.records.workers import train

# Trains FULL with a checkpoint after every round, and holds still after as many rounds as the second argument says.
SCRIPT = """
import json, sys, time
import torch
torch.set_num_threads(1)
from fednb.records import provenance, scores, training
from fednb.recipe import Recipe
from fednb.records.store import Store

training.CHECKPOINT_SECONDS = 0.0
recipe = Recipe(**json.loads(sys.argv[3]))

def tell(_, rounds):
    print(rounds, flush=True)
    if rounds == int(sys.argv[2]):
        time.sleep(120)

print("asks", flush=True)
training.train_one(recipe, Store(sys.argv[1]), progress=tell)
"""


def start(store: Store, recipe: Recipe, stop: int) -> subprocess.Popen:
    arguments = [str(store.folder), str(stop), json.dumps(recipe.full)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], **streams, text=True)


@contextmanager
def killed_at_the_end(process: subprocess.Popen):
    """Nothing is left running, however the test ends."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_run_killed_in_the_middle_ends_as_an_undisturbed_one_and_is_trained_once(store, tmp_path):
    """One process is killed after round 3, with its checkpoint at round 2; another that asked for the same run
    has waited, said so, and goes on from there.
    """
    with killed_at_the_end(start(store, FULL, stop=3)) as first:
        while first.stdout.readline() != "3\n":
            assert first.poll() is None
        with killed_at_the_end(start(store, FULL, stop=-1)) as second:
            assert second.stdout.readline() == "asks\n"
            assert second.stderr.readline() == f"waiting for another process, which trains {FULL}\n"
            assert second.poll() is None and store.find(FULL) is None
            first.send_signal(signal.SIGKILL)
            assert first.wait(30) == -signal.SIGKILL
            assert second.communicate(timeout=120)[0].split() == ["2", "3", "4"] and second.returncode == 0
    resumed = store.find(FULL)
    undisturbed = train_one(FULL, Store(tmp_path / "other"))
    assert resumed.rounds == undisturbed.rounds and len(resumed.rounds) == 4
    assert any(len(values["loss"]) < 4 for values in resumed.rounds)  # a client was left out somewhere
    for name, array in resumed.artefact("features").items():
        assert (array == undisturbed.artefact("features")[name]).all()
    assert not list(store.checkpoints.glob("*.pt")) and not list(store.checkpoints.glob(".*"))


def test_side_by_side_gives_the_same_numbers_and_a_process_that_dies_is_reported(store, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)  # one thread for each of two
    one, two = FULL.with_(rounds=2), FULL.with_(rounds=500)
    store.checkpoints.mkdir(parents=True)
    (store.checkpoints / f"{one.key}.pt").write_bytes(b"half of a checkp")
    told = []

    def kill_the_second(recipe, rounds):
        told.append((recipe, rounds))
        if recipe == two and rounds == 0:
            last = max(active_children(), key=lambda child: int(child.name.rpartition("-")[2]))
            os.kill(last.pid, signal.SIGKILL)

    ended = train([one, two, one], store, jobs=2, progress=kill_the_second)
    assert ended == {one: None, two: "its process ended with code -9, as it does when memory runs out."}
    assert [rounds for recipe, rounds in told if recipe == one] == [0, 1, 2]
    assert store.find(one).rounds == train_one(one, Store(tmp_path / "other")).rounds
    assert store.find(one).origin["threads"] == 1 and store.find(two) is None
    (note,) = store.notes
    assert "the run starts from its first round" in note


def interrupted(recipe: Recipe, store: Store, after: int = 1) -> None:
    """Leaves a checkpoint of this round, as a run does that is stopped by Ctrl-C in the next."""

    def stop(_, rounds):
        if rounds > after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            train_one(recipe, store, progress=stop)
    assert (store.checkpoints / f"{recipe.key}.pt").exists()


def resumed_at(recipe: Recipe, store: Store) -> int:
    seen = []
    train_one(recipe, store, progress=lambda _, rounds: seen.append(rounds))
    return seen[0]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "scaffold"},
        {"algorithm": "fedproto", "rounds": 2, "evaluation": ["cross_site"], "flow": ["flip", "rotation"]},
        {"augmentations": ["fedrdn"], "evaluation": ["spare"]},
        {"buffers": "local", "optimiser_state": "kept", "participation": 0.4},
    ],
    ids=str,
)
def test_an_interrupted_run_goes_on_with_the_same_numbers(store, tmp_path, settings):
    recipe = SMALL.with_(**{"rounds": 3, "flow": ["rotation"]} | settings)
    interrupted(recipe, store)
    assert resumed_at(recipe, store) == 1
    resumed, undisturbed = store.find(recipe), train_one(recipe, Store(tmp_path / "other"))
    assert resumed.rounds == undisturbed.rounds
    for split in ("test", "spare"):
        assert repr(resumed.scores(split)) == repr(undisturbed.scores(split))


@pytest.mark.usefixtures("toy")
def test_a_run_goes_on_with_the_threads_that_its_checkpoint_was_made_with(store):
    here = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        interrupted(SMALL, store)
        torch.set_num_threads(1)
        assert resumed_at(SMALL, store) == 1 and store.notes == []
        assert store.find(SMALL).origin["threads"] == 2 and torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(here)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("change", ["images", "code", "defaults"])
def test_a_checkpoint_from_something_else_is_not_used(store, monkeypatch, change):
    interrupted(SMALL, store)
    saved = store.load_checkpoint(SMALL, "cpu")
    if change == "images":
        use_toy(monkeypatch, federation(held_out=1))
    if change == "code":
        monkeypatch.setattr(training, "source_hash", lambda: "another")  # of two changed copies of one commit, too
    if change == "defaults":
        saved["made_from"]["recipe"]["momentum"] = 0.99
        store.save_checkpoint(SMALL, saved)
    assert resumed_at(SMALL, store) == 0
    word = {"images": "data", "defaults": "recipe", "code": "code"}[change]
    (note,) = store.notes
    assert note.startswith(f"The checkpoint of {SMALL} was made with other ") and word in note


@pytest.mark.usefixtures("toy")
def test_a_record_says_where_it_comes_from_and_what_is_evaluated_changes_no_metric(store):
    record = train_one(SMALL.with_(evaluation=["features", "cross_site"]), store)
    for more, plain in zip(record.rounds, train_one(SMALL, store).rounds, strict=True):
        assert same({name: value for name, value in more.items() if name in plain}, plain)
    assert record.fingerprint == training.federation_of(SMALL).fingerprint
    assert record.clients == ["clinic", "harbour", "tower"] and record.images["train"] == [12, 7, 5]
    made = {"code", "torch", "device", "threads", "processor", "instructions", "parameters", "seconds"}
    assert record.origin.keys() == made and record.origin["processor"]
    assert record.origin["device"] == "cpu" and record.origin["torch"] == torch.__version__
    assert [values["round"] for values in record.rounds] == [1, 2]
    assert "cross_site" in record.rounds[1] and "cross_site" not in record.rounds[0]
    assert record.artefact("features")["labels"].shape == (3 * HELD_OUT,)


SPARE = SMALL.with_(rounds=12, evaluation=["spare"])


@pytest.mark.parametrize(
    "settings", [{"algorithm": "fedbn"}, {"unseen": ["tower"]}, {"algorithm": "pfedavg"}, {"algorithm": "all"}], ids=str
)
def test_spare_images_are_scored_as_test_images_are_in_the_last_ten_rounds(toy, store, settings):
    """In the last round as by hand, from the run's own final weights and a network that is fed image by image."""
    recipe = SPARE.with_(**settings)
    record, data = train_one(recipe, store), federation()
    assert record.images["spare"] == [len(site.spare) for site in data.sites] == list(SIZES.values())
    assert set(record.scores("spare")) == set(range(3, 13)) < {1, *record.scores()}
    run = FederatedRun(recipe, data)
    for _ in range(12):
        values = run.advance()
        assert (run.spare is None) == (run.rounds < 3)
    assert values == record.rounds[-1]
    for name, found in zip(record.clients, record.scores("spare")[12], strict=True):
        client, spare = run.clients[name], data.site(name).spare
        with client.at_test(run.server.send(name), 12), torch.no_grad():
            client.model.eval()
            guesses = [int(client.model(image[None] / 255).argmax()) for image in spare.images]
        assert found.tolist() == [
            guess == target for guess, target in zip(guesses, spare.targets.tolist(), strict=True)
        ]


def test_spare_images_that_nobody_hands_over_are_refused_by_name():
    data = federation()
    lacking = replace(data, sites=(data.sites[0], replace(data.sites[1], spare=None), data.sites[2]))
    with pytest.raises(RecipeError, match='"spare", the scores of .* 1 of 3 sites of toy have none .first harbour'):
        FederatedRun(SPARE, lacking)


def test_rounds_to_keep_and_packing_by_hand():
    images = {"validation": [2, 0], "test": [3, 4]}
    tests = [[1, 0], [3, 4], [3, 4], *[[0, 1]] * 12]
    rounds = [
        {"round": number, "validation": [2 if number == 4 else 1, 0], "test": right}
        for number, right in enumerate(tests, 1)
    ]
    assert scores.rounds_to_keep(rounds, images) == {2, 4, *range(6, 16)}
    assert scores.rounds_to_keep(rounds[:3], images | {"validation": [0, 0]}) == {1, 2, 3}
    bits = {7: torch.tensor([1, 0, 1, 0, 0, 0, 1.0]), 2: torch.tensor([0, 1, 1, 1, 1, 1, 0.0])}
    packed = scores.packed({number: values.double() for number, values in bits.items()}, {})
    assert packed["rounds"].tolist() == [2, 7] and packed["test"].dtype == "uint8" and packed["test"].nbytes == 2
    assert [own.tolist() for own in scores.unpacked(packed, [3, 4])[7]] == [[1, 0, 1], [0, 0, 0, 1]]
    dice = scores.packed({1: torch.tensor([0.25, 1.0]).double()}, {})
    assert dice["test"].dtype == "float16" and scores.unpacked(dice, [1, 1])[1][0].tolist() == [0.25]
