"""MOON, FedRobust and HarmoFL next to float64 loops written on their own, and numbers by hand."""

from itertools import pairwise

import pytest
import torch
from test_algorithms import (
    CLOSE,
    agree,
    ascended,
    by_size,
    cross_entropy,
    gradient,
    hidden,
    holder,
    local,
    mean,
    plain,
    scores,
    start,
)
from test_algorithms import number as doubles

from fednb.methods import Batch
from fednb.methods.algorithms.fedrobust import FedRobust

__all__ = ["plain"]  # a fixture


def cosine(a, b):
    return (a * b).sum(1) / (a.square().sum(1).sqrt() * b.square().sum(1).sqrt())


@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_moon(plain, participation):
    """A client's term is there from its second round on; its previous network is of the last round that it was in."""
    mu, tau = 0.7, 0.3
    run, w = start(algorithm={"name": "moon", "mu": mu, "tau": tau}, participation=participation, rounds=4)
    sites, seen = {site.name: site for site in run.federation.sites}, []
    previous = dict.fromkeys(sites)
    for t in (1, 2, 3, 4):
        chosen, ended = list(run.advance()["loss"]), {}
        for k in chosen:

            def objective(now, x, y, came=w, last=previous[k]):
                if last is None:
                    return cross_entropy(now, x, y)
                z = hidden(now, x)
                near, far = cosine(z, hidden(came, x)) / tau, cosine(z, hidden(last, x)) / tau
                return cross_entropy(now, x, y) - mu * (near.exp() / (near.exp() + far.exp())).log().mean()

            def slope(now, x, y, objective=objective):
                return gradient(objective, now, x, y)

            ended[k], _ = local(w, sites[k], t, slope)
        previous |= ended
        seen.append(set(chosen))
        p = by_size(sites.values())
        w = mean({k: p[k] / sum(p[j] for j in chosen) for k in chosen}, ended)
    agree(run, w)
    assert participation == 1 or any(one - next_one for one, next_one in pairwise(seen))


def shifted(x, matrix, offset):
    """Channel i of an image is the sum over j of matrix[i, j] times channel j, and its part of the offset."""
    channels = [sum(matrix[i, j] * x[:, j] for j in range(3)) + offset[i] for i in range(3)]
    return torch.stack(channels, 1)


@pytest.mark.parametrize("later", [{}, {"augmentations": ({"name": "normalise", "mean": (0.5, 0.4, 0.3)},)}], ids=str)
def test_fedrobust(plain, later):
    """The shift is of images in [0, 1]; what is normalised afterwards has its slope by the chain rule."""
    eta, penalty = {"matrix": 0.1, "offset": 0.05}, {"matrix": 0.7, "offset": 0.3}
    options = {f"{part}_rate": eta[part] for part in eta} | {f"{part}_penalty": penalty[part] for part in eta}
    run, w = start(algorithm={"name": "fedrobust", **options}, **later)
    centre, spread = doubles([0, 0, 0]), doubles([1, 1, 1])
    if later:
        centre, spread = (doubles(getattr(run.server.methods[1], name)) for name in ("mean", "std"))
    sites, identity = run.federation.sites, torch.eye(3, dtype=torch.float64)
    shift = {site.name: {"matrix": identity, "offset": doubles(torch.zeros(3, 8, 8).tolist())} for site in sites}
    for t in (1, 2, 3):
        run.advance()
        ended = {}
        for site in sites:

            def slope(now, x, y, own=shift[site.name]):
                def objective(both, x, y):
                    seen = shifted(x, both["matrix"], both["offset"])
                    return cross_entropy(both, (seen - centre[:, None, None]) / spread[:, None, None], y)

                g = gradient(objective, now | own, x, y)
                away = {"matrix": own["matrix"] - identity, "offset": own["offset"]}
                for name in own:
                    own[name] = own[name] + eta[name] * (g[name] - 2 * penalty[name] * away[name])
                return g

            ended[site.name], _ = local(w, site, t, slope)
        w = mean(by_size(sites), ended)
    agree(run, w)
    for site in sites:
        kept = run.clients[site.name].memories["fedrobust"]
        for name, value in shift[site.name].items():
            torch.testing.assert_close(kept[name], value, **CLOSE)
        assert (kept["matrix"] - identity).abs().max() > 1e-3 and kept["offset"].abs().max() > 1e-6


def climbed(cut: bool) -> dict:
    """FedRobust's shift after a step down the sum of all pixels, to which a later method may add."""
    method = FedRobust()

    def descend(loss, batch):
        loss.backward()
        method.gradients(client, batch)

    client = holder(objective=lambda batch: batch.images.sum(), descend=descend)
    client.memory(method).update(matrix=torch.eye(2).double(), offset=doubles([[[0.2]], [[-0.4]]]))
    batch = Batch(doubles([[1, -2], [3, 1]]).reshape(2, 2, 1, 1), None, training=True)
    method.inputs(client, batch)
    method.before_step(client, batch)
    batch.images = batch.images.detach() + 7 if cut else batch.images
    method.step(client, batch)
    return client.memory(method)


def test_fedrobusts_slope_is_there_where_a_later_method_cuts_images_off():
    torch.testing.assert_close(climbed(cut=True), climbed(cut=False))
    moved = climbed(cut=True)["offset"].flatten().tolist()
    assert moved == pytest.approx([0.2 + 0.1 * (2 - 0.4), -0.4 + 0.1 * (2 + 0.8)])


def normalised(x, amplitude, variant):
    """Through the whole spectrum, not the half of it that suffices."""
    spectrum = torch.fft.fft2(x)
    wanted = amplitude.expand(x.shape).clone()
    if variant == "released":
        wanted, zero = spectrum.abs(), amplitude[:, 0, 0]
        wanted[:, :, 0, 0] = zero
    found = torch.fft.ifft2(wanted * torch.exp(1j * spectrum.angle()))
    assert found.imag.abs().max() < 1e-12
    return found.real


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_harmofl(plain, variant):
    alpha, nu = 0.3, 0.4
    run, w = start(algorithm={"name": "harmofl", "alpha": alpha, "momentum": nu, "variant": variant})
    sites, common = run.federation.sites, None
    for t in (1, 2, 3):
        last = run.advance()
        ended, running = {}, {}
        for site in sites:

            def slope(now, x, y, k=site.name, common=common, running=running):
                if common is None:
                    seen = torch.fft.fft2(x).abs().mean(0)
                    if k not in running:
                        running[k] = seen
                    elif variant == "paper":
                        running[k] = (1 - nu) * running[k] + nu * seen
                x = normalised(x, running[k] if common is None else common, variant)
                return ascended(alpha)(now, x, y)

            ended[site.name], _ = local(w, site, t, slope)
        p = by_size(sites)
        w = mean(p, ended)
        if common is None:
            common = sum(p[k] * running[k] for k in p)
        assert ("harmofl" in last["up"]) == (t == 1) and ("harmofl" in last["down"]) == (t > 1)
    agree(run, w)
    for site, right in zip(sites, last["test"], strict=True):
        x = normalised(site.test.images.double() / 255, common, variant)
        assert right == int((scores(w, x).argmax(1) == site.test.targets).sum())
