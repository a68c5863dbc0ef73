"""How much features give away the site that an image comes from, and how that differs between two runs."""

import numpy


def site_accuracy(features, sites) -> float:
    """How well sites can be told from features, in per cent: 100 / sites is guessing, 100 is always.

    features: ``[n, d]``; sites: site number of each image, ``[n]``. 5-fold accuracy, balanced over the sites, of
    a logistic regression on standardised features.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(max_iter=1000, class_weight="balanced")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), regression)
    return 100 * float(cross_val_score(model, features, sites, cv=folds, scoring="balanced_accuracy").mean())


def between_sites(features, labels, sites) -> float:
    """The share of the variance within classes that lies between the sites' means of a class, in per cent.

    features: ``[n, d]``; labels, sites: ``[n]``. 0 where a class has the same mean at every site.
    """
    features, labels, sites = (numpy.asarray(values) for values in (features, labels, sites))
    between = within = 0.0
    for label in numpy.unique(labels):
        chosen = labels == label
        centre = features[chosen].mean(0)
        within += float(((features[chosen] - centre) ** 2).sum())
        for site in numpy.unique(sites[chosen]):
            here = features[chosen & (sites == site)]
            between += len(here) * float(((here.mean(0) - centre) ** 2).sum())
    return 100 * between / within


def told_apart(ours, others, together: int = 1) -> str:
    """The mean difference of two runs over seeds, its interval and a word: ``"-9.0 points (-12.0 to -6.0), below"``.

    ours, others: a number for each seed, in per cent, in one order. together: how many such differences are looked at
    together (Bonferroni): the interval holds with 95 % for all of them. Student's t over seeds alone, as if there were
    no other images; with one seed there is no interval and no word.
    """
    from scipy.stats import ttest_1samp

    differences = numpy.asarray(ours, float) - numpy.asarray(others, float)
    points = f"{differences.mean():+.1f} points"
    if len(differences) < 2:
        return points
    low, high = ttest_1samp(differences, 0).confidence_interval(1 - 0.05 / together)
    return f"{points} ({low:+.1f} to {high:+.1f}), {'above' if low > 0 else 'below' if high < 0 else 'not told'}"
