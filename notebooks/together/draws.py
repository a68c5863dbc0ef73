"""Ranks of methods on one federation, and in seeds and test images drawn again."""

import numpy
from pandas import DataFrame
from scipy.stats import norm, rankdata, t

from fednb.report.scores import image_scores
from fednb.study import Results

DRAWS = 2000


def drawn(rows: dict[str, DataFrame], results: Results, seeds: bool = True) -> DataFrame:
    """Of each method its rank by mean accuracy over sites, 1 the highest: row 0 as recorded, then ``DRAWS`` in which
    each site's test images, and with ``seeds`` the seeds, are drawn with replacement, the same for all methods. Draws
    are widened by Student's t over the normal quantile and by sqrt(n / (n - 1)), as few seeds vary too little.

    rows: of each method, of ``selected``, in the same seeds on the same images."""
    records = {record.key: record for record in results.records}
    scores = [image_scores(own, records) for own in rows.values()]
    sites = [[numpy.stack([*own[site].values()]) for own in scores] for site in scores[0]]
    draws = numpy.random.default_rng(0)
    count = sites[0][0].shape[0]
    weights = _times(draws, count) if seeds else numpy.ones((DRAWS, count))
    means = [numpy.mean([[own.mean() for own in site] for site in sites], axis=0)]
    found = 0
    for site in sites:
        images = _times(draws, site[0].shape[1])
        found = found + numpy.stack([((weights @ own) * images).sum(1) / own.size for own in site], axis=1)
    return DataFrame(rankdata(-numpy.concatenate([means, found]), axis=1), columns=[*rows])


def intervals(drawn: DataFrame) -> DataFrame:
    """Of each method, rank: as recorded; rank_low, rank_high: 2.5 and 97.5 % of the draws."""
    low, high = drawn[1:].quantile([0.025, 0.975]).to_numpy()
    return DataFrame({"rank": drawn.loc[0], "rank_low": low, "rank_high": high})


def _times(draws: numpy.random.Generator, count: int) -> numpy.ndarray:
    """How often each of so many is in a draw of as many, widened around once, ``[DRAWS, count]``."""
    times = draws.multinomial(count, numpy.full(count, 1 / count), size=DRAWS)
    degrees = max(1, count - 1)
    return 1 + (times - 1) * t.ppf(0.975, degrees) / norm.ppf(0.975) * numpy.sqrt(count / degrees)
