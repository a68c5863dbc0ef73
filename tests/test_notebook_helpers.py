"""The helpers that lie beside their notebooks: bytes of messages, features, own folders, FedFA's Theorem 1, toys."""

from types import SimpleNamespace
from unittest.mock import patch

import made_results
import numpy
import pandas
import pytest
import torch

import fednb
import meters
import separation
from example_folders import example_folders
from fednb import models, papers
from fednb.methods.augmentations import fedfa
from fednb.methods.augmentations.fedfa import FeatureAugmentation, FedFA
from fednb.randomness import generator
from fednb.records.record import read
from over_rounds import held_against
from prepare_bytes import prepare_bytes
from regularisation import Experiment
from round_bytes import round_bytes
from second_look import apart_by_seed, made_again, off_print
from server_weights import sorted_curves, spans
from shift import between_sites, site_accuracy
from toy_offsets import data as toy_data
from toy_offsets import training

AVERAGE = (3 * 8 * 8 + 10) * 4  # bytes of an average: its pixels and 10 labels in float32


@pytest.mark.parametrize(
    ("method", "images", "up", "down"),
    [
        ("fedrdn", 4, 3 * 2 * 3 * 4, 3 * 3 * 2 * 3 * 4),  # two numbers a channel, from each client to every client
        ("mixup", 4, 0, 0),
        ("fedmix", 7, 3 * 2 * AVERAGE, 3 * 3 * 2 * AVERAGE),  # in averages of 5, 7 images are two
    ],
)
def test_what_three_clients_exchange_before_the_first_round(method, images, up, down):
    assert prepare_bytes(method, clients=3, images=images, image_shape=(3, 8, 8)) == {"up": up, "down": down}


def test_a_round_of_fedfa_on_a_small_network():
    """Stages of 2, 2 and 4 channels: mean and standard deviation up, two weights down, 4 bytes each."""
    counted = round_bytes("fedfa", {"name": "digits_cnn", "channels": 2, "width": 8}, (3, 8, 8))
    assert counted["up"]["fedfa"] == counted["down"]["fedfa"] == 2 * 4 * (2 + 2 + 4)
    assert counted["up"]["model"] == counted["down"]["model"]


def test_fedfas_appendix_d_from_the_messages():
    """18 KB for AlexNet, both ways together. U-Net is not trained by the loop: 15.5 KB from what a client tells."""
    counted = round_bytes("fedfa", {"name": "alexnet", "width": 8}, (3, 127, 127))
    assert counted["up"]["fedfa"] + counted["down"]["fedfa"] == 18 * 1024
    unet = FedFA().build(models.build("unet", (3, 16, 16), 2))
    told = fedfa.running_statistics(SimpleNamespace(model=unet))
    assert 2 * sum(value.numel() * value.element_size() for value in told.values()) == 15.5 * 1024


def test_shifted_features_give_the_site_away():
    features = numpy.random.default_rng(0).normal(size=(240, 4))
    labels, sites = numpy.arange(240) % 3, numpy.arange(240) // 3 % 4
    shifted = features + 20 * numpy.eye(4)[sites]
    assert 15 < site_accuracy(features, sites) < 35 and site_accuracy(shifted, sites) > 99  # guessing gives 25
    assert between_sites(features, labels, sites) < 10 and between_sites(shifted, labels, sites) > 90


def test_the_share_between_sites_by_hand():
    # One class: site 0 at 0 and 2, site 1 at 4 and 6. The centre is 3, the squares add up to 9 + 1 + 1 + 9 = 20; the
    # sites' means are 1 and 5, twice two images at a distance of 2: 2 * (4 + 4) = 16.
    share = between_sites([[0.0], [2.0], [4.0], [6.0]], [0, 0, 0, 0], [0, 0, 1, 1])
    assert share == pytest.approx(100 * 16 / 20)
    assert between_sites([[0.0], [1.0], [10.0], [11.0]] * 2, [0, 0, 1, 1] * 2, [0] * 4 + [1] * 4) == 0  # of classes


def test_the_example_loads_as_four_sites_of_ten_classes(tmp_path):
    folder = example_folders(tmp_path / "example", per_class=4)
    federation = fednb.load("folders", root=folder, size=32)
    assert [site.name for site in federation.sites] == ["blurred", "photos", "plain", "tinted"]
    assert federation.classes == tuple(f"digit_{digit}" for digit in range(10))
    assert federation.counts().to_numpy().sum() == 4 * 10 * 4


