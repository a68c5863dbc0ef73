"""Data sets: every file without a leading underscore is one or a family, and has federations that a recipe can name.

It has

- ``load(root, *, option=default, ...) -> Federation``; ``root`` is the data folder;
- ``missing(root, **options) -> str | None``: one sentence when these options of ``load`` cannot be loaded, found
  quickly; ``load`` raises DataError for the same;
- ``NEEDS``: where the data come from, their licence and their layout; None if they are embedded;
- if it can read one site without the others, a parameter ``site: str | None = None`` of ``load``, which asks
  ``federation.chosen_sites`` for the names;
- if its images are dealt out by chance, a parameter ``seed: int = 0`` of ``load``; a recipe may say ``"run"`` for it;
- if its sites have masks, ``TASK = "segmentation"``; or, where the options decide that, ``task(**options) -> str``.

Of every loader, unless its docstring says otherwise: images are RGB, three equal channels of grey ones, resized
bilinearly without cropping to ``size`` x ``size`` pixels; ``seed`` is that of all draws. It raises DataError when a
file that it needs is missing or damaged, and when there are too few images for its options; RecipeError for an option
out of its range.
"""

import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fednb import registry
from fednb.datasets._images import check_size
from fednb.errors import DataError, FednbError, RecipeError

if TYPE_CHECKING:
    from fednb.federation import Federation

__all__ = ["available", "data_root", "load"]


def data_root(root: str | os.PathLike | None = None) -> Path:
    """The folder that holds all data: ``root``, else the environment's FEDNB_DATA, else ``data/`` of the project or,
    where there is none, of the current folder."""
    own = (registry.project() or Path()) / "data"
    return Path(root or os.environ.get("FEDNB_DATA") or own).expanduser()


def load(name: str, root: str | os.PathLike | None = None, site: str | None = None, **options) -> "Federation":
    """The federation of this name, with the options of ``fednb.datasets.<name>.load``; ``root``: see ``data_root``.
    ``site`` keeps this site alone, with the classes of all; a loader that can reads the images of no other.

    RecipeError for an unknown name or option, one out of its range, or the seed ``"run"``, which only a recipe has;
    DataError when data are missing or damaged, or there is no such site."""
    loader = _loader(name, options)
    if name in registry.builtin("datasets"):
        check_size(options.get("size", 1))
    alone = {"site": site} if site and "site" in inspect.signature(loader.load).parameters else {}
    try:
        federation = loader.load(data_root(root), **options, **alone)
        return federation.only(site) if site else federation
    except DataError as error:
        if loader.NEEDS and (problem := loader.missing(data_root(root), **options, **alone)):
            raise DataError(f"{problem} Expected: {loader.NEEDS}") from error
        raise
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}. Allow reading it, or put it there again.") from error


def available(name: str, root: str | os.PathLike | None = None, **options) -> str | None:
    """None when this federation can be loaded, else one sentence that says what is missing; images are not decoded.
    Raises RecipeError as ``load`` does, and where the loader's own ``missing`` fails."""
    loader = _loader(name, options)
    try:
        return loader.missing(data_root(root), **options)
    except OSError as error:
        return f"{name} cannot be read: {error}."
    except FednbError:
        raise
    except Exception as error:  # it may be anybody's
        fails = f"missing(root, **options) of {loader.__file__} fails ({type(error).__name__}: {error})"
        raise RecipeError(f"{fails}; expected None, or a sentence that says what is missing.") from error


def _loader(name: str, options: dict):
    registry.require_known(name, options, registry.options(registry.find("datasets", name)))
    if options.get("seed") == registry.OF_THE_RUN:
        instead = "which is the seed of a recipe; give a whole number, or load(**recipe.dealt)"
        raise RecipeError(f'{name} has seed "{registry.OF_THE_RUN}", {instead}.')
    return registry.file("datasets", name)
