"""Runs with noise on their images: the noise as a field, apart from the method's name."""

from dataclasses import replace


def by_noise(results):
    """The same results, whose frame has ``noise`` (a setting: spreads are pooled within it) and runs named without."""
    frame = results.frame
    without = {recipe.key: recipe.with_(augmentations=recipe.augmentations[1:]).label for recipe in results.found}
    named = replace(results)
    named.__dict__["frame"] = frame.assign(
        noise=frame["image_noise.sigma"].astype(float), run=frame["key"].map(without).fillna(frame["run"])
    )
    return named
