"""FedFA between clients and server: what is sent, what is kept, and where the released code parts."""

import pytest
import torch
from methods import TINY, federation, train
from torch import nn

from fednb.augment._feature_statistics import layers
from fednb.augment.fedfa import FedFA, gamma_of_channels, gamma_of_one_variance
from fednb.doors import part
from fednb.engine.loop import FederatedRun
from fednb.errors import RecipeError
from fednb.recipe import Recipe


def run(rounds: int = 2, **options) -> FederatedRun:
    name = options.pop("name", "fedfa")
    chosen = {"name": name, "probability": 1.0, **options}
    return train({"augmentations": [chosen], "rounds": rounds, "precision": "fp64"}).run


def replies(made: FederatedRun, monkeypatch) -> dict[str, dict]:
    """What every client sends in the next round."""
    sent, receive = {}, type(made.server).receive

    def spy(server, client, reply):
        sent[client] = {name: value.clone() for name, value in part(reply, "fedfa").items()}
        receive(server, client, reply)

    with monkeypatch.context() as patch:
        patch.setattr(type(made.server), "receive", spy)
        made.train_round()
    return sent


def test_paper_and_released_part_in_the_smallest_case():
    """Two clients, two channels. Means (0, 1) and (2, 1): Eq. 5 gives variances 1 and 0, Eq. 6 the shares 1/2 and 0, so
    gamma = (2, 0). The released code takes the variance of the four numbers 0, 1, 2, 1 at once: gamma = (1, 1)."""
    statistics = torch.tensor([[0.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    assert gamma_of_channels(statistics).tolist() == [2.0, 0.0]
    assert gamma_of_one_variance(statistics).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["fedfa", "fedfa_direct"])
def test_the_server_sends_what_eq_5_and_6_make_of_the_replies(name, monkeypatch):
    made = run(rounds=1, name=name) if name == "fedfa_direct" else run(rounds=1)
    server = made.server
    sent = server.memories[name]
    kept = {client: made.clients[client].memories[name] for client in made.clients}
    for entry in kept["clinic"]:
        stacked = torch.stack([kept[client][entry] for client in sorted(kept)])
        variance = ((stacked - stacked.mean(0)) ** 2).mean(0)  # Eq. 5
        shares = 1 / (1 + 1 / variance)
        expected = variance if name == "fedfa_direct" else len(shares) * shares / shares.sum()  # Eq. 6
        torch.testing.assert_close(sent[entry.replace("/", "/gamma_")], expected)
    message = server.send("clinic")
    assert {key for key in message if key.startswith(name)} == {f"{name}/{entry}" for entry in sent}


def test_gamma_sums_to_the_channels_as_printed_and_is_1_as_released():
    paper, released = (run(variant=variant).server.memories["fedfa"] for variant in ("paper", "released"))
    gammas = {name: value for name, value in released.items() if "gamma" in name}
    assert len(paper) == len(gammas) == 6
    for name, gamma in paper.items():
        assert float(gamma.sum()) == pytest.approx(len(gamma))
        assert gamma.std() > 1e-3
        torch.testing.assert_close(gammas[name], torch.ones_like(gamma), rtol=0, atol=1e-12)


def test_released_fedfa_is_fedfa_c_with_twice_the_variance():
    """gamma = 1 doubles the variance of Eq. 3; nothing that other clients sent enters."""
    (layer, *_), x = layers(run(variant="released").model), torch.rand(6, 2, 4, 4, dtype=torch.float64)
    mean, _ = layer.statistics(x)
    own = mean.var(0) + 1e-6
    torch.testing.assert_close(layer.spread(mean, torch.ones(2, dtype=torch.float64)), (2 * own).sqrt())


def test_running_statistics_stay_with_the_client_as_printed_and_are_averaged_as_released():
    made = run(rounds=1, momentum=0.5)
    after = {
        client: {n: v.clone() for n, v in made.clients[client].memories["fedfa"].items()} for client in made.clients
    }
    started = {}
    for client in made.clients.values():
        client.receive(made.server.send(client.name), 2)
        for method in client.methods:
            method.begin(client)
        started[client.name] = layers(client.model)[0].mean.clone()
    assert all(torch.equal(started[name], after[name]["1/mean"]) for name in started)

    made = run(rounds=1, momentum=0.5, variant="released")
    average = made.server.memories["fedfa"]["1/mean"]
    for client in made.clients.values():
        client.receive(made.server.send(client.name), 2)
        for method in client.methods:
            method.begin(client)
        assert torch.equal(layers(client.model)[0].mean, average)
        assert not client.memories.get("fedfa")


def test_reset_starts_each_round_from_0_and_1(monkeypatch):
    """At momentum 0.5 and one step a round (tower has one), the reply is half the batch's statistics: below half of
    what two rounds reach together."""
    kept, reset = (replies(run(rounds=1, momentum=0.5, reset=reset), monkeypatch) for reset in (False, True))
    assert kept["tower"]["1/mean"].sum() > 1.2 * reset["tower"]["1/mean"].sum()


def test_only_the_chosen_stages_carry_a_layer():
    made = run(stages=[3, 1])
    where = [name for name, module in made.model.named_modules() if module in layers(made.model)]
    assert [name.split(".")[0] for name in where] == ["stage1", "stage3"]
    assert set(made.server.memories["fedfa"]) == {f"{n}/gamma_{kind}" for n in (1, 2) for kind in ("mean", "std")}


def test_a_round_costs_four_numbers_a_channel():
    """FedFA, Appendix D: 4 x sum of C_k numbers a client and round, two up and two down, in float32."""
    made = FederatedRun(Recipe(**TINY | {"augmentations": ["fedfa"]}), federation())
    made.train_round()
    counted = made.train_round()  # in round 1 the server has nothing to send
    channels = sum(made.model.stage_channels)
    assert counted["up"]["fedfa"] == counted["down"]["fedfa"] == 3 * 2 * 4 * channels
    assert 4 * 4 * (64 + 192 + 384 + 256 + 256) == 18 * 1024  # AlexNet
    assert 4 * 4 * (32 + 64 + 128 + 256 + 512) == 15.5 * 1024  # U-Net


def test_statistics_are_not_moved_by_the_second_pass_of_sam():
    """One step of one batch at momentum 0: both passes would leave other statistics than the first pass alone."""
    settings = {"rounds": 1, "batch_size": 12, "precision": "fp64", "flow": ()}
    chosen = {"name": "fedfa", "probability": 1.0, "momentum": 0.0}
    plain = train(settings | {"augmentations": [chosen]}).run
    twice = train(settings | {"augmentations": [chosen], "algorithm": "fedsam"}).run
    for name, value in plain.clients["tower"].memories["fedfa"].items():
        torch.testing.assert_close(value, twice.clients["tower"].memories["fedfa"][name])


def test_bad_input_is_named():
    for options, told in (
        ({"variant": "printed"}, 'no variant "printed"; '),
        ({"probability": 2.0}, "probability 2.0; expected a value in"),
        ({"momentum": -0.5}, "momentum -0.5; expected a value in"),
        ({"stages": "1"}, "stages '1'; expected a list such as"),
        ({"stages": []}, "expected a list such as"),
    ):
        with pytest.raises(RecipeError, match=told):
            FedFA(**options)
    with pytest.raises(RecipeError, match="after stage 4 of DigitsCNN, which has stages 1 to 3"):
        run(stages=[4])
    with pytest.raises(RecipeError, match="after its stages of Linear, which has none"):
        FedFA().build(nn.Linear(2, 2))
