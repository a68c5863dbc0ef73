"""Server, client and one federated run."""

import pytest
import torch
from methods import SIZES, TINY, federation, messages, train

from fednb import models
from fednb.errors import DataError, RecipeError, RunError
from fednb.federation import Federation, Site
from fednb.loop.client import Client
from fednb.recipe import Recipe


def test_local_buffers_stay_with_their_client():
    trained, sent = messages({"buffers": "local"}, rounds=1)
    run, buffers = trained.run, {name for name, _ in trained.run.model.named_buffers()}
    assert buffers and not any({f"model/{name}" for name in buffers} & message.keys() for message in sent["up"])
    assert not run.server.model.keys() & buffers
    held = [client.memories["kept"] for client in run.clients.values()]
    assert all(kept.keys() == buffers for kept in held)
    assert not torch.equal(held[0]["stage1.1.running_mean"], held[1]["stage1.1.running_mean"])
    first, *_ = run.clients.values()
    first.receive(run.server.send(first.name), 2)
    assert all(torch.equal(run.model.state_dict()[name], held[0][name]) for name in buffers)


def test_a_share_of_the_clients_takes_part():
    data = federation(tuple((f"site{i}", 4 + i) for i in range(5)))
    trained = train({"participation": 0.5, "rounds": 6}, data)
    drawn = [tuple(values["loss"]) for values in trained.rounds]
    assert all(len(clients) == 3 for clients in drawn)  # 2.5 is rounded up
    assert len(set(drawn)) > 1 and set().union(*drawn) == set(trained.run.clients)
    server = trained.run.server
    sizes = {name: len(data.site(name).train) for name in drawn[-1]}
    assert server.weights == {name: size / sum(sizes.values()) for name, size in sizes.items()}
    assert server.share == sum(sizes.values()) / (4 + 5 + 6 + 7 + 8)
    assert all(len(values["test"]) == 5 for values in trained.rounds)  # all are evaluated
    assert len(train({"participation": 0.01}, rounds=1).rounds[0]["loss"]) == 1  # one at least


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_kept_optimiser_goes_on_where_it_was(optimiser):
    settings = {"optimiser": optimiser, "learning_rate": 0.01, "momentum": 0.9}
    kept, renewed = (train(settings | {"optimiser_state": state}) for state in ("kept", "renewed"))
    assert kept.rounds[0] == renewed.rounds[0]
    assert kept.rounds[1] != renewed.rounds[1]
    entries = {"sgd": {"momentum_buffer"}, "adam": {"step", "exp_avg", "exp_avg_sq"}}[optimiser]
    memory = kept.run.clients["clinic"].memories["optimiser"]
    assert {name.rpartition("/")[2] for name in memory} == entries
    assert {name.rpartition("/")[0] for name in memory} == set(kept.run.server.parameters)
    assert "optimiser" not in renewed.run.clients["clinic"].memories


def batches_of(settings: dict, size: int, monkeypatch) -> list[list[int]]:
    """The training batches of one client in one round, as positions."""
    seen, batch = [], Client.batch

    def keep(self, split, indices, training):
        if training:
            seen.append(indices.tolist())
        return batch(self, split, indices, training)

    monkeypatch.setattr(Client, "batch", keep)
    train(settings, federation((("only", size),)), rounds=1)
    return seen


@pytest.mark.parametrize(
    ("size", "last_batch", "expected"),
    [
        (8, "keep", [4, 4]),
        (11, "keep", [4, 4, 3]),
        (11, "drop", [4, 4]),
        (9, "keep", [4, 5]),  # a last batch of one image joins the one before
        (9, "drop", [4, 4]),
        (5, "keep", [5]),
        (3, "drop", [3]),  # the only batch is kept
    ],
)
def test_batches(size, last_batch, expected, monkeypatch):
    assert list(map(len, batches_of({"last_batch": last_batch}, size, monkeypatch))) == expected


def test_local_steps_count_mini_batches_over_as_many_epochs_as_they_need(monkeypatch):
    seen = batches_of({"local_steps": 5}, 12, monkeypatch)  # 12 images in batches of 4: three a permutation
    assert len(seen) == 5 and sorted(sum(seen[:3], [])) == list(range(12)) and len(set(sum(seen[3:], []))) == 8
    with pytest.raises(RecipeError, match="counted in one of them"):
        Recipe(local_steps=5, local_epochs=2)


@pytest.mark.parametrize(("size", "batch_size"), [(1, 4), (6, 1)])
def test_a_batch_of_one_is_refused_under_batch_normalisation(size, batch_size):
    with pytest.raises(DataError, match="client lonely has batches of one image"):
        train({"batch_size": batch_size}, federation((("lonely", size), ("other", 8))), rounds=0)


@pytest.mark.parametrize("settings", [{"learning_rate": 1e30}, {"learning_rate": 1e300, "weight_decay": 1e300}])
def test_a_loss_or_weights_that_are_no_numbers_name_round_client_and_recipe(settings):
    """In the second case the loss of the only step of a client is finite, and what the step leaves behind is not."""
    recipe = Recipe(**TINY | settings | {"batch_size": 64})
    with pytest.raises(RunError) as raised:
        train(settings | {"batch_size": 64})
    for word in ("client ", "round ", str(recipe), "Lower the learning rate"):
        assert word in str(raised.value)


