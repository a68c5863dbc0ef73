"""Office-Caltech-10: ten kinds of objects seen by four sources of photographs."""

import csv
import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from fednb.data import _class_folders as class_folders
from fednb.data import _images as images
from fednb.data import _pickles as pickles
from fednb.data._partition import stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split

NEEDS = (
    "Office-Caltech-10 (Saenko et al. 2010, Griffin et al. 2007, Gong et al. 2012; for research, the images "
    "belong to their photographers and shops). Images at office_caltech_10/<domain>/<class>/<file>, domains "
    "amazon, caltech, dslr, webcam (958, 1123, 157, 295 images). FedBN's lists at "
    "splits/office_caltech_10_<domain>_<train|test>.csv (columns path,label), or its pickles "
    "<domain>_<train|test>.pkl in office_caltech_10/. The archive that github.com/med-air/FedBN links has "
    "both."
)
DOMAINS = ("amazon", "caltech", "dslr", "webcam")
# FedBN's numbering, which is alphabetical.
CLASSES = (
    "back_pack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop_computer",
    "monitor",
    "mouse",
    "mug",
    "projector",
)
SPLITS = ("fedbn", "fedfa", "stratified")
# int(0.5 * 125) and int(0.4 * 125) of FedBN's fed_office.py; 125 is the length of the shortest list, dslr's.
FEDBN_TRAIN, FEDBN_VALIDATION = 62, 50
# FedFA, Table 11: train, validation, test.
TABLE11 = {
    "amazon": (459, 307, 192),
    "caltech": (538, 360, 225),
    "dslr": (75, 50, 32),
    "webcam": (141, 95, 59),
}

Parts = dict[str, list[str]]  # train, validation, test: paths such as amazon/mug/frame_0001.jpg


def load(
    root: Path,
    *,
    split: str = "fedbn",
    size: int = 256,
    train_images: int | None = None,
    drop_duplicates: bool = False,
) -> Federation:
    """Four sites amazon, caltech, dslr, webcam; RGB ``size`` x ``size``, ten classes in FedBN's numbering.

    Args:
        root: the data folder.
        split: ``"fedbn"``: FedBN's lists in their order, the first 62 of a train list for training and its
            last 50 for validation (FedRDN uses this). ``"fedfa"``: FedBN's lists, the first 459 / 538 / 75 /
            141 for training, the rest for validation (FedFA, Table 11). Both test on 192 / 225 / 32 / 59
            images. ``"stratified"``: without lists, the sizes of Table 11, drawn with all classes in
            proportion, always the same. Its test images are not FedBN's.
        size: height and width in pixels; resized bilinearly without cropping. Grey images get three channels.
        train_images: only the first so many training images of each site; None takes the split's own number.
            With ``"fedbn"`` it may be more than 62, up to where validation begins (75 for dslr).
        drop_duplicates: leave out training and validation images whose files are byte for byte a test image
            of the same site. None of the others moves up, so a comparison changes nothing else.

    Licence and layout: see ``NEEDS``. ``notes`` counts the images that duplicate a test image.

    Raises DataError when a domain, a list or a listed image is missing, an image or a list is damaged, or a
    list is too short for the split; RecipeError for an option out of its range.
    """
    images.check_size(size)
    problem = missing(root, split=split)
    if problem:
        raise DataError(f"{problem} Expected: {NEEDS}")
    sites, notes = [], []
    for domain in DOMAINS:
        files = _files(root, domain)
        parts = _parts(root, domain, split, list(files))
        parts["train"] = _first(parts, domain, split, train_images)
        absent = [path for part in parts.values() for path in part if path not in files]
        if absent:
            raise DataError(
                f"{len(absent)} images in the lists of {domain} are not in {root / 'office_caltech_10'}, "
                f'first {absent[0]}. Get the images of the lists, or use split="stratified".'
            )
        hashes = dict(zip(files, images.digests(list(files.values())), strict=True))
        notes.extend(_duplicates(domain, parts, hashes, drop_duplicates))
        pixels, unusual = images.read(root, f"office_{domain}", list(files.values()), list(hashes.values()), size)
        notes += [*_lacking(root, domain, split), *_unused(root, domain), *unusual]
        row = {path: number for number, path in enumerate(files)}
        sites.append(Site(domain, *(_split(pixels, row, part) for part in parts.values())))
    return Federation("office_caltech10", sites, CLASSES, tuple(notes))


