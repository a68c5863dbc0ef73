"""FedAvgM: FedAvg with momentum at the server."""

from dataclasses import dataclass

from fednb.methods import EVERY_TASK, Message, Method, Server, option


@dataclass(frozen=True)
class FedAvgM(Method):
    r"""Federated averaging with server momentum.

    The weighted mean of the clients' changes is a gradient to the server, which takes a step of SGD with
    momentum and rate 1:

    .. math::
        v \leftarrow \beta v + \Delta w, \quad \Delta w = \sum_k \tfrac{n_k}{\sum_j n_j} (w - w_k)  \tag{1}

        w \leftarrow w - v  \tag{2}

    with Nesterov's momentum :math:`w \leftarrow w - (\Delta w + \beta v)` in the place of Eq. 2. Sends nothing of its
    own; the server keeps v, as large as the parameters.

    Args:
        beta: in [0, 1). 0 is FedAvg. 0.9 in FedRDN, Sec. 4.1, for classification (0.01 on ProstateMRI).
        nesterov: False is plain momentum, Eq. 2, as in FedFA's released code; FedRDN, Sec. 4.1, speaks of "the momentum
            update" and prints no more. True in FL-bench and in Flower's baseline of Hsu et al., who report it as that
            baseline says; Flower's own strategy is plain.

    Reference: Hsu et al., *Measuring the effects of non-identical data distribution for federated visual
    classification*, 2019, Sec. 4.3 (FedAvgM).

    As printed: momentum of the parameters; FedRDN, Sec. 4.1, speaks of "the global model parameters". Running
    statistics get the plain mean: momentum could make a variance negative. As released (FedFA's code; FedRDN's has no
    FedAvgM): momentum of all entries, running statistics too; beta is 0.01 in the code.
    """

    tasks = EVERY_TASK

    beta: float = option(0.9, within="[0, 1)")
    nesterov: bool = False

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        velocity, moved = server.memory(self), dict(mean)
        for name in server.parameters:
            kept = self.beta * velocity[name] if name in velocity else 0
            velocity[name] = kept + (server.model[name] - mean[name])  # Eq. 1
            ahead = self.beta * velocity[name] if self.nesterov else kept
            moved[name] = mean[name] - ahead  # Eq. 2, since w - (beta v + w - mean) = mean - beta v
        return moved
