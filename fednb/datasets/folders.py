"""Your own images: a folder per site; inside, class folders, or images and their masks."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets import _masks as mask_files
from fednb.datasets._partition import cut
from fednb.errors import DataError, RecipeError, printable
from fednb.federation import IGNORED, SPLITS, Federation, Site, Split, chosen_sites, refuse_names

NEEDS = (
    "your own images, under your own licence, at <folder>/<site>/<class>/<file> or, with masks, at "
    "<folder>/<site>/images/<file> and <folder>/<site>/masks/<file>; if you have divided them, with a folder train, "
    "validation or test below the site (validation may be left out)."
)

SPLIT_WORDS = {  # how folders are called elsewhere, in whatever case
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
KIND_WORDS = {"images": ("image", "images", "img", "imgs"), "masks": ("mask", "masks", "label", "labels")}
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
        folder: where the sites are inside ``root``; empty if they are in ``root`` itself.
        shares: train, validation and test; positive, sum 1. Only for sites that are not divided on disk:
            these are cut by class, drawn by ``seed`` and the site's name. Where train and test are folders
            and validation is not, validation is cut from train in the first two shares' proportion. Images with masks
            are drawn one by one: divide them on disk if several are of one patient.
        seed: of that draw.
        fingerprint: of the images that must be found (``Federation.fingerprint``); empty for any. In a recipe it
            keeps the runs of one folder apart from those of another.
        masks: names of the masks' classes, the background first, such as ``("background", "tumour")``: the task is
            segmentation. Empty for class folders.
        classes: the class folders in their order, where a folder does not hold all: at one hospital of several. Not
            for masks.
        site: reads this one alone, whatever its fingerprint.

    A mask has the name of its image and may have another suffix; it is a grey image or one with a palette, of the
    image's size. The value of a pixel is the number of its class; 255 is ignored. With two classes masks may be black
    and white instead: where no mask of a site has another value than 0 and 255, 255 is the second class. A resized
    pixel takes the class that covers most of it, by which what is thinner than half a pixel is lost.

    Photographs, and masks, are turned upright as their EXIF tag says; see ``_images.decode``.
    Hidden files and files that are not images by their suffix or, without one, by their first bytes are left out.
    ``notes`` has a line for a class that a site lacks, a class folder without an image, a site without validation or
    test images, each class's share of a site's masks, masks that are background alone, files that are left out by their
    suffix, images in other places than the layout's, and unusual images.

    Raises DataError also when some sites have masks and others class folders, or class folders differ in case only or
    are none of ``classes``; when folders that mean a split, or images and masks, are called otherwise or lie on another
    level; when a name is refused, see ``federation.refuse_names``; when a mask has no image, another size, more than
    one channel or 8 bits, or values that are no class; or when the fingerprint is another.
    """
    images.check_size(size)
    if not _three_shares(shares):
        raise RecipeError(f"shares are {shares}; expected three positive numbers for train, validation, test; sum 1.")
    if masks and classes:
        raise RecipeError(f"masks are {masks} and classes are {classes}; expected one: masks for pixels, else classes.")
    place = _place(root, folder)
    found = _sites(place, _named(masks))
    classes = tuple(masks) or _classes(found, classes)
    sites, notes = [], _unused(place, found, bool(masks))
    for name in chosen_sites(place.absolute().name, found, site):
        parts = found[name]
        read = _masked if masks else _labelled
        whole = read(root, f"{place.absolute().name}_{name}", name, parts, classes, size, notes)
        if "" in whole:
            sites.append(Site(name, *cut(whole[""], shares, "folders", seed, name)))
            continue
        if "validation" not in whole:
            both = shares[0] / sum(shares[:2]), shares[1] / sum(shares[:2])
            whole["train"], whole["validation"] = cut(whole["train"], both, "folders", seed, name)
        sites.append(Site(name, *(whole[part] for part in SPLITS)))
    for each in sites:
        none = [part for part in SPLITS[1:] if not len(getattr(each, part))]
        if none:
            notes.append(f"{each.name} has no {' and no '.join(none)} images: it has too few for the shares.")
    notes += [_shares_of(each, classes) for each in sites if masks]
    federation = Federation(place.absolute().name, sites, classes, tuple(notes), task(masks=masks))
    if not site and fingerprint not in ("", federation.fingerprint):
        raise DataError(
            f"The images in {place} have the fingerprint {federation.fingerprint}; the recipe asks for {fingerprint}. "
            "Name the folder with those images, or take the new fingerprint into the recipe to train on these."
        )
    return federation


def task(*, masks: tuple[str, ...] = (), **options) -> str:
    """The task of a federation with these options."""
    return "segmentation" if masks else "classification"


def missing(root: Path, *, folder: str = "", masks: tuple[str, ...] = (), **options) -> str | None:
    """One sentence when the folder is not there or is not made of site folders with class folders, or images and masks,
    inside."""
    try:
        _sites(_place(root, folder), _named(masks))
    except DataError as error:
        return str(error)
    return None


