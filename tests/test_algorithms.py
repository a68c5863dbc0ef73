"""Every algorithm beside a float64 loop written on its own, and its numbers worked out by hand.

The loops below share with the code only the order of the images (the keyed draw of ``fednb.randomness``), the
initial weights and autograd. They work on dictionaries of weights, one formula a line.
"""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from methods import federation
from torch import nn

from fednb import randomness
from fednb.federation import Federation, Site, Split
from fednb.loop.loop import FederatedRun
from fednb.methods import Batch
from fednb.methods.algorithms.fedavgm import FedAvgM
from fednb.methods.algorithms.fednova import FedNova, gradient_weight
from fednb.methods.algorithms.scaffold import Scaffold
from fednb.recipe import Recipe

SIZES = (("clinic", 11), ("harbour", 6), ("tower", 3))
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


def start(**settings) -> tuple[FederatedRun, dict]:
    """A run that has not begun, and a copy of its initial weights."""
    run = FederatedRun(Recipe(**SETTINGS | settings), federation(SIZES))
    return run, {name: value.clone() for name, value in run.model.state_dict().items()}


def steps(site: Site, round: int, seed: int = 0):
    """Images in [0, 1] and labels of every local step of a round."""
    order = randomness.generator(seed, round, site.name, "order")
    for _ in range(SETTINGS["local_epochs"]):
        batches = list(torch.randperm(len(site.train), generator=order).split(SETTINGS["batch_size"]))
        if len(batches) > 1 and len(batches[-1]) == 1:
            batches[-2:] = [torch.cat(batches[-2:])]
        for batch in batches:
            yield site.train.images[batch].double() / 255, site.train.targets[batch]


def hidden(w: dict, x):
    return torch.tanh(x.flatten(1) @ w["hidden.weight"].T + w["hidden.bias"])


def cross_entropy(w: dict, x, y):
    scores = hidden(w, x) @ w["head.weight"].T + w["head.bias"]
    return (scores.logsumexp(1) - scores[torch.arange(len(y)), y]).mean()


def gradient(objective, w: dict, x, y) -> dict:
    leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
    found = torch.autograd.grad(objective(leaves, x, y), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))


def local(w: dict, site: Site, round: int, slope=None, velocity=None, seed: int = 0) -> tuple[dict, int]:
    """SGD with momentum and weight decay from w on; the new weights and the number of steps."""
    slope = slope or (lambda w, x, y: gradient(cross_entropy, w, x, y))
    velocity = {} if velocity is None else velocity
    rate, rho, decay = (SETTINGS[name] for name in ("learning_rate", "momentum", "weight_decay"))
    w, count = dict(w), 0
    for x, y in steps(site, round, seed):
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
        torch.testing.assert_close(run.server.model[name], value, rtol=1e-9, atol=1e-12)


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
    run, w = start(algorithm={"name": "fedprox", "mu": mu})
    sites = run.federation.sites
    for t in (1, 2, 3):
        run.advance()

        def slope(now, x, y, anchor=w):
            g = gradient(cross_entropy, now, x, y)
            return {name: g[name] + mu * (now[name] - anchor[name]) for name in now}

        w = mean(by_size(sites), {s.name: local(w, s, t, slope)[0] for s in sites})
    agree(run, w)


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize("weights", ["size", "equal"])
@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_scaffold(plain, rate, weights, participation):
    """With momentum the gradient of the j-th last step enters the change (1 - rho^j) / (1 - rho) times."""
    run, w = start(
        algorithm={"name": "scaffold", "server_learning_rate": rate},
        weights=weights,
        participation=participation,
    )
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
        average = mean({k: p[k] / taken for k in chosen}, local_weights)
        w = {n: w[n] + rate * (average[n] - w[n]) for n in w}
        c = {n: c[n] + sum(p[k] * change[k][n] for k in chosen) for n in w}
        for n in w:  # c stays the weighted mean of all clients' variates
            torch.testing.assert_close(c[n], sum(p[k] * own[k][n] for k in sites), rtol=1e-9, atol=1e-12)
    agree(run, w)
    for n in w:
        torch.testing.assert_close(run.server.memories["scaffold"][n], c[n], rtol=1e-9, atol=1e-12)


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


def test_fedsam(plain):
    rho = 0.3
    run, w = start(algorithm={"name": "fedsam", "rho": rho})
    sites = run.federation.sites

    def slope(now, x, y):
        g = gradient(cross_entropy, now, x, y)
        norm = sum(float((value**2).sum()) for value in g.values()) ** 0.5
        return gradient(cross_entropy, {n: now[n] + rho * g[n] / norm for n in now}, x, y)

    for t in (1, 2, 3):
        run.advance()
        w = mean(by_size(sites), {s.name: local(w, s, t, slope)[0] for s in sites})
    agree(run, w)


