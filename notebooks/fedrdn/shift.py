"""How much features give away the site that an image comes from."""

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
