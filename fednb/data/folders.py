"""Your own images: a folder per site, class folders inside."""

from pathlib import Path

import numpy as np
import torch

from fednb.data import _images as images
from fednb.data._partition import sizes, stratified
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS, Federation, Site, Split

NEEDS = (
    "your own images, under your own licence, at <folder>/<site>/<class>/<file> or, if you have divided "
    "them, at <folder>/<site>/<train|validation|test>/<class>/<file> (validation may be left out)."
)

Labelled = tuple[list[Path], list[str]]


def load(
    root: Path,
    *,
    folder: str = "",
    size: int = 64,
    shares: tuple[float, float, float] = (0.6, 0.15, 0.25),
    seed: int = 0,
    fingerprint: str = "",
    classes: tuple[str, ...] = (),
    site: str | None = None,
) -> Federation:
    """A site for each folder; RGB ``size`` x ``size``; classes are the class folders of all sites, sorted.

    Args:
        root: the data folder.
        folder: where the sites are inside ``root``; empty if they are in ``root`` itself.
        size: height and width in pixels; resized bilinearly without cropping. Grey images get three channels.
        shares: train, validation and test; positive, sum 1. Only for sites that are not divided on disk:
            these are cut by class, drawn by ``seed`` and the site's name. Where train and test are folders
            and validation is not, validation is cut from train in the first two shares' proportion.
        seed: of that draw.
        fingerprint: of the images that must be found (``Federation.fingerprint``); empty for any. In a recipe it
            keeps the runs of one folder apart from those of another.
        classes: the classes in their order, where a folder does not hold all: at one hospital of several.
        site: reads this one alone, whatever its fingerprint.

    Photographs are turned upright as their EXIF tag says; see ``_images.decode``. Layout: see ``NEEDS``. Hidden files
    and files that are not images by their suffix are ignored. ``notes`` has a line for a class that a site lacks, a
    site without validation or test images, images in other places than the layout's, and unusual images.

    Raises DataError when the folder, its sites or a site's images are missing, an image is damaged, a class folder is
    none of ``classes`` or the fingerprint is another;
    RecipeError for an option out of its range.
    """
    images.check_size(size)
    if not _three_shares(shares):
        raise RecipeError(f"shares are {shares}; expected three positive numbers for train, validation, test; sum 1.")
    place = _place(root, folder)
    found = _sites(place)
    classes = _classes(found, classes)
    sites, notes = [], _unused(place, found)
    if site in found:
        found, fingerprint = {site: found[site]}, ""
    for name, parts in found.items():
        whole = {
            part: _split(root, f"{place.absolute().name}_{name}_{part}", *parts[part], classes, size, notes)
            for part in parts
        }
        if "" in whole:
            everything = whole[""]
            cuts = _cut(everything, shares, seed, name)
            sites.append(Site(name, *(everything.select(cut) for cut in cuts)))
            continue
        if "validation" not in whole:
            divided = whole["train"]
            cuts = _cut(divided, (shares[0] / sum(shares[:2]), shares[1] / sum(shares[:2])), seed, name)
            whole["train"], whole["validation"] = (divided.select(cut) for cut in cuts)
        sites.append(Site(name, *(whole[part] for part in SPLITS)))
    for site in sites:
        none = [part for part in SPLITS[1:] if not len(getattr(site, part))]
        if none:
            notes.append(f"{site.name} has no {' and no '.join(none)} images: it has too few for the shares.")
    federation = Federation(place.absolute().name, sites, tuple(classes), tuple(notes))
    if fingerprint not in ("", federation.fingerprint):
        raise DataError(
            f"The images in {place} have the fingerprint {federation.fingerprint}; the recipe asks for {fingerprint}. "
            "Name the folder with those images, or take the new fingerprint into the recipe to train on these."
        )
    return federation


def missing(root: Path, *, folder: str = "", **options) -> str | None:
    """One sentence when the folder is not there or is not made of site folders with class folders inside."""
    try:
        _sites(_place(root, folder))
    except DataError as error:
        return str(error)
    return None