@pytest.mark.parametrize("share_model", [False, True])
def test_fedproto(plain, share_model):
    mu = 0.8
    run, w = start(algorithm={"name": "fedproto", "mu": mu, "share_model": share_model})
    sites, goal = run.federation.sites, None
    own = {site.name: w for site in sites}
    for t in (1, 2, 3):
        last = run.advance()
        sums, counts = torch.zeros(3, 5, dtype=torch.float64), torch.zeros(3)
        for site in sites:

            def objective(now, x, y, goal=goal):
                drawn = 0 if goal is None else mu * ((hidden(now, x) - goal[y]) ** 2).mean()
                return cross_entropy(now, x, y) + drawn

            def slope(now, x, y, objective=objective):
                return gradient(objective, now, x, y)

            own[site.name], _ = local(own[site.name], site, t, slope)
            features = hidden(own[site.name], site.train.images.double() / 255)
            for feature, y in zip(features, site.train.targets, strict=True):
                sums[y], counts[y] = sums[y] + feature, counts[y] + 1
        goal = sums / counts[:, None]
        if share_model:
            w = mean(by_size(sites), own)
            own = {site.name: w for site in sites}
    agree(run, w if share_model else {})
    torch.testing.assert_close(run.server.memories["fedproto"]["prototypes"], goal, rtol=1e-9, atol=1e-12)
    for site, right in zip(sites, last["test"], strict=True):
        x = site.test.images.double() / 255
        now = own[site.name]
        if share_model:
            predicted = (hidden(now, x) @ now["head.weight"].T + now["head.bias"]).argmax(1)
        else:
            predicted = ((hidden(now, x)[:, None] - goal) ** 2).sum(2).argmin(1)
        assert right == int((predicted == site.test.targets).sum())


@pytest.mark.parametrize("algorithm", ["fedavg", "fedbn", "fedsam", "fedavgm", "fednova", "scaffold"])
def test_batch_normalisation(plain, algorithm):
    """Weights and running statistics of a normalised network, with torch's own layers and optimiser."""
    plain(normalised=True)
    settings = {"algorithm": {"name": "fedsam", "rho": 0.2} if algorithm == "fedsam" else algorithm}
    run, initial = start(rounds=1, momentum=0.0, weight_decay=0.0, **settings)
    sites, ended, lengths = run.federation.sites, {}, {}
    for site in sites:
        net = Plain(normalised=True).double()
        net.load_state_dict(initial)
        parameters = list(net.parameters())
        lengths[site.name] = 0
        for x, y in steps(site, 1):
            lengths[site.name] += 1
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
    if algorithm == "fednova":  # parameters only; running statistics keep the plain mean
        effective = sum(p[k] * lengths[k] for k in p)
        for n, _ in run.model.named_parameters():
            change = sum(p[k] * (ended[k][n] - initial[n]) / lengths[k] for k in p)
            expected[n] = initial[n] + effective * change
    if algorithm == "fedbn":
        kept = {n for n in expected if n.startswith("norm.")}
        assert len(kept) == 5  # weight, bias, mean, variance, counter
        for site in sites:
            for n in kept:
                held = run.clients[site.name].memories["kept"][n]
                torch.testing.assert_close(held, ended[site.name][n], rtol=1e-9, atol=1e-12)
        expected = {n: value for n, value in expected.items() if n not in kept}
    agree(run, expected)


# --- By hand -----------------------------------------------------------------------------------------------


def server(**given) -> SimpleNamespace:
    """The little of a server that one hook uses."""
    memory, round_only, replies = {}, {}, {}
    return SimpleNamespace(
        memory=lambda method: memory,
        scratch=lambda method: round_only,
        replies=lambda method: replies,
        parameters=["w"],
        **given,
    )


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_fedavgm_by_hand():
    """beta = 0.5, w = 1, v = 0.

    Round 1, mean 0.6: v = 0.5 * 0 + (1 - 0.6) = 0.4, w = 1 - 0.4 = 0.6: the mean itself.
    Round 2, mean 0.8: v = 0.5 * 0.4 + (0.6 - 0.8) = 0, w = 0.6: the old speed stops the way back.
    Round 3, mean 1.0: v = 0.5 * 0 + (0.6 - 1.0) = -0.4, w = 1.0.
    Round 4, mean 1.0: v = 0.5 * -0.4 + (1.0 - 1.0) = -0.2, w = 1.2: past the mean.
    The buffer b is the plain mean in every round.
    """
    method, s = FedAvgM(beta=0.5), server(model={"w": number(1.0), "b": number(5.0)})
    for average, moved in [(0.6, 0.6), (0.8, 0.6), (1.0, 1.0), (1.0, 1.2)]:
        s.model = method.aggregate_model(s, {"w": number(average), "b": number(average)})
        assert float(s.model["w"]) == pytest.approx(moved)
        assert float(s.model["b"]) == average


