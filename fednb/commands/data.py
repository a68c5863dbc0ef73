"""`fednb data`: of each data set whether it can be loaded, what is missing, and where it comes from."""

from fednb import models, registry
from fednb.datasets import available, data_root
from fednb.errors import FednbError, printable


def main(options) -> int:
    root = data_root(options.data)
    lines = [f"Data folder: {root.absolute()}{'' if root.is_dir() else ' (not there)'}"]
    for name in registry.names("datasets"):
        try:
            problem = available(name, options.data)
        except FednbError as error:  # of a loader of one's own
            problem = str(error)
        lines.append(f"{name}: {problem or 'ready'}")
        if needs := registry.file("datasets", name).NEEDS:
            lines.append(f"  {needs}")
    lines.append("ImageNet weights:")  # of networks that take ``pretrained=True``
    for name in registry.names("models"):
        if origin := getattr(registry.find("models", name), "weights", None):
            there = "torchvision's, fetched when they are needed" if isinstance(origin, str) else "ready"
            lines.append(f"  {name}: {models.lacks({'name': name, 'pretrained': True}, options.data) or there}")
    print("\n".join(map(printable, lines)))
    return 0