def office(label: str, *rights, seed: int = 0):
    return made_results.run(label, [tuple(right) for right in rights], seed=seed)


def test_how_far_a_row_is_from_print_and_a_run_from_itself():
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    plain = printed[(printed["algorithm"] == "fedavg") & (printed["augmentation"] == "")]
    theirs = plain.set_index("site")["value"]
    right = [round(theirs[site] * count / 100) + 2 for site, count in made_results.IMAGES.items()]
    made = made_results.results(*(office("fedavg", right, seed=seed) for seed in (0, 1)))
    (distance,) = off_print(made, printed).values()
    assert distance == pytest.approx(sum(200 / count for count in made_results.IMAGES.values()) / 4, abs=0.2)
    more = [count + 1 for count in right]
    again = made_results.results(*(office("fedavg", more, seed=seed) for seed in (0, 1)))
    apart = sum(100 / count for count in made_results.IMAGES.values()) / 4
    assert f"{apart / 2**0.5:.1f} points (2 pairs)" in made_again(made, again)
    nova = made_results.results(office("fedavg", right), office("fednova", more))
    assert apart_by_seed(nova, "fednova", "fedavg") == pytest.approx(apart)
    none = SimpleNamespace(records=[])
    assert off_print(none, printed) == {} and made_again(none, made) == ""


def test_a_curve_held_against_another_in_the_seeds_of_both():
    low, high = (10, 10, 10, 10), (29.2, 32.5, 13.2, 15.9)  # ten points more at each site
    runs = [office("fedavg", *[low] * 12, seed=seed) for seed in (0, 1)]
    runs.append(office("fedavg+fedrdn", high, low, *[high] * 10))
    said = held_against(made_results.results(*runs), "fedavg+fedrdn", "fedavg")
    assert said.startswith("FedRDN over FedAvg: +9.0 points in the first 10 rounds, +10.0 in the last half")
    assert said.endswith("steadier in 0 of 1 seeds")
    assert held_against(made_results.results(runs[0]), "fedavg+fedrdn", "fedavg") == ""


def test_weights_of_a_server_sorted_and_in_one_line_where_they_are_alike():
    weights = {
        "own": {"1/gamma_mean": numpy.array([0.5, 1.5, 1.0]), "1/gamma_std": numpy.array([0.2, 1.8, 1.0])},
        "alike": {f"{stage}/gamma_mean": numpy.ones(3) for stage in (1, 2)},
    }
    curves = sorted_curves(weights)
    assert [list(curve[1]) for curve in curves.values()] == [[1.5, 1.0, 0.5], [1.0, 1.0]]
    assert list(curves) == ["own: stage 1", "alike: all stages"] and list(curves["own: stage 1"][0]) == [0, 50, 100]
    assert spans(weights) == {"own": "0.20 to 1.80", "alike": "1.00 to 1.00"}


