"""Dice in four readings and the distance of borders: by hand, by scikit-learn, and from every pair of pixels."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_results import results, run
from methods import PIXELS, federation, pixel_federation, train
from sklearn.metrics import f1_score
from small_runs import use_toy

from fednb import report
from fednb.errors import RecipeError, StoreError
from fednb.federation import IGNORED, Federation, Site, Split
from fednb.loop.evaluate import hausdorff_95
from fednb.recipe import Recipe
from fednb.records.training import train_one
from fednb.study import Study
from mask_pictures import READINGS, readings_table


def mask(*rows: str) -> np.ndarray:
    return np.array([[pixel == "#" for pixel in row] for row in rows])


class TestHausdorff95:
    def test_a_mask_against_itself_and_against_nothing(self):
        one, nothing = mask(".#.", ".#."), mask("...", "...")
        assert hausdorff_95(one, one) == hausdorff_95(nothing, nothing) == 0
        assert math.isnan(hausdorff_95(one, nothing)) and math.isnan(hausdorff_95(nothing, one))

    def test_the_larger_of_both_directions_counts(self):
        """From the pixel to the row 0; from the row's five pixels 0, 1, 2, 3, 4, whose percentile is 3 + 0.8."""
        pixel, row = mask("#...."), mask("#####")
        assert hausdorff_95(pixel, row) == hausdorff_95(row, pixel) == pytest.approx(3.8)

    @pytest.mark.parametrize("seed", range(8))
    def test_it_is_that_of_every_pair_of_border_pixels(self, seed):
        draw = np.random.RandomState(seed)
        one, other = (draw.random_sample((9, 12)) < share for share in draw.uniform(0.05, 0.9, 2))
        assert hausdorff_95(one, other) == pytest.approx(max(directed(one, other), directed(other, one)), rel=1e-12)


def directed(start: np.ndarray, to: np.ndarray) -> float:
    """The 95th percentile, by linear interpolation, of the distances to the nearest pixel of the other border."""
    nearest = sorted(min(math.dist(a, b) for b in border(to)) for a in border(start))
    place = 0.95 * (len(nearest) - 1)
    below, above = nearest[math.floor(place)], nearest[math.ceil(place)]
    return below + (place - math.floor(place)) * (above - below)


def border(mask: np.ndarray) -> list[tuple[int, int]]:
    inside = {(int(i), int(j)) for i, j in np.argwhere(mask)}
    return [(i, j) for i, j in inside if {(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)} - inside]


def kept(sites, volumes, common, found, truth, distances) -> dict:
    """What a run keeps, as it lies on disk."""
    counts = {"common": common, "found": found, "truth": truth, "volumes": volumes}
    arrays = {name: np.array(value, np.int32) for name, value in counts.items()}
    return arrays | {"sites": np.array(sites, np.uint8), "distances": np.array(distances, np.float32)}


def of_one_run(masks: dict, totals=(1.5, 0), clients=("a", "b")) -> SimpleNamespace:
    """Results of a run at two sites with three test images each, as far as the columns say."""
    made = results(run("fedavg", [totals], images=dict.fromkeys(clients, 3)))
    made.records[0].artefact = {"masks": masks}.__getitem__
    return made


class TestReadings:
    def test_by_hand(self):
        """Images of 10 pixels; the first two are one volume. Foreground and background of each, in numbers."""
        masks = kept(
            sites=[0, 0, 0],
            volumes=[5, 5, 7],
            common=[[6, 2], [9, 0], [10, 0]],
            found=[[8, 2], [9, 1], [10, 0]],  # the second finds a pixel where nothing is, the third finds nothing
            truth=[[6, 4], [10, 0], [10, 0]],  # and nothing is there
            distances=[[2.5], [math.nan], [0.0]],
        )
        a, b = report.readings(of_one_run(masks)).to_dict("records")
        assert (a["client"], b["client"]) == ("a", "b") and a["accuracy"] == 50  # the columns of a run's last round
        assert a["slice"] == pytest.approx(100 * (4 / 6 + 0 + 1) / 3)
        assert a["slice_with_background"] == pytest.approx(100 * (4 / 6 + 12 / 14 + 0 + 18 / 19 + 1 + 1) / 6)
        assert a["volume"] == pytest.approx(100 * (2 * 2 / (3 + 4) + 1) / 2)
        assert a["volume_with_background"] == pytest.approx(100 * (4 / 7 + 2 * 15 / (17 + 16) + 1 + 1) / 4)
        assert a["hd95"] == 1.25 and a["undefined"] == 1
        assert all(math.isnan(b[name]) for name in READINGS) and b["undefined"] == 0

    def test_a_methods_are_the_mean_over_sites_and_seeds(self):
        masks = kept([0, 1], [0, 0], [[4, 1], [4, 0]], [[4, 1], [4, 2]], [[5, 2], [6, 0]], [[2.0], [math.nan]])
        table = readings_table(of_one_run(masks))
        assert list(table.index) == ["fedavg"] and list(table.columns) == [*READINGS, "undefined"]
        a, b = 100 * 2 / 3, 0.0  # 2 * 1 / (1 + 2), and 2 * 0 / (2 + 0)
        assert table.loc["fedavg", "slice"] == table.loc["fedavg", "volume"] == round((a + b) / 2, 1)
        assert table.loc["fedavg", "hd95"] == 2 and table.loc["fedavg", "undefined"] == 1


