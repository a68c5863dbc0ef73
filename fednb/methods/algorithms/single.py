"""Single: every client trains alone on its own images."""

from torch import nn

from fednb.methods import EVERY_TASK, Method


class Single(Method):
    r"""Local training, round after round, without a server.

    .. math:: w_k \leftarrow \text{local training of } w_k \quad \text{for every client } k  \tag{1}

    All clients begin at the same weights. Each client keeps the whole network and is tested with its own; nothing of it
    is sent, averaged or loaded. With one client it is FedAvg. An unseen client has nobody's weights and is refused.
    What augmentations exchange is still exchanged.

    Reference: FRAug, Sec. 4.1.2 ("training an individual model on each client separately"; Table 2), which prints no
    settings and no equation for it; the number is ours.

    As released (FRAug's ``ray_baselines.py``): up to 40 epochs of SGD (0.01, momentum 0.9, Nesterov, weight decay
    5e-4), stopped early by validation, and tests on all images of a site, training images among them.
    """

    tasks = EVERY_TASK

    def keeps(self, model: nn.Module) -> set[str]:
        return set(model.state_dict())  # Eq. 1