def describe(root: Path) -> list[str]:
    """The folders under ``root`` that can be loaded, for ``fednb data``."""
    lines = []
    for place in images.subfolders(root) if root.is_dir() else []:
        for masked in (False, True):
            try:
                sites = _sites(place, masked)
            except DataError:
                continue
            count = sum(len(paths) for parts in sites.values() for paths, _ in parts.values())
            lines.append(f'folder="{place.name}": {count} images{" with masks" * masked} in {", ".join(sites)}')
            lines.extend(f"  {note}" for note in _unused(place, sites, masked))
    return lines or [f"No folder of {root} has sites with class folders, or images and masks."]


def _classes(found: dict[str, dict[str, Listed]], asked: tuple[str, ...]) -> tuple[str, ...]:
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
    return tuple(asked) or tuple(sorted(set().union(*held.values())))


def _shares_of(site: Site, classes: tuple[str, ...]) -> str:
    counts = sum(torch.bincount(getattr(site, part).targets.flatten(), minlength=256) for part in SPLITS)
    shares = 100 * counts[: len(classes)] / counts[:IGNORED].sum()
    told = ", ".join(f"{share:.1f} % {name}" for name, share in zip(classes, shares.tolist(), strict=True))
    return f"{site.name}: of the masks' pixels are {told}."


def _three_shares(shares) -> bool:
    try:
        return len(shares) == 3 and min(shares) > 0 and abs(sum(shares) - 1) <= 1e-6
    except TypeError:
        return False


def _named(masks) -> bool:
    """Whether the classes of masks are named; RecipeError if they are no names."""
    names = masks if isinstance(masks, list | tuple) else [None]
    if names and not (
        2 <= len(set(names)) == len(names) <= IGNORED and all(isinstance(name, str) and name for name in names)
    ):
        raise RecipeError(
            f"masks is {masks!r}; expected the names of 2 to {IGNORED} different classes, the background first, such "
            'as ("background", "tumour"), or () for class folders.'
        )
    return bool(names)


def _place(root: Path, folder: str) -> Path:
    if not isinstance(folder, str) or folder != printable(folder):
        raise RecipeError(f"folder is {folder!r}; expected a name in quotes and in UTF-8, of a folder in {root}.")
    return root / folder


def _unused(place: Path, sites: dict[str, dict[str, Listed]], masked: bool) -> list[str]:
    listed = [part for parts in sites.values() for part in parts.values()]
    used = [path for paths, own in listed for path in (*paths, *(own if masked else ()))]
    notes = images.unused(place, used, "<site>/<images|masks>/<file>" if masked else "<site>/<class>/<file>")
    if others := images.others(place, used):
        notes.append(
            f"Left out beside {len(used)} files, by suffix: {others}. Convert the images among them, such as to PNG."
        )
    parts = [(place / site / part, labels) for site, parts in sites.items() for part, (_, labels) in parts.items()]
    empty = [
        str(folder.relative_to(place))
        for part, labels in parts
        for folder in images.subfolders(part)
        if not masked and folder.name not in labels
    ]
    return notes + ([f"Class folders without an image: {images.few(empty, 'folders')}."] if empty else [])


def _sites(place: Path, masked: bool) -> dict[str, dict[str, Listed]]:
    """What each site has, by split; under "" if it is not divided on disk."""
    if not place.is_dir():
        raise DataError(f"There is no folder {place}. Expected: {NEEDS}")
    _refuse_parts_as_sites(place)
    divided = {site.name: _parts(site) for site in images.subfolders(place)}
    if not divided:
        raise DataError(f"{place} has no site folders. Expected: {NEEDS}")
    labels = [
        label.name for parts in divided.values() for inner in parts.values() for label in images.subfolders(inner)
    ]
    refuse_names(place.absolute().name, divided, labels)
    _refuse_other_kind([inner for parts in divided.values() for inner in parts.values()], masked)
    listed = mask_files.paired if masked else _class_folders
    sites = {name: {part: listed(inner) for part, inner in parts.items()} for name, parts in divided.items()}
    if not masked:
        _refuse_cases(place, sites)
    return sites


def _parts(site: Path) -> dict[str, Path]:
    """The folders of a site that hold its class folders, or its images and masks, by split."""
    inside = {path.name: path for path in images.subfolders(site)}
    meant = _meant(inside, SPLIT_WORDS)
    if not inside.keys() & set(SPLITS) and not _several(meant):
        return {"": site}
    unknown = sorted(inside.keys() - set(SPLITS))
    lacking = [part for part in ("train", "test") if part not in inside]
    if unknown or lacking:
        other = ", ".join(f"{name} to {part}" for name, part in meant.items() if name != part)
        raise DataError(
            f"{site} has the folders {', '.join(sorted(inside))}; a site that is divided on disk needs train "
            f"and test, may have validation, and nothing else. Rename {other or 'or remove folders'}."
        )
    return inside


