"""FAug: which images leave, what the server makes of them, and how many a client adds of which class."""

import numpy as np
import pytest
import torch
from methods import TINY, federation, same

from fednb.errors import RecipeError
from fednb.federation import Federation
from fednb.loop.loop import FederatedRun
from fednb.methods.augmentations.faug import Discriminator, FAug, Generator, trained
from fednb.recipe import Recipe

LACKING = (("clinic", 12), ("harbour", 7), ("tower", 5))  # classes: 4, 4, 4; 3, 2, 2; 2, 2, 1


def prepared(data=None, augmentations=(), **options) -> FederatedRun:
    chosen = [{"name": "faug", "steps": 2, **options}, *augmentations]
    run = FederatedRun(Recipe(**TINY | {"augmentations": chosen, "flow": ()}), data or federation(LACKING))
    run.prepare()
    return run


def ready(run: FederatedRun, name: str):
    """A client that stands before its first batch."""
    client = run.clients[name]
    client.receive(run.server.send(name), 1)
    for method in client.methods:
        method.begin(client)
    return client


def test_the_generator_has_the_size_that_the_paper_prints():
    """1,493,520 for 28 x 28 digits: its dense layers and batch normalisation with its running statistics."""
    state = Generator(10, (1, 28, 28)).state_dict()
    counters = [name for name in state if name.endswith("num_batches_tracked")]
    counted = sum(value.numel() for name, value in state.items() if name not in ("embedding.weight", *counters))
    assert counted == 1_493_520 and len(counters) == 3
    assert sum(isinstance(layer, torch.nn.Linear) for layer in Discriminator(10, 784).modules()) == 4


def test_large_images_are_made_small_and_enlarged():
    generator = Generator(3, (3, 40, 20)).eval()
    noise, labels = torch.randn(5, 100), torch.tensor([0, 1, 2, 0, 1])
    assert generator(noise, labels).shape == (5, 3, 32, 20)
    images = generator.images(noise, labels)
    assert images.shape == (5, 3, 40, 20) and 0 <= images.min() < images.max() <= 1
    small = Generator(3, (1, 28, 28)).eval()
    torch.testing.assert_close(small.images(noise, labels), (small(noise, labels) + 1) / 2)


def test_up_to_so_many_images_of_each_class_are_sent_as_they_are():
    data = federation(LACKING)
    client = prepared(data, seeds=2).clients["tower"]
    client._generators.clear()
    offer = client.methods[-1].prepare_offer(client)
    assert offer["images"].dtype == offer["labels"].dtype == torch.uint8
    assert offer["labels"].sum(0).tolist() == [2, 2, 1]  # of the third class it has one
    site = data.site("tower").train
    for image, label in zip(offer["images"], offer["labels"].argmax(1), strict=True):
        (found,) = [n for n, own in enumerate(site.images) if torch.equal(image, own)]
        assert site.targets[found] == label


def test_pixels_are_counted_as_bytes():
    run = prepared(seeds=2)
    sent = 6 + 6 + 5
    assert run.prepared["up"]["faug"] == sent * (3 * 8 * 8 + 3)
    state = run.clients["tower"].memory(run.clients["tower"].methods[-1])
    assert run.prepared["down"]["faug"] == 3 * sum(value.nbytes for value in state.values())
    assert "faug" not in run.advance()["up"]


def test_share_zero_sends_nothing():
    run = prepared(share=0.0)
    assert "faug" not in run.prepared["up"] and "faug" not in run.prepared["down"]


def test_every_client_gets_the_servers_generator_once():
    run = prepared()
    states = [client.memory(client.methods[-1]) for client in run.clients.values()]
    assert same(states[0], states[1]) and same(states[0], states[2])
    assert len({state["layers.0.weight"].data_ptr() for state in states}) == 1
    again = prepared(Federation("toy", federation(LACKING).sites[::-1], federation(LACKING).classes))
    assert same(again.clients["tower"].memory(again.clients["tower"].methods[-1]), states[0])


def test_the_generator_learns_the_classes():
    """The class is the brightest channel; the mean of made images has it, with the distance of the real ones."""
    sites = federation((("a", 40), ("b", 40))).sites
    images, labels = (torch.cat([getattr(s.train, part) for s in sites]) for part in ("images", "targets"))
    torch.manual_seed(0)
    generator = trained(images, labels, 3, 150, torch.Generator().manual_seed(1)).eval()
    kinds = torch.arange(300) % 3
    with torch.no_grad():
        made = generator.images(torch.randn(300, 100), kinds)
    for kind in range(3):
        brightness = made[kinds == kind].mean((0, 2, 3))
        others = brightness[[c for c in range(3) if c != kind]]
        assert brightness[kind] - others.max() > 0.1
        assert made[kinds == kind].std(0).mean() > 0.01  # not one image for all noise


