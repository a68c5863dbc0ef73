"""FedAdam: the server takes a step of Adam. A method from outside: no file of fednb knows of it."""

from dataclasses import dataclass

from fednb.methods import EVERY_TASK, Message, Method, Server

CONFORMANCE = {"neutral": {"rate": 2.0**40, "beta1": 0.0, "beta2": 0.0, "tau": 2.0**40}}  # FedAvg, bit for bit


@dataclass(frozen=True)
class FedAdam(Method):
    r"""Federated averaging whose server divides each weight's change by how much that weight has changed before.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) \Delta, \quad v \leftarrow \beta_2 v + (1 - \beta_2) \Delta^2

        w \leftarrow w + \eta \, m / (\sqrt v + \tau)

    with the clients' mean change Delta, and v = tau^2 at first. Sends nothing of its own; the server keeps m and v.

    Reference: Reddi et al., *Adaptive federated optimization*, ICLR 2021, Algorithm 2.
    """

    tasks = EVERY_TASK

    rate: float = 0.03  # eta
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def aggregate_model(self, server: Server, mean: Message) -> Message:
        memory, moved = server.memory(self), dict(mean)  # running statistics get the plain mean
        for name in server.parameters:
            change = mean[name] - server.model[name]
            m, v = memory.get(f"m/{name}", 0 * change), memory.get(f"v/{name}", 0 * change + self.tau**2)
            m, v = self.beta1 * m + (1 - self.beta1) * change, self.beta2 * v + (1 - self.beta2) * change.square()
            memory |= {f"m/{name}": m, f"v/{name}": v}
            moved[name] = mean[name] + (self.rate * m / (v.sqrt() + self.tau) - change)
        return moved
