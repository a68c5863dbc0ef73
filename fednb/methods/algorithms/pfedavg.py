"""pFedAvg: FedAvg, then each client trains its copy of the global network further before it is tested."""

from dataclasses import dataclass

from fednb.methods import EVERY_TASK, Client, Method, option


@dataclass(frozen=True)
class PFedAvg(Method):
    r"""Federated averaging with fine-tuning at the client.

    .. math:: w_k = \text{local training of } w \text{ for } E_f \text{ epochs}  \tag{1}

    from the global weights w of the round, for the test of client k alone: rounds are those of FedAvg, bit for bit, and
    w_k is forgotten after the test. Sends and keeps nothing of its own. Fine-tuning is by the recipe's optimiser (from
    the momenta of its rounds where these go on), flow and augmentations; an unseen client does the same.

    Args:
        epochs: E_f, at least 0. 0 is FedAvg. 1 is ours: FRAug prints none.

    Reference: FRAug, Sec. 4.1.2 ("FedAvg with local model personalization"; Table 2), without equation (the number is
    ours), settings or code. The idea is older: Wang et al., *Federated evaluation of on-device personalization*, 2019;
    Yu et al., *Salvaging federated learning by local adaptation*, 2020 (neither is read here for settings).

    As printed: FRAug does not say when clients fine-tune. Ours: all weights, before each test.
    """

    printed = "pFedAvg"
    tasks = EVERY_TASK

    epochs: int = option(1, at_least=0)

    def adapt(self, client: Client) -> None:
        if self.epochs:
            client.train(self.epochs)  # Eq. 1