def _meant(names: Iterable[str], words: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Which of these names mean one of the layout's own words, and which."""
    return {name: word for name in names for word, spelt in words.items() if name.casefold() in spelt}


def _several(meant: dict[str, str]) -> bool:
    """Whether they mean different things: one alone can be a class, such as train beside bus."""
    return len(set(meant.values())) > 1


def _refuse_parts_as_sites(place: Path) -> None:
    """DataError where the folders in the place of sites mean the parts of one."""
    names = [path.name for path in images.subfolders(place)]
    for words in (SPLIT_WORDS, KIND_WORDS):
        meant = _meant(names, words)
        if _several(meant) or (words is SPLIT_WORDS and names and len(meant) == len(names)):
            *first, last = [word for word in words if word in meant.values()]
            called = f"{', '.join(first)} and {last}" if first else last
            raise DataError(
                f"{place} has the folders {', '.join(meant)} where sites are expected. These are parts of a site: make "
                f"a folder with the site's name there, and put them into it as {called}."
            )


def _refuse_other_kind(folders: list[Path], masked: bool) -> None:
    """DataError unless all of these folders have images and masks, or none has, as is expected."""
    for folder in folders:
        meant = _meant((path.name for path in images.subfolders(folder)), KIND_WORDS)
        if _several(meant) and not all((folder / kind).is_dir() for kind in mask_files.KINDS):
            raise DataError(
                f"{folder} has the folders {' and '.join(meant)}; expected images and their masks in folders images "
                "and masks. Rename them."
            )
    kinds = {folder: all((folder / kind).is_dir() for kind in mask_files.KINDS) for folder in folders}
    having = next((folder for folder, has in kinds.items() if has), None)
    lacking = next((folder for folder, has in kinds.items() if not has), None)
    if having and (lacking or not masked):
        other = f" and {lacking} ({images.held(lacking)}) has not; a federation has one task" if lacking else ""
        raise DataError(
            f"{having} has images and masks{other}. If all sites are to have masks, name the masks' classes in the "
            'order of their values: masks=("background", "tumour"). If they are to have class folders, remove images '
            "and masks."
        )
    if masked and lacking:
        raise DataError(
            f"{lacking} has no folder images with a folder masks beside it ({images.held(lacking)}), and masks names "
            "classes. Add them, or leave masks out for class folders."
        )


def _refuse_cases(place: Path, sites: dict[str, dict[str, Listed]]) -> None:
    """DataError for two class folders whose names differ in case only: they are one class, or are hard to tell."""
    known = {}
    for site, parts in sites.items():
        for label in (label for _, labels in parts.values() for label in labels):
            first, where = known.setdefault(label.casefold(), (label, site))
            if first != label:
                raise DataError(
                    f'{place / where} has the class folder "{first}" and {place / site} "{label}"; expected class '
                    "names that differ in more than capital letters. Give them one name if they are one class."
                )


def _class_folders(folder: Path) -> Listed:
    pairs = [(file, label.name) for label in images.subfolders(folder) for file in images.files(label)]
    if not pairs:
        inner = (path.name for label in images.subfolders(folder) for path in images.subfolders(label))
        above = " Put train and test above the classes." * _several(_meant(inner, SPLIT_WORDS))
        convert = " Convert what is in another format, for example to PNG." * bool(images.others(folder))
        raise DataError(
            f"{folder} has no class folder with images ({images.held(folder)}); expected {folder}/<class>/<file>."
            f"{convert}{above}"
        )
    return [file for file, _ in pairs], [label for _, label in pairs]


def _labelled(
    root: Path, name: str, site: str, parts: dict[str, Listed], classes: tuple[str, ...], size: int, notes: list[str]
) -> dict[str, Split]:
    """The images of a site by split, each with the number of its class."""
    splits = {}
    for part, (paths, labels) in parts.items():
        targets = [classes.index(label) for label in labels]
        splits[part], unusual = images.labelled(root, f"{name}_{part}".strip("_"), paths, targets, size, upright=True)
        notes.extend(unusual)
    return splits


def _masked(
    root: Path, name: str, site: str, parts: dict[str, Listed], classes: tuple[str, ...], size: int, notes: list[str]
) -> dict[str, Split]:
    """The images of a site by split, each with its mask. The site's masks together say what 255 means."""
    paths, masks = (sum((pair[number] for pair in parts.values()), []) for number in (0, 1))
    targets, said = mask_files.as_classes(site, masks, *mask_files.read(root, name, paths, masks, size), len(classes))
    whole, unusual = images.labelled(root, name, paths, targets, size, upright=True)
    notes.extend([*unusual, *said])
    ends = np.cumsum([len(own) for own, _ in parts.values()])
    cuts = np.split(np.arange(len(whole)), ends[:-1])
    return {part: whole.select(cut) for part, cut in zip(parts, cuts, strict=True)}
