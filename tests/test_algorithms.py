"""Algorithms next to float64 loops written on their own, torch's optimiser, and numbers worked out by hand.

The loops share with the code only the order of the images (the keyed draw of ``fednb.randomness``), the initial weights
and autograd. They work on dictionaries of weights, one formula a line.
"""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from methods import federation
from torch import nn

from fednb import randomness
from fednb.federation import Federation, Site
from fednb.loop.loop import FederatedRun
from fednb.methods.algorithms.fedavgm import FedAvgM
from fednb.recipe import Recipe

SIZES = (("clinic", 11), ("harbour", 6), ("tower", 3))
HEAD = ("head.weight", "head.bias")
CLOSE = {"rtol": 1e-9, "atol": 1e-12}
SETTINGS = {
    "precision": "fp64",
    "rounds": 3,
    "local_epochs": 2,
    "batch_size": 4,
    "learning_rate": 0.1,
    "momentum": 0.6,
    "weight_decay": 0.01,
}


class Plain(nn.Module):
    """One hidden layer, and batch normalisation where asked for."""

    stages = ()

    def __init__(self, normalised: bool = False):
        super().__init__()
        self.hidden = nn.Linear(192, 5)
        self.norm = nn.BatchNorm1d(5) if normalised else nn.Identity()
        self.head = nn.Linear(5, 3)

    def features(self, images):
        return torch.tanh(self.norm(self.hidden(images.flatten(1))))

    def forward(self, images):
        return self.head(self.features(images))


@pytest.fixture
def plain(monkeypatch):
    """Runs use this network; ``plain(normalised=True)`` puts batch normalisation into it."""

    def use(normalised: bool = False):
        def build(given, image_shape, classes, seed=0):
            with randomness.seeded(seed, "model"):
                return Plain(normalised)

        monkeypatch.setattr("fednb.models.build", build)

    use()
    return use


OWN = {"clinic": (0, 1), "harbour": (2,), "tower": (0,)}  # the classes that each client has


def positives(own: dict = OWN) -> Federation:
    """Clients with few classes each; more images than features."""
    sites = []
    for site in federation((("clinic", 11), ("harbour", 12), ("tower", 9))).sites:
        chosen = [i for i, y in enumerate(site.train.targets.tolist()) if y in own[site.name]]
        sites.append(Site(site.name, site.train.select(chosen), site.validation, site.test))
    return Federation("positives", tuple(sites), ("red", "green", "blue"))


def start(data: Federation | None = None, **settings) -> tuple[FederatedRun, dict]:
    """A run that has not begun, and a copy of its initial weights."""
    run = FederatedRun(Recipe(**SETTINGS | settings), data or federation(SIZES))
    return run, {name: value.clone() for name, value in run.model.state_dict().items()}


def steps(site: Site, round: int, *draws: str, epochs: int = SETTINGS["local_epochs"]):
    """Images in [0, 1] and labels of every local step of a round, or of a test with the draws "adapt"."""
    order = randomness.generator(0, round, site.name, *draws, "order")
    for _ in range(epochs):
        batches = list(torch.randperm(len(site.train), generator=order).split(SETTINGS["batch_size"]))
        if len(batches) > 1 and len(batches[-1]) == 1:
            batches[-2:] = [torch.cat(batches[-2:])]
        for batch in batches:
            yield site.train.images[batch].double() / 255, site.train.targets[batch]


def hidden(w: dict, x):
    return torch.tanh(x.flatten(1) @ w["hidden.weight"].T + w["hidden.bias"])


def scores(w: dict, x):
    return hidden(w, x) @ w["head.weight"].T + w["head.bias"]


def cross_entropy(w: dict, x, y):
    found = scores(w, x)
    return (found.logsumexp(1) - found[torch.arange(len(y)), y]).mean()


def right(w: dict, site: Site) -> int:
    """How many test images these weights classify correctly."""
    return int((scores(w, site.test.images.double() / 255).argmax(1) == site.test.targets).sum())


def gradient(objective, w: dict, x, y) -> dict:
    leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
    found = torch.autograd.grad(objective(leaves, x, y), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))


def ascended(rho: float):
    """The gradient of the cross entropy at weights that went up it by rho."""

    def slope(now, x, y):
        g = gradient(cross_entropy, now, x, y)
        norm = sum(float((value**2).sum()) for value in g.values()) ** 0.5
        return gradient(cross_entropy, {n: now[n] + rho * g[n] / norm for n in now}, x, y)

    return slope


def local(w: dict, site: Site, round: int, slope=None, velocity=None, draws=(), **epochs) -> tuple[dict, int]:
    """SGD with momentum and weight decay from w on; the new weights and the number of steps."""
    slope = slope or (lambda w, x, y: gradient(cross_entropy, w, x, y))
    velocity = {} if velocity is None else velocity
    rate, rho, decay = (SETTINGS[name] for name in ("learning_rate", "momentum", "weight_decay"))
    w, count = dict(w), 0
    for x, y in steps(site, round, *draws, **epochs):
        g = slope(w, x, y)
        for name in w:
            velocity[name] = rho * velocity.get(name, 0) + g[name] + decay * w[name]
            w[name] = w[name] - rate * velocity[name]
        count += 1
    return w, count


