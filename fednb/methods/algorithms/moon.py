"""MOON: each client's features are drawn to the global model's and pushed from those of its own previous model."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fednb.methods import Batch, Client, Message, Method, classification_only, option


@dataclass(frozen=True)
class Moon(Method):
    r"""Model-contrastive federated learning.

    .. math::
        \ell_{con} = -\log \frac{\exp(\mathrm{sim}(z, z_{glob}) / \tau)}
        {\exp(\mathrm{sim}(z, z_{glob}) / \tau) + \exp(\mathrm{sim}(z, z_{prev}) / \tau)}  \tag{3}

        \ell = \mathrm{CE} + \mu\, \ell_{con}  \tag{4}

    with z the features of an image under the network in training, z_glob under the weights that came and z_prev under
    those that this client sent last, and sim the cosine; averaged over the batch. A client that trains for the first
    time adds no term. Sends nothing of its own; a client keeps the whole network that it trained last. All three
    networks see the images as other methods leave them; the two that are compared with are as at test time.

    Args:
        mu: at least 0. 0 is FedAvg. The paper takes the best of 0.1, 1, 5 and 10: 5 for CIFAR-10, 1 for CIFAR-100 and
            Tiny-ImageNet; 1 in the released code. DisTrans prints none.
        tau: above 0. 0.5 in the paper and in the released code.

    Reference: Li et al., *Model-contrastive federated learning*, CVPR 2021, Algorithm 1, Eq. 3 and 4.

    As printed: the features are a projection head's, two layers between network and classifier. Our networks have
    none, so that rivals train the same ones; z is what the classifier sees, as there.

    As released (github.com/QinbinLi/MOON): a client that first trains in a later round has a previous network of random
    weights. Ours: no term.
    """

    printed = "MOON"
    tasks = classification_only("it compares the feature vectors of whole images")
    hard_labels = "it compares an image's features under three networks, and a mixture has them under one"

    mu: float = option(1.0, at_least=0)
    tau: float = option(0.5, above=0)

    def begin(self, client: Client) -> None:
        if self.mu and client.memory(self):
            client.scratch(self).update({n: value.clone() for n, value in client.model.state_dict().items()})

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        received, previous = client.scratch(self), client.memory(self)
        if not received:
            return None
        own = batch.features.to(batch.images.dtype)
        others = [_features_under(client, entries, batch.images) for entries in (received, previous)]
        similar = torch.stack([F.cosine_similarity(own, other) for other in others], 1)
        first = torch.zeros(len(own), dtype=torch.int64, device=own.device)
        return self.mu * F.cross_entropy(similar / self.tau, first)  # Eq. 3, 4

    def reply(self, client: Client) -> Message:
        if self.mu:
            client.memory(self).update({n: value.clone() for n, value in client.model.state_dict().items()})
        return {}


class _Features(nn.Module):
    """A network that ends before its head."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model.features(images)


def _features_under(client: Client, entries: Message, images: Tensor) -> Tensor:
    """Features ``[n, d]`` by the client's network with these entries, as at test time; it is in training afterwards."""
    client.model.eval()
    with client.autocast():
        held = {f"model.{name}": value for name, value in entries.items()}
        features = functional_call(_Features(client.model), held, (images,))
    client.model.train()
    return features.to(images.dtype)
