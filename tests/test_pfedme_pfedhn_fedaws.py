"""pFedMe, pFedHN and FedAwS beside float64 loops written on their own, and their numbers worked out by hand."""

from types import SimpleNamespace

import pytest
import torch
from methods import federation, same
from test_algorithms import (
    SETTINGS,
    agree,
    by_size,
    cross_entropy,
    gradient,
    hidden,
    local,
    mean,
    number,
    plain,
    server,
    start,
    steps,
)
from torch import nn

from fednb.errors import RecipeError
from fednb.federation import Federation, Site
from fednb.loop.client import Client
from fednb.loop.loop import FederatedRun
from fednb.methods import Batch, part
from fednb.methods.algorithms.fedaws import FedAwS, spreading_gradient
from fednb.methods.algorithms.fedprox import FedProx
from fednb.methods.algorithms.pfedhn import PFedHN, weights
from fednb.methods.algorithms.pfedme import PFedMe
from fednb.randomness import generator, seeded
from fednb.recipe import Recipe

assert plain  # the fixture
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def right(w: dict, site: Site) -> int:
    """How many test images the weights of ``Plain`` classify correctly."""
    scores = hidden(w, site.test.images.double() / 255) @ w["head.weight"].T + w["head.bias"]
    return int((scores.argmax(1) == site.test.targets).sum())


# pFedMe


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


@pytest.mark.parametrize("sign", [1, -1])
def test_pfedme_by_hand(sign):
    """w = 1, lambda = 2, eta = 0.25, two steps of rate 0.1 a batch, and a loss with slope 1 everywhere.

    Batch 1: theta = 1 - 0.1 * 1 = 0.9, then 0.9 - 0.1 * (1 + 2 * (0.9 - 1)) = 0.82; w_k = 1 - 0.5 * (1 - 0.82) = 0.91.
    Batch 2: 0.82 - 0.1 * (1 + 2 * (0.82 - 0.91)) = 0.738, then 0.738 - 0.1 * (1 + 2 * (0.738 - 0.91)) = 0.6724;
    w_k = 0.91 - 0.5 * (0.91 - 0.6724) = 0.7912. The server with beta = 2: 1 + 2 * (0.7912 - 1) = 0.5824.
    With slope -1 all of it turned about 1: 1.3276, 1.2088 and 1.4176.
    """
    method, parameter = PFedMe(penalty=2, steps=2, local_rate=0.25, beta=2), nn.Parameter(number(1.0))
    model = nn.ParameterDict({"w": parameter})
    scratch, kept = {}, {}
    client = SimpleNamespace(model=model, keeps=set(), parameters=lambda: {"w": parameter}, visiting=False)
    client.scratch, client.memory = (lambda method: scratch), (lambda method: kept)
    client.objective = lambda batch: sign * parameter

    def descend(loss, batch):
        parameter.grad = None
        loss.backward()
        method.gradients(client, batch)
        parameter.data -= 0.1 * parameter.grad

    client.descend = descend
    method.begin(client)
    assert method.step(client, None).item() == sign  # the loss before the steps
    assert parameter.item() == pytest.approx(1 - sign * 0.18)
    method.step(client, None)
    method.reply(client)
    assert float(kept["w"]) == pytest.approx(1 - sign * 0.3276)
    assert parameter.item() == pytest.approx(1 - sign * 0.2088)
    moved = method.aggregate_model(server(model={"w": number(1.0)}), {"w": parameter.detach(), "b": number(7.0)})
    assert float(moved["w"]) == pytest.approx(1 - sign * 0.4176)
    assert float(moved["b"]) == 7
    method.adapt(client)
    assert parameter.item() == pytest.approx(1 - sign * 0.3276)


def distance_after(method, rate: float, momentum: float, decay: float) -> float:
    """From the minimum of a loss of slope 1 with a quadratic term of strength 30 around 1, after 800 steps from 1."""
    w, scratch = nn.Parameter(number(1.0)), {}
    optimiser = torch.optim.SGD([w], rate, momentum, weight_decay=decay)
    client = SimpleNamespace(parameters=lambda: {"w": w}, scratch=lambda method: scratch)
    client.objective = lambda batch: w + (method.loss(client, batch) or 0)

    def descend(loss, batch):
        optimiser.zero_grad()
        loss.backward()
        method.gradients(client, batch)
        optimiser.step()

    client.descend = descend
    method.begin(client)
    for _ in range(800):
        method.step(client, None)
    return abs(w.item() - (30 - 1) / (30 + decay))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 3.0])
