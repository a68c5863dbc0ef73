"""PartialFed: each client loads a part of the global network and goes on with its own last values in the rest."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fednb.errors import RecipeError, nearest
from fednb.methods import EVERY_TASK, Client, Message, Method, entries, option, part

NORMALISATION = "normalisation"


@dataclass(frozen=True)
class PartialFed(Method):
    r"""Federated averaging with partial initialisation.

    .. math:: w_{k,\ell} = \begin{cases} w_\ell & \text{if client } k \text{ loads layer } \ell \\
        w_{k,\ell}' & \text{if it keeps it} \end{cases}  \tag{1}

    with w the global weights and w_k' those that the client ended its last round with (before its first, those that all
    start from). It trains from there, and **all** layers go to the server and are averaged (of FedBN, those that every
    client loads). It is tested with the same mixture, of the new global weights and what it has just learned. An unseen
    client loads everything.

    ``fixed``: the layers that are not loaded are named. ``adaptive``: each client learns which, and loads everything in
    its first round. For layer l it has two logits a_l, of loading and of keeping, 0 at first, and in every round,
    before it trains, one step a batch through its images, with Gumbel noise g and the network's weights held:

    .. math::
        s_\ell = \mathrm{softmax}((a_\ell + g_\ell) / \tau), \quad
        v_\ell = \text{the larger of } s_\ell \text{ as } (1, 0) \text{ or } (0, 1)  \tag{2}

        w_\ell^v = v_{\ell 0} w_\ell + v_{\ell 1} w_{k,\ell}', \quad
        a \leftarrow a - \eta_a \nabla_a F_k(w^v) \text{, } \partial v / \partial a := \partial s / \partial a  \tag{3}

    and then does not load the layers whose second logit is the larger. A layer is one module with its weight, bias and
    running statistics. Sends nothing of its own. A client keeps the last values of its layers and, adaptive, the
    logits; adaptive costs about one more epoch a round.

    Args:
        variant: "fixed" or "adaptive".
        layers: of the fixed variant, what is not loaded: "normalisation" (all layers of batch normalisation) and names
            of modules, such as "head" or "stage1". ["normalisation"] is FedBN but for unseen clients, [] is FedAvg.
        temperature, decay: of the adaptive variant: tau is temperature * decay ** (round - 1). Above 0. 5 and 0.965 are
            PFLlib's.
        strategy_rate: of the adaptive variant: eta_a, at least 0. 0 is FedAvg. 1 is ours.

    Reference: Sun et al., *PartialFed: cross-domain personalized federated learning via partial initialization*,
    NeurIPS 2021, from its abstract, a summary by a reader (qiao1.top/posts/2cb917ce) and the code of a former PFLlib
    (``clientpartial.py``, c79e660); the numbers of the equations are ours. FRAug (Table 2) prints no variant or setting
    of its reimplementation.

    As printed: by the summary, it is better to keep upper layers than lower ones, and not to load batch normalisation;
    the default is these two together. Adaptive choices are learned through a Gumbel softmax; the straight choice with
    the softmax's gradient, the start at 0, and when and on which images it learns are ours.
    """

    tasks = EVERY_TASK

    variant: str = option("fixed", one_of=("fixed", "adaptive"))
    layers: tuple[str, ...] = option(
        (NORMALISATION, "head"),
        allowed=lambda given: isinstance(given, list | tuple) and all(isinstance(name, str) for name in given),
        expected='names, such as ["normalisation", "head"]',
    )
    temperature: float = option(5.0, above=0)
    decay: float = option(0.965, above=0)
    strategy_rate: float = option(1.0, at_least=0)

    def build(self, model: nn.Module) -> nn.Module:
        """Raises RecipeError for a layer that the network has not."""
        known = [place for place, _ in model.named_modules() if place]
        for layer in self.layers:
            if layer != NORMALISATION and not any(_lies_in(place, layer) for place in known):
                raise RecipeError(f'{self.name} was asked not to load "{layer}"; {nearest(layer, known)}')
        return model

    def prepare_receive(self, client: Client, shared: Message) -> None:
        if self.variant == "fixed" and not client.unseen:
            self._remember(client)

    def load(self, client: Client, received: Message) -> Message:
        own = part(client.memory(self), "own")
        if self.variant == "adaptive":
            client.scratch(self)["received"] = received
            chosen = _kept(client.memory(self)["strategy"], own) if own else ()
            return {name: own[name] for name in chosen}  # Eq. 1
        return own

    def begin(self, client: Client) -> None:
        memory, received = client.memory(self), client.scratch(self).get("received", {})
        own = part(memory, "own")
        if self.variant == "fixed" or self.strategy_rate == 0 or not own:
            return
        memory["strategy"] = self._learned(client, memory["strategy"], received, own)
        _mix(client.model, _kept(memory["strategy"], own), received, own)

    def reply(self, client: Client) -> Message:
        memory, names = client.memory(self), self._remember(client)
        if self.variant == "adaptive" and "strategy" not in memory:
            some = next(client.model.parameters())
            memory["strategy"] = torch.zeros(len(_places(names)), 2, dtype=some.dtype, device=some.device)
        return {}

    def _remember(self, client: Client) -> list[str]:
        """Its layers, as they are, are its own from now on; returns the names of their entries."""
        state = client.model.state_dict()
        names = [name for name in state if name not in client.keeps and self._may_keep(client.model, name)]
        client.memory(self).update(entries("own", {name: state[name].clone() for name in names}))
        return names

    def _may_keep(self, model: nn.Module, name: str) -> bool:
        if self.variant == "adaptive":
            return True
        place = _place(name)
        normalised = isinstance(model.get_submodule(place), nn.modules.batchnorm._BatchNorm)
        return (normalised and NORMALISATION in self.layers) or any(_lies_in(place, layer) for layer in self.layers)

    def _learned(self, client: Client, logits: Tensor, received: Message, own: Message) -> Tensor:
        """The logits ``[layers, 2]`` after one pass through the training images."""
        temperature = self.temperature * self.decay ** (client.round - 1)
        draw = client.generator("partialfed")
        parameters = {name: p for name, p in client.model.named_parameters() if name in own}
        client.model.eval()
        for indices in torch.randperm(len(client.site.train), generator=draw).split(client.recipe.batch_size):
            logits = logits.detach().requires_grad_()
            noise = torch.empty(logits.shape).exponential_(generator=draw).log().neg().to(logits)
            soft = ((logits + noise) / temperature).softmax(1)  # Eq. 2
            _mix(client.model, _kept(soft, own), received, own)
            batch = client.batch(client.site.train, indices, training=False)
            client.forward(batch)
            loss = client.task.loss(client.logits(batch), batch.targets)
            found = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
            gradients = choice_gradients(dict(zip(parameters, found, strict=True)), received, own)
            (slope,) = torch.autograd.grad(soft, logits, gradients)
            logits = logits - self.strategy_rate * slope  # Eq. 3
        client.model.train()
        return logits.detach()


def choice_gradients(gradients: Message, received: Message, own: Message) -> Tensor:
    """The loss's gradient for v, ``[layers, 2]``, from that for the weights that v has chosen."""
    places = _places(own)
    chosen = next(iter(gradients.values())).new_zeros(len(places), 2)
    for name, gradient in gradients.items():
        chosen[places.index(_place(name))] += torch.stack([(gradient * w[name]).sum() for w in (received, own)])
    return chosen


def _place(name: str) -> str:
    return name.rpartition(".")[0]


def _places(names) -> list[str]:
    """The layers that these entries belong to, each once."""
    return list(dict.fromkeys(map(_place, names)))


def _kept(strategy: Tensor, own: Message) -> set[str]:
    """The entries of the layers that are not loaded: those whose second value is the larger."""
    chosen = (strategy[:, 1] > strategy[:, 0]).tolist()
    places = {place for place, keeps in zip(_places(own), chosen, strict=True) if keeps}
    return {name for name in own if _place(name) in places}


@torch.no_grad()
def _mix(model: nn.Module, kept: set[str], received: Message, own: Message) -> None:
    """Every entry in ``own`` has its own value in the network if it is kept, else the received one."""
    state = model.state_dict()
    for name in own:
        state[name].copy_(own[name] if name in kept else received[name])


def _lies_in(place: str, layer: str) -> bool:
    """``"backbone.stage1.0"`` lies in ``"stage1"``, also in a network around the one that was named."""
    return f".{layer}." in f".{place}."
