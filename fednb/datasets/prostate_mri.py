"""The prostate in T2-weighted MRI volumes of six hospitals: a class for every pixel of a slice."""

import gzip
import math
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._cache import Arrays, cached, key
from fednb.datasets._files import npy, reading, unpacked
from fednb.datasets._listed import Needs, lacking
from fednb.datasets._partition import sizes
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split, chosen_sites
from fednb.randomness import random_state

TASK = "segmentation"
NEEDS = Needs(
    what="the multi-site prostate MRI of Liu, Dou and Heng (2020), made from NCI-ISBI 2013 (RUNMC, BMC), I2CVB and "
    "PROMISE12 (UCL, BIDMC, HK)",
    layout="prostate_mri/<site>/<case>.nii.gz, such as RUNMC/Case00.nii.gz, with the mask of the same size beside it "
    "in <case>_segmentation.nii.gz or <case>_Segmentation.nii.gz: 0 background, 1 and 2 prostate. Reading NIfTI needs "
    'nibabel: pip install -e ".[prostate]" in a clone of fednb',
    page="liuquande.github.io/SAML",
    download="its size is not stated",
    licence="for research: the terms are those of the three sources",
)
SITES = ("BIDMC", "HK", "I2CVB", "BMC", "RUNMC", "UCL")
SLICES = {"BIDMC": 261, "HK": 157, "I2CVB": 468, "BMC": 384, "RUNMC": 411, "UCL": 175}  # in FedFA's released indices
FORMER = {"BMC": "ISBI_1.5", "RUNMC": "ISBI"}  # names of the released indices of two sites
CLASSES = ("background", "prostate")
SIDE = 384  # pixels, of the files' slices
MASK = "_segmentation.nii.gz"
VALUES = {0, 1, 2}  # of a mask: NCI-ISBI tells two zones of the prostate apart
LARGEST_MASK = 2**20  # bytes, from which FedFA's code leaves a volume out
MOST_VOXELS = 2**26  # of a volume, 384 x 384 x 455: the published ones have some dozens of slices
SPLITS = ("fedfa", "harmofl", "patients")
RATIO = 0.6  # of a site's slices for training
FEWEST = 32  # training slices of a site, whatever the ratio
FEWEST_VOLUMES = 5  # of a site; fewer cannot be divided by patient
AROUND = np.array([-1, 0, 1])

Pairs = list[tuple[Path, Path]]  # volumes and their masks


def load(
    root: Path,
    *,
    size: int = SIDE,
    split: str = "fedfa",
    ratio: float = RATIO,
    index_files: bool = False,
    site: str | None = None,
) -> Federation:
    """Six sites BIDMC, HK, I2CVB, BMC, RUNMC, UCL; a class for every pixel.

    An image is a slice with prostate, its channels the slice before, itself and the slice after. The first and the last
    slice of a volume are used as neighbours only. Grey values are clipped at the volume's 99 % quantile and stretched
    from its minimum to 0..255, rounded down. Classes are background and prostate. A volume whose mask is a file of
    1 MiB or more is left out. All this is FedFA's released code, and HarmoFL's before it; no paper prints it. FedRDN
    prints and released nothing of its own and names both as "previous work" (Sec. 4.1). ``Split.volumes`` says which
    volume a slice is of.

    Args:
        size: 384 is that of the files, which are then taken as they are. Otherwise masks are resized as coverage: from
            a half on a pixel is prostate.
        split: ``"fedfa"``: of the n slices of a site in a drawn order the first int(ratio n) but at least 32 are for
            training, the next int(0.2 n) for validation, the last int(0.2 n) for testing (Table 13). ``"harmofl"``: the
            first int(0.64 n), up to int(0.8 n), the rest (HarmoFL's code). Both deal out slices: those of one patient
            are in training and in test, which flatters every method. ``"patients"``: three, one and one fifth of the
            volumes, and of the training slices as many as ``"fedfa"`` takes, or all.
        ratio: share of a site's slices that trains, up to 0.6; not for ``"harmofl"``. 0.1 is FedFA's mini-ProstateMRI
            (Table 2: 32, 32, 46, 38, 41, 32 slices), 0.2 to 0.5 are the fractions 2/6 to 5/6 of Table 16.
        index_files: order the slices as FedFA's repository does, by ``prostate_mri/<site>-index.npy`` from its folder
            data/prostate, which HarmoFL's has too; those of BMC and RUNMC are called ISBI_1.5 and ISBI there. False
            draws the order, always the same. HarmoFL's order of the volumes themselves is not read.

    ``notes`` says where a site has other slices than FedFA's.

    Raises DataError also when a volume and its mask are of two sizes, when a mask is empty or has values beside 0, 1,
    2, and when nibabel is not installed.
    """
    images.check_size(size)
    if not isinstance(ratio, float) or not 0 < ratio <= RATIO:
        raise RecipeError(f"ratio is {ratio!r}; expected a share of a site's slices, above 0 and up to {RATIO}.")
    if split == "harmofl" and ratio != RATIO:
        raise RecipeError(f'ratio is {ratio} with split="harmofl", which trains on 0.64. Leave ratio or split out.')
    notes = []
    found = _volumes(root, split=split, index_files=index_files, site=site)
    sites = [_site(root, name, pairs, size, split, ratio, index_files, notes) for name, pairs in found.items()]
    if split != "patients":
        notes.append(f'split="{split}" has slices of one patient in training and in test; split="patients" has not.')
    return Federation("prostate_mri", sites, CLASSES, tuple(notes), TASK)