def test_meters_of_sites_that_are_alike_and_that_are_not():
    """Alike: site accuracy is about 0, and site means vary as means of so many images do. Where one channel is
    shifted by more than images vary, each image's site is told; the distance is written out."""
    images = torch.randint(0, 100, (4, 200, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    alike = [meters.statistics(own) for own in images]
    assert abs(meters.site_accuracy(alike)) < 10 and meters.distance(alike) < 3 / 200**0.5
    images[:, :, 0] += 40 * torch.arange(4, dtype=torch.uint8)[:, None, None, None]
    apart = [meters.statistics(own) for own in images]
    assert meters.site_accuracy(apart) == 100
    found = numpy.stack([own.numpy() for own in apart])
    assert meters.distance(apart) == pytest.approx((found.mean(1).var(0) / found.var(1).mean(0)).mean() ** 0.5)


def test_where_features_are_kept_they_give_the_shares_of_the_table():
    known = pandas.read_csv(separation.SHARES, comment="#", index_col="key")["predicted"]
    kept = sorted(separation.SHARES.parent.glob("cifar10/*.features.npz"))
    records = [read(path.with_name(path.name.replace(".features.npz", ".json"))) for path in kept]
    assert len(known) == 3 * len(records) > 0
    for record in records[:2]:
        assert separation.predicted(record) == pytest.approx(known[record.key], abs=0.1)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    model = FedFA().build(models.build({"name": "digits_cnn", "channels": 4, "width": 16}, (3, 16, 16), 3)).double()
    images = torch.rand(6, 3, 16, 16, dtype=torch.float64, generator=generator("regularisation"))
    return Experiment(model, images, torch.arange(6) % 3)


def test_the_first_order_term_is_the_slope_of_the_loss(experiment):
    """A central difference of the true loss, which uses no gradient: error of order h^2."""
    for seed in range(3):
        draws = experiment.draw(generator("draws", seed))
        h = 1e-5
        slope = (experiment.loss(draws, h) - experiment.loss(draws, -h)) / (2 * h)
        assert experiment.first_order(draws) == pytest.approx(slope, rel=1e-5)


def test_the_layer_itself_does_what_is_measured(experiment):
    """With the layers' own draws the loss of the network in training is the loss at t = 1."""
    torch.manual_seed(0)
    draws = experiment.draw(torch.default_generator)
    for layer in experiment.layers:
        layer.train().probability = 1.0
    flat = iter([number for pair in draws for number in pair])
    with patch.object(FeatureAugmentation, "_normal", lambda layer, like: next(flat)), torch.no_grad():
        loss = torch.nn.functional.cross_entropy(experiment.model(experiment.images), experiment.targets)
    experiment.model.eval()
    assert float(loss) == pytest.approx(experiment.loss(draws, 1.0), rel=1e-12)


# DisTrans' toy problems, against closed forms and independent loops

LINEAR = {"true_weights": [[1.0, 1.0], [2.0, 1.5]], "spread": 0.5, "noise": 0.1}


def clients_of(data, centre, points=80, seed=0):
    return toy_data.make_clients(data["true_weights"], points, centre, data["spread"], data["noise"], seed)


@pytest.mark.parametrize("centre", [0.0, 2.0, -1.0])
def test_lowest_loss_solves_the_normal_equations(centre):
    """A shift is a private bias for each client: two columns of zeros and ones in the design matrix."""
    clients = clients_of(LINEAR, centre)
    x = numpy.concatenate([c.x.numpy() for c in clients])
    y = numpy.concatenate([c.y.numpy() for c in clients])
    mine = numpy.repeat(numpy.eye(2), len(x) // 2, axis=0)  # [n, 2], which client a row belongs to
    alone = numpy.concatenate([mine[:, [k]] * numpy.column_stack([x, numpy.ones(len(x))]) for k in (0, 1)], axis=1)
    for learn, design in (((), x), (("q",), numpy.column_stack([x, mine])), (("p", "q"), alone)):
        solution = numpy.linalg.solve(design.T @ design, design.T @ y)
        assert training.lowest_loss(clients, learn) == pytest.approx(numpy.mean((design @ solution - y) ** 2), rel=1e-9)


@pytest.mark.parametrize("learn", [("q",), ("p", "q"), ()])
def test_federated_run_is_the_loop_by_hand(learn):
    """Whole batches, so that their order does not matter. Loss mean(r^2) with r = w.(x + p x + q) - y has the
    gradients 2 w mean(r) in q, 2 w mean(r x) in p and 2 mean(r x') in w; the offset steps first."""
    clients, rate, p0 = clients_of(LINEAR, 2.0, points=30), 0.01, -0.2
    data = [(c.x.numpy(), c.y.numpy()) for c in clients]
    w, p, q = numpy.zeros(2), numpy.full((2, 2), p0), numpy.zeros((2, 2))
    path, losses = [], []
    for _ in range(5):
        path.append(w)
        losses.append(numpy.mean([numpy.mean(((x + p[k] * x + q[k]) @ w - y) ** 2) for k, (x, y) in enumerate(data)]))
        replies = []
        for k, (x, y) in enumerate(data):
            r = (x + p[k] * x + q[k]) @ w - y
            step_q, step_p = 2 * w * r.mean(), 2 * w * (r[:, None] * x).mean(0)
            q[k] -= rate * step_q * ("q" in learn)
            p[k] -= rate * step_p * ("p" in learn)
            moved = x + p[k] * x + q[k]
            replies.append(w - rate * 2 * ((moved @ w - y)[:, None] * moved).mean(0))
        w = numpy.mean(replies, axis=0)
    run = training.federate(clients, 4, p0, learn, rate, steps=1)
    assert numpy.allclose(run.weights, path, rtol=1e-10)
    assert numpy.allclose(run.losses, losses, rtol=1e-10)