def test_the_network_is_trained_on_classes_in_equal_parts(monkeypatch):
    """90 images of one class and 10 of another: half of what the discriminator sees is of each."""
    seen = []
    original = Discriminator.forward
    monkeypatch.setattr(Discriminator, "forward", lambda self, *a: seen.append(a[1]) or original(self, *a))
    labels = torch.tensor([0] * 90 + [2] * 10)
    trained(torch.zeros(100, 1, 4, 4, dtype=torch.uint8), labels, 3, 40, torch.Generator().manual_seed(0))
    counts = torch.cat(seen).bincount(minlength=3)
    assert counts[1] == 0 and counts.sum() == 40 * 3 * 32
    assert abs(counts[0] - 1920) < 160  # 1280 draws used twice and 1280 used once: 4 standard deviations


def drawn(client, batches: int) -> np.ndarray:
    """Generated labels over many batches of all the client's images: counts by batch and class."""
    count, found = len(client.site.train), []
    for _ in range(batches):
        batch = client.batch(client.site.train, torch.arange(count), training=True)
        assert len(batch.images) == len(batch.targets)
        assert torch.equal(batch.images[:count], client.site.train.images / 255)
        assert torch.equal(batch.targets[:count], client.site.train.targets)
        found.append(torch.bincount(batch.targets[count:], minlength=3).numpy())
    return np.array(found)


def test_a_client_fills_up_what_it_lacks():
    """harbour has 3, 2, 2 images: two are generated for each pass over them, one of each lacking class on average."""
    found = drawn(ready(prepared(), "harbour"), 400)
    assert (found.sum(1) == 2).all() and not found[:, 0].any()
    assert abs(found[:, 1].sum() - 400) < 57  # binomial(800, 1/2): 4 standard deviations


def test_half_of_the_share_is_half_of_the_images():
    """tower has 2, 2, 1: half an image for each pass, that is one or none."""
    found = drawn(ready(prepared(share=0.5), "tower"), 400)
    assert set(found.sum(1)) == {0, 1} and not found[:, :2].any()
    assert abs(found.sum() - 200) < 40  # 4 standard deviations


def test_a_balanced_client_and_test_images_are_left_alone():
    run = prepared()
    assert not drawn(ready(run, "clinic"), 20).any()
    client = ready(run, "harbour")
    assert len(client.batch(client.site.train, torch.arange(7), training=False).images) == 7


def test_a_class_of_which_nobody_has_an_image_is_not_generated():
    data = federation(LACKING)
    client = ready(prepared(Federation("toy", data.sites, (*data.classes, "grey"))), "harbour")
    batches = [client.batch(client.site.train, torch.arange(7), training=True) for _ in range(50)]
    assert {len(batch.targets) for batch in batches} == {9}
    assert set(torch.cat([batch.targets for batch in batches]).tolist()) == {0, 1, 2}


def test_getting_ready_draws_nothing_and_changes_nothing():
    run = prepared()
    client = run.clients["harbour"]
    client.receive(run.server.send("harbour"), 1)
    before = {name: value.clone() for name, value in client.memory(client.methods[-1]).items()}
    torch.manual_seed(3)
    client.methods[-1].begin(client)
    client.batch(client.site.train, torch.arange(7), training=True)
    found = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), found)
    assert same(client.memory(client.methods[-1]), before)


def test_generated_images_are_normalised_with_the_others():
    normalise = {"name": "normalise", "mean": [2.0] * 3, "std": [1.0] * 3}
    client = ready(prepared(augmentations=[normalise]), "harbour")
    images = client.batch(client.site.train, torch.arange(7), training=True).images
    assert len(images) == 9 and -2 <= images.min() and images.max() <= -1


def test_after_a_method_that_changes_images_it_is_refused():
    with pytest.raises(RecipeError, match="faug comes after normalise.*Name faug before it"):
        Recipe(**TINY | {"augmentations": ["normalise", "faug"]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 1.5}, r"share 1.5; expected a value in \[0, 1\]"),
        ({"share": -0.5}, "share -0.5"),
        ({"seeds": 0}, "seeds 0; expected at least 1"),
        ({"steps": 0}, "steps 0; expected at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, said):
    with pytest.raises(RecipeError, match=f"faug has {said}"):
        FAug(**options)