def with_volumes(volumes: dict[str, list[int]]) -> Federation:
    """The squares, their test images being slices of these volumes."""
    data = pixel_federation()
    tests = {site.name: Split(*site.test.parts[:2], torch.tensor(volumes[site.name])) for site in data.sites}
    sites = [Site(site.name, site.train, site.validation, tests[site.name]) for site in data.sites]
    return Federation(data.name, sites, data.classes, task=data.task)


class TestOfARun:
    def test_they_are_scikit_learns_f1_of_its_predictions(self):
        data = with_volumes({"clinic": [3, 0, 3], "tower": [1, 1, 1]})
        settings = {"flow": (), "rounds": 8, "local_epochs": 6, "optimiser": "adam", "learning_rate": 0.01, "seed": 3}
        trained = train(PIXELS | settings | {"momentum": 0.0, "weight_decay": 0.0}, data)
        masks = {name: value.numpy() for name, value in trained.run.gathered("compare").items()}
        found = report.readings(of_one_run(masks, trained.rounds[-1]["test"], ("clinic", "tower"))).set_index("client")
        assert found["slice"].tolist() == pytest.approx(found["accuracy"].tolist(), abs=1e-4)
        assert found["slice"].min() > 50 and not found["undefined"].any()
        for site, volumes in zip(data.sites, ([[0, 2], [1]], [[0, 1, 2]]), strict=True):
            with torch.inference_mode():
                predicted = trained.run.model.eval()(site.test.images.float() / 255).argmax(1).numpy()
            truth = site.test.targets.numpy()
            known = truth != IGNORED
            pairs = [(truth[n][known[n]], predicted[n][known[n]]) for n in range(3)]
            joined = [tuple(map(np.concatenate, zip(*(pairs[n] for n in group), strict=True))) for group in volumes]
            wanted = [f1(groups, labels) for groups in (pairs, joined) for labels in ([1], [0, 1])]
            assert found.loc[site.name, READINGS[:4]].tolist() == pytest.approx(wanted, rel=1e-12)
            masks = zip((predicted == 1) & known, truth == 1, strict=True)
            wanted = np.mean([max(directed(one, other), directed(other, one)) for one, other in masks])
            assert found.loc[site.name, "hd95"] == pytest.approx(wanted, rel=1e-6)

    def test_they_change_nothing_else_and_cost_some_bytes_an_image(self, monkeypatch, store):
        use_toy(monkeypatch, pixel_federation())
        recipes = Recipe(**PIXELS, rounds=1).vary(evaluation=[[], ["masks"]])
        plain, more = (train_one(recipe, store) for recipe in recipes)
        assert plain.rounds == more.rounds
        assert sum(value.nbytes for value in more.artefact("masks").values()) == 6 * (3 * 2 * 4 + 4 + 4 + 1)
        found = report.readings(Study(recipes[1:], store=store).recorded())
        assert found["slice"].tolist() == pytest.approx(found["accuracy"].tolist(), abs=1e-4)
        with pytest.raises(StoreError, match="'masks' in its evaluation"):
            report.readings(Study(recipes, store=store).recorded())
        with pytest.raises(RecipeError, match='"masks" is of segmentation; toy has a class for every image'):
            train({"evaluation": ["masks"]}, federation(), rounds=0)


def f1(pairs: list, labels: list[int]) -> float:
    """The mean over pairs and labels of scikit-learn's F1 score, in per cent."""
    return 100 * np.mean([f1_score(*pair, labels=labels, average=None, zero_division=1.0) for pair in pairs])