def _volumes(
    root: Path, *, split: str = "fedfa", index_files: bool = False, site: str | None = None, **options
) -> dict[str, Pairs]:
    """By site every volume and its mask, sorted by name."""
    if split not in SPLITS:
        raise RecipeError(f'prostate_mri has no split "{split}"; {nearest(str(split), SPLITS)}')
    places = {name: root / "prostate_mri" / name for name in chosen_sites("prostate_mri", SITES, site)}
    if absent := [str(place) for place in places.values() if not place.is_dir()]:
        raise DataError(f"There is no folder {', '.join(absent)}.")
    found = {name: _pairs(place) for name, place in places.items()}
    for name, pairs in found.items():
        if not pairs:
            raise DataError(f"There is no volume in {places[name]}.")
        if lost := [pair for pair in pairs if not all(path.is_file() for path in pair)]:
            volume, mask = lost[0]
            raise DataError(f"There is no {volume if mask.is_file() else mask} ({len(lost)} such cases in {name}).")
        if index_files and not (file := _index_file(root, name)).is_file():
            raise DataError(f"There is no {file}, the order of the slices of {name}; index_files=False draws it.")
    if not find_spec("nibabel"):
        raise DataError(f"The volumes in {root / 'prostate_mri'} cannot be read: nibabel is not installed.")
    return found


missing = partial(lacking, _volumes)


def _pairs(place: Path) -> Pairs:
    """The volumes and masks in a folder; one of the two need not be there."""
    masks, volumes = {}, {}
    for path in place.iterdir():
        if path.name.lower().endswith(MASK) and path.name[0] != ".":
            masks[path.name[: -len(MASK)]] = path
        elif path.name.endswith(".nii.gz") and path.name[0] != ".":
            volumes[path.name.removesuffix(".nii.gz")] = path
    return [
        (volumes.get(case, place / f"{case}.nii.gz"), masks.get(case, place / f"{case}{MASK}"))
        for case in sorted(masks.keys() | volumes.keys())
    ]


def _site(
    root: Path, name: str, pairs: Pairs, size: int, split: str, ratio: float, index_files: bool, notes: list[str]
) -> Site:
    small = [pair for pair in pairs if pair[1].stat().st_size < LARGEST_MASK]
    if len(small) < len(pairs):
        first = min(set(pairs) - set(small))[1].name
        note = f"{name}: left out for a mask of 1 MiB or more: {len(pairs) - len(small)} volumes, first {first}."
        if not small:
            raise DataError(f"{note} No other is there; expected gzipped masks of some kilobytes. Compress them.")
        notes.append(note)
    held = _read(root, name, small, size)
    count = len(held["middle"])
    if count != SLICES[name]:
        notes.append(f"{name} has {count} slices with prostate; FedFA's Table 13 is made from {SLICES[name]}.")
    order = _index(root, name, count) if index_files else random_state("prostate_mri", name).permutation(count)
    return Site(name, *(_part(held, cut) for cut in _cut(name, split, ratio, order, held["volume"])))


def _read(root: Path, name: str, pairs: Pairs, size: int) -> Arrays:
    """From the cache, if they have been read before.

    slices: uint8 ``[m, size, size]``, all slices of all volumes. middle, volume: int64 ``[n]``, of each slice with
    prostate where it is among ``slices``, and the number of its volume. masks: uint8 ``[n, size, size]``.
    """

    def make() -> Arrays:
        parts = {"slices": [], "masks": [], "middle": [], "volume": []}
        before = 0
        for number, pair in enumerate(pairs):
            grey, mask = _volume(*pair)
            middle = 1 + np.flatnonzero(mask[1:-1].any((1, 2)))
            if not len(middle):
                raise DataError(
                    f"{pair[1]} is empty: none of its {len(mask)} slices but perhaps the first and the last has "
                    "prostate; expected some. Get the mask that belongs to the volume, or remove both."
                )
            parts["slices"].append(images.resized(grey[:, None], size)[:, 0])
            covered = images.resized(255 * mask[middle, None], size)[:, 0]
            parts["masks"].append((covered >= 128).astype(np.uint8))
            parts["middle"].append(before + middle)
            parts["volume"].append(np.full(len(middle), number))
            before += len(grey)
        return {what: np.concatenate(arrays) for what, arrays in parts.items()}

    hashes = images.digests([path for pair in pairs for path in pair])
    return cached(root, f"prostate_mri_{name}_{size}_{key(hashes)}", make)