@pytest.mark.parametrize(
    ("method", "option"), [(PFedMe(penalty=30, steps=1, local_rate=0), "penalty"), (FedProx(mu=30), "mu")], ids=str
)
def test_sgd_that_leads_away_from_where_a_method_pulls_is_refused(method, option, decay, momentum):
    bound = 2 * (1 + momentum) / (30 + decay)
    settings = {"algorithm": {"name": method.name, option: 30}, "momentum": momentum, "weight_decay": decay}
    assert distance_after(method, 0.99 * bound, momentum, decay) < 1e-3
    assert distance_after(method, 1.01 * bound, momentum, decay) > 1e3
    assert Recipe(**settings, learning_rate=0.99 * bound)
    with pytest.raises(
        RecipeError, match=rf"^{method.name} has {option} 30.0, and learning_rate x .* expected less than 2 x"
    ):
        Recipe(**settings, learning_rate=1.01 * bound)
    assert Recipe(**settings, learning_rate=1.01 * bound, optimiser="adam")  # whose steps have the rate's length


# pFedHN


def by_hand(phi: dict, v) -> dict:
    """Two linear layers."""
    h = phi["weight/0"] @ v + phi["bias/0"]
    found = part(phi, "start")
    return {n: found[n] + (part(phi, "output")[n] @ h).reshape(found[n].shape) for n in found}


@pytest.mark.parametrize("updates", ["sequential", "simultaneous"])
@pytest.mark.parametrize("personal_head", [False, True])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_pfedhn(plain, personal_head, participation, updates, monkeypatch):
    """The chain rule written out, one client of the round after the other: each is sent what the phi at hand makes, or
    the round's first.
    """
    rate, momentum, decay = 0.3, 0.4, 0.02
    chosen = {"name": "pfedhn", "embedding": 3, "hidden": 4, "layers": 0, "rate": rate, "personal_head": personal_head}
    chosen |= {"momentum": momentum, "decay": decay, "updates": updates}
    run, initial = start(algorithm=chosen, participation=participation)
    asked, work = {}, Client.work
    monkeypatch.setattr(
        Client, "work", lambda self, message, t: work(self, asked.setdefault((t, self.name), message), t)
    )
    run.prepare()
    sites = {site.name: site for site in run.federation.sites}
    state = {n: t.clone() for n, t in run.server.memories["pfedhn"].items()}
    made = [n for n in initial if not (personal_head and n.startswith("head."))]
    assert same(part(state, "phi/start"), {n: initial[n] for n in made})
    heads, velocity = {k: {n: initial[n] for n in initial if n not in made} for k in sites}, {}
    for t in (1, 2, 3):
        last = run.advance()
        first = {k: by_hand(part(state, "phi"), state[f"embedding/{k}"]) for k in last["loss"]}
        for k in sorted(last["loss"]):
            if updates == "sequential":
                first[k] = by_hand(part(state, "phi"), state[f"embedding/{k}"])
            torch.testing.assert_close(part(asked[t, k], "pfedhn"), first[k], **CLOSE)
            ended, _ = local({n: (first[k] | heads[k])[n] for n in initial}, sites[k], t)
            heads[k] = {n: ended[n] for n in heads[k]}
            c = {n: first[k][n] - ended[n] for n in made}
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
    s = SimpleNamespace(memory=lambda method: memory, replies=lambda method: {"k": change})
    with torch.no_grad():
        PFedHN(rate=0.5, momentum=0.0, decay=0.0).aggregate(s)
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


# FedAwS

OWN = {"clinic": (0, 1), "harbour": (2,), "tower": (0,)}  # the classes that each client has


def positives(own: dict = OWN) -> Federation:
    """Clients with few classes each; more images than features."""
    sites = []
    for site in federation((("clinic", 11), ("harbour", 12), ("tower", 9))).sites:
        chosen = [i for i, y in enumerate(site.train.targets.tolist()) if y in own[site.name]]
        sites.append(Site(site.name, site.train.select(chosen), site.validation, site.test))
    return Federation("positives", tuple(sites), ("red", "green", "blue"))


def cosine(w: dict, x):
    features, rows = hidden(w, x), w["head.weight"]
    return (features @ rows.T) / features.norm(dim=1)[:, None] / rows.norm(dim=1)


@pytest.mark.parametrize("weighting", ["size", "equal"])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_fedaws(plain, weighting, participation):
    target, margin, spread = 0.8, 1.3, 0.7
    chosen = {"name": "fedaws", "target": target, "margin": margin, "spread": spread}
    recipe = Recipe(**SETTINGS | {"algorithm": chosen, "weights": weighting, "participation": participation})
    run = FederatedRun(recipe, positives())
    w = {name: value.clone() for name, value in run.model.state_dict().items()}
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
            push = sum(
                4 * max(0, margin - (1 - float(rows[c] @ rows[other]))) * rows[other]
                for other in range(3)
                if other != c
            )
            row = rows[c] - spread * SETTINGS["learning_rate"] * push
            moved.append(row / row.norm())
        w["head.weight"] = torch.stack(moved)
        for site, found in zip(sites.values(), last["test"], strict=True):
            predicted = cosine(w, site.test.images.double() / 255).argmax(1)
            assert found == int((predicted == site.test.targets).sum())
    agree(run, w)