def describe(root: Path) -> list[str]:
    """The folders under ``root`` that can be loaded, for ``fednb data``."""
    lines = []
    for place in images.subfolders(root) if root.is_dir() else []:
        if missing(root, folder=place.name) is None:
            sites = _sites(place)
            count = sum(len(paths) for parts in sites.values() for paths, _ in parts.values())
            lines.append(f'folder="{place.name}": {count} images in {", ".join(sites)}')
            lines.extend(f"  {note}" for note in _unused(place, sites))
    return lines or [f"No folder of {root} has sites with class folders."]


def _classes(found: dict[str, dict[str, Labelled]], asked: tuple[str, ...]) -> list[str]:
    """The classes asked for, else the class folders of all sites, sorted."""
    if isinstance(asked, str) or len(set(asked)) != len(asked):
        raise RecipeError(f"classes are {asked!r}; expected a list of names, each once.")
    held = {name: {label for _, labels in parts.values() for label in labels} for name, parts in found.items()}
    for name, labels in held.items():
        if asked and (others := sorted(labels - set(asked))):
            raise DataError(
                f"{name} has the class folders {', '.join(others)}, which the recipe does not name; its classes are "
                f"{', '.join(asked)}. Rename the folders, or name the same classes for all sites."
            )
    return list(asked) or sorted(set().union(*held.values()))


def _three_shares(shares) -> bool:
    try:
        return len(shares) == 3 and min(shares) > 0 and abs(sum(shares) - 1) <= 1e-6
    except TypeError:
        return False


def _place(root: Path, folder: str) -> Path:
    if not isinstance(folder, str):
        raise RecipeError(f"folder is {folder!r}; expected a name in quotes, of a folder in {root}.")
    return root / folder


def _unused(place: Path, sites: dict[str, dict[str, Labelled]]) -> list[str]:
    used = [path for parts in sites.values() for paths, _ in parts.values() for path in paths]
    return images.unused(place, used, "<site>/<class>/<file>")


def _sites(place: Path) -> dict[str, dict[str, Labelled]]:
    """The sites of a folder by name, as ``_site_parts`` finds them."""
    if not place.is_dir():
        raise DataError(f"There is no folder {place}. Expected: {NEEDS}")
    sites = {site.name: _site_parts(site) for site in images.subfolders(place)}
    if not sites:
        raise DataError(f"{place} has no site folders. Expected: {NEEDS}")
    return sites


def _site_parts(site: Path) -> dict[str, Labelled]:
    """The images and labels of a site by split; under "" if it is not divided on disk."""
    inside = {path.name: path for path in images.subfolders(site)}
    if not inside.keys() & set(SPLITS):
        return {"": _labelled(site)}
    unknown = sorted(inside.keys() - set(SPLITS))
    lacking = [part for part in ("train", "test") if part not in inside]
    if unknown or lacking:
        raise DataError(
            f"{site} has the folders {', '.join(sorted(inside))}; a site that is divided on disk needs train "
            f"and test, may have validation, and nothing else. Rename or remove folders."
        )
    return {part: _labelled(path) for part, path in inside.items()}


def _labelled(folder: Path) -> Labelled:
    pairs = [(file, label.name) for label in images.subfolders(folder) for file in images.files(label)]
    if not pairs:
        raise DataError(f"{folder} has no class folder with images; expected {folder}/<class>/<file>.")
    return [file for file, _ in pairs], [label for _, label in pairs]


def _split(
    root: Path, name: str, paths: list[Path], labels: list[str], classes: list[str], size: int, notes: list[str]
) -> Split:
    pixels, unusual = images.read(root, name.strip("_"), paths, images.digests(paths), size, upright=True)
    notes.extend(unusual)
    return Split(torch.from_numpy(pixels), torch.tensor([classes.index(label) for label in labels]))


def _cut(split: Split, shares: tuple[float, ...], seed: int, site: str) -> list[np.ndarray]:
    return stratified(split.targets.numpy(), sizes(len(split), shares), "folders", seed, site)