@pytest.mark.parametrize("nesterov", [False, True])
def test_fedavgm_is_torchs_sgd_on_the_mean_change(nesterov):
    """Of rate 1, from the first step on; the gradient is the weights less the clients' mean."""
    method = FedAvgM(beta=0.9, nesterov=nesterov)
    means = torch.randn(6, 4, generator=randomness.generator("fedavgm"), dtype=torch.float64)
    parameter = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    optimiser = torch.optim.SGD([parameter], lr=1, momentum=0.9, nesterov=nesterov)
    s = server(model={"w": torch.zeros(4, dtype=torch.float64)})
    for average in means:
        parameter.grad = parameter.detach() - average
        optimiser.step()
        s.model = method.aggregate_model(s, {"w": average, "b": average})
        torch.testing.assert_close(s.model["w"], parameter.detach(), rtol=1e-13, atol=1e-13)
        assert torch.equal(s.model["b"], average)
    assert torch.equal(FedAvgM(beta=0.0, nesterov=nesterov).aggregate_model(s, {"w": means[0]})["w"], means[0])


def test_fednova_by_hand():
    """gradient_weight: 3 steps with rho = 0.5. Gradient 1 moves steps 1 to 3: 1 + 0.5 + 0.25 = 1.75;
    gradient 2: 1 + 0.5 = 1.5; gradient 3: 1. Sum 4.25. Without momentum 3.

    Two clients with p = 0.25 and 0.75, 1 and 3 steps, w = 1, and changes -0.2 and +0.6:
    d = -0.2 / 1 = -0.2 and 0.6 / 3 = 0.2; mean of d = 0.25 * -0.2 + 0.75 * 0.2 = 0.1;
    tau_eff = 0.25 * 1 + 0.75 * 3 = 2.5; w = 1 + 2.5 * 0.1 = 1.25. FedAvg: 1 + 0.25 * -0.2 + 0.75 * 0.6 = 1.4.
    With the changes' signs turned: 0.75.
    """
    assert gradient_weight(3, 0.5) == pytest.approx(4.25)
    assert gradient_weight(3, 0.0) == 3
    assert gradient_weight(1, 0.9) == pytest.approx(1)
    method = FedNova()
    for sign in (1, -1):
        s = server(model={"w": number(1.0)}, weights={"a": 0.25, "b": 0.75})
        sent = {}
        for client, count, change in (("a", 1, -0.2), ("b", 3, 0.6)):
            parameter = nn.Parameter(number(1.0 + sign * change))
            scratch = {"w": number(1.0)}
            recipe = SimpleNamespace(momentum=0.0)
            c = SimpleNamespace(steps=count, recipe=recipe, scratch=lambda m, scratch=scratch: scratch)
            c.parameters = lambda parameter=parameter: {"w": parameter}
            method.collect(s, client, s.weights[client], method.reply(c))
            sent[client] = float(parameter.detach())
        assert sent == pytest.approx({"a": -0.2 * sign, "b": 0.2 * sign})
        average = {"w": number(0.25 * sent["a"] + 0.75 * sent["b"]), "b": number(7.0)}
        moved = method.aggregate_model(s, average)
        assert float(moved["w"]) == pytest.approx(1 + sign * 0.25)
        assert float(moved["b"]) == 7


