"""ImageNet weights: torchvision's, or a file in ``weights/`` of the data folder; checked by its hash."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from fednb.datasets import data_root
from fednb.datasets._files import npz, refuse_more
from fednb.errors import RunError

Weights = Mapping[str, Tensor]
SUFFIXES = (".npz", ".pth", ".pt")
MOST = 2**30  # bytes of a file, unpacked
_folder: ContextVar[str | os.PathLike | None] = ContextVar("folder", default=None)


@dataclass(frozen=True)
class Origin:
    """Weights in a file that is not torchvision's.

    name: of the file, without suffix. source: where they are from, in words. digest: that of the entries once
    ``renamed`` gave them torchvision's names, and the first convolution torchvision's images: red, green and blue,
    normalised by ImageNet's mean and deviation.
    """

    name: str
    source: str
    digest: str
    renamed: Callable[[Weights], Weights]


@contextmanager
def below(root: str | os.PathLike | None) -> Iterator[None]:
    """Inside, the data folder is ``root``."""
    token = _folder.set(root)
    try:
        yield
    finally:
        _folder.reset(token)


def start(network: nn.Module, head: str, weights: str | Origin) -> str:
    """Puts weights into a network of torchvision's, all but those of its head; returns their ``digest``.

    head: what the names of the entries that stay begin with. weights: torchvision's name of them, or their origin.

    Raises RunError naming the file where it is missing or damaged, or has other weights.
    """
    file = _torchvisions(weights) if isinstance(weights, str) else _own(weights, _folder.get())
    if file is None:
        raise RunError(lacking(weights, _folder.get()))
    try:
        state = _read(file, file.stat().st_mtime_ns)
        if not isinstance(weights, str):
            if network.state_dict().keys() <= state.keys():
                raise ValueError("these are torchvision's own weights: another training, whose runs would be others")
            state = weights.renamed(state)
        state = {name: entry for name, entry in state.items() if not name.startswith(head)}
        found = digest(state)
        if not isinstance(weights, str) and found != weights.digest:
            raise ValueError(f"the hash of its entries is {found}, expected {weights.digest}")
        network.load_state_dict(state, strict=False)  # torchvision's first ResNets do not count batches
    except Exception as error:  # damaged files raise many kinds
        source = "" if isinstance(weights, str) else f", {weights.source},"
        raise RunError(
            f"{file} does not have the weights of {type(network).__name__} ({type(error).__name__}: {error}). Put "
            f"the right file{source} there, or set pretrained to false."
        ) from error
    return found


def lacking(origin: Origin, root: str | os.PathLike | None = None) -> str | None:
    """What is missing of a file in ``weights/`` and where it comes from, in a sentence; None where it is there."""
    if _own(origin, root):
        return None
    place = data_root(root).absolute() / "weights" / origin.name
    return f"There are no weights {place} ({', '.join(SUFFIXES)}): {origin.source}."


def _own(origin: Origin, root: str | os.PathLike | None) -> Path | None:
    files = (data_root(root) / "weights" / f"{origin.name}{suffix}" for suffix in SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def digest(state: Weights) -> str:
    """12 hex digits of the names, shapes and values of weights, in whatever kind of file they lie."""
    made = hashlib.sha256()
    for name in sorted(state):
        values = state[name].detach().cpu().contiguous().numpy()
        made.update(f"{name} {values.dtype} {values.shape}\n".encode() + values.tobytes())
    return made.hexdigest()[:12]


@lru_cache(maxsize=2)
def _read(file: Path, changed: int) -> Weights:
    """The entries of a file; nothing in it is executed."""
    refuse_more(file, file.stat().st_size, MOST)
    if file.suffix == ".npz":
        return {name: torch.from_numpy(array.copy()) for name, array in npz(file, MOST).items()}
    return torch.load(file, map_location="cpu", weights_only=True)


def _torchvisions(weights: str) -> Path:
    """The file of weights by torchvision's name: in ``weights/``, else in torch's cache, where it is downloaded to;
    RunError naming both. The name of a file ends in the beginning of its SHA-256."""
    from torchvision.models import get_weight

    url = get_weight(weights).url
    name = url.rpartition("/")[2]
    begins = Path(name).stem.rpartition("-")[2]
    cache = Path(torch.hub.get_dir()) / "checkpoints" / name
    own = data_root(_folder.get()) / "weights" / name
    file = own if own.exists() else cache
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(file), hash_prefix=begins)
        if not file.is_file():
            raise ValueError("no regular file")
        found = hashlib.sha256(file.read_bytes()).hexdigest()[: len(begins)]
        if found != begins:
            raise ValueError(f"its SHA-256 begins with {found}, torchvision's with {begins}")
    except Exception as error:  # no network, a proxy's page, a file cut short: each has a type of its own
        raise RunError(
            f"the ImageNet weights could not be loaded ({type(error).__name__}: {error}). Expected the content of "
            f"{url} (torchvision's, BSD 3-Clause) at {own} or {cache}: put it there (remove a damaged one), or set "
            "pretrained to false."
        ) from error
    return file
