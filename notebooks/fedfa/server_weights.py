"""What FedFA's server sends in the last round: the weights of Eq. 6, read from runs that keep them."""

import numpy

from fednb.report import labels


def server_weights(results) -> dict[str, dict[str, numpy.ndarray]]:
    """By run and message the weights of each channel: ``{"FedAvg + FedFA": {"1/gamma_mean": ..., ...}}``.

    results: of runs with ``evaluation=["server"]``; what is not recorded is left out.
    """
    kept = {recipe: record.artefact("server") for recipe, record in results.found.items() if record}
    return {
        labels.pretty(recipe.label): {
            name.partition("/")[2]: weights for name, weights in sorted(own.items()) if "gamma" in name
        }
        for recipe, own in kept.items()
    }


def spans(weights: dict) -> dict[str, str]:
    """By run the least and the largest weight of all channels: ``{"FedAvg + FedFA": "0.01 to 7.12"}``."""
    flat = {run: numpy.concatenate(list(own.values())) for run, own in weights.items() if own}
    return {run: f"{own.min():.2f} to {own.max():.2f}" for run, own in flat.items()}


def sorted_curves(weights: dict, of: str = "gamma_mean") -> dict:
    """Lines of ``fednb.report.plots.lines``: each stage's weights, sorted, over the share of its channels; a run whose
    weights are all alike has one line."""
    curves = {}
    for run, own in weights.items():
        stages = {name.partition("/")[0]: values for name, values in own.items() if name.endswith(of)}
        if len(numpy.unique(numpy.concatenate([numpy.round(each, 6) for each in stages.values()] or [[]]))) == 1:
            curves[f"{run}: all stages"] = ([0, 100], [float(next(iter(stages.values()))[0])] * 2)
            continue
        for stage, values in stages.items():
            across = 100 * numpy.arange(len(values)) / max(1, len(values) - 1)
            curves[f"{run}: stage {stage}"] = (across, numpy.sort(values)[::-1])
    return curves
