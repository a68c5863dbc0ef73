"""Server and clients each alone: a client lives for one message, forgets all but its memory, may die and come back."""

import json
import re
from dataclasses import asdict, replace

import pytest
import torch
from methods import CASES, PIXELS, ROWS, SIZES, TINY, federation, label, pixel_federation, reloaded, row_of, same, wired

from fednb.errors import RecipeError, RunError
from fednb.federation import Federation
from fednb.loop.flower.checks import Introduction
from fednb.loop.flower.client import answer
from fednb.loop.flower.server import RemoteRun
from fednb.loop.loop import FederatedRun
from fednb.methods.algorithms.fedavg import FedAvg
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.records.training import finish


class Elsewhere:
    """Clients that are woken for each message, with the memory that they left; all that passes is bytes.

    dead: triples (kind, round, client) that are not answered. failing: what goes wrong in the place of an answer, by
    triple. twisted: what becomes of a reply, by triple. messages: after so many answers the server is interrupted.
    """

    messages = -1

    def __init__(self, recipe: Recipe, data: Federation, dead=(), failing=None, twisted=None):
        self.recipe = recipe
        self.data = data
        self.dead = dead
        self.failing = failing or {}
        self.twisted = twisted or {}
        self.memories = {site.name: {} for site in data.sites}

    def introductions(self) -> list[Introduction]:
        values = [asdict(Introduction.of(self.data.only(name), self.data)) for name in reversed(self.memories)]
        return [Introduction.from_dict(json.loads(json.dumps(each))) for each in values]

    def ask(self, kind, round, messages):
        replies = {}
        for name in reversed(messages):
            at = kind, round, name
            if at in self.dead:
                continue
            if at in self.failing:
                replies[name] = self.failing[at]
                continue
            if self.messages == 0:
                raise KeyboardInterrupt
            self.messages -= 1
            given = self.recipe, self.data.only(name), self.memories[name], kind, wired(messages[name]), round
            reply, memories = answer(*given)
            self.memories[name] = reloaded(memories)
            replies[name] = self.twisted.get(at, lambda reply: reply)(wired(reply))
        return replies


def remote(settings: dict, data: Federation, **mishaps) -> RemoteRun:
    recipe = Recipe(**TINY | settings)
    clients = Elsewhere(recipe, data, **mishaps)
    return RemoteRun(recipe, clients.introductions(), clients.ask, {})


@pytest.mark.parametrize("case", [case for case in CASES if not row_of(case).method.pools], ids=label)
def test_clients_that_live_for_one_message_give_the_same_run(case):
    """remote clients: keep what lasts in client.memory(self), as a client is made anew for each message"""
    equal_runs(case, federation())


@pytest.mark.parametrize(
    "case", [*(row.cases()[0] for row in ROWS), {"optimiser_state": "kept", "algorithm": "fedbn"}], ids=label
)
def test_a_run_goes_on_from_a_state_in_another_memory_layout(case):
    """memory layout: let no result depend on a tensor's strides, which do not survive a message"""
    recipe = Recipe(**TINY | case)
    one, other = FederatedRun(recipe, federation()), FederatedRun(recipe, federation())
    one.advance(), other.advance()
    state = other.state()
    state["clients"] = {
        name: {key: wired(memory) for key, memory in memories.items()} for name, memories in state["clients"].items()
    }
    other.load_state(state)
    assert other.advance() == one.advance()


@pytest.mark.parametrize(
    "settings",
    [
        {"unseen": ["tower"], "buffers": "local", "algorithm": "scaffold"},
        {"participation": 0.67, "augmentations": ["fraug"]},
        {"optimiser_state": "kept", "optimiser": "adam", "learning_rate": 0.02},
        {"unseen": ["tower"], "participation": 0.5, "algorithm": {"name": "fedbn", "at_unseen": "mean"}},
        {"unseen": ["tower"], "participation": 0.5, "augmentations": [{"name": "distrans", "at_unseen": "none"}]},
        {"unseen": ["tower"], "evaluation": ["spare"]},
        PIXELS | {"algorithm": "fedbn", "augmentations": ["fedfa"]},
    ],
    ids=str,
)
def test_the_same_run_with_unseen_and_absent_clients_and_with_masks(settings):
    equal_runs(settings, pixel_federation() if "model" in settings else federation())


