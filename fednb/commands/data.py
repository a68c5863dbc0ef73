"""`fednb data`: of each data set whether it can be loaded, what is missing, and where it comes from."""

from collections.abc import Iterator

from fednb import models, registry
from fednb.datasets import available, data_root
from fednb.errors import FednbError, printable


def main(options) -> int:
    root = data_root(options.data)
    print(printable(f"Data folder: {root.absolute()}{'' if root.is_dir() else ' (not there)'}"))
    for line in (*_datasets(options.data), *_weights(options.data)):
        print(printable(line))
    return 0


def _datasets(root: str | None) -> Iterator[str]:
    for name in registry.names("datasets"):
        try:
            problem = available(name, root)
        except FednbError as error:  # of a loader of one's own
            problem = str(error)
        yield f"{name}: {problem or 'ready'}"
        if needs := registry.file("datasets", name).NEEDS:
            yield f"  {needs}"


def _weights(root: str | None) -> Iterator[str]:
    """Of each network that takes ``pretrained=True``, whether its ImageNet weights are there."""
    yield "ImageNet weights:"
    for name in registry.names("models"):
        if origin := getattr(registry.find("models", name), "weights", None):
            there = "torchvision's, fetched when they are needed" if isinstance(origin, str) else "ready"
            yield f"  {name}: {models.lacks({'name': name, 'pretrained': True}, root) or there}"
