"""Single, All, pFedAvg, FedBABU, PartialFed, pFedMe, pFedHN and FedAwS next to float64 loops, and numbers by hand."""

from types import SimpleNamespace

import pytest
import torch
from methods import same
from test_algorithms import (
    CLOSE,
    HEAD,
    OWN,
    SETTINGS,
    agree,
    by_size,
    cross_entropy,
    gradient,
    hidden,
    local,
    mean,
    plain,
    positives,
    right,
    start,
    steps,
)
from torch import nn

from fednb.federation import Site, Split
from fednb.loop.client import Client
from fednb.methods import part
from fednb.methods.algorithms.pfedhn import PFedHN, weights
from fednb.randomness import generator, seeded

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


@pytest.mark.parametrize("participation", [1.0, 0.67])
@pytest.mark.parametrize(("inner", "beta"), [(1, 1.0), (3, 1.7)])
def test_pfedme(plain, inner, beta, participation):
    penalty, eta = 2.0, 0.2
    chosen = {"name": "pfedme", "penalty": penalty, "steps": inner, "local_rate": eta, "beta": beta}
    run, w = start(algorithm=chosen, participation=participation)
    sites, own = {site.name: site for site in run.federation.sites}, {}
    rate, rho, decay = (SETTINGS[name] for name in ("learning_rate", "momentum", "weight_decay"))
    for t in (1, 2, 3):
        last, ended = run.advance(), {}
        for k in last["loss"]:
            theta, copy, velocity = dict(w), dict(w), dict.fromkeys(w, 0)
            for x, y in steps(sites[k], t):
                for _ in range(inner):
                    g = gradient(cross_entropy, theta, x, y)
                    for n in theta:
                        pull = g[n] + penalty * (theta[n] - copy[n]) + decay * theta[n]
                        velocity[n] = rho * velocity[n] + pull
                    theta = {n: theta[n] - rate * velocity[n] for n in theta}
                copy = {n: copy[n] - eta * penalty * (copy[n] - theta[n]) for n in copy}
            own[k], ended[k] = theta, copy
        taken = by_size([sites[k] for k in last["loss"]])
        average = mean(taken, ended)
        w = {n: (1 - beta) * w[n] + beta * average[n] for n in w}
        assert last["test"] == [right(own.get(k, w), site) for k, site in sites.items()]
    agree(run, w)
    for k, theta in own.items():
        torch.testing.assert_close(run.clients[k].memories["pfedme"], theta, **CLOSE)


def by_hand(phi: dict, v) -> dict:
    """Two linear layers."""
    h = phi["weight/0"] @ v + phi["bias/0"]
    found = part(phi, "start")
    return {n: found[n] + (part(phi, "output")[n] @ h).reshape(found[n].shape) for n in found}


@pytest.mark.parametrize("personal_head", [False, True])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_pfedhn(plain, personal_head, participation, monkeypatch):
    """The chain rule written out, one client of the round after the other: each is sent what the phi at hand makes."""
    rate, momentum, decay = 0.3, 0.4, 0.02
    chosen = {"name": "pfedhn", "embedding": 3, "hidden": 4, "layers": 0, "rate": rate, "personal_head": personal_head}
    chosen |= {"momentum": momentum, "decay": decay}
    run, initial = start(algorithm=chosen, participation=participation)
    asked, work = {}, Client.work

    def noted(client, message, t):
        return work(client, asked.setdefault((t, client.name), message), t)

    monkeypatch.setattr(Client, "work", noted)
    run.prepare()
    sites = {site.name: site for site in run.federation.sites}
    state = {n: t.clone() for n, t in run.server.memories["pfedhn"].items()}
    made = [n for n in initial if not (personal_head and n.startswith("head."))]
    assert same(part(state, "phi/start"), {n: initial[n] for n in made})
    heads, velocity = {k: {n: initial[n] for n in initial if n not in made} for k in sites}, {}
    for t in (1, 2, 3):
        last = run.advance()
        for k in sorted(last["loss"]):
            first = by_hand(part(state, "phi"), state[f"embedding/{k}"])
            torch.testing.assert_close(part(asked[t, k], "pfedhn"), first, **CLOSE)
            ended, _ = local({n: (first | heads[k])[n] for n in initial}, sites[k], t)
            heads[k] = {n: ended[n] for n in heads[k]}
            c = {n: first[n] - ended[n] for n in made}
            v, w = state[f"embedding/{k}"], state["phi/weight/0"]
            h, outputs = w @ v + state["phi/bias/0"], part(state, "phi/output")
            back = sum(outputs[n].T @ c[n].flatten() for n in made)
            slopes = {"phi/weight/0": back[:, None] * v, "phi/bias/0": back, f"embedding/{k}": w.T @ back}
            slopes |= {f"phi/start/{n}": c[n] for n in made}
            slopes |= {f"phi/output/{n}": c[n].flatten()[:, None] * h for n in made}
            for n, g in slopes.items():
                velocity[n] = momentum * velocity.get(n, 0) + g + decay * state[n]
                state[n] = state[n] - rate * velocity[n]
        tested = {k: by_hand(part(state, "phi"), state[f"embedding/{k}"]) | heads[k] for k in sites}
        assert last["test"] == [right(tested[k], site) for k, site in sites.items()]
    found = run.server.memories["pfedhn"]
    assert found.keys() == state.keys() | {f"momentum/{n}" for n in velocity}
    for n, value in state.items():
        torch.testing.assert_close(found[n], value, **CLOSE)
    assert not run.server.model
    assert set(last["up"]) == set(last["down"]) == {"pfedhn"}
    size = 8 * sum(initial[n].numel() for n in made)
    assert last["up"]["pfedhn"] == last["down"]["pfedhn"] == len(last["loss"]) * size


