"""FAug: which images leave, what the server makes of them, and how many a client adds of which class."""

import numpy as np
import torch
from methods import federation, prepared, ready

from fednb.methods.augmentations.faug import Discriminator, Generator

LACKING = (("clinic", 12), ("harbour", 7), ("tower", 5))  # classes: 4, 4, 4; 3, 2, 2; 2, 2, 1


def test_the_generator_has_the_size_that_the_paper_prints():
    """1,493,520 for 28 x 28 digits: its dense layers and batch normalisation with its running statistics."""
    state = Generator(10, (1, 28, 28)).state_dict()
    counters = [name for name in state if name.endswith("num_batches_tracked")]
    counted = sum(value.numel() for name, value in state.items() if name not in ("embedding.weight", *counters))
    assert counted == 1_493_520 and len(counters) == 3
    assert sum(isinstance(layer, torch.nn.Linear) for layer in Discriminator(10, 784).modules()) == 4


def test_up_to_so_many_images_of_each_class_are_sent_as_they_are():
    data = federation(LACKING)
    client = prepared([{"name": "faug", "steps": 2, "seeds": 2}], data).clients["tower"]
    client._generators.clear()
    offer = client.methods[-1].prepare_offer(client)
    assert offer["images"].dtype == offer["labels"].dtype == torch.uint8
    assert offer["labels"].sum(0).tolist() == [2, 2, 1]  # of the third class it has one
    site = data.site("tower").train
    for image, label in zip(offer["images"], offer["labels"].argmax(1), strict=True):
        (found,) = [n for n, own in enumerate(site.images) if torch.equal(image, own)]
        assert site.targets[found] == label


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
    client = ready(prepared([{"name": "faug", "steps": 2}], federation(LACKING), precision="fp32"), "harbour")
    client.methods[-1].begin(client)
    found = drawn(client, 400)
    assert (found.sum(1) == 2).all() and not found[:, 0].any()
    assert abs(found[:, 1].sum() - 400) < 57  # binomial(800, 1/2): 4 standard deviations
