"""PartialFed: each client loads a part of the global network and goes on with its own last values in the rest."""

from dataclasses import dataclass

from torch import nn

from fednb.errors import RecipeError, nearest
from fednb.methods import EVERY_TASK, Client, Message, Method, entries, option, part

NORMALISATION = "normalisation"


@dataclass(frozen=True)
class PartialFed(Method):
    r"""Federated averaging with partial initialisation, of named layers (the paper's "fix").

    .. math:: w_{k,\ell} = \begin{cases} w_\ell & \text{if client } k \text{ loads layer } \ell \\
        w_{k,\ell}' & \text{if it keeps it} \end{cases}  \tag{1}

    with w the global weights and w_k' those that the client ended its last round with (before its first, those that all
    start from). It trains from there, and **all** layers go to the server and are averaged (of FedBN, those that every
    client loads). It is tested with the same mixture, of the new global weights and what it has just learned. An unseen
    client loads everything. Sends nothing of its own; a client keeps the last values of its layers.

    Args:
        layers: what is not loaded: "normalisation" (all layers of batch normalisation) and names of modules, such as
            "head" or "stage1". ["normalisation"] is FedBN but for unseen clients, [] is FedAvg.

    Reference: Sun et al., *PartialFed: cross-domain personalized federated learning via partial initialization*,
    NeurIPS 2021, from its abstract, a summary by a reader (qiao1.top/posts/2cb917ce) and the code of a former PFLlib
    (``clientpartial.py``, c79e660); the number of the equation is ours. FRAug (Table 2) prints no variant or setting of
    its reimplementation.

    As printed: by the summary, it is better to keep upper layers than lower ones, and not to load batch normalisation;
    the default is these two together. The adaptive variant, in which clients learn what they load, is left out.
    """

    tasks = EVERY_TASK

    layers: tuple[str, ...] = option(
        (NORMALISATION, "head"),
        allowed=lambda given: isinstance(given, list | tuple) and all(isinstance(name, str) for name in given),
        expected='names, such as ["normalisation", "head"]',
    )

    def build(self, model: nn.Module) -> nn.Module:
        """Raises RecipeError for a layer that the network has not."""
        known = [place for place, _ in model.named_modules() if place]
        for layer in self.layers:
            if layer != NORMALISATION and not any(_lies_in(place, layer) for place in known):
                raise RecipeError(f'{self.name} was asked not to load "{layer}"; {nearest(layer, known)}')
        return model

    def prepare_receive(self, client: Client, shared: Message) -> None:
        if not client.unseen:
            self.reply(client)

    def load(self, client: Client, received: Message) -> Message:
        return part(client.memory(self), "own")  # Eq. 1

    def reply(self, client: Client) -> Message:
        """Its layers, as they are, are its own from now on."""
        own = {n: t.clone() for n, t in client.model.state_dict().items() if self._keeps(client, n)}
        client.memory(self).update(entries("own", own))
        return {}

    def _keeps(self, client: Client, name: str) -> bool:
        place = name.rpartition(".")[0]
        normalised = isinstance(client.model.get_submodule(place), nn.modules.batchnorm._BatchNorm)
        chosen = (normalised and NORMALISATION in self.layers) or any(_lies_in(place, layer) for layer in self.layers)
        return chosen and name not in client.keeps


def _lies_in(place: str, layer: str) -> bool:
    """``"backbone.stage1.0"`` lies in ``"stage1"``, also in a network around the one that was named."""
    return f".{layer}." in f".{place}."
