"""ImageNet weights: torchvision's, or a file in ``weights/`` of the data folder; checked by its hash."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from fednb.datasets import data_root
from fednb.datasets._files import npz
from fednb.errors import RunError

Weights = Mapping[str, Tensor]
SUFFIXES = (".npz", ".pth", ".pt")
_folder: ContextVar[str | os.PathLike | None] = ContextVar("folder", default=None)


@dataclass(frozen=True)
class Origin:
    """Weights in a file that is not torchvision's.

    name: of the file, without suffix. source: where they are from, in words. digest: that of the entries once
    ``renamed`` gave them torchvision's names, and the first convolution its normalised images.
    """

    name: str
    source: str
    digest: str
    renamed: Callable[[Weights], Weights]


@contextmanager
def below(root: str | os.PathLike | None) -> Iterator[None]:
    """Inside, networks find their weights in ``weights/`` of this folder, as ``datasets.data_root`` takes it."""
    token = _folder.set(root)
    try:
        yield
    finally:
        _folder.reset(token)


def start(network: nn.Module, head: str, weights: str | Origin) -> str:
    """Puts weights into a network of torchvision's, all but those whose names begin with ``head``; their ``digest``.

    weights: torchvision's name of them, or their origin. Raises RunError naming a file that is missing or damaged, or
    has other weights.
    """
    own = isinstance(weights, Origin)
    if own and (problem := lacking(weights, _folder.get())):
        raise RunError(problem)
    file, source = (_own(weights, _folder.get()), weights.source) if own else _torchvisions(weights)
    try:
        if not own:
            _fetch(file, source)
        state = _read(file)
        if own:
            if network.state_dict().keys() <= state.keys():
                raise ValueError("these are torchvision's own weights: another training, whose runs would be others")
            state = weights.renamed(state)
        state = {name: entry for name, entry in state.items() if not name.startswith(head)}
        held = digest(state)
        if own and held != weights.digest:
            raise ValueError(f"the hash of its entries is {held}, expected {weights.digest}")
        network.load_state_dict(state, strict=False)  # torchvision's first ResNets do not count batches
    except Exception as error:  # no network, a file cut short, hostile content: each has a type of its own
        raise RunError(
            f"{file} does not have the weights of {type(network).__name__} ({type(error).__name__}: {error}). Put "
            f"the right file there, {source}, or set pretrained to false."
        ) from error
    return held


def lacking(origin: Origin, root: str | os.PathLike | None = None) -> str | None:
    """What is missing of a file in ``weights/`` and where it comes from, in a sentence; None where it is there."""
    if _own(origin, root):
        return None
    place = data_root(root).absolute() / "weights" / origin.name
    return f"There are no weights {place} ({', '.join(SUFFIXES)}): {origin.source}."


def digest(state: Weights) -> str:
    """12 hex digits of the names, shapes and values of weights, in whatever kind of file they lie."""
    made = hashlib.sha256()
    for name in sorted(state):
        values = state[name].detach().cpu().contiguous().numpy()
        made.update(f"{name} {values.dtype} {values.shape}\n".encode() + values.tobytes())
    return made.hexdigest()[:12]


def _own(origin: Origin, root: str | os.PathLike | None) -> Path | None:
    files = (data_root(root) / "weights" / f"{origin.name}{suffix}" for suffix in SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def _torchvisions(weights: str) -> tuple[Path, str]:
    """The file of weights by torchvision's name, in ``weights/`` or in torch's cache; and where it is fetched from."""
    from torchvision.models import get_weight

    url = get_weight(weights).url
    name = url.rpartition("/")[2]
    own = data_root(_folder.get()) / "weights" / name
    return own if own.exists() else Path(torch.hub.get_dir()) / "checkpoints" / name, url


def _fetch(file: Path, url: str) -> None:
    """Downloads it where it is missing; ValueError where its SHA-256 does not begin as its name ends."""
    begins = file.stem.rpartition("-")[2]
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(file), hash_prefix=begins)
    found = hashlib.sha256(file.read_bytes()).hexdigest()[: len(begins)]
    if found != begins:
        raise ValueError(f"its SHA-256 begins with {found}, torchvision's with {begins}")


def _read(file: Path) -> Weights:
    """The entries of a file; nothing in it is executed."""
    if file.suffix == ".npz":
        return {name: torch.from_numpy(array.copy()) for name, array in npz(file).items()}
    return torch.load(file, map_location="cpu", weights_only=True)