@pytest.mark.parametrize("sign", [1, -1])
def test_pfedhns_gradient_is_autograds_through_embedding_and_hypernetwork(sign):
    """A change of both signs, and its opposite, through torch's own layers with ReLU between them."""
    draws = generator("pfedhn")
    shapes = {"a": (2, 3), "b": (4,)}
    with seeded("pfedhn"):
        layers = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 9)).double()
        outputs = nn.ModuleDict({n: nn.Linear(9, torch.Size(shape).numel()) for n, shape in shapes.items()}).double()
    vector = torch.randn(3, generator=draws, dtype=torch.float64, requires_grad=True)
    change = {n: sign * torch.randn(shape, generator=draws, dtype=torch.float64) for n, shape in shapes.items()}
    assert all((values > 0).any() and (values < 0).any() for values in change.values())

    made = {name: outputs[name](layers(vector)).reshape(shapes[name]) for name in shapes}
    sum((made[name] * change[name]).sum() for name in shapes).backward()

    phi = {f"{kind}/{i}": getattr(layers[2 * i], kind) for i in range(3) for kind in ("weight", "bias")}
    phi |= {f"output/{n}": layer.weight for n, layer in outputs.items()}
    phi |= {f"start/{n}": layer.bias.reshape(shapes[n]) for n, layer in outputs.items()}
    expected = {f"phi/{n}": p.grad for n, p in phi.items() if p.is_leaf} | {"embedding/k": vector.grad}
    expected |= {f"phi/start/{n}": layer.bias.grad.reshape(shapes[n]) for n, layer in outputs.items()}
    memory = {f"phi/{n}": p.detach().clone() for n, p in phi.items()} | {"embedding/k": vector.detach().clone()}
    torch.testing.assert_close(weights(part(memory, "phi"), memory["embedding/k"]), made, **CLOSE)

    before = {name: value.clone() for name, value in memory.items()}
    with torch.no_grad():
        PFedHN(rate=0.5, momentum=0.0, decay=0.0).collect(SimpleNamespace(memory=lambda method: memory), "k", 1, change)
    assert memory.keys() == before.keys() == expected.keys()
    for name, value in expected.items():
        assert value.any()
        torch.testing.assert_close(memory[name], before[name] - 0.5 * value, **CLOSE)


def test_pfedhn_gives_a_client_that_is_in_no_round_the_mean_embedding(plain):
    """With linear layers alone the weights of the mean embedding are the mean of the weights."""
    plain(normalised=True)
    run, _ = start(algorithm={"name": "pfedhn", "layers": 0, "hidden": 6, "rate": 0.3}, unseen=["tower"])
    run.advance()
    sent = [part(run.server.send(name), "pfedhn") for name in ("clinic", "harbour", "tower")]
    for name, value in sent[2].items():
        torch.testing.assert_close(value, (sent[0][name] + sent[1][name]) / 2, **CLOSE)
    with run.clients["tower"].at_test(run.server.send("tower"), 1):
        assert same(dict(run.model.named_parameters()), dict(sent[2]))
        images = run.federation.site("tower").train.images.double() / 255
        features = images.flatten(1) @ sent[2]["hidden.weight"].T + sent[2]["hidden.bias"]
        torch.testing.assert_close(run.model.norm.running_mean, features.mean(0), **CLOSE)


def cosine(w: dict, x):
    features, rows = hidden(w, x), w["head.weight"]
    return (features @ rows.T) / features.norm(dim=1)[:, None] / rows.norm(dim=1)


@pytest.mark.parametrize("weighting", ["size", "equal"])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_fedaws(plain, weighting, participation):
    target, margin, spread = 0.8, 1.3, 0.7
    chosen = {"name": "fedaws", "target": target, "margin": margin, "spread": spread}
    run, w = start(positives(), algorithm=chosen, weights=weighting, participation=participation)
    sites = {site.name: site for site in run.federation.sites}

    def objective(now, x, y):
        own = cosine(now, x)[torch.arange(len(y)), y]
        return (target - own).relu().pow(2).sum() / len(y)

    def step(now, x, y):
        leaves = {name: value.clone().requires_grad_() for name, value in now.items()}
        objective(leaves, x, y).backward()
        return {name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()}

    for t in (1, 2, 3):
        last = run.advance()
        bias = {"head.bias": w["head.bias"]}  # not used, not even decayed
        ended = {k: local(w, sites[k], t, step)[0] | bias for k in last["loss"]}
        p = by_size([sites[k] for k in ended]) if weighting == "size" else dict.fromkeys(ended, 1 / len(ended))
        old, w = w["head.weight"], mean(p, ended)
        rows = []
        for c in range(3):
            having = {k: int((sites[k].train.targets == c).sum()) for k in ended if c in OWN[k]}
            total = sum(m * ended[k]["head.weight"][c] / ended[k]["head.weight"][c].norm() for k, m in having.items())
            total = total if having else old[c]
            rows.append(total / total.norm())
        moved = []
        for c in range(3):
            others = [row for number, row in enumerate(rows) if number != c]
            push = sum(4 * max(0, margin - (1 - float(rows[c] @ other))) * other for other in others)
            row = rows[c] - spread * SETTINGS["learning_rate"] * push
            moved.append(row / row.norm())
        w["head.weight"] = torch.stack(moved)
        for site, found in zip(sites.values(), last["test"], strict=True):
            predicted = cosine(w, site.test.images.double() / 255).argmax(1)
            assert found == int((predicted == site.test.targets).sum())
    agree(run, w)
