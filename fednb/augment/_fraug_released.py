"""What FRAug's released code does otherwise in a step at a client; the numbers are those of FRAug's "As released"."""

import torch
from torch import Tensor

from fednb.augment._fraug_printed import LAMBDA_C, Draw, Printed
from fednb.doors import Batch


class Released(Printed):
    noise = staticmethod(torch.rand)  # 1
    groups = 1

    def lambda_c(self, images: Tensor) -> Tensor:
        return LAMBDA_C * images.clamp(max=1)  # 5

    def rate(self, which: str) -> float:
        return getattr(self.method, f"{which}_rate")

    def class_labels(self, count: int) -> Tensor:
        return (self.memory["turn"] + torch.arange(count, device=self.client.device)) % self.client.classes  # 4

    def head_loss(self, batch: Batch, starts: list[tuple]) -> Tensor:
        terms, part = self._head_terms(starts), min(0.5, self.lambda_syn)
        real = self.client.task.loss(self.client.logits(batch), batch.targets)
        return part * (sum(terms) / len(terms) - real)  # 3

    def rtnet_loss(self, starts: list[tuple]) -> Tensor:
        terms = self._rtnet_terms(starts[::-1], weight=1.0, one_scale=False)  # 4: the prototypes first
        return sum(terms) / len(terms)

    def learn(self, batch: Batch, real: Tensor, draws: list[Draw]) -> None:
        """With draws of its own for each of the two steps."""
        count = len(batch.targets)
        if self.method.generator:
            self.learners["generator"].descend(self.generator_loss(real, *self.draw(self.class_labels(count))))
        if self.method.rtnet:
            starts = self.starts(real, self.memory["prototypes"], self.draws(batch.targets))
            self.learners["rtnet"].descend(self.rtnet_loss(starts))
        self.memory["turn"] = (self.memory["turn"] + count) % self.client.classes