def mean(weights: dict[str, float], values: dict[str, dict]) -> dict:
    names = next(iter(values.values()))
    return {name: sum(weights[k] * values[k][name] for k in values) for name in names}


def by_size(sites) -> dict[str, float]:
    total = sum(len(site.train) for site in sites)
    return {site.name: len(site.train) / total for site in sites}


def agree(run: FederatedRun, w: dict) -> None:
    assert run.server.model.keys() == w.keys()
    for name, value in w.items():
        torch.testing.assert_close(run.server.model[name], value, **CLOSE)


def averaged(run: FederatedRun, w: dict, slope_of) -> None:
    """Three rounds of the mean by size after local steps; ``slope_of``: the slope in a round that begins at w."""
    sites = run.federation.sites
    for t in (1, 2, 3):
        run.advance()
        w = mean(by_size(sites), {s.name: local(w, s, t, slope_of(w))[0] for s in sites})
    agree(run, w)


@pytest.mark.parametrize("weights", ["size", "equal"])
@pytest.mark.parametrize("state", ["renewed", "kept"])
def test_fedavg(plain, weights, state):
    run, w = start(weights=weights, optimiser_state=state)
    sites = run.federation.sites
    p = by_size(sites) if weights == "size" else dict.fromkeys(run.clients, 1 / 3)
    velocity = {site.name: {} for site in sites}
    for t in (1, 2, 3):
        run.advance()
        kept = velocity if state == "kept" else {site.name: {} for site in sites}
        w = mean(p, {s.name: local(w, s, t, velocity=kept[s.name])[0] for s in sites})
    agree(run, w)


def test_fedprox(plain):
    mu = 0.7

    def slope_of(anchor):
        def slope(now, x, y):
            g = gradient(cross_entropy, now, x, y)
            return {name: g[name] + mu * (now[name] - anchor[name]) for name in now}

        return slope

    averaged(*start(algorithm={"name": "fedprox", "mu": mu}), slope_of)


def test_fedsam(plain):
    averaged(*start(algorithm={"name": "fedsam", "rho": 0.3}), lambda w: ascended(0.3))


@pytest.mark.parametrize("weights", ["size", "equal"])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_scaffold(plain, weights, participation):
    """With momentum the gradient of the j-th last step enters the change (1 - rho^j) / (1 - rho) times."""
    run, w = start(algorithm="scaffold", weights=weights, participation=participation)
    sites = {site.name: site for site in run.federation.sites}
    p = by_size(sites.values()) if weights == "size" else dict.fromkeys(sites, 1 / 3)
    c = dict.fromkeys(w, 0.0)
    own = {name: dict.fromkeys(w, 0.0) for name in sites}
    for t in (1, 2, 3):
        chosen = list(run.advance()["loss"])
        taken = sum(p[k] for k in chosen)
        local_weights, change = {}, {}
        for k in chosen:

            def slope(now, x, y, own=own[k], c=c):
                g = gradient(cross_entropy, now, x, y)
                return {name: g[name] - own[name] + c[name] for name in now}

            local_weights[k], count = local(w, sites[k], t, slope)
            rho = SETTINGS["momentum"]
            passed = SETTINGS["learning_rate"] * sum((1 - rho**j) / (1 - rho) for j in range(1, count + 1))
            change[k] = {n: (w[n] - local_weights[k][n]) / passed - c[n] for n in w}
            own[k] = {n: own[k][n] + change[k][n] for n in w}
        w = mean({k: p[k] / taken for k in chosen}, local_weights)
        c = {n: c[n] + sum(p[k] * change[k][n] for k in chosen) for n in w}
        for n in w:  # c stays the weighted mean of all clients' variates
            torch.testing.assert_close(c[n], sum(p[k] * own[k][n] for k in sites), **CLOSE)
    agree(run, w)
    for n in w:
        torch.testing.assert_close(run.server.memories["scaffold"][n], c[n], **CLOSE)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_fednova(plain, momentum, monkeypatch):
    monkeypatch.setitem(SETTINGS, "momentum", momentum)
    run, w = start(algorithm="fednova")
    sites, p = run.federation.sites, by_size(run.federation.sites)
    for t in (1, 2, 3):
        run.advance()
        direction, length = {}, {}
        for site in sites:
            local_weights, count = local(w, site, t)
            a = [sum(momentum**i for i in range(count - k)) for k in range(count)]
            length[site.name] = sum(a)
            direction[site.name] = {n: (w[n] - local_weights[n]) / sum(a) for n in w}
        effective = sum(p[k] * length[k] for k in p)
        w = {n: w[n] - effective * sum(p[k] * direction[k][n] for k in p) for n in w}
    assert len(set(length.values())) == 3  # the clients take 6, 4 and 2 steps
    agree(run, w)


