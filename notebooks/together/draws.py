"""Mean accuracies of methods on one federation, and the same in seeds and test images drawn again."""

import numpy
from pandas import DataFrame
from scipy.stats import norm, t

from fednb.randomness import random_state
from fednb.report.scores import image_scores
from fednb.study import Results

DRAWS = 2000


def means(rows: dict[str, DataFrame], results: Results, seeds: bool = True) -> DataFrame:
    """A column for each method, its mean accuracy over sites in per cent: row 0 as recorded, then ``DRAWS`` in which
    each site's test images, and with ``seeds`` the seeds, are drawn with replacement. Draws are the same for all
    methods of a federation, and widened by Student's t over the normal quantile and by sqrt(n / (n - 1)), as few
    seeds vary too little.

    rows: of each method, of ``selected``, in the same seeds on the same images."""
    records = {record.key: record for record in results.records}
    scores = [image_scores(own, records) for own in rows.values()]
    sites = [[numpy.stack([*own[site].values()]) for own in scores] for site in scores[0]]
    draws = random_state("equal_budget", *scores[0])
    count = sites[0][0].shape[0]
    weights = _times(draws, count) if seeds else numpy.ones((DRAWS, count))
    recorded = numpy.mean([[own.mean() for own in site] for site in sites], axis=0)
    found = 0
    for site in sites:
        images = _times(draws, site[0].shape[1])
        found = found + numpy.stack([((weights @ own) * images).sum(1) / own.size for own in site], axis=1)
    return DataFrame(numpy.concatenate([[recorded], found / len(sites)]), columns=[*rows])


def ranks(means: DataFrame) -> DataFrame:
    """In each draw, 1 the highest mean; methods that are alike share theirs."""
    return means.rank(axis=1, ascending=False)


def interval(draws: DataFrame) -> DataFrame:
    """Of each column value: as recorded; low, high: 2.5 and 97.5 % of the draws."""
    low, high = draws[1:].quantile([0.025, 0.975]).to_numpy()
    return DataFrame({"value": draws.loc[0], "low": low, "high": high})


def _times(draws: numpy.random.RandomState, count: int) -> numpy.ndarray:
    """How often each of so many is in a draw of as many, widened around once, ``[DRAWS, count]``."""
    times = draws.multinomial(count, numpy.full(count, 1 / count), size=DRAWS)
    degrees = max(1, count - 1)
    return 1 + (times - 1) * t.ppf(0.975, degrees) / norm.ppf(0.975) * numpy.sqrt(count / degrees)
