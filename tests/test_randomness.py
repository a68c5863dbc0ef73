"""Every draw is keyed by what it is for, so nothing that runs beside it can shift it."""

import pytest
import torch
from methods import CASES, SIZES, label, row_of, train

from fednb import randomness
from fednb.loop.client import Client
from fednb.methods import flow


def test_seeds_are_those_of_the_recorded_runs():
    assert randomness.seed_for(0, 1, "clinic", "order") == 1834473666608630287
    assert 0 <= randomness.seed_for("anything", 2) < 2**63


def test_a_run_leaves_the_global_draws_alone_and_does_not_depend_on_them():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = train({}, rounds=1).rounds
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert train({}, rounds=1).rounds == first


def seen(case: dict, monkeypatch) -> list:
    """Which images every client trained on in rounds, how they were flipped and turned, and what a layer would draw."""
    found, batch, apply = [], Client.batch, flow.apply

    def keep_order(self, split, indices, training):
        if training and not self._occasion:  # "adapt" draws apart, for the test alone
            found.extend([(self.name, self.round, indices.tolist()), torch.get_rng_state()])
        return batch(self, split, indices, training)

    def keep_images(images, flow, generator):
        moved = apply(images, flow, generator)
        if generator.initial_seed() in wanted:
            found.append(moved.clone())
        return moved

    wanted = {randomness.seed_for(0, t, name, "flow") for t in (1, 2) for name in SIZES}
    with monkeypatch.context() as patch:
        patch.setattr(Client, "batch", keep_order)
        patch.setattr(flow, "apply", keep_images)
        train(case | {"local_epochs": 2}, rounds=2)
    return found


@pytest.mark.parametrize("case", [case for case in CASES if not row_of(case).method.pools], ids=label)
def test_a_method_does_not_shift_the_draws_of_the_others(case, monkeypatch):
    """draws: draw from client.generator under a purpose of your own, and call client.train in adapt alone: all others'
    draws stay where they are"""
    plain, with_it = seen({}, monkeypatch), seen(case, monkeypatch)
    assert len(plain) == len(with_it) == 2 * 2 * 3 * (3 + 2 + 1)  # rounds, epochs, entries, batches
    for one, other in zip(plain, with_it, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
