"""Single, All, pFedAvg, FedBABU and PartialFed next to float64 loops written on their own, and numbers by hand."""

import pytest
import torch
from test_algorithms import CLOSE, HEAD, agree, by_size, cross_entropy, gradient, local, mean, plain, right, start

from fednb.federation import Site, Split

__all__ = ["plain"]  # a fixture


def tuned(w: dict, site: Site, round: int, epochs: int) -> dict:
    """After SGD in the draws of a test, with a fresh velocity."""
    return local(w, site, round, draws=("adapt",), epochs=epochs)[0]


def test_single(plain):
    run, w = start(algorithm="single")
    own = {site.name: w for site in run.federation.sites}
    for t in (1, 2, 3):
        last = run.advance()
        own = {site.name: local(own[site.name], site, t)[0] for site in run.federation.sites}
    assert run.server.model == {}
    for site, found in zip(run.federation.sites, last["test"], strict=True):
        torch.testing.assert_close(run.clients[site.name].memories["kept"], own[site.name], **CLOSE)
        assert found == right(own[site.name], site)


def test_all(plain):
    run, w = start(algorithm="all")
    sites = run.federation.sites
    trained = [site.train for site in sorted(sites, key=lambda site: site.name)]
    pooled = Split(*(torch.cat([getattr(each, of) for each in trained]) for of in ("images", "targets")))
    together = Site("clinic", pooled, sites[0].validation, sites[0].test)
    for t in (1, 2, 3):
        last = run.advance()
        w, steps = local(w, together, t)
    assert steps == 10
    agree(run, w)
    assert last["test"] == [right(w, site) for site in sites]
    assert list(last["loss"]) == ["clinic"]


@pytest.mark.parametrize("epochs", [1, 3])
def test_pfedavg(plain, epochs):
    run, w = start(algorithm={"name": "pfedavg", "epochs": epochs})
    sites = run.federation.sites
    for t in (1, 2, 3):
        last = run.advance()
        w = mean(by_size(sites), {s.name: local(w, s, t)[0] for s in sites})
        for site in sites:
            with run.clients[site.name].at_test(run.server.send(site.name), t):
                expected = tuned(w, site, t, epochs)
                torch.testing.assert_close(dict(run.model.state_dict()), expected, **CLOSE)
        assert last["test"] == [right(tuned(w, site, t, epochs), site) for site in sites]
    agree(run, w)


@pytest.mark.parametrize("unseen", [[], ["tower"]])
def test_fedbabu(plain, unseen):
    run, w = start(algorithm={"name": "fedbabu", "tune_epochs": 2}, unseen=unseen)
    head = {name: w[name] for name in HEAD}
    taking_part = [site for site in run.federation.sites if site.name not in unseen]
    body = {name: value for name, value in w.items() if name not in head}

    def slope(now, x, y):
        return gradient(lambda moving, x, y: cross_entropy(moving | head, x, y), now, x, y)

    for t in (1, 2, 3):
        last = run.advance()
        body = mean(by_size(taking_part), {s.name: local(body, s, t, slope)[0] for s in taking_part})
        for site in run.federation.sites:
            with run.clients[site.name].at_test(run.server.send(site.name), t):
                expected = tuned(body | head, site, t, 2)
                torch.testing.assert_close(dict(run.model.state_dict()), expected, **CLOSE)
                assert not torch.equal(run.model.head.weight, head["head.weight"])
        assert last["test"] == [right(tuned(body | head, site, t, 2), site) for site in run.federation.sites]
    agree(run, body)


def test_partialfed_fixed(plain):
    """All layers are averaged, the head is not loaded; a local model on another site is one client's, all of it."""
    run, w = start(algorithm={"name": "partialfed", "layers": ["head"]}, evaluation=["cross_site"])
    sites, own = run.federation.sites, {}
    for t in (1, 2, 3):
        last = run.advance()
        own = {s.name: local(w | {n: own.get(s.name, w)[n] for n in HEAD}, s, t)[0] for s in sites}
        w = mean(by_size(sites), own)
        tested = {s.name: w | {n: own[s.name][n] for n in HEAD} for s in sites}
        assert last["test"] == [right(tested[s.name], s) for s in sites]
    agree(run, w)
    for site in sites:
        kept = run.clients[site.name].memories["partialfed"]
        assert set(kept) == {f"own/{n}" for n in HEAD}
        torch.testing.assert_close(kept["own/head.bias"], own[site.name]["head.bias"], **CLOSE)
    assert last["cross_site"] == {s.name: [right(own[s.name], other) for other in sites] for s in sites}
