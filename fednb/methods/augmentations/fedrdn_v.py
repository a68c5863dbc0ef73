"""FedRDN-V: every image is normalised with the average of all clients' statistics; nothing is drawn."""

from fednb.methods import Batch, Client, Message, Server
from fednb.methods.augmentations.fedrdn import OfClients, channel_statistics, gather


class FedRDNV(OfClients):
    r"""FedRDN's ablation: one pair for all clients, in training and at test time.

    .. math:: \hat\mu = \tfrac{1}{K} \sum_k \mu_k, \quad \hat\sigma = \tfrac{1}{K} \sum_k \sigma_k  \tag{8}

    Sends 2 x channels floats per client, once; keeps the average.

    Reference: FedRDN, Sec. 4.5. Not released. Eq. 8 prints the sum without 1/K; we take the text's "average".
    """

    printed = "FedRDN-V"

    def prepare_offer(self, client: Client) -> Message:
        mean, std = channel_statistics(client)
        return {"mean": mean, "std": std}

    def prepare_share(self, server: Server, offers: dict[str, Message]) -> Message:
        return {name: values.mean(0) for name, values in gather(offers).items()}  # Eq. 8

    def inputs(self, client: Client, batch: Batch) -> None:
        mean, std = (values.to(batch.images.dtype)[:, None, None] for values in client.memory(self).values())
        batch.images = (batch.images - mean) / std
