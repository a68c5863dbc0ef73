"""Do the intervals of effects hold the true effect as often as they say, for calm methods and for the wildest?

    python tests/hard/interval_coverage.py --trials 2000

Several methods whose runs spread unlike, held against the first on the same test images of four sites; see ONE to SAME.
Printed: in how many of 100 trials the 95 % interval holds the true effect, and that at 0.05 / m which decides for m
effects together; in how many some effect is significant where there is none; then which verdicts fall where the true
effect is all, half or none of a printed one. The exit status is 1 where a method is held in fewer than 93 of 100, or a
false effect is significant in more than 6.
"""

import argparse
import sys
from collections import Counter

import numpy
import pandas

from fednb.report.claims import verdict
from fednb.report.effects import Effect
from fednb.report.intervals import crossed, moderated, moderated_within_seeds, nested
from fednb.report.verdicts import PRINTED

SITES = (112, 32, 157, 59)  # test images of a site, as Office's
IMAGES, RESIDUAL = 25.0, 30.0  # standard deviations of an image's difference, and of its noise in a run; points
SPREADS = numpy.array([1.0, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.2, 3.0, 6.0])  # of methods' runs, points
PARTITION = 4.0  # the standard deviation of what a partition of its own gives to all methods of a seed, points
WILDEST, CALMEST = len(SPREADS) - 2, 0  # among the pairs with the first method
LEFT_OUT = "sites left out in turn"
ONE, OTHERS, SAME = "one partition", "partition of each seed, other images", "partition of each seed, the same images"


def trial(draws: numpy.random.Generator, seeds: int, dealt: str) -> list:
    """The effects of all methods against the first, whose true values are 0."""
    runs = draws.normal(size=(len(SPREADS), seeds)) * SPREADS[:, None]
    of_site = [runs] * len(SITES)
    if dealt == LEFT_OUT:  # the mean over sites spreads as above
        of_site = [draws.normal(size=runs.shape) * SPREADS[:, None] * len(SITES) ** 0.5 for _ in SITES]
    elif dealt != ONE:
        runs += draws.normal(size=seeds) * PARTITION
    own = seeds if dealt == OTHERS else 1
    scores = [
        images + runs[:, :, None] + draws.normal(size=(len(SPREADS), seeds, size)) * RESIDUAL
        for size, runs in zip(SITES, of_site, strict=True)
        for images in [draws.normal(size=(len(SPREADS), own, size)) * IMAGES / 2**0.5]
    ]
    values = [pandas.Series(own) for own in sum(site.mean(2) for site in scores) / len(scores)]
    is_crossed = dealt in (ONE, LEFT_OUT)
    spreads = moderated(values) if is_crossed else moderated_within_seeds(values)
    found = []
    for other in range(1, len(SPREADS)):
        differences = [site[other] - site[0] for site in scores]
        runs = spreads[other], spreads[0]
        by_seed = [{str(k): site[seed] for k, site in enumerate(differences)} for seed in range(seeds)]
        found.append(crossed(differences, runs) if is_crossed else nested(by_seed, runs))
    return found


def words(draws: numpy.random.Generator, seeds: int, trials: int, printed: float = 8.0) -> None:
    """Prints in how many of 100 cases which word falls, at the paper's setting, against one printed run."""
    for share in (1.0, 0.5, 0.0):
        found = Counter()
        for _ in range(trials):
            effects = trial(draws, seeds, ONE)
            for method, own in enumerate(effects, start=1):
                moved = own._replace(value=own.value + share * printed)
                theirs = printed + draws.normal() * float(numpy.hypot(SPREADS[0], SPREADS[method]))
                found[verdict(max(theirs, 0.1), Effect(moved, "", 0.05 / len(effects)), PRINTED)] += 1
        told = ", ".join(f"{word} {100 * count / found.total():.1f}" for word, count in found.most_common())
        print(f"{seeds} seeds, true effect {share:g} of {printed:g} printed: {told}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draws, good = numpy.random.default_rng(options.seed), True
    for dealt in (ONE, LEFT_OUT, OTHERS, SAME):
        print(f"{dealt}:")
        for seeds in (3, 5):
            effects = [trial(draws, seeds, dealt) for _ in range(options.trials)]
            together = 0.05 / len(effects[0])
            for level in (0.05, together):
                bounds = [[own.at(level) for own in each] for each in effects]
                held = 100 * numpy.mean([[own.low <= 0 <= own.high for own in each] for each in bounds], axis=0)
                ends = f"wildest {held[WILDEST]:.1f}, calmest {held[CALMEST]:.1f}, worst {held.min():.1f}"
                print(f"{seeds} seeds, {100 - 100 * level:.1f} %: {ends}, all {held.mean():.1f}")
                good &= level == together or held.min() >= 93
            told = 100 * numpy.mean([any(own.p <= together for own in each) for each in effects])
            print(f"{seeds} seeds: a false effect is told in {told:.1f} of 100 families of {len(effects[0])}")
            good &= told <= 6
    print("words:")
    for seeds in (3, 5):
        words(draws, seeds, options.trials // 10)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