def test_fedaws_spreads_by_hand():
    """Two classes in the plane, a step of 0.1.

    (1, 0) and (0.6, 0.8) have cosine 0.6; with margin 1 each lacks 0.6, and the slopes are 4 * 0.6 * (0.6, 0.8) =
    (1.44, 1.92) and 2.4 * (1, 0): they go to (0.856, -0.192) and (0.36, 0.8).
    (1, 0) and (-0.6, 0.8) have distance 1.6: with margin 1 nothing; with margin 2 each lacks 0.4, and the slopes are
    1.6 * (-0.6, 0.8) = (-0.96, 1.28) and 1.6 * (1, 0): to (1.096, -0.128) and (-0.76, 0.8).
    """
    cases = [
        ((0.6, 0.8), 1, [[0.856, -0.192], [0.36, 0.8]]),
        ((-0.6, 0.8), 1, [[1.0, 0.0], [-0.6, 0.8]]),
        ((-0.6, 0.8), 2, [[1.096, -0.128], [-0.76, 0.8]]),
    ]
    for second, margin, goal in cases:
        rows, goal = (torch.tensor(values, dtype=torch.float64) for values in ([(1, 0), second], goal))
        torch.testing.assert_close(rows - 0.1 * spreading_gradient(rows, margin), goal)
        s = server(model={"head.weight": rows}, recipe=SimpleNamespace(learning_rate=0.02))
        moved = FedAwS(margin=margin, spread=5.0).aggregate_model(s, {"head.weight": 3 * rows, "b": number(2.0)})
        torch.testing.assert_close(moved["head.weight"], goal / goal.norm(dim=1, keepdim=True))
        assert moved["b"] == 2


def test_fedaws_takes_each_class_from_the_clients_that_have_it_by_hand():
    """Client a has 3 images of class 0 and 1 of class 1, client b 1 of class 0, nobody class 2.

    Rows of class 0: (2, 0) at a and (0, 5) at b: 3 * (1, 0) + 1 * (0, 1), so (3, 1) / sqrt(10). Of class 1: (-0.3, 0.4)
    at a alone, (-0.6, 0.8), whatever b has. Of class 2: the server's, (0, -2), as (0, -1), whatever both have.
    """
    expected = torch.tensor([[3 / 10**0.5, 1 / 10**0.5], [-0.6, 0.8], [0, -1]], dtype=torch.float64)
    trained = {"a": ([2, 0], [-0.3, 0.4], [9, 9]), "b": ([0, 5], [7, 7], [-9, 9])}
    targets = {"a": [0, 1, 0, 0], "b": [0]}
    for weighting, p in (("size", {"a": 0.8, "b": 0.2}), ("equal", {"a": 0.5, "b": 0.5})):
        method, total = FedAwS(spread=0.0), 0
        for name in trained:
            head = nn.Linear(2, 3).double()
            head.weight.data = torch.tensor(trained[name], dtype=torch.float64)
            site = SimpleNamespace(train=SimpleNamespace(targets=torch.tensor(targets[name])))
            c = SimpleNamespace(model=SimpleNamespace(head=head), site=site, classes=3)
            c.recipe = SimpleNamespace(weights=weighting)
            assert method.reply(c) == {}
            total = total + p[name] * head.weight.detach()
        old = torch.tensor([[1, 1], [1, 1], [0, -2]], dtype=torch.float64)
        s = server(model={"head.weight": old}, recipe=SimpleNamespace(learning_rate=0.1))
        torch.testing.assert_close(method.aggregate_model(s, {"head.weight": total})["head.weight"], expected)


def test_fedaws_loss_by_hand():
    """Embeddings (2, 0), (0, 1), (-1, 0). Features (3, 4) of class 0: cosine 0.6, with target 0.9 a loss of 0.09;
    (-3, 4) of class 0: -0.6, 2.25; (-5, 0) of class 2: 1, none; zeros of class 1: 0, 0.81. Mean 3.15 / 4 = 0.7875.
    Class 1 has no slope, from its zeros, nor class 2, that has its target. The bias is not looked at.
    """
    head = nn.Linear(2, 3).double()
    head.weight.data = torch.tensor([[2.0, 0], [0, 1], [-1, 0]], dtype=torch.float64)
    head.bias.data = torch.tensor([9.0, -9, 0], dtype=torch.float64)
    batch = Batch(None, torch.tensor([0, 0, 2, 1]), training=True)
    values = torch.tensor([[3.0, 4], [-3, 4], [-5, 0], [0, 0]], dtype=torch.float64, requires_grad=True)
    client = SimpleNamespace(model=SimpleNamespace(head=head), forward=lambda batch: setattr(batch, "features", values))
    method = FedAwS()
    loss = method.criterion(client, batch)
    assert loss.item() == pytest.approx(0.7875)
    loss.backward()
    assert values.grad.isfinite().all()
    assert head.bias.grad is None
    assert head.weight.grad[0].any() and not head.weight.grad[1:].any()
    found = method.predict(client, batch)
    torch.testing.assert_close(found[0], torch.tensor([0.6, 0.8, -0.6], dtype=torch.float64))
    assert found.argmax(1).tolist() == [1, 1, 2, 0]
