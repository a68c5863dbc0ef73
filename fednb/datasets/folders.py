"""Your own images: a folder per site; inside, class folders, or images and their masks."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets import _masks as mask_files
from fednb.datasets._listed import lacking
from fednb.datasets._partition import cut
from fednb.errors import DataError, RecipeError, composed, printable
from fednb.federation import IGNORED, SPLITS, Federation, Site, Split, chosen_sites, refuse_names, twice

LAYOUTS = ("<folder>/<site>/<class>/<file>", "<folder>/<site>/images/<file> and <folder>/<site>/masks/<file>")
NEEDS = (
    f"your own images, under your own licence, in {images.KNOWN}, at {LAYOUTS[0]} or, with masks, at {LAYOUTS[1]}; if "
    "you have divided them, with a folder train, validation or test below the site (validation may be left out). With "
    'masks name their classes, the background first: masks=("background", "tumour").'
)
PARTS = {  # how folders may be called, in whatever case
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}
KINDS = {"images": ("images", "image", "img", "imgs"), "masks": ("masks", "mask", "labels", "label")}
Listed = tuple[list[Path], list[str] | list[Path]]  # images, and the class or the mask of each


def load(
    root: Path,
    *,
    folder: str = "",
    size: int = 64,
    shares: tuple[float, float, float] = (0.6, 0.15, 0.25),
    seed: int = 0,
    fingerprint: str = "",
    masks: tuple[str, ...] = (),
    classes: tuple[str, ...] = (),
    site: str | None = None,
) -> Federation:
    """A site for each folder; classes are the class folders of all sites, sorted, or those of the masks' pixels.

    Args:
        folder: where the sites are inside ``root``; empty for ``root`` itself.
        shares: train, validation and test; positive, sum 1. Only for sites that are not divided on disk: these are cut
            by class. Where validation alone is no folder it is cut from train in the first two shares' proportion.
            Images with masks are drawn one by one: divide them on disk if several are of one patient.
        seed: of that draw.
        fingerprint: of the images that must be found (``Federation.fingerprint``); empty for any.
        masks: names of the masks' classes, the background first, such as ``("background", "tumour")``: the task is
            segmentation. Empty for class folders.
        classes: the class folders in their order, where not all are there: at one hospital of several.
        site: reads this one alone, whatever its fingerprint.

    Folders of parts and kinds may be called as ``PARTS`` and ``KINDS`` say; a part that holds images is a class.

    A mask has the name of its image, perhaps with ``_mask`` or another ``_masks.END``; it is a grey image or one with a
    palette, of the image's size. The value of a pixel is the number of its class; 255 is ignored, or the second class
    where there are two and no mask of a site has another value than 0 and 255. A resized pixel takes the class that
    covers most of it.

    Photographs, and masks, are turned upright as their EXIF tag says. ``notes`` has a line for files that are left out
    (hidden ones apart), unusual or there twice, for what a site lacks, and for masks that are background alone.
    DataError for another layout or fingerprint."""
    fits = isinstance(shares, list | tuple) and [type(share) for share in shares] == [float] * 3
    if not fits or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise RecipeError(f"shares are {shares}; expected three positive numbers for train, validation, test; sum 1.")
    if masks and classes:
        raise RecipeError(f"masks are {masks} and classes are {classes}; expected one: masks for pixels, else classes.")
    found = _sites(root, folder=folder, masks=masks)
    place = root / folder
    name = place.absolute().name
    classes = tuple(map(composed, masks)) or _classes(found, classes)
    used = {path for parts in found.values() for paths, others in parts.values() for path in (*paths, *others)}
    sites, notes = [], _left_out(place, used, LAYOUTS[bool(masks)])
    for each in chosen_sites(name, found, site):
        whole, said = _read(root, name, each, found[each], classes, bool(masks), size)
        notes += said
        if "" in whole:
            whole = dict(zip(SPLITS, cut(whole[""], shares, "folders", seed, each), strict=True))
        elif "validation" not in whole:
            both = shares[0] / sum(shares[:2]), shares[1] / sum(shares[:2])
            whole["train"], whole["validation"] = cut(whole["train"], both, "folders", seed, each)
        sites.append(Site(each, *(whole[part] for part in SPLITS)))
        if none := [part for part in SPLITS[1:] if not len(whole[part])]:
            notes.append(f"{each} has no {' and no '.join(none)} images: it has too few for the shares.")
    federation = Federation(name, sites, classes, (*notes, *twice(sites)), task(masks=masks))
    if not site and fingerprint not in ("", federation.fingerprint):
        found = f"{federation.fingerprint}; the recipe asks for {fingerprint}"
        advice = "Name the folder with those images, or take the new fingerprint into the recipe"
        raise DataError(f"The images in {place} have the fingerprint {found}. {advice}.")
    return federation


def task(*, masks: tuple[str, ...] = (), **options) -> str:
    return "segmentation" if masks else "classification"


def _sites(root: Path, *, folder: str = "", masks=(), **options) -> dict[str, dict[str, Listed]]:
    """What each site has, by part; under "" if it is not divided on disk."""
    if not isinstance(folder, str) or folder != printable(folder):
        raise RecipeError(f"folder is {folder!r}; expected a name in quotes and in UTF-8, of a folder in {root}.")
    named = () if isinstance(masks, str) else {name for name in masks if isinstance(name, str)}
    if masks and not 2 <= len(named) == len(masks) <= IGNORED:
        raise RecipeError(f"masks is {masks!r}; expected the names of 2 to {IGNORED} classes, or () for class folders.")
    place = root / folder
    folders = images.subfolders(place) if place.is_dir() else []
    if not folders:
        raise DataError(f"There is no folder {place} with site folders ({images.held(place)}).")
    if len(_called(place, KINDS)) == len(KINDS):
        raise _other_layout(place)
    parts = _called(place, PARTS)
    if len(parts) > 1 or (parts and len(folders) == 1):  # one among others may be the name of a site
        into = f"Make a folder there for each site, even for a single one, and put its {' and '.join(sorted(parts))} in"
        raise DataError(f"{place} has parts in the place of sites ({images.held(place)}). {into}.")
    divided = {composed(site.name): _parts(site) for site in folders}
    if len(divided) < len(folders):
        raise DataError(f"{place} has a site twice, in Unicode's two forms of a name. Put what is in them into one.")
    inner = [folder for parts in divided.values() for folder in parts.values()]
    refuse_names(place.absolute().name, divided, [label.name for each in inner for label in images.subfolders(each)])
    listed = _pairs if masks else _class_folders
    return {name: {part: listed(folder) for part, folder in parts.items()} for name, parts in divided.items()}


missing = lacking(_sites)


def _called(folder: Path, words: dict[str, tuple[str, ...]]) -> dict[str, Path]:
    """The folders in it that are called by these words, by what they mean."""
    meant: dict[str, Path] = {}
    for path in images.subfolders(folder):
        word = next((word for word, names in words.items() if path.name.casefold() in names), None)
        if word and (words is KINDS or not images.files(path)):
            meant[word] = path
    return meant


def _parts(site: Path) -> dict[str, Path]:
    """The folders of a site that hold its class folders, or its images and masks, by part."""
    parts = _called(site, PARTS)
    if parts and (not {"train", "test"} <= parts.keys() or len(parts) < len(images.subfolders(site))):
        expected = "expected folders train and test, perhaps validation, and no other"
        raise DataError(f"{site} is divided, and {images.held(site)}; {expected}. Move all other folders into them.")
    return parts or {"": site}


def _class_folders(folder: Path) -> Listed:
    paths, labels = [], []
    for label in images.subfolders(folder):
        mask_files.refuse_beside(files := images.files(label))
        paths += files
        labels += [composed(label.name)] * len(files)
    if not paths or len(_called(folder, KINDS)) == len(KINDS):
        raise _other_layout(folder)
    return paths, labels


def _pairs(folder: Path) -> Listed:
    kinds = _called(folder, KINDS)
    if len(kinds) < len(KINDS) or not all(map(images.files, kinds.values())):
        raise _other_layout(folder)
    return mask_files.paired(kinds["images"], kinds["masks"])


def _other_layout(folder: Path) -> DataError:
    return DataError(f"{folder} has no images where they are expected ({images.held(folder)}).")


def _classes(found: dict[str, dict[str, Listed]], asked: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(asked, str) or len(set(asked)) != len(asked):
        raise RecipeError(f"classes are {asked!r}; expected a list of names, each once.")
    where = {label: site for site, parts in found.items() for _, own in parts.values() for label in own}
    names = tuple(map(composed, asked)) or tuple(sorted(where))
    if others := sorted(where.keys() - {*names}):
        known = f"which the recipe does not name; its classes are {', '.join(names)}. Name the same for all sites"
        raise DataError(f"{where[others[0]]} has the class folder {others[0]}, {known}.")
    return names


def _left_out(place: Path, used: set[Path], expected: str) -> list[str]:
    """A note, or none, on the files in the folder that are neither used nor hidden."""
    rest = sorted(path.relative_to(place) for path in place.rglob("*") if path not in used and not path.is_dir())
    shown = [path for path in rest if not any(images.is_hidden(part) for part in (path, *path.parents[:-1]))]
    said = f"Files left out: {len(shown)}, first {shown[0]}. Expected: {expected}, in {images.KNOWN}." if shown else ""
    return [said] if said else []


def _read(
    root: Path, name: str, site: str, parts: dict[str, Listed], classes: tuple[str, ...], masked: bool, size: int
) -> tuple[dict[str, Split], list[str]]:
    """The images of a site by part, with their classes or masks, and notes."""
    paths, others = (sum((pair[number] for pair in parts.values()), []) for number in (0, 1))
    said, targets = [], np.array([classes.index(label) for label in others] if not masked else [], np.int64)
    if masked:
        held = mask_files.read(root, f"{name}_{site}", paths, others, size)
        targets, said = mask_files.as_classes(site, others, *held, len(classes))
    pixels, unusual = images.read(root, f"{name}_{site}", paths, size, upright=True)
    whole = Split(torch.from_numpy(pixels), torch.from_numpy(targets))
    cuts = np.split(np.arange(len(whole)), np.cumsum([len(own) for own, _ in parts.values()])[:-1])
    return {part: whole.select(cut) for part, cut in zip(parts, cuts, strict=True)}, [*unusual, *said]
