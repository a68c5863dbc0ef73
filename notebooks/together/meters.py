"""Two meters of a feature shift that need no class label and no federated training: site accuracy, and distance."""

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDS = 5
MOST = 2000  # images of a site, about


def statistics(images: torch.Tensor) -> torch.Tensor:
    """Mean and deviation of each channel of each image, in 0..1: [n, channels, height, width] -> [n, 2 channels]."""
    pixels = images[:: max(1, len(images) // MOST)].double().flatten(2) / 255
    return torch.cat([pixels.mean(2), pixels.std(2, correction=0)], 1)


def site_accuracy(features: list[torch.Tensor]) -> float:
    """How often a linear classifier tells an image's site, per cent, the mean over sites: logistic regression on
    standardised features, in five folds. Chance is 100 over the number of sites. features: of each site, ``[n, d]``."""
    sites = torch.cat([torch.full((len(own),), number) for number, own in enumerate(features)]).numpy()
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    scores = cross_val_score(classifier, torch.cat(features).numpy(), sites, cv=folds, scoring="balanced_accuracy")
    return 100 * float(scores.mean())


def distance(features: list[torch.Tensor]) -> float:
    """How much the sites' mean statistics vary, in the deviations of images within a site: the root of the mean, over
    statistics, of the variance between sites over that within them."""
    between = torch.stack([own.mean(0) for own in features]).var(0, correction=0)
    within = torch.stack([own.var(0, correction=0) for own in features]).mean(0)
    return float((between / within.clamp_min(1e-9)).mean().sqrt())


def meters(federation) -> dict[str, float]:
    """Both, of the training images of a federation; ``chance`` of the first."""
    seen = [statistics(site.train.images) for site in federation.sites]
    return {"site accuracy": site_accuracy(seen), "chance": 100 / len(seen), "distance": distance(seen)}


def in_words(federation) -> list[str]:
    if len(federation.sites) < 2 or min(len(site.train) for site in federation.sites) < FOLDS:
        return [f"The meters need two sites of {FOLDS} training images."]
    found = meters(federation)
    return [
        "by mean and deviation of the channels alone a linear classifier tells the site of "
        f"{found['site accuracy']:.0f} % of the training images, the mean over sites (chance: {found['chance']:.0f} %)",
        f"between sites these statistics vary {found['distance']:.2g} times as much as between images of a site",
    ]