def equal_runs(settings: dict, data: Federation) -> None:
    there, here = remote(settings | {"rounds": 2}, data), FederatedRun(Recipe(**TINY | settings | {"rounds": 2}), data)
    assert [there.advance() for _ in range(2)] == [here.advance() for _ in range(2)]
    assert (there.prepared, there.images, there.fingerprint) == (here.prepared, here.images, here.fingerprint)
    assert torch.equal(there.scores, here.scores) and same({"of": there.spare}, {"of": here.spare})
    assert there.notes == here.notes and list(there.clients) == list(here.clients)


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "scaffold", "augmentations": ["fedrdn"]},
        {"algorithm": "fedbn", "optimiser_state": "kept"},
        {"algorithm": {"name": "pfedhn", "rate": 0.05}, "augmentations": ["fraug"]},
    ],
    ids=str,
)
def test_a_round_goes_on_without_a_client_which_comes_back_with_its_memory(settings, monkeypatch):
    """As if the client had not been drawn: the run of one process in which harbour's name is not drawn in round 2."""
    dead = {(kind, 2, "harbour") for kind in ("work", "test")}
    there, here = remote(settings, federation(), dead=dead), FederatedRun(Recipe(**TINY | settings), federation())
    sample = here.server.sample

    def drawn(round):
        names = [name for name in sample(round) if (round, name) != (2, "harbour")]
        here.server.weigh(names)
        return names

    monkeypatch.setattr(here.server, "sample", drawn)
    first, second, third = (there.advance() for _ in range(3))
    expected = [here.advance() for _ in range(3)]
    assert first == expected[0] and third == expected[2]
    assert second["absent"] == ["harbour"] and second["loss"] == expected[1]["loss"]
    assert second["test"] == [expected[1]["test"][0], first["test"][1], expected[1]["test"][2]]
    assert any("harbour did not answer in round 2:" in note for note in there.notes)


@pytest.mark.parametrize("messages", [6 + 6, 6 + 6 + 2, 6 + 6 + 3 + 1], ids=["before", "while some train", "in tests"])
@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "scaffold", "augmentations": ["fedrdn"]},
        {"algorithm": "fedbn", "optimiser_state": "kept", "unseen": ["tower"]},
    ],
    ids=str,
)
def test_an_interrupted_server_goes_on_with_the_same_numbers(settings, messages):
    """Interrupted in round 2, which some clients have trained by then and train again."""
    recipe, undisturbed = Recipe(**TINY | settings), remote(settings, federation())
    clients = Elsewhere(recipe, federation())
    clients.messages = messages - len(recipe.unseen) * 2
    first, second = (RemoteRun(recipe, clients.introductions(), clients.ask, {}) for _ in range(2))
    rounds, state = [first.advance()], reloaded(first.state())
    with pytest.raises(KeyboardInterrupt):
        first.advance()
    clients.messages = -1
    second.load_state(state)
    rounds += [second.advance(), second.advance()]
    assert rounds == [undisturbed.advance() for _ in range(3)]
    assert (second.prepared, second.notes) == (undisturbed.prepared, undisturbed.notes)
    assert torch.equal(second.scores, undisturbed.scores)
    assert same(second.server.model, undisturbed.server.model)


