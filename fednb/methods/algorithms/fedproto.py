"""FedProto: clients exchange the mean features of each class and keep their features near the global ones."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.methods import Batch, Client, Message, Method, Server, classification_only, option

PAIRWISE = "donot_use_mm_for_euclid_dist"  # by a matrix product, near distances lose half of their digits


@dataclass(frozen=True)
class FedProto(Method):
    r"""Federated prototype learning.

    The prototype of class j at client k is the mean feature of its n_kj training images of that class; the server
    averages them, and each image's feature is drawn to the global prototype of its class:

    .. math::
        C_k^{(j)} = \tfrac{1}{n_{kj}} \sum_{i : y_i = j} f_k(x_i)  \tag{3}

        \bar C^{(j)} = \sum_k \tfrac{n_{kj}}{\sum_l n_{lj}} C_k^{(j)}  \tag{6}

        \ell = \mathrm{CE} + \tfrac{\mu}{n d} \sum_{i=1}^n \lVert f_k(x_i) - \bar C^{(y_i)} \rVert^2  \tag{7}

        \hat y = \arg\min_j \lVert f_k(x) - \bar C^{(j)} \rVert  \tag{4}

    over a batch of n images with features of length d. A class that nobody has seen yet, as all in round 1, adds
    nothing to Eq. 7 and is not predicted. Each client sends classes x (d + 1) numbers, the server as many; it keeps
    them. Where another method mixes labels, with shares s_ij of class j, a feature is drawn to the mixed prototype, the
    sum over j of s_ij C^(j), as far as its classes are known.

    Args:
        mu: at least 0. 1 in FedRDN, Sec. 4.1, and in FedProto.
        share_model: False is the paper: prototypes are all that is exchanged, each client keeps its whole network and
            predicts by the nearest global prototype, Eq. 4. True: the network is averaged as well and its classifier
            predicts, which is FedAvg with one more term, and FedAvg where mu is 0.

    Reference: Tan et al., *FedProto: federated prototype learning across heterogeneous clients*, AAAI 2022,
    Algorithm 1. FedRDN compares it with methods of one global model; its code for it is not released.

    As printed: Eq. 6 has another factor, 1 over the number of clients with the class, which we leave out; Eq. 7 the
    distance of the client's prototypes to the global ones, for which we take the released ``nn.MSELoss``.

    As released: Eq. 6 counts clients alike, Eq. 3 is over the features of the last local epoch. Ours: as printed.
    """

    tasks = classification_only("a prototype is the mean feature vector of the images of one class")
    ranges = {"images": (0, 1e9)}

    mu: float = option(1.0, at_least=0)
    share_model: bool = False

    def keeps(self, model: nn.Module) -> set[str]:
        return set() if self.share_model else set(model.state_dict())

    def send(self, server: Server, client: str) -> Message:
        return server.memory(self)

    def loss(self, client: Client, batch: Batch) -> Tensor | None:
        shared = client.inbox(self)
        if self.mu == 0 or not shared:
            return None
        features = batch.features.to(shared["prototypes"].dtype)
        hard = batch.label_shares is None
        shares = client.task.shares(batch.targets, client.classes) if hard else batch.label_shares
        known = shares.to(features.dtype) * (shared["images"] > 0)
        goal = known @ shared["prototypes"] + (1 - known.sum(1, keepdim=True)) * features.detach()
        return self.mu * F.mse_loss(features, goal)  # Eq. 7

    @torch.no_grad()
    def reply(self, client: Client) -> Message:
        client.model.eval()
        split, sums = client.site.train, 0
        for batch in client.test_batches(split):
            client.forward(batch)
            member = F.one_hot(batch.targets, client.classes).to(batch.images.dtype)
            sums = sums + member.T @ batch.features.to(batch.images.dtype)
        images = torch.bincount(split.targets, minlength=client.classes).to(sums.dtype)
        return {"prototypes": sums / images.clamp(min=1)[:, None], "images": images}  # Eq. 3

    def aggregate(self, server: Server) -> None:
        replies, memory = server.replies(self).values(), server.memory(self)
        images = sum(reply["images"] for reply in replies)
        sums = sum(reply["images"][:, None] * reply["prototypes"] for reply in replies)
        prototypes = sums / images.clamp(min=1)[:, None]  # Eq. 6
        if memory:  # a class that no client of this round has keeps the prototype that it had
            prototypes = torch.where(images[:, None] > 0, prototypes, memory["prototypes"])
            images = torch.where(images > 0, images, memory["images"])
        memory.update(prototypes=prototypes, images=images)

    def predict(self, client: Client, batch: Batch) -> Tensor:
        client.forward(batch)
        shared = client.inbox(self)
        if self.share_model or not shared:
            return batch.logits
        features = batch.features.to(shared["prototypes"].dtype)
        distances = torch.cdist(features, shared["prototypes"], compute_mode=PAIRWISE)
        return (-distances).masked_fill(shared["images"] == 0, -torch.inf)  # Eq. 4
