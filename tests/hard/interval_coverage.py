"""Do the intervals of effects hold the true effect as often as they say, for calm methods and for the wildest?

    python tests/hard/interval_coverage.py --trials 2000

A setting of several methods whose runs spread unlike (the standard deviations of recorded settings, one method six
times as wild as the others and one that hardly moves), held against the first on the same test images of four sites:
images and runs are crossed, and each image has noise of its own in each run. Printed for 3 and 5 seeds: in how many of
100 trials the 95 % interval holds the true effect, for the wildest, the calmest and the worst method and over all; the
same for the interval at 0.05 / m that decides when m are tested together; and in how many trials some effect is told
where there is none. The exit status is 1 where a method is held in fewer than 93 of 100, or a false effect is told in
more than 6.
"""

import argparse
import sys

import numpy

from fednb.report.intervals import Cell, crossed, moderated

SITES = (112, 32, 157, 59)  # test images of a site, as Office's
IMAGES, RESIDUAL = 25.0, 30.0  # standard deviations of an image's difference, and of its noise in a run; points
SPREADS = numpy.array([1.0, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.2, 3.0, 6.0])  # of methods' runs, points
WILDEST, CALMEST = len(SPREADS) - 2, 0  # among the pairs with the first method


def trial(draws: numpy.random.Generator, seeds: int) -> list:
    """The effects of all methods against the first, whose true values are 0."""
    runs = draws.normal(size=(len(SPREADS), seeds)) * SPREADS[:, None]
    scores = [
        images[:, None] + runs[:, :, None] + draws.normal(size=(len(SPREADS), seeds, size)) * RESIDUAL
        for size in SITES
        for images in [draws.normal(size=(len(SPREADS), size)) * IMAGES / 2**0.5]
    ]
    spreads = moderated(list(sum(site.mean(2) for site in scores) / len(scores)))
    cells = (
        Cell([site[other] - site[0] for site in scores], (spreads[other], spreads[0]))
        for other in range(1, len(SPREADS))
    )
    return [crossed(cell) for cell in cells]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draws, good = numpy.random.default_rng(options.seed), True
    for seeds in (3, 5):
        effects = [trial(draws, seeds) for _ in range(options.trials)]
        together = 0.05 / len(effects[0])
        for level in (0.05, together):
            bounds = [[own.at(level) for own in each] for each in effects]
            held = 100 * numpy.mean([[own.low <= 0 <= own.high for own in each] for each in bounds], axis=0)
            reach = numpy.median([[own.high for own in each] for each in bounds])
            print(
                f"{seeds} seeds, {100 - 100 * level:.1f} %: wildest {held[WILDEST]:.1f}, calmest {held[CALMEST]:.1f}, "
                f"worst {held.min():.1f}, all {held.mean():.1f}; median reach {reach:.1f} points"
            )
            good &= level == together or held.min() >= 93
        told = 100 * numpy.mean([any(own.p <= together for own in each) for each in effects])
        print(f"{seeds} seeds: a false effect is told in {told:.1f} of 100 families of {len(effects[0])}")
        good &= told <= 6
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