def test_scaffold_by_hand():
    """Two clients of equal weight, rate 0.1, 2 steps, no momentum; w = 1, c_a = 2, c_b = -1, c = 0.5.

    Correction of a: c - c_a = -1.5; of b: c - c_b = 1.5: they cancel.
    a ends at y = 0.7: Delta c_a = (1 - 0.7) / (2 * 0.1) - 0.5 = 1, c_a = 3.
    b ends at y = 1.2: Delta c_b = (1 - 1.2) / 0.2 - 0.5 = -1.5, c_b = -2.5.
    c = 0.5 + (1 - 1.5) / 2 = 0.25, the mean of 3 and -2.5. If only a took part (share 1/2, weight 1):
    c = 0.5 + 0.5 * 1 = 1, the mean of 3 and -1.
    w: mean of y = 0.95; with server rate 0.5: 1 + 0.5 * (0.95 - 1) = 0.975.
    """
    for taking_part, share, common in (("ab", 1.0, 0.25), ("a", 0.5, 1.0)):
        method, s = Scaffold(server_learning_rate=0.5), server(model={"w": number(1.0)}, share=share)
        s.memory(method)["w"] = number(0.5)
        cases = {"a": (2.0, 0.7, -1.5, 3.0), "b": (-1.0, 1.2, 1.5, -2.5)}
        for client in taking_part:
            own, ended, corrected, kept = cases[client]
            parameter = nn.Parameter(number(1.0))
            state, scratch = {"w": number(own)}, {}
            c = SimpleNamespace(
                steps=2,
                recipe=SimpleNamespace(momentum=0.0, learning_rate=0.1),
                parameters=lambda parameter=parameter: {"w": parameter},
                memory=lambda m, state=state: state,
                scratch=lambda m, scratch=scratch: scratch,
                inbox=lambda m, s=s: m.send(s, "any"),
            )
            method.begin(c)
            parameter.grad = number(10.0)
            method.gradients(c, None)
            assert float(parameter.grad) == 10 + corrected
            parameter.data = number(ended)
            method.collect(s, client, 1 / len(taking_part), method.reply(c))
            assert float(state["w"]) == pytest.approx(kept)
        method.aggregate(s)
        assert float(s.memory(method)["w"]) == pytest.approx(common)
        assert float(method.aggregate_model(s, {"w": number(0.95)})["w"]) == pytest.approx(0.975)


class Pixels(nn.Module):
    """Features are the pixels, so that prototypes can be read off the images."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 3)

    def features(self, images):
        return images.flatten(1)


def test_fedproto_by_hand(monkeypatch):
    """Features are the two pixels over 255. Client a has class 0 twice, (0.2, 0) and (0.4, 1), and no other
    class; client b class 0 once, (0.9, 0.2), and class 1 once, (0.6, 0.6). Class 2 exists nowhere.

    Prototypes: a: class 0 (0.3, 0.5) of 2 images; b: class 0 (0.9, 0.2) of 1, class 1 (0.6, 0.6) of 1.
    Global: class 0 (2 * 0.3 + 0.9) / 3 = 0.5 and (2 * 0.5 + 0.2) / 3 = 0.4; class 1 (0.6, 0.6).
    The term for two images of class 0 with features (0.5, 0.2) and (0.3, 0.4), mu = 3:
    squares (0, 0.04) and (0.04, 0); mean over 2 images and 2 features 0.08 / 4 = 0.02; times 3: 0.06.
    Its slope for the second pixel of the first image: 3 * 2 * (0.2 - 0.4) / 4 = -0.3, towards the prototype.
    An image of class 2 in the place of the second adds nothing: 3 * 0.04 / 4 = 0.03.

    Squared distances to classes 0 and 1: (0.2, 0) 0.25, 0.52; (0.4, 1) 0.37, 0.20, so a has 1 of 2 right;
    (0.9, 0.2) 0.20, 0.25; (0.6, 0.6) 0.05, 0, so b has 2. Nobody is given class 2, though (0.2, 0) is nearer
    to the zeros that stand for its prototype, 0.04.
    """
    monkeypatch.setattr("fednb.models.build", lambda *arguments, **options: Pixels())

    def split(*rows):
        pixels = torch.tensor([row[:2] for row in rows]).reshape(-1, 1, 1, 2) * 255
        return Split(pixels.round().to(torch.uint8), torch.tensor([row[2] for row in rows]))

    a, b = split((0.2, 0.0, 0), (0.4, 1.0, 0)), split((0.9, 0.2, 0), (0.6, 0.6, 1))
    data = Federation("pixels", (Site("a", a, a, a), Site("b", b, b, b)), ("0", "1", "2"))
    run = FederatedRun(Recipe(algorithm={"name": "fedproto", "mu": 3}, precision="fp64"), data)
    close = {"atol": 0.003, "rtol": 0}  # a pixel is rounded to a whole number of 1/255

    right = run.advance()["test"]
    state = run.server.memories["fedproto"]
    expected = torch.tensor([[0.5, 0.4], [0.6, 0.6], [0, 0]], dtype=torch.float64)
    torch.testing.assert_close(state["prototypes"], expected, **close)
    assert state["images"].tolist() == [3, 1, 0]

    client = run.clients["a"]
    client.receive(run.server.send("a"), 2)
    method = client.methods[0]
    batch = Batch(None, torch.tensor([0, 0]), training=True)
    batch.features = torch.tensor([[0.5, 0.2], [0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    term = method.loss(client, batch)
    assert term.item() == pytest.approx(0.06, abs=0.002)
    term.backward()
    assert batch.features.grad[0].tolist() == pytest.approx([0, -0.3], abs=0.01)
    batch.targets = torch.tensor([0, 2])
    assert method.loss(client, batch).item() == pytest.approx(0.03, abs=0.002)
    assert right == [1, 2]
