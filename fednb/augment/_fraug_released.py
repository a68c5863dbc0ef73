"""What FRAug's released code does otherwise in a step at a client; the numbers are those of FRAug's "As released"."""

import torch
from torch import Tensor

from fednb.augment._fraug_printed import LAMBDA_C, Draw, Printed
from fednb.augment._mmd import spread
from fednb.doors import Batch


class Released(Printed):
    noise = staticmethod(torch.rand)  # 1
    groups = 1

    @staticmethod
    def together(terms: list[Tensor]) -> Tensor:
        return sum(terms) / len(terms)  # 3, 4

    def lambda_c(self, images: Tensor) -> Tensor:
        return LAMBDA_C * images.clamp(max=1)  # 5

    def class_labels(self, count: int) -> Tensor:
        return (self.memory["turn"] + torch.arange(count, device=self.client.device)) % self.client.classes  # 4

    def draws_after_step(self, targets: Tensor, draws: list[Draw]) -> tuple[Draw | None, list[Draw]]:
        count = len(targets)
        for_g = self.draw(self.class_labels(count)) if self.method.generator else None
        for_m = self.draws(targets) if self.method.rtnet else []
        self.memory["turn"] = (self.memory["turn"] + count) % self.client.classes
        return for_g, for_m

    def head_loss(self, batch: Batch, starts: list[tuple]) -> Tensor:
        real = self.client.task.loss(self.client.logits(batch), batch.targets)
        return min(0.5, self.lambda_syn) * (super().head_loss(batch, starts) - real)  # 3

    def rtnet_loss(self, starts: list[tuple]) -> Tensor:
        self.learners["rtnet"].network.train()
        terms = []
        for base, noise, labels, groups in reversed(starts):  # 4
            made = self.synthetic(base, noise, labels, 1.0)
            terms.append(self._rtnet_term(made, base, groups, spread(made, base)))
        return self.together(terms)
