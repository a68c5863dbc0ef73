"""Own statistics: batch normalisation with the running statistics of each site's own training images, at test time."""

from dataclasses import dataclass

from fednb.methods import EVERY_TASK, Client, Method
from fednb.methods.running_statistics import measured


@dataclass(frozen=True)
class OwnStatistics(Method):
    r"""Before a network is tested at a site, its running statistics are measured there anew.

    .. math:: (\mu_\ell, \sigma_\ell^2) \leftarrow \text{mean and variance of layer } \ell
        \text{ over the site's training images}

    as means over batches of at most 128, in stored order. Weights are those that the other methods give. Nothing is
    trained, sent or kept, and no label is read. In a network without batch normalisation it does nothing.

    Reference: Li et al., *Revisiting batch normalization for practical domain adaptation*, ICLR workshop 2017 (AdaBN),
    Algorithm 1, on a site's training images in the place of the target's. Andreux et al., *Siloed federated learning
    for multi-centric histopathology datasets*, 2020 (SiloBN) keep running averages of the training instead: a recipe's
    ``buffers="local"``.
    """

    printed = "own statistics"
    tasks = EVERY_TASK

    def adapt(self, client: Client) -> None:
        measured(client, client.model.state_dict())