def missing(root: Path, *, split: str = "fedbn", **options) -> str | None:
    """One sentence when a domain's or a class's folder, or the lists that ``split`` needs, are not there."""
    if split not in SPLITS:
        raise RecipeError(f'office_caltech10 has no split "{split}"; {nearest(str(split), SPLITS)}')
    folders = [root / "office_caltech_10" / domain / name for domain in DOMAINS for name in CLASSES]
    absent = [folder for folder in folders if not folder.is_dir()]
    if absent:
        whole = dict.fromkeys(folder.parent for folder in absent if not folder.parent.is_dir())
        return f"There is no folder {', '.join(str(folder) for folder in whole or absent)}."
    for domain, part in itertools.product(DOMAINS, ("train", "test")) if split != "stratified" else ():
        if not _list_file(root, domain, part):
            places = ", ".join(str(place) for place in _list_places(root, domain, part))
            return f'The {part} list of {domain} is at none of {places}; split="stratified" needs no lists.'
    return None


def describe(root: Path) -> list[str]:
    """Images and lists on disk by domain, for ``fednb data``."""
    lines = [missing(root) or "ready"]
    for domain in DOMAINS:
        found = len(_files(root, domain))
        lists = sum(_list_file(root, domain, part) is not None for part in ("train", "test"))
        lines.append(f"{domain}: {found} images (complete: {sum(TABLE11[domain])}), {lists} of 2 lists")
        lines.extend(_unused(root, domain))
        lines.extend(_lacking(root, domain, "fedbn") if lists == 2 else [])
    return lines


def straddling(root: Path) -> list[tuple[list[str], list[str]]]:
    """Groups of byte-identical files on both sides of FedBN's lists: (paths in train, paths in test) of each.

    The original images have nine groups, eight in amazon and one in caltech.
    Raises DataError as ``load`` does.
    """
    problem = missing(root)
    if problem:
        raise DataError(f"{problem} Expected: {NEEDS}")
    groups = []
    for domain in DOMAINS:
        files = _files(root, domain)
        hashes = dict(zip(files, images.digests(list(files.values())), strict=True))
        members = defaultdict(lambda: ([], []))
        for side, part in enumerate(("train", "test")):
            for path in _listed(root, domain, part):
                if path in hashes:
                    members[hashes[path]][side].append(path)
        groups.extend(group for group in members.values() if all(group))
    return groups


def _files(root: Path, domain: str) -> dict[str, Path]:
    """All images of a domain by their path in the lists, sorted."""
    folder = root / "office_caltech_10" / domain
    return {
        f"{domain}/{name}/{file.name}": file
        for name in CLASSES
        if (folder / name).is_dir()
        for file in images.files(folder / name)
    }


def _unused(root: Path, domain: str) -> list[str]:
    return class_folders.unused(root / "office_caltech_10" / domain, CLASSES)


def _lacking(root: Path, domain: str, split: str) -> list[str]:
    """A note on each list that is shorter or longer than FedBN's."""
    train, validation, test = TABLE11[domain]
    notes = []
    for part, complete in (("train", train + validation), ("test", test)) if split != "stratified" else ():
        rows = len(_listed(root, domain, part))
        if rows != complete:
            notes.append(f"The {part} list of {domain} has {rows} rows; FedBN's has {complete}.")
    return notes


