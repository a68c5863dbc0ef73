"""What a federation asks of a network: the form of its targets, the loss, the score of an image, and its name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fednb.errors import RecipeError
from fednb.federation import IGNORED

Flow = Callable[[Tensor], Tensor]


class Task:
    """Classification, one class for each image: targets int64 ``[n]``, logits ``[n, classes]``.

    The loss is cross entropy. An image scores 1 where its class has the largest logit, else 0.

    name: as in a federation. asks: what of an image, in words. measure: what its score is called. head: the kind of
    layer that a network's head is.
    """

    name = "classification"
    asks = "a class for every image"
    measure = "accuracy"
    head: type[nn.Module] = nn.Linear

    def loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch. logits: float ``[n, classes, ...]``. targets: a batch's own, or ``shares`` of the
        classes. weights: how many images each of them counts for, ``[n]``, at least 0 and not all 0."""
        if weights is None:
            return F.cross_entropy(logits, targets)
        return (self.losses(logits, targets) * weights).sum() / weights.sum()

    def losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of each image as if it were a batch of its own, ``[n]``."""
        return F.cross_entropy(logits, targets, reduction="none")

    def shares(self, targets: Tensor, classes: int) -> Tensor:
        """The share that each class has in a target, float32 ``[n, classes, ...]``, to be averaged over images."""
        return F.one_hot(targets, classes).float()

    def prediction(self, logits: Tensor) -> Tensor:
        """The class with the largest logit, int64: logits ``[n, classes, ...]`` -> ``[n, ...]``."""
        return logits.argmax(1)

    def scores(self, logits: Tensor, targets: Tensor) -> Tensor:
        """What each image earns, in [0, 1]: float64 ``[n]``."""
        return (self.prediction(logits) == targets).double()

    def flow(self, images: Tensor, targets: Tensor, operations: Flow) -> tuple[Tensor, Tensor]:
        """Images and targets after the operations of the flow, which take and give images."""
        return operations(images), targets


class Segmentation(Task):
    r"""One class for each pixel: targets uint8 ``[n, height, width]``, logits ``[n, classes, height, width]``.

    Pixels with target 255 are *ignored*: nothing is asked there, and neither loss nor score sees them.

    With p the softmax, y the classes' shares in the target (1 and 0 where it is known, all 0 where it is ignored) and
    sums over the known pixels of the whole batch, the loss is cross entropy + soft Dice:

    .. math::
        \ell = -\frac{\sum_{ic} y_{ic} \log p_{ic}}{\sum_{ic} y_{ic}}
        + 1 - \frac{1}{C} \sum_c \frac{2 \sum_i p_{ic} y_{ic} + 1}{\sum_i (p_{ic} + y_{ic}) + 1}

    The score of an image is the Dice coefficient of prediction and truth over its known pixels, ``2 |A and B| / (|A| +
    |B|)``, averaged over the foreground: every class but the first. A class that neither truth nor prediction has
    counts 1. ``fednb.report.readings`` has Dice as others compute it.

    FedFA prints "a combination of standard cross-entropy and Dice loss" for ProstateMRI (App. E.3); its released code
    takes half of the sum, smooths by 1e-5 where the 1 stands here, and averages the Dice coefficient over background
    and foreground. FedRDN prints no loss, and its released code has no segmentation.
    """

    name = "segmentation"
    asks = "a class for every pixel"
    measure = "Dice"
    head = nn.Conv2d

    def loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        counts = logits.new_ones(len(logits)) if weights is None else weights.to(logits)
        return _cross_entropy_and_dice(*(counts @ part for part in self._sums(logits, targets)))

    def losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        return _cross_entropy_and_dice(*self._sums(logits, targets))

    def shares(self, targets: Tensor, classes: int) -> Tensor:
        return torch.stack([targets == number for number in range(classes)], 1).float()

    def scores(self, logits: Tensor, targets: Tensor) -> Tensor:
        common, found, truth = overlap(self.prediction(logits), targets, range(1, logits.shape[1]))
        total = (found + truth).double()
        return torch.where(total > 0, 2 * common.double() / total, 1.0).mean(0)

    def flow(self, images: Tensor, targets: Tensor, operations: Flow) -> tuple[Tensor, Tensor]:
        """The mask is one more channel, upside down: the black that comes in from outside is 255 then."""
        mask = (IGNORED - targets)[:, None].to(images)
        turned = operations(torch.cat([images, mask], 1))
        return turned[:, :-1], IGNORED - turned[:, -1].to(torch.uint8)

    def _sums(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """Over the known pixels of each image: cross entropy ``[n]`` and pixels ``[n]``; of each class, what prediction
        and truth have in common and what they have together, ``[n, classes]``."""
        truth = targets if targets.is_floating_point() else self.shares(targets, logits.shape[1])
        truth = truth.to(logits)
        known = truth.sum(1, keepdim=True)
        logarithm = logits.log_softmax(1)
        found = logarithm.exp()
        entropy = -(truth * logarithm).sum((1, 2, 3))
        return entropy, known.sum((1, 2, 3)), (found * truth).sum((2, 3)), (found * known + truth).sum((2, 3))


def overlap(predictions: Tensor, targets: Tensor, classes: Iterable[int]) -> tuple[Tensor, ...]:
    """Known pixels of each class in prediction and truth alike, in the prediction, in the truth: int64 ``[c, n]``.

    predictions, targets: the class of each pixel, ``[n, height, width]``.
    """
    known, counts = targets != IGNORED, []
    for number in classes:
        a, b = (predictions == number) & known, targets == number
        counts.append([(a & b).sum((1, 2)), a.sum((1, 2)), b.sum((1, 2))])
    return tuple(map(torch.stack, zip(*counts, strict=True)))


def _cross_entropy_and_dice(entropy: Tensor, pixels: Tensor, common: Tensor, together: Tensor) -> Tensor:
    dice = (2 * common + 1) / (together + 1)
    return entropy / pixels.clamp(min=1e-12) + 1 - dice.mean(-1)


TASKS: dict[str, Task] = {task.name: task for task in (Task(), Segmentation())}


@dataclass(frozen=True)
class Meaning:
    """The names of the tasks on which a method has a meaning, and why it has none on the others."""

    names: tuple[str, ...]
    reason: str = ""

    def require(self, method: str, task: str, federation: str) -> None:
        """RecipeError, with the reason, where the federation's task is none of them."""
        if task not in self.names:
            why = f"{self.reason}. Leave {method} out, or take a federation for {' or '.join(self.names)}"
            raise RecipeError(f"{method} has no meaning for {federation}, whose task is {task}: {why}.")


EVERY_TASK = Meaning(tuple(TASKS))


def classification_only(reason: str) -> Meaning:
    """Of a method that has no meaning for segmentation, because of this."""
    return Meaning((Task.name,), reason)