def test_who_was_away_before_an_interruption_is_named_after_it():
    dead = {(kind, round, "harbour") for kind in ("work", "test") for round in (2, 3)}
    first, second = (remote({}, federation(), dead=dead) for _ in range(2))
    first.carried, second.carried = ({"wire": {"work": {"down": count, "up": 1}}} for count in (3, 0))
    tested, _ = first.advance()["test"], first.advance()
    second.load_state(reloaded(first.state()))
    assert second.advance()["test"][1] == tested[1]
    assert "harbour did not answer in round 2, 3:" in second.notes[-1]
    assert second.carried == first.carried


class Started:
    """Starts of one run, whose store lies in a folder."""

    def __init__(self, settings: dict, folder):
        self.recipe, self.store = Recipe(**TINY | settings), Store(folder / "runs")
        self.clients = Elsewhere(self.recipe, federation())

    def start(self, **mishaps):
        """The record, or the words of the error that ended it; any other error is not caught."""
        for name in ("dead", "twisted"):
            setattr(self.clients, name, mishaps.get(name, {}))
        given = self.recipe, self.clients.introductions(), self.clients.ask, {}
        try:
            with self.store.lock(self.recipe):
                return finish(RemoteRun(*given), self.store)
        except RunError as error:
            return str(error)


def test_large_numbers_of_one_client_spoil_no_later_start_and_no_other_is_blamed_alone(tmp_path):
    """They lie in range, and what they ruin shows a round later, at the others."""

    def large(reply):
        return {name: value * 0 + 9e8 if "scaffold" in name else value for name, value in reply.items()}

    run, undisturbed = (Started({"algorithm": "scaffold", "rounds": 4}, tmp_path / name) for name in ("run", "other"))
    said = run.start(twisted={("work", 2, "harbour"): large})
    assert "Numbers that another client sent a round before can be why." in said
    assert run.store.load_checkpoint(run.recipe, "cpu")["run"]["rounds"] == 1
    found, expected = run.start(), undisturbed.start()
    assert found.rounds == expected.rounds and found.notes == expected.notes
    assert not list(run.store.checkpoints.glob("*.pt"))


@pytest.mark.parametrize(
    ("kind", "round", "dead"),
    [("offer", 0, ["clinic"]), ("test", 1, ["tower"]), ("test", 3, ["tower"]), ("work", 1, list(SIZES))],
)
def test_who_is_needed_and_does_not_answer_is_named(kind, round, dead):
    """In round 3 of 12 spare images are scored for the first time."""
    settings = {"rounds": 12, "evaluation": ["spare"] * (round == 3)}
    there = remote(settings, federation(), dead={(kind, round, name) for name in dead})
    with pytest.raises(RunError, match=f'^{", ".join(dead)} did not answer "{kind}" in round {round}'):
        [there.advance() for _ in range(3)]


def test_what_went_wrong_at_a_client_is_in_the_notes_and_no_escape_with_it():
    failing = {("work", round, "harbour"): "gone\x1b[2J\n" for round in (2, 3)}
    there = remote({}, federation(), failing=failing)
    assert ["absent" in there.advance() for _ in range(3)] == [False, True, True]
    assert re.fullmatch(r"harbour did not answer in round 2, 3: .* What went wrong: gone\?\[2J", there.notes[-1])


def put(**entries):
    """A twist that puts these in a reply; those of None go. ``model__bias`` is "model/bias"."""
    entries = {name.replace("__", "/"): value for name, value in entries.items()}
    gone = {name for name, value in entries.items() if value is None}
    return lambda reply: {name: value for name, value in (reply | entries).items() if name not in gone}


def scaled(name: str, factor):
    """A twist that multiplies an entry."""
    return lambda reply: reply | {name: reply[name] * factor}


