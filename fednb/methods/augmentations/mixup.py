"""Mixup: trains on the mixtures of two images and of their labels."""

from dataclasses import dataclass

from torch import Tensor

from fednb.methods import EVERY_TASK, Batch, Client, Method, option
from fednb.methods.augmentations import _mixing


@dataclass(frozen=True)
class Mixup(Method):
    r"""Mixup at each client.

    Image i of a batch is mixed with image j, its partner in a random permutation of the batch:

    .. math::
        \tilde x = \lambda x_i + (1 - \lambda) x_j, \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

        \ell = \lambda\,\mathrm{CE}(f(\tilde x), y_i) + (1 - \lambda)\,\mathrm{CE}(f(\tilde x), y_j)

    One lambda serves the whole batch. Images are mixed last, as every other method has left them. Sends and keeps
    nothing.

    Args:
        alpha: at least 0. 0 is plain training. 1 for CIFAR, Sec. 3.2, and in the authors' code.

    Reference: Zhang et al., *mixup: beyond empirical risk minimization*, ICLR 2018, Sec. 2. FedFA (Table 6) and
    DisTrans (Table 2) print no setting.

    As printed: partners from the training set. As released: a permutation of the batch, one lambda for all, as here.
    """

    printed = "mixup"
    tasks = EVERY_TASK
    mixes_labels = True

    alpha: float = option(1.0, at_least=0)

    def before_step(self, client: Client, batch: Batch) -> None:
        if self.alpha > 0:
            batch.aside[self.name] = _mixing.draw(client, batch, self.name, self.alpha)

    def criterion(self, client: Client, batch: Batch) -> Tensor:
        if self.alpha == 0:
            return super().criterion(client, batch)
        mixture = batch.aside[self.name]
        _mixing.forward_mixed(client, batch, mixture)
        return _mixing.loss(client, batch, mixture)