def test_bytes_are_counted_by_name():
    """digits_cnn with 4 channels and width 64 on 3 x 8 x 8 and 3 classes.

    Parameters: convolutions 3*4*25+4 = 304, 4*4*25+4 = 404, 4*8*25+8 = 808; dense 32*64+64 = 2112,
    64*16+16 = 1040; head 16*3+3 = 51; normalisations 2*(4+4+8+64+16) = 192. Sum 4911, four bytes each.
    Buffers: 192 running statistics of four bytes, 5 counters of eight.
    """
    parameters, statistics, counters = 4 * 4911, 4 * 192, 8 * 5
    model = parameters + statistics + counters
    batch_normalisation = 4 * 192 + statistics + counters

    def counted(settings):
        trained = train(settings, rounds=1)
        return trained.run.prepared, trained.rounds[0]["up"], trained.rounds[0]["down"]

    offered = {"images": 3 * 8}  # each client tells how many images it has
    assert counted({}) == ({"up": offered, "down": {}}, {"model": 3 * model}, {"model": 3 * model})
    _, up, down = counted({"algorithm": "fedbn"})
    assert up == down == {"model": 3 * (model - batch_normalisation)}
    _, up, down = counted({"algorithm": "scaffold"})
    assert up == down == {"model": 3 * model, "scaffold": 3 * parameters}
    _, up, down = counted({"algorithm": "fednova"})
    assert (up, down) == ({"model": 3 * model, "fednova": 3 * 8}, {"model": 3 * model})
    _, up, down = counted({"algorithm": "fedproto"})
    assert (up, down) == ({"fedproto": 3 * 4 * (3 * 16 + 3)}, {})  # 3 classes, 16 features; nothing to send yet
    prepared, up, down = counted({"augmentations": ("fedrdn",)})
    pair = 2 * 3 * 4  # mean and deviation of three channels; the server sends all three pairs to all three
    assert prepared == {"up": offered | {"fedrdn": 3 * pair}, "down": {"fedrdn": 9 * pair}}
    assert up == down == {"model": 3 * model}


def test_cross_site_is_each_local_model_of_the_last_round_on_every_site():
    """A federation of one site ends its first round with that site's local model."""
    rounds = train({"rounds": 1, "local_epochs": 4, "evaluation": ("cross_site",)}).rounds
    found, sites = rounds[-1]["cross_site"], federation().sites
    assert list(found) == list(SIZES)
    for source in sites:
        for target, right in zip(sites, found[source.name], strict=True):
            mixed = Site(source.name, source.train, source.validation, target.test)
            alone = Federation("alone", (mixed,), ("red", "green", "blue"))
            assert train({"local_epochs": 4}, alone, rounds=1).rounds[0]["test"] == [right]
    plain = train({"rounds": 1, "local_epochs": 4}).rounds
    assert plain == [{name: value for name, value in rounds[0].items() if name != "cross_site"}]
    assert "cross_site" not in train({"evaluation": ("cross_site",)}, rounds=1).rounds[0]


def test_own_statistics_are_those_of_a_sites_training_images():
    """Of every layer: mean and sample variance of what reaches it from the whole training set, in training mode, of a
    copy of the network; then the images that the copy gets right with them, in evaluation mode."""
    settings = {"local_epochs": 4, "precision": "fp64"}
    plain, trained = train(settings), train(settings | {"augmentations": ("own_statistics",)})
    assert all(torch.equal(trained.run.server.model[name], value) for name, value in plain.run.server.model.items())
    for number, site in enumerate(federation().sites):
        model = models.build(trained.run.recipe.model, (3, 8, 8), 3).double()
        model.load_state_dict(trained.run.server.model)
        layers, seen = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)], []
        for layer in layers:
            layer.register_forward_pre_hook(lambda layer, given, seen=seen: seen.append(given[0]))
        with torch.no_grad():
            model.train()(site.train.images.double() / 255)
            assert len(seen) == len(layers) == 5
            for layer, features in zip(layers, seen[:], strict=True):
                over = [0, *range(2, features.ndim)]
                layer.running_mean.copy_(features.mean(over))
                layer.running_var.copy_(features.var(over, correction=1))
            scores = model.eval()(site.test.images.double() / 255).argmax(1) == site.test.targets
        _, reply = next(trained.run.exchange("test", 3, [(site.name, trained.run.server.send(site.name))]))
        assert torch.equal(reply["test"] == 1, scores)
        assert trained.rounds[-1]["test"][number] == int(scores.sum())


def test_a_site_without_held_out_images_is_evaluated_as_zero_of_zero():
    site = federation().sites[0]
    empty = site.test.select([])
    data = Federation("toy", (Site(site.name, site.train, empty, site.test),), ("red", "green", "blue"))
    assert train({}, data, rounds=1).rounds[0]["validation"] == [0]