NAN = float("nan")
HALF, RIGHT = (torch.full((24,), value, dtype=torch.float64) for value in (0.5, 1.0))
UNREAD = [
    ("work", lambda reply: {}, "loss is none|after is none"),
    ("work", put(loss=torch.tensor(0.5)), "loss is torch.float32 in what harbour sent; expected torch.float64"),
    ("work", put(loss=torch.tensor(NAN).double()), "loss goes from nan to nan"),
    ("work", put(**{"model/head.bias": torch.zeros(5)}), "model/head.bias is .5. in what harbour sent and .3."),
    ("work", put(**{"model/head.bias": torch.zeros(3).cfloat()}), "complex64 in what harbour sent; expected .*float32"),
    ("work", put(model__spy=torch.zeros(3)), "model/spy is .3. in what harbour sent and none"),
    ("work", scaled("model/head.weight", 1e5), "model/head.weight goes from .* expected -1.*\\d to 1.*\\d"),
    ("work", scaled("model/stage1.1.running_var", -1), "running_var goes from .* expected 0 to 1e.09"),
    ("work", scaled("scaffold/head.weight", NAN), "scaffold/head.weight goes from nan"),
    ("work", scaled("scaffold/head.weight", 1e12), "scaffold/head.weight goes from .* expected -1e.09 to 1e.09"),
    ("work", put(**{"scaffold/head.bias": torch.zeros(3).cfloat()}), "not implemented for ComplexFloat"),
    ("work", put(after=torch.tensor(3)), "after goes from 3 to 3"),
    ("test", put(test=RIGHT[1:]), "test is .23. in what harbour sent and .24."),
    ("test", put(test=HALF), "test has other numbers than 0 and 1 in what harbour sent"),
    ("test", put(validation=RIGHT * 1e-300), "validation has other numbers than 0 and 1"),
    ("test", put(test=-RIGHT), "test goes from -1"),
]


@pytest.mark.parametrize(("kind", "twist", "why"), UNREAD)
def test_a_reply_that_is_none_leaves_its_client_out_as_if_it_had_not_answered(kind, twist, why):
    """All that the server holds and measures is that of a run in which the client was silent then."""
    settings, at = {"algorithm": "scaffold", "rounds": 2}, (kind, 2, "harbour")
    silent, there = remote(settings, federation(), dead={at}), remote(settings, federation(), twisted={at: twist})
    expected = [silent.advance() for _ in range(2)]
    assert [there.advance() for _ in range(2)] == expected and expected[1]["absent"] == ["harbour"]
    assert same(there.server.model, silent.server.model) and same(there.server.memories, silent.server.memories)
    (note,) = [note for note in there.notes if note.startswith("harbour did not answer in round 2:")]
    assert re.search(why, note.partition("What went wrong: ")[2])


@pytest.mark.parametrize(
    ("kind", "twist", "why"),
    [
        *(("offer", put(images=torch.tensor(n)), "images goes from .*; expected 7 to 7") for n in (-10, 2**62)),
        ("offer", scaled("fedmix/images", 300.0), "fedmix/images goes from .*expected 0 to 1"),
        ("learn", put(more=torch.tensor(1)), "more is"),
        ("test", put(test=HALF * 3), "test goes from 1.5"),
    ],
)
def test_who_is_needed_and_sends_what_is_no_reply_is_named_with_the_reason(kind, twist, why):
    round = int(kind == "test")
    settings = {"augmentations": ["fedmix"], "rounds": 1}
    there = remote(settings, federation(), twisted={(kind, round, "harbour"): twist})
    with pytest.raises(RunError, match=rf'harbour \(.*{why}.*\) did not answer "{kind}" in round {round}'):
        there.advance()


@pytest.mark.parametrize(
    ("settings", "twist", "entry"),
    [
        ({"algorithm": "scaffold"}, put(**{"scaffold/head.bias": torch.zeros(4)}), "scaffold/head.bias"),
        ({"augmentations": ["fedmix"]}, put(fedmix__labels=torch.ones(2, 4)), "fedmix/labels"),
    ],
)
def test_where_two_clients_send_a_method_other_entries_the_round_ends_and_both_are_named(settings, twist, entry):
    at = ("offer", 0, "harbour") if "augmentations" in settings else ("work", 1, "harbour")
    there = remote(settings, federation(), twisted={at: twist})
    with pytest.raises(RunError, match=f"(harbour and (clinic|tower)|(clinic|tower) and harbour) sent {entry} in diff"):
        there.advance()


