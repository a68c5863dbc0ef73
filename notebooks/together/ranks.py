"""Ranks of methods on one federation, with intervals from seeds and test images drawn again."""

import numpy
from pandas import DataFrame
from scipy.stats import norm, rankdata, t

from fednb.report.scores import image_scores
from fednb.study import Results

DRAWS = 2000


def ranks(rows: dict[str, DataFrame], results: Results) -> dict[str, dict]:
    """Of each method its rank by mean accuracy over sites, 1 the highest, and a 95 % interval: percentiles of ranks in
    draws of seeds and of each site's test images, both with replacement and the same for all methods. Draws are
    widened by Student's t over the normal quantile and by sqrt(n / (n - 1)), as few seeds vary too little.

    rows: of each method, of ``selected``, in the same seeds on the same images."""
    records = {record.key: record for record in results.records}
    scores = [image_scores(own, records) for own in rows.values()]
    sites = [[numpy.stack([*own[site].values()]) for own in scores] for site in scores[0]]
    draws = numpy.random.default_rng(0)
    seeds = _times(draws, sites[0][0].shape[0])
    means = numpy.mean([[own.mean() for own in site] for site in sites], axis=0)
    drawn = 0
    for site in sites:
        images = _times(draws, site[0].shape[1])
        drawn = drawn + numpy.stack([((seeds @ own) * images).sum(1) / own.size for own in site], axis=1)
    low, high = numpy.quantile(rankdata(-drawn, axis=1), [0.025, 0.975], axis=0)
    parts = zip(rows, rankdata(-means), low, high, strict=True)
    return {run: {"rank": own, "rank_low": least, "rank_high": most} for run, own, least, most in parts}


def _times(draws: numpy.random.Generator, count: int) -> numpy.ndarray:
    """How often each of so many is in a draw of as many, widened around once, ``[DRAWS, count]``."""
    times = draws.multinomial(count, numpy.full(count, 1 / count), size=DRAWS)
    degrees = max(1, count - 1)
    return 1 + (times - 1) * t.ppf(0.975, degrees) / norm.ppf(0.975) * numpy.sqrt(count / degrees)