@pytest.mark.parametrize("share_model", [False, True])
def test_fedproto(plain, share_model):
    """Clients have few classes: one that nobody had yet has no prototype, one that nobody in a round has keeps it."""
    mu, settings = 0.8, {"participation": 0.67, "rounds": 4}
    run, w = start(positives(), algorithm={"name": "fedproto", "mu": mu, "share_model": share_model}, **settings)
    sites = {site.name: site for site in run.federation.sites}
    own, goal, known = dict.fromkeys(sites, w), torch.zeros(3, 5, dtype=torch.float64), torch.zeros(3, dtype=torch.bool)
    new = 0
    for t in (1, 2, 3, 4):
        last = run.advance()
        chosen = [sites[k] for k in last["loss"]]
        sums, counts = torch.zeros(3, 5, dtype=torch.float64), torch.zeros(3)
        for site in chosen:

            def objective(now, x, y, goal=goal, known=known):
                apart = (hidden(now, x) - goal[y]) ** 2
                return cross_entropy(now, x, y) + mu * apart[known[y]].sum() / apart.numel()

            def slope(now, x, y, objective=objective):
                return gradient(objective, now, x, y)

            own[site.name], _ = local(w if share_model else own[site.name], site, t, slope)
            features = hidden(own[site.name], site.train.images.double() / 255)
            for feature, y in zip(features, site.train.targets, strict=True):
                sums[y], counts[y] = sums[y] + feature, counts[y] + 1
        there = counts > 0
        new += t > 1 and bool((there & ~known).any())
        goal, known = torch.where(there[:, None], sums / counts.clamp(min=1)[:, None], goal), known | there
        if share_model:
            w = mean(by_size(chosen), {site.name: own[site.name] for site in chosen})
        for site, found in zip(sites.values(), last["test"], strict=True):
            far = (hidden(own[site.name], site.test.images.double() / 255)[:, None] - goal).square().sum(2)
            nearest = int((torch.where(known, far, torch.inf).argmin(1) == site.test.targets).sum())
            assert found == (right(w, site) if share_model else nearest)
    agree(run, w if share_model else {})
    assert new > 0
    torch.testing.assert_close(run.server.memories["fedproto"]["prototypes"], goal, **CLOSE)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedbn", "fedsam", "fedavgm", "scaffold"])
def test_batch_normalisation(plain, algorithm):
    """Weights and running statistics of a normalised network, with torch's own layers and optimiser."""
    plain(normalised=True)
    settings = {"algorithm": {"name": "fedsam", "rho": 0.2} if algorithm == "fedsam" else algorithm}
    run, initial = start(rounds=1, momentum=0.0, weight_decay=0.0, **settings)
    sites, ended = run.federation.sites, {}
    for site in sites:
        net = Plain(normalised=True).double()
        net.load_state_dict(initial)
        parameters = list(net.parameters())
        for x, y in steps(site, 1):
            slopes = torch.autograd.grad(F.cross_entropy(net(x), y), parameters)
            if algorithm == "fedsam":
                norm = torch.cat([slope.flatten() for slope in slopes]).norm()
                worst = Plain(normalised=True).double()  # its running statistics are thrown away
                worst.load_state_dict(net.state_dict())
                for parameter, slope in zip(worst.parameters(), slopes, strict=True):
                    parameter.data += 0.2 * slope / norm
                slopes = torch.autograd.grad(F.cross_entropy(worst(x), y), list(worst.parameters()))
            for parameter, slope in zip(parameters, slopes, strict=True):
                parameter.data -= 0.1 * slope
        ended[site.name] = net.state_dict()
    run.advance()
    p = by_size(sites)
    expected = mean(p, ended)
    expected["norm.num_batches_tracked"] = expected["norm.num_batches_tracked"].round().long()
    if algorithm == "fedbn":
        kept = {n for n in expected if n.startswith("norm.")}
        assert len(kept) == 5  # weight, bias, mean, variance, counter
        for site in sites:
            for n in kept:
                held = run.clients[site.name].memories["kept"][n]
                torch.testing.assert_close(held, ended[site.name][n], **CLOSE)
        expected = {n: value for n, value in expected.items() if n not in kept}
    agree(run, expected)


def holder(**given) -> SimpleNamespace:
    """The little of a client or of the server that one hook uses."""
    kept = {name: {} for name in ("memory", "scratch", "inbox", "replies")}
    return SimpleNamespace(**{name: lambda method, held=held: held for name, held in kept.items()}, **given)


def number(value) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_fedavgm_is_torchs_sgd_on_the_mean_change():
    """Of rate 1, from the first step on; the gradient is the weights less the clients' mean. Buffers get the mean."""
    method = FedAvgM(beta=0.9)
    means = torch.randn(6, 4, generator=randomness.generator("fedavgm"), dtype=torch.float64)
    parameter = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    optimiser = torch.optim.SGD([parameter], lr=1, momentum=0.9)
    server = holder(model={"w": torch.zeros(4, dtype=torch.float64)}, parameters=["w"])
    for average in means:
        parameter.grad = parameter.detach() - average
        optimiser.step()
        server.model = method.aggregate_model(server, {"w": average, "b": average})
        torch.testing.assert_close(server.model["w"], parameter.detach(), rtol=1e-13, atol=1e-13)
        assert torch.equal(server.model["b"], average)