def test_clients_that_were_sent_something_else_may_reply_something_else():
    """HarmoFL's send their amplitude only until they are sent one; later ones are not held to the first's."""
    data = federation(tuple((f"s{number}", 6) for number in range(6)))
    settings = {"algorithm": "harmofl", "participation": 0.34, "rounds": 3}
    there, here = remote(settings, data), FederatedRun(Recipe(**TINY | settings), data)
    assert [there.advance() for _ in range(3)] == [here.advance() for _ in range(3)]


@pytest.mark.parametrize(("name", "kind"), [("scaffold", "work"), ("fedaws", "offer")])
def test_where_all_send_what_a_method_cannot_use_the_run_ends(name, kind):
    def twist(reply):
        return {entry.replace(f"{name}/", f"{name}/x"): value for entry, value in reply.items()}

    twisted = {(kind, int(kind == "work"), client): twist for client in SIZES}
    with pytest.raises(RunError, match=f"{name} .*cannot use what clinic, harbour, tower sent .KeyError"):
        remote({"algorithm": name}, federation(), twisted=twisted).advance()


ODD = [{"site": "average"}, {"images": [10**12, 1, 1]}, {"images": [0, 1, 1]}, {"images": [1, 1]}, {"notes": None}]
ODD += [{"image_shape": shape} for shape in ([3, 8], [3, 10**5, 10**5], [3, 0, 8])] + [{"classes": []}, {"task": "spy"}]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_introduction_that_no_site_can_give_is_named(odd):
    said = json.loads(json.dumps(asdict(Introduction.of(federation().only("clinic"), federation()))))
    assert Introduction.from_dict(said).site == "clinic"
    with pytest.raises(RunError, match="introduces itself as no site can"):
        Introduction.from_dict(said | (odd if odd.keys() <= said.keys() else {"outline": said["outline"] | odd}))


SPOILT = {"own": torch.tensor([1.0, float("nan")])}
NOT_FINITE = {
    "prepare_share": (lambda *_: SPOILT, "fedavg/own is not finite at the server after round 0 of fedavg"),
    "aggregate": (lambda self, server: server.memory(self).update(SPOILT), "fedavg/own .* the server after round 1"),
    "aggregate_model": (
        lambda self, server, mean: mean | {"head.bias": mean["head.bias"] / 0},
        "model/head.bias is not",
    ),
}


@pytest.mark.parametrize("hook", NOT_FINITE)
def test_what_the_server_makes_and_is_not_finite_is_named(hook, monkeypatch):
    does, said = NOT_FINITE[hook]
    monkeypatch.setattr(FedAvg, hook, does)
    for run in (FederatedRun(Recipe(**TINY), federation()), remote({}, federation())):
        with pytest.raises(RunError, match=said):
            run.advance()


def test_what_does_not_fit_together_is_named():
    data = federation()
    clinic, harbour, tower = (Introduction.of(data.only(site.name)) for site in data.sites)
    other = replace(tower, outline=replace(tower.outline, classes=("red", "blue", "green")))
    for introductions, settings, kind, said in (
        ([clinic, harbour, other], {}, RunError, "tower has .*'blue', 'green'.*; clinic has .*'green', 'blue'"),
        ([clinic, harbour, clinic], {}, RunError, "two clients say that they are clinic"),
        ([clinic, harbour], {"algorithm": "all"}, RecipeError, "all trains centrally"),
        ([clinic, harbour], {"evaluation": ["features"]}, RecipeError, "over Flower has the evaluation features"),
        ([clinic, replace(tower, images=(5, 24, 24))], {"evaluation": ["spare"]}, RecipeError, "1 of 2 .*first tower"),
    ):
        with pytest.raises(kind, match=said):
            RemoteRun(Recipe(**TINY | settings), introductions, None, {})
