"""Additional embeddings: before it is tested, a client tunes its head on the features of more of its real images."""

from dataclasses import dataclass

import torch

from fednb.errors import RecipeError
from fednb.methods import Client, Message, Method, classification_only, option


@dataclass(frozen=True)
class AdditionalEmbeddings(Method):
    r"""FRAug's motivating experiment: what a perfect generator of features would give.

    The network is trained on a part of each client's images, D_k. Before the test of client k its head h learns from
    the features f, as at test time, of D_k and of S_k, the site's ``spare``:

    .. math::
        h_k = \text{training of } h \text{ on } \{(f(x), y) : (x, y) \in D_k \cup S_k\}
        \text{ for } E_h \text{ epochs}

    with SGD of the recipe's rate, momentum and weight decay, from the head that came. Sends and keeps nothing.

    Args:
        epochs: E_h, at least 0. FRAug prints none; 10 is ours.

    Raises RecipeError for a site without spare images.

    Reference: Chen et al., *FRAug*, ICCV 2023, Sec. 3.2 and Table 1. Its code for it is not released.

    As printed: 10 % of the local images train the network (the loader's ``fraction``), 100 % the head.
    """

    printed = "additional embeddings"
    tasks = classification_only("it tunes the head on the one feature vector of an image")

    epochs: int = option(10, at_least=0)

    def prepare_offer(self, client: Client) -> Message:
        if client.site.spare is None:
            raise RecipeError(
                f"{self.name} needs images of {client.name} that no round trains on. Ask the federation's loader for "
                'them, as in federation={"name": "pacs", "spare": True}.'
            )
        return {}

    def adapt(self, client: Client) -> None:
        site, recipe, head = client.site, client.recipe, client.model.head
        features, targets = (torch.cat(rows) for rows in zip(*_features(client, (site.train, site.spare)), strict=True))
        options = {"lr": recipe.learning_rate, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
        optimiser = torch.optim.SGD(head.parameters(), **options)
        for _ in range(self.epochs):
            order = torch.randperm(len(targets), generator=client.generator(self.name)).to(targets.device)
            for chosen in order.split(recipe.batch_size):
                optimiser.zero_grad()
                client.task.loss(head(features[chosen]), targets[chosen]).backward()
                optimiser.step()


@torch.no_grad()
def _features(client: Client, splits) -> list[tuple[torch.Tensor, torch.Tensor]]:
    client.model.eval()
    found = []
    for split in splits:
        for batch in client.test_batches(split):
            client.forward(batch)
            found.append((batch.features.to(batch.images.dtype), batch.targets))
    return found
