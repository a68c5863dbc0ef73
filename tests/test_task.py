"""Tasks: losses, scores and the flow by hand, and who does what."""

import math
from functools import cache

import numpy as np
import pairs
import pytest
import torch
from methods import CASES, PIXELS, ROWS, label, pixel_federation, train
from torch.nn import functional as F

from fednb.errors import RecipeError
from fednb.federation import IGNORED
from fednb.loop import evaluate
from fednb.loop.loop import FederatedRun
from fednb.methods import TASKS, Method, flow
from fednb.randomness import generator
from fednb.recipe import Recipe

CLASSIFICATION, SEGMENTATION = TASKS["classification"], TASKS["segmentation"]


def made(count: int = 3, classes: int = 3, height: int = 4, width: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and masks at random, a fifth of the pixels ignored."""
    draw = generator("task")
    logits = torch.randn(count, classes, height, width, generator=draw, dtype=torch.float64)
    masks = torch.randint(0, classes, (count, height, width), generator=draw)
    masks[torch.rand(masks.shape, generator=draw) < 0.2] = IGNORED
    return logits, masks.to(torch.uint8)


def by_hand(logits: torch.Tensor, masks: torch.Tensor, counts=None) -> float:
    """Cross entropy + Dice, pixel by pixel in plain Python."""
    classes = logits.shape[1]
    entropy, known, common, found, truth = 0.0, 0.0, [0.0] * classes, [0.0] * classes, [0.0] * classes
    for image, mask, count in zip(logits.tolist(), masks.tolist(), counts or [1] * len(masks), strict=True):
        for row, labels in enumerate(mask):
            for column, target in enumerate(labels):
                if target == 255:
                    continue
                powers = [math.exp(image[c][row][column]) for c in range(classes)]
                shares = [power / sum(powers) for power in powers]
                entropy -= count * math.log(shares[target])
                known += count
                truth[target] += count
                common[target] += count * shares[target]
                for c in range(classes):
                    found[c] += count * shares[c]
    dice = [(2 * common[c] + 1) / (found[c] + truth[c] + 1) for c in range(classes)]
    return entropy / known + 1 - sum(dice) / classes


class TestLoss:
    def test_segmentation_is_cross_entropy_and_dice_over_known_pixels(self):
        logits, masks = made()
        assert (masks == IGNORED).any()
        assert SEGMENTATION.loss(logits, masks).item() == pytest.approx(by_hand(logits, masks), rel=1e-12)

    def test_each_image_is_a_batch_of_its_own(self):
        logits, masks = made()
        wanted = [by_hand(logits[i : i + 1], masks[i : i + 1]) for i in range(3)]
        assert SEGMENTATION.losses(logits, masks).tolist() == pytest.approx(wanted, rel=1e-12)

    @pytest.mark.parametrize("counts", [[2, 1, 1], [1, 0, 3], [0.3, 0.3, 0.4]])
    def test_a_weight_says_how_many_images_an_image_counts_for(self, counts):
        logits, masks = made()
        weights = torch.tensor(counts, dtype=torch.float64)
        found = SEGMENTATION.loss(logits, masks, weights).item()
        assert found == pytest.approx(by_hand(logits, masks, counts), rel=1e-12)

        logits, labels = torch.randn(3, 4, generator=generator("weights"), dtype=torch.float64), torch.tensor([3, 0, 1])
        logs = logits.numpy() - np.log(np.exp(logits.numpy()).sum(1, keepdims=True))
        own = [-logs[i, target] for i, target in enumerate(labels.tolist())]
        assert CLASSIFICATION.losses(logits, labels).tolist() == pytest.approx(own, rel=1e-12)
        wanted = np.average(own, weights=counts)
        assert CLASSIFICATION.loss(logits, labels, weights).item() == pytest.approx(wanted, rel=1e-12)

    def test_shares_of_the_classes_are_targets_too(self):
        logits, masks = made()
        shares = SEGMENTATION.shares(masks, 3)
        assert shares.sum(1).equal((masks != IGNORED).float())
        assert torch.equal(SEGMENTATION.loss(logits, shares), SEGMENTATION.loss(logits, masks))
        labels = torch.tensor([2, 0, 1])
        assert CLASSIFICATION.shares(labels, 3).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


class TestScore:
    def score(self, prediction: list, truth: list) -> float:
        logits = F.one_hot(torch.tensor([prediction]), 3).movedim(-1, 1).double()  # the largest at the predicted class
        (found,) = SEGMENTATION.scores(logits, torch.tensor([truth], dtype=torch.uint8)).tolist()
        return found

    def test_dice_of_both_foreground_classes_over_known_pixels(self):
        """Class 1: predicted 2 (one more is ignored), true 3, in common 2: 4 / 5. Class 2: 1, 1, 0: 0."""
        assert self.score([[1, 1, 2], [0, 0, 1]], [[1, 1, 1], [0, 2, 255]]) == pytest.approx((4 / 5 + 0) / 2)

    @pytest.mark.parametrize(
        ("prediction", "truth", "wanted"),
        [
            ([[0, 0]], [[0, 0]], 1),  # no foreground in both: 1 for both classes
            ([[1, 0]], [[0, 0]], 0.5),  # class 1 in the prediction alone: 0 for it, 1 for class 2
            ([[0, 0]], [[1, 2]], 0),
            ([[1, 2]], [[255, 0]], 0.5),  # what is predicted outside the known pixels is not seen
        ],
    )
    def test_without_foreground(self, prediction, truth, wanted):
        assert self.score(prediction, truth) == wanted

    def test_sums_are_whole_numbers_where_images_are_right_or_wrong(self):
        whole, parts = evaluate.total(torch.ones(3, dtype=torch.float64)), evaluate.total(torch.tensor([0.5, 1 / 3]))
        assert (whole, type(whole)) == (3, int) and parts == 0.833333


class TestFlow:
    def turned(self, operations=("flip", "rotation")):
        """A mask that is what one channel of its image is, a half of it class 1."""
        channel = torch.zeros(40, 1, 32, 32)
        channel[:, :, 8:24, 5:17] = 1.0
        channel[:, :, 3:9, 20:29] = 1.0
        images = torch.cat([torch.ones_like(channel), channel], 1)
        return SEGMENTATION.flow(
            images, channel[:, 0].byte(), lambda both: flow.apply(both, operations, generator("flow"))
        )

    def test_an_image_and_its_mask_turn_together(self):
        images, masks = self.turned()
        inside = images[:, 0] == 1
        assert masks.dtype == torch.uint8 and images.shape == (40, 2, 32, 32)
        assert torch.equal(masks[inside], images[:, 1][inside].byte())
        assert len({mask.numpy().tobytes() for mask in masks}) > 35  # each with its own draw

    def test_what_falls_in_is_ignored_and_nothing_else(self):
        images, masks = self.turned()
        assert torch.equal(masks == IGNORED, images[:, 0] == 0) and (masks == IGNORED).any()
        assert not (self.turned(("flip",))[1] == IGNORED).any()


@cache
def masked_rounds(key: str) -> list[dict]:
    """Two rounds of a case on masks."""
    (case,) = [case for case in CASES if label(case) == key]
    return train(PIXELS | case | {"rounds": 2}, pixel_federation()).rounds


class TestWhoDoesWhat:
    """With masks, or refused with its reason."""

    @pytest.mark.parametrize("case", [c for row in ROWS if row.masks for c in row.cases()], ids=label)
    def test_trains_on_masks(self, case):
        """masks: work by client.task, and change the run there too, or say classification_only"""
        rounds = masked_rounds(label(case))
        for values in rounds:
            assert all(math.isfinite(loss) for loss in values["loss"].values())
            assert all(0 <= score <= 3 for split in ("validation", "test") for score in values[split])
        adapts = "adapt" in pairs.hooks(label(case))  # what few masks score may stay as it was
        assert adapts or (rounds == masked_rounds("fedavg")) == (label(case) == "fedavg")

    @pytest.mark.parametrize("row", [row for row in ROWS if not row.masks], ids=lambda row: row.name)
    def test_is_refused_with_masks(self, row):
        """masks: say in classification_only why the method has no meaning there"""
        reason = row.method.tasks.reason
        for case in row.cases():
            with pytest.raises(RecipeError, match=f"{row.name} has no meaning for squares.*segmentation: {reason}"):
                FederatedRun(Recipe(**PIXELS | case), pixel_federation())

    def test_a_method_that_says_nothing_is_for_classification(self):
        with pytest.raises(RecipeError, match="strange has no meaning for eyes, .* segmentation: it does not say"):
            Method.tasks.require("strange", "segmentation", "eyes")
        Method.tasks.require("strange", "classification", "toy")

    def test_a_recipe_is_refused_before_anything_is_loaded(self):
        with pytest.raises(RecipeError, match="fedproto has no meaning for retinal_vessels"):
            Recipe(federation="retinal_vessels", model="unet", algorithm="fedproto")
        assert Recipe(federation="retinal_vessels", model="unet", augmentations=["fedrdn"])


def test_the_scores_of_a_run_are_its_networks_dice():
    """The last round's sum at one client, from the network's own logits in plain numpy."""
    settings = PIXELS | {"rounds": 1, "optimiser": "adam", "learning_rate": 0.02, "momentum": 0.0}
    whole = train(settings, pixel_federation())
    client = whole.run.clients["tower"]
    whole.run.model.eval()
    with torch.inference_mode():
        logits = whole.run.model(client.site.test.images.float() / 255).numpy()
    wanted = 0.0
    for found, mask in zip(logits.argmax(1), client.site.test.targets.numpy(), strict=True):
        a, b = (found == 1) & (mask != 255), mask == 1
        wanted += 2 * (a & b).sum() / (a.sum() + b.sum())
    assert whole.rounds[0]["test"][1] == pytest.approx(wanted, abs=1e-6)
