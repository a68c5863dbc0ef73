"""`fednb data`: what is on disk, what is expected, where it comes from, and every damaged file."""

from collections.abc import Iterator

from fednb import catalogue, models
from fednb.datasets import check


def main(options) -> int:
    found = check(options.data, options.check)
    print(found)
    if options.check is None:
        print("\n".join(_weights(options.data)))
    return 1 if found.damaged or found.differs else 0


def _weights(root: str | None) -> Iterator[str]:
    """Of each network that takes ``pretrained=True``, whether its ImageNet weights are there."""
    yield "ImageNet weights:"
    for name in catalogue.names("models"):
        if origin := getattr(catalogue.find("models", name), "weights", None):
            there = "torchvision's, fetched when they are needed" if isinstance(origin, str) else "ready"
            yield f"  {name}: {models.lacks({'name': name, 'pretrained': True}, root) or there}"