def _parts(root: Path, domain: str, split: str, names: list[str]) -> Parts:
    if split == "stratified":
        if len(names) != sum(TABLE11[domain]):
            raise DataError(
                f"{root / 'office_caltech_10' / domain} has {len(names)} images; FedFA's Table 11 divides "
                f'{sum(TABLE11[domain])}. Complete the folder, or use the federation "folders" for other '
                f"images."
            )
        targets = np.array([_target(name) for name in names])
        cuts = stratified(targets, TABLE11[domain], "office_caltech10", domain)
        train, validation, test = ([names[i] for i in cut] for cut in cuts)
        return {"train": train, "validation": validation, "test": test}
    listed = _listed(root, domain, "train")
    start = len(listed) - FEDBN_VALIDATION if split == "fedbn" else TABLE11[domain][0]
    if not 0 < start < len(listed):
        raise DataError(
            f'the train list of {domain} has {len(listed)} images; split="{split}" needs more than '
            f"{FEDBN_VALIDATION if split == 'fedbn' else start}. Get the whole list."
        )
    test = _listed(root, domain, "test")
    both = set(listed) & set(test)
    if both:
        raise DataError(f"{min(both)} is in the train list and in the test list of {domain}; expected one only.")
    return {"train": listed[:start], "validation": listed[start:], "test": test}


def _first(parts: Parts, domain: str, split: str, train_images: int | None) -> list[str]:
    """The training images in use: the first of those that validation leaves."""
    most = len(parts["train"])
    count = train_images
    if count is None:
        count = FEDBN_TRAIN if split == "fedbn" else most
        if count > most:
            raise DataError(
                f"the train list of {domain} leaves {most} images beside {FEDBN_VALIDATION} for validation; "
                f"FedBN's split trains on {count}. Get the whole list, or say train_images={most}."
            )
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= most:
        raise RecipeError(
            f'train_images is {count!r}; {domain} with split="{split}" has 1 to {most} beside its validation images.'
        )
    return parts["train"][:count]


def _duplicates(domain: str, parts: Parts, hashes: dict[str, str], drop: bool) -> list[str]:
    """Counts, and with ``drop`` removes, training and validation images that equal a test image."""
    test = {hashes[path] for path in parts["test"]}
    counts = []
    for part in ("train", "validation"):
        kept = [path for path in parts[part] if hashes[path] not in test]
        if len(kept) < len(parts[part]):
            counts.append(f"{len(parts[part]) - len(kept)} in {part}")
        if drop:
            parts[part] = kept
    if not counts:
        return []
    done = "left out" if drop else "kept; drop_duplicates=True leaves them out"
    return [f"{domain}, images with the same bytes as a test image: {', '.join(counts)} ({done})."]


def _split(pixels: np.ndarray, row: dict[str, int], paths: list[str]) -> Split:
    targets = torch.tensor([_target(path) for path in paths], dtype=torch.int64)
    return Split(torch.from_numpy(pixels[[row[path] for path in paths]]), targets)


def _target(path: str) -> int:
    return CLASSES.index(path.split("/")[1])


def _list_places(root: Path, domain: str, part: str) -> tuple[Path, ...]:
    pickle = f"{domain}_{part}.pkl"
    return (
        root / "splits" / f"office_caltech_10_{domain}_{part}.csv",
        root / "office_caltech_10" / pickle,
        root / "splits" / pickle,
    )


def _list_file(root: Path, domain: str, part: str) -> Path | None:
    return next((place for place in _list_places(root, domain, part) if place.is_file()), None)


def _listed(root: Path, domain: str, part: str) -> list[str]:
    """The paths of a list, in its order, as <domain>/<class>/<file>."""
    file = _list_file(root, domain, part)
    rows = zip(*pickles.paths_and_labels(file), strict=True) if file.suffix == ".pkl" else _csv_rows(file)
    paths = []
    for number, (path, label) in enumerate(rows, 1):
        path = "/".join(path.replace("\\", "/").split("/")[-3:])
        if path.count("/") != 2 or path.split("/")[:2] != [domain, label] or label not in CLASSES:
            raise DataError(
                f'{file}, entry {number}: path "{path}" and label "{label}"; expected '
                f"{domain}/<class>/<file> and "
                f"its class, one of {', '.join(CLASSES)}."
            )
        paths.append(path)
    if not paths or len(set(paths)) < len(paths):
        raise DataError(f"{file} has {len(paths)} entries, {len(set(paths))} different; expected each image once.")
    return paths


def _csv_rows(file: Path) -> list[tuple[str, str]]:
    try:
        with open(file, newline="", encoding="utf-8") as handle:
            return [(row["path"], row["label"]) for row in csv.DictReader(handle, strict=True)]
    except (csv.Error, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read ({error}); expected columns path,label in UTF-8.") from error
