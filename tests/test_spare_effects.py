"""Effects over test and spare images as one set: by a computation of their own, and shown only where there are any."""

from importlib import import_module
from math import sqrt

import numpy
import pytest
from made_results import IMAGES, results, run, scoreboard
from scipy.stats import t

from fednb.report import claims, effects
from fednb.report.effects import SPARE
from fednb.report.intervals import moderated

SPARES = {"amazon": 60, "caltech": 70, "dslr": 13, "webcam": 0}


def drawn(label: str, seed: int, counts: dict, kind: int) -> list:
    random = numpy.random.RandomState([len(label), seed, kind])
    return [1.0 * (random.rand(count) < 0.5 + 0.1 * ("fedrdn" in label)) for count in counts.values()]


def scores(rows, split: str = "test") -> dict:
    kind, counts = (0, IMAGES) if split == "test" else (1, SPARES)
    return {2: drawn(rows["run"].iloc[0], int(rows["seed"].iloc[0]), counts, kind)}


def made(with_spare=lambda record: True, labels=("fedavg", "fedavg+fedrdn")):
    runs = []
    for label in labels:
        for seed in (0, 1, 2):
            right = [int(own.sum()) for own in drawn(label, seed, IMAGES, 0)]
            runs.append(run(label, [right, right], seed=seed))
    found = results(*runs, scores=scores)
    for record in found.records:
        record.recipe["evaluation"] = ["spare"] if with_spare(record) else []
    return found


def expected(seeds=(0, 1, 2), client=None) -> tuple[float, float, float]:
    """Effect and bounds in points: images and runs crossed, Satterthwaite's degrees of freedom."""
    sides, places = [], range(len(IMAGES)) if client is None else [list(IMAGES).index(client)]
    for label in ("fedavg+fedrdn", "fedavg"):
        both = {seed: zip(drawn(label, seed, IMAGES, 0), drawn(label, seed, SPARES, 1), strict=True) for seed in seeds}
        by_seed = [[100 * numpy.concatenate(pair) for pair in both[seed]] for seed in seeds]
        sides.append([numpy.stack([own[k] for own in by_seed]) for k in places])
    differences = [better - worse for better, worse in zip(*sides, strict=True)]
    value = numpy.mean([site.mean() for site in differences])
    images, residual = [], []
    for site in differences:
        s, n = site.shape
        images.append((site.mean(0).var(ddof=1) / n / len(places) ** 2, n - 1))
        left = site - site.mean(0) - site.mean(1)[:, None] + site.mean()
        freedom = (n - 1) * (s - 1)
        residual.append(((left**2).sum() / freedom / (n * s) / len(places) ** 2, freedom))
    by_seed = [numpy.mean([site.mean(1) for site in side], axis=0) for side in sides]
    runs = [(own.variance / len(seeds), own.freedom) for own in moderated(by_seed)]
    sums = [sum(v for v, _ in part) for part in (images, runs, residual)]
    variance = max(sums[0] + sums[1] - sums[2], sums[0], sums[1])
    freedom = variance**2 / sum(v**2 / f for v, f in (*images, *runs, *residual))
    reach = t.ppf(0.975, freedom) * sqrt(variance)
    return value, value - reach, value + reach


@pytest.mark.parametrize("client", [None, "dslr", "webcam"])
def test_the_effect_over_test_and_spare_images_as_one_set(client):
    table = effects(made(), "fedavg", client=client or "average")
    assert table.frame[list(SPARE)].iloc[0].tolist() == pytest.approx(expected(client=client), rel=1e-12)
    shown = "{:+.1f}, {:+.1f} to {:+.1f}".format(*table.frame[list(SPARE)].iloc[0])
    assert table.cells["with spare images"].tolist() == [shown]


def test_seeds_that_one_side_has_no_spare_scores_of_are_left_out():
    lacking = effects(made(lambda record: not record.key.startswith("fedavg 2")), "fedavg").frame
    assert lacking[list(SPARE)].iloc[0].tolist()[0] == pytest.approx(expected(seeds=(0, 1))[0], rel=1e-12)
    assert lacking["seeds"].item() == 3
    assert "with_spare" not in effects(made(lambda record: "fedrdn" in record.key), "fedavg").frame
    found = made()
    for record in found.records:  # a rule takes a round without spare scores
        record.scores = lambda split="test", plain=record.scores: {} if split == "spare" else plain(split)
    assert "with_spare" not in effects(found, "fedavg").frame


def test_claims_have_the_column_and_keep_their_verdict_and_setting():
    plain, asked = (scoreboard(made(lambda record, on=on: on), "fedrdn", table="table1") for on in (False, True))
    assert asked.frame.drop(columns=list(SPARE)).equals(plain.frame) and "with spare images" not in plain.cells
    row = asked.frame[asked.frame["ours"].notna() & asked.frame["effect"].eq("FedRDN - FedAvg")].iloc[0]
    assert row[list(SPARE)].tolist() == pytest.approx(expected(), rel=1e-12)
    found = made()
    before = claims.deviations(found.records, "fedrdn")
    for record in found.records:
        record.recipe = record.recipe | {"federation": record.recipe["federation"] | {"spare": True}}
    assert claims.deviations(found.records, "fedrdn") == before


def test_the_spreads_are_estimated_once_for_primary_claims_and_once_for_all_others(monkeypatch):
    module, calls = import_module("fednb.report.effects"), []
    monkeypatch.setattr(module, "spreads_of", lambda chosen, of=module.spreads_of: calls.append(1) or of(chosen))
    table = scoreboard(made(labels=("fedavg", "fedavg+fedrdn", "fedavg+normalise")), "fedrdn", table="table1")
    assert table.frame["with_spare"].notna().sum() > 1 and len(calls) == 2
