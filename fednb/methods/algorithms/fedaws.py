"""FedAwS: clients draw images to the embedding of their class alone; the server spreads the classes out."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fednb.errors import RecipeError
from fednb.methods import Batch, Client, Message, Method, Server, classification_only, option

ROWS = "head.weight"  # the class embeddings
SHORTEST = 1e-9  # length that a shorter vector is divided by


@dataclass(frozen=True)
class FedAwS(Method):
    r"""Federated averaging with spread-out, for clients that have images of a single class.

    The rows of the head's weight are the embeddings w_c of the classes; its bias is not used. A client's loss for an
    image of class y is of the positive label only, and the largest cosine predicts:

    .. math::
        s_c = \frac{g(x)^\top w_c}{\lVert g(x) \rVert \lVert w_c \rVert}, \quad
        \ell(x, y) = \max(0, \tau - s_y)^2  \tag{1}

        \hat y = \arg\max_c s_c  \tag{2}

    The server averages all else, takes the embedding of each class from the clients that have it, by their m_kc images
    of it, and steps down the spread-out term, with cosine distances d below the margin nu:

    .. math::
        \tilde w_c = \frac{v_c}{\lVert v_c \rVert}, \quad
        v_c = \sum_k m_{kc} \frac{w_{kc}}{\lVert w_{kc} \rVert}  \tag{3}

        R(W) = \sum_c \sum_{c' \ne c} \max(0, \nu - d(w_c, w_{c'}))^2, \quad
        d(u, v) = 1 - u^\top v  \tag{4}

        W \leftarrow \tilde W - \lambda \eta \nabla R(\tilde W)  \tag{5}

    with rows of length 1 before and after Eq. 5, and eta the recipe's learning rate. The embedding of a class that no
    client of a round has stays, but for Eq. 5. A client sends how many training images of each class it has, once, and
    the rows of its head as their parts of Eq. 3. Keeps nothing. No setting is FedAvg.

    Args:
        target: tau, in (0, 1]. 0.9, the squared hinge loss of the experiments; 1 is the loss of the analysis.
        margin: nu, in [0, 2]. 1, at which classes are spread until they are at right angles, is ours.
        spread: lambda, at least 0. 10 in the experiments. 0 leaves Eq. 5 out.

    Raises RecipeError for a class that no client has: its embedding would never be learned.

    Reference: Yu et al., *Federated learning with only positive labels*, ICML 2020, Algorithm 1. What its experiments
    have (0.9, 10, the k nearest classes) is from accounts of the paper; the numbers of the equations are ours. No code
    of the authors is known to us. DisTrans prints no setting of its FedAwS.

    As printed: a client has one class and is told its embedding alone (ours: any classes, and the whole head); the
    experiments replace nu by the k nearest classes ("stochastic negative mining"; ours: Eq. 4 over all pairs).
    """

    printed = "FedAwS"
    tasks = classification_only("a class is a direction among the feature vectors of images")
    ranges = {"images": (0, 1e9)}

    target: float = option(0.9, within="(0, 1]")
    margin: float = option(1.0, within="[0, 2]")
    spread: float = option(10.0, at_least=0)

    def prepare_offer(self, client: Client) -> Message:
        return {"images": self._images(client)}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        if missing := (sum(offer["images"] for offer in offers.values()) == 0).nonzero().flatten().tolist():
            raise RecipeError(
                f"{self.name} finds no training image of class {', '.join(map(str, missing))} (from 0) at any client; "
                "its embedding would never be learned. Take a federation without the class."
            )
        return {}

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        client.forward(batch)
        own = cosines(client, batch).gather(1, batch.targets[:, None])
        return (self.target - own).clamp(min=0).square().mean()  # Eq. 1

    @torch.no_grad()
    def reply(self, client: Client) -> Message:
        rows, images = client.model.head.weight, self._images(client)
        # The server's mean does the rest; a power of two changes no digit.
        share = images / (images.sum() if client.recipe.weights == "size" else 2**14)
        rows.copy_(_unit(rows) * share[:, None].to(rows))
        return {}

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        known = mean[ROWS].any(1, keepdim=True)
        rows = _unit(torch.where(known, mean[ROWS], server.model[ROWS]))  # Eq. 3
        rate = self.spread * server.recipe.learning_rate
        return mean | {ROWS: _unit(rows - rate * spreading_gradient(rows, self.margin))}  # Eq. 5

    def predict(self, client: Client, batch: Batch) -> Tensor:
        client.forward(batch)
        return cosines(client, batch)  # Eq. 2

    def _images(self, client: Client) -> Tensor:
        return torch.bincount(client.site.train.targets, minlength=client.classes)


def cosines(client: Client, batch: Batch) -> Tensor:
    """Of each image's features with each class's embedding: ``[n, classes]``."""
    rows = client.model.head.weight
    return _unit(batch.features.to(rows.dtype)) @ _unit(rows).T


def spreading_gradient(rows: Tensor, margin: float) -> Tensor:
    """The gradient of the spread-out term (Eq. 4) for unit rows ``[classes, d]``."""
    near = (margin - 1 + rows @ rows.T).clamp(min=0).fill_diagonal_(0)
    return 4 * near @ rows


def _unit(rows: Tensor) -> Tensor:
    return F.normalize(rows, dim=1, eps=SHORTEST)
