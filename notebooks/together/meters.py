"""Meters of a feature shift that need no class label and no federated training: site accuracy, and distance."""

from pathlib import Path

import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.nn import functional

from fednb import models
from fednb.methods.augmentations.normalise import IMAGENET_MEAN, IMAGENET_STD

CHECKOUT = Path(__file__).parents[2]
FOLDS = 5
MOST = 2000  # images of a site, about
SIZE = 96  # pixels of the images that SqueezeNet sees
SQUEEZENET = {"name": "squeezenet1_1", "pretrained": True}
METERS = {
    "site_accuracy": "site accuracy from the channels' statistics",
    "of_features": "site accuracy from SqueezeNet's features",
    "distance": "distance of the channels' statistics",
}


def statistics(images: torch.Tensor) -> torch.Tensor:
    """Mean and deviation of each channel of each image, in 0..1: [n, channels, height, width] -> [n, 2 channels]."""
    pixels = images.double().flatten(2) / 255
    return torch.cat([pixels.mean(2), pixels.std(2, correction=0)], 1)


@torch.no_grad()
def of_squeezenet(images: torch.Tensor, network: torch.nn.Module) -> torch.Tensor:
    """What SqueezeNet's head would see of images of three channels in 0..255, resized: [n, 3, h, w] -> [n, 512]."""
    mean, deviation = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    parts = []
    for batch in images.split(100):
        resized = functional.interpolate(batch / 255, (SIZE, SIZE), mode="bilinear", antialias=True)
        parts.append(network.features((resized - mean) / deviation))
    return torch.cat(parts)


def site_accuracy(features: list[torch.Tensor]) -> float:
    """How well a linear classifier tells an image's site: 0 is by chance, 100 always, the mean over sites.

    Linear discriminant analysis with the covariance shrunk (Ledoit and Wolf 2004) and equal priors, on standardised
    features, in five folds. features: of each site, ``[n, d]``."""
    sites = torch.cat([torch.full((len(own),), number) for number, own in enumerate(features)]).numpy()
    chance = 1 / len(features)
    discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[chance] * len(features))
    classifier = make_pipeline(StandardScaler(), discriminant)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    scores = cross_val_score(classifier, torch.cat(features).numpy(), sites, cv=folds, scoring="balanced_accuracy")
    return 100 * float((scores.mean() - chance) / (1 - chance))


def distance(features: list[torch.Tensor]) -> float:
    """How much the sites' mean statistics vary, in the deviations of images within a site: the root of the mean, over
    statistics, of the variance between sites over that within them."""
    between = torch.stack([own.mean(0) for own in features]).var(0, correction=0)
    within = torch.stack([own.var(0, correction=0) for own in features]).mean(0)
    return float((between / within.clamp_min(1e-9)).mean().sqrt())


def meters(federation, root: str | None = None) -> dict[str, float]:
    """What each of ``METERS`` reads on a federation's training images. SqueezeNet's weights are in ``weights/`` of the
    data folder ``root``, or of ``data/`` of the checkout; without them its meter is left out. ValueError for a site of
    fewer than ``FOLDS`` images."""
    images = [site.train.images[:: max(1, len(site.train) // MOST)] for site in federation.sites]
    seen = [statistics(own) for own in images]
    found = {"site_accuracy": site_accuracy(seen), "distance": distance(seen)}
    for place in (root, CHECKOUT / "data"):
        if not models.lacks(SQUEEZENET, place):
            with models.pretrained_below(place):
                network = models.build(SQUEEZENET, (3, SIZE, SIZE), 2).eval()
            return found | {"of_features": site_accuracy([of_squeezenet(own, network) for own in images])}
    return found