def _volume(path: Path, mask_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Grey values and mask, 0 and 1, of one volume: uint8 ``[slices, height, width]``."""
    grey, mask = _voxels(path), _voxels(mask_path)
    if grey.shape != mask.shape:
        own, theirs = (" x ".join(map(str, reversed(array.shape))) for array in (grey, mask))
        raise DataError(
            f"{mask_path} is {theirs} voxels and its volume {own}; expected the same size, a mask lies on its volume "
            "voxel by voxel. Put the one that belongs to the volume there."
        )
    values = np.unique(mask)
    if strange := [f"{value:g}" for value in values.tolist() if value not in VALUES]:
        raise DataError(
            f"{mask_path} has the values {', '.join(strange[:5])}; expected 0 for the background and 1 or 2 for the "
            "prostate. Get the mask again, or write the values that are meant."
        )
    low, high = grey.min(), np.quantile(grey, 0.99)
    if not high > low:
        raise DataError(
            f"{path} has no contrast: 99 % of its voxels are {low:g}; expected an MRI volume. Fetch it again, or "
            "remove it and its mask."
        )
    return (255 * ((np.minimum(grey, high) - low) / (high - low))).astype(np.uint8), (mask > 0).astype(np.uint8)


def _voxels(path: Path) -> np.ndarray:
    """What a NIfTI file holds, float64 ``[slices, height, width]``."""
    import nibabel

    def voxels(path: Path) -> np.ndarray:
        content = unpacked(path, gzip.open(path), 8 * MOST_VOXELS)
        volume = nibabel.Nifti1Image.from_bytes(content)
        most = min(MOST_VOXELS, len(content) // volume.get_data_dtype().itemsize)
        if len(volume.shape) != 3 or not 1 <= math.prod(volume.shape) <= most:
            raise ValueError(f"its shape is {volume.shape}, no volume of {len(content)} bytes")
        voxels = np.asarray(volume.dataobj).astype(np.float64, casting="safe").transpose()
        if not np.isfinite(voxels).all():
            raise ValueError("it has voxels that are no numbers")
        return voxels

    return reading(path, voxels, advice="Expected a whole NIfTI volume. Fetch it again, or remove the case.")


def _index_file(root: Path, name: str) -> Path:
    places = [root / "prostate_mri" / f"{each}-index.npy" for each in (name, FORMER.get(name, name))]
    return next((place for place in places if place.is_file()), places[0])


def _index(root: Path, name: str, count: int) -> np.ndarray:
    """The released order of a site's slices."""
    path = _index_file(root, name)
    order = reading(
        path, lambda path: npy(path.read_bytes()), advice="Expected numpy's list of numbers. Fetch it again."
    )
    if order.dtype.kind not in "iu" or sorted(order.ravel()) != list(range(count)) or order.ndim != 1:
        raise DataError(
            f"{path} holds {order.dtype} {list(order.shape)}; expected each of 0..{count - 1} once, {name} has {count} "
            "slices with prostate. Complete the volumes, or say index_files=False."
        )
    return order


def _cut(name: str, split: str, ratio: float, order: np.ndarray, volume: np.ndarray) -> list[np.ndarray]:
    """Positions of training, validation and test slices."""
    count = len(order)
    trained, fifth = int(max(ratio * count, FEWEST)), int(0.2 * count)
    if split == "harmofl":
        return np.split(order, [int(0.8 * count * 0.8), int(0.8 * count)])
    if split == "patients":
        volumes = random_state("prostate_mri", name, "patients").permutation(np.unique(volume))
        if len(volumes) < FEWEST_VOLUMES:
            raise DataError(f"{name} has {len(volumes)} volumes; expected {FEWEST_VOLUMES} or more. Complete the site.")
        groups = np.split(volumes, np.cumsum(sizes(len(volumes), (0.6, 0.2, 0.2)))[:2])
        train, validation, test = (order[np.isin(volume[order], group)] for group in groups)
        return [train[:trained], validation, test]
    if trained + 2 * fifth > count:
        raise DataError(
            f'{name} has {count} slices with prostate; split="fedfa" takes {trained} for training and twice {fifth}. '
            "Complete the site."
        )
    return [order[:trained], order[trained : trained + fifth], order[count - fifth :]]


def _part(held: Arrays, cut: np.ndarray) -> Split:
    pixels = held["slices"][held["middle"][cut, None] + AROUND]
    return Split(*map(torch.from_numpy, (pixels, held["masks"][cut], held["volume"][cut])))
