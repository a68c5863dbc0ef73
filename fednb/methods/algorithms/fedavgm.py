"""FedAvgM: FedAvg with momentum at the server."""

from dataclasses import dataclass

from fednb.methods import EVERY_TASK, Message, Method, Server, option


@dataclass(frozen=True)
class FedAvgM(Method):
    r"""Federated averaging with server momentum: the clients' mean change is a gradient for the server's SGD of rate 1.

    .. math::
        v \leftarrow \beta v + \Delta w, \quad \Delta w = \sum_k \tfrac{n_k}{\sum_j n_j} (w - w_k)  \tag{1}

        w \leftarrow w - v  \tag{2}

    Sends nothing of its own; the server keeps v, as large as the parameters.

    Args:
        beta: in [0, 1). 0 is FedAvg. 0.9 in FedRDN, Sec. 4.1, for classification (0.01 on ProstateMRI).

    Reference: Hsu et al., *Measuring the effects of non-identical data distribution for federated visual
    classification*, 2019, Sec. 4.3 (FedAvgM).

    As printed: plain momentum of the parameters; FedRDN, Sec. 4.1, prints "the momentum update" and "the global model
    parameters". Running statistics get the plain mean: momentum could make a variance negative.

    As released (FedFA's code; FedRDN's has no FedAvgM): plain momentum of all entries, running statistics too; beta is
    0.01 in the code.
    """

    tasks = EVERY_TASK

    beta: float = option(0.9, within="[0, 1)")

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        velocity, moved = server.memory(self), dict(mean)
        for name in server.parameters:
            kept = self.beta * velocity[name] if name in velocity else 0
            velocity[name] = kept + (server.model[name] - mean[name])  # Eq. 1
            moved[name] = mean[name] - kept  # Eq. 2, since w - (beta v + w - mean) = mean - beta v
        return moved
