"""The prostate in T2-weighted MRI volumes of six hospitals: a class for every pixel of a slice."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._cache import Arrays, cached, key
from fednb.datasets._files import reading
from fednb.datasets._listed import lacking
from fednb.datasets._partition import sizes
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split, chosen_sites
from fednb.randomness import random_state

TASK = "segmentation"
NEEDS = (
    "the multi-site prostate MRI of Liu, Dou and Heng (2020), made from NCI-ISBI 2013 (RUNMC, BMC), I2CVB and "
    "PROMISE12 (UCL, BIDMC, HK). Layout: prostate_mri/<site>/<case>.nii.gz, such as RUNMC/Case00.nii.gz, with the mask "
    "of the same size next to it in <case>_segmentation.nii.gz or <case>_Segmentation.nii.gz: 0 background, 1 and 2 "
    'prostate. Reading NIfTI needs nibabel: pip install -e ".[prostate]" in a clone of fednb. From '
    "liuquande.github.io/SAML; its size is not stated. Licence: for research, with the terms of the three sources."
)
SITES = ("BIDMC", "HK", "I2CVB", "BMC", "RUNMC", "UCL")
CLASSES = ("background", "prostate")
SIDE = 384  # pixels, of the files' slices
MASK = "_segmentation.nii.gz"
VALUES = {0, 1, 2}  # of a mask: NCI-ISBI tells two zones of the prostate apart
LARGEST_MASK = 2**20  # bytes, from which FedFA's code leaves a volume out
SPLITS = ("fedfa", "harmofl", "patients")
RATIO = 0.6  # of a site's slices for training
FEWEST = 32  # training slices of a site, whatever the ratio
AROUND = np.array([-1, 0, 1])

Pairs = list[tuple[Path, Path]]  # volumes and their masks


def load(
    root: Path, *, size: int = SIDE, split: str = "fedfa", ratio: float = RATIO, site: str | None = None
) -> Federation:
    """Six sites BIDMC, HK, I2CVB, BMC, RUNMC, UCL; a class for every pixel.

    An image is a slice with prostate, its channels the slice before, itself and the slice after; the first and the last
    slice of a volume are neighbours only. Grey values are clipped at the volume's 99 % quantile and stretched from its
    minimum to 0..255, rounded down. A volume whose mask is a file of 1 MiB or more is left out. All this is FedFA's
    released code, and HarmoFL's before it; no paper prints it. FedRDN names both as "previous work" (Sec. 4.1). The
    order of the slices is drawn, always the same: FedFA's and HarmoFL's index files are not read.

    Args:
        size: 384 is that of the files. Otherwise masks are resized as coverage: from a half on a pixel is prostate.
        split: ``"fedfa"``: of the n slices of a site in a drawn order the first int(ratio n) but at least 32 are for
            training, the next int(0.2 n) for validation, the last int(0.2 n) for testing (Table 13). ``"harmofl"``: the
            first int(0.64 n), up to int(0.8 n), the rest (HarmoFL's code). Both have slices of one patient in training
            and in test. ``"patients"``: three, one and one fifth of the volumes, and of the training slices as many as
            ``"fedfa"`` takes, or all.
        ratio: share of a site's slices that trains, up to 0.6; not for ``"harmofl"``. 0.1 is FedFA's mini-ProstateMRI
            (Table 2: 32, 32, 46, 38, 41, 32 slices), 0.2 to 0.5 are the fractions 2/6 to 5/6 of Table 16.
    """
    if not isinstance(ratio, float) or not 0 < ratio <= RATIO:
        raise RecipeError(f"ratio is {ratio!r}; expected a share of a site's slices, above 0 and up to {RATIO}.")
    if split == "harmofl" and ratio != RATIO:
        raise RecipeError(f'ratio is {ratio} with split="harmofl", which trains on 0.64. Leave ratio or split out.')
    found, notes = _volumes(root, split=split, site=site), []
    sites = [_site(root, name, pairs, size, split, ratio, notes) for name, pairs in found.items()]
    if split != "patients":
        notes.append(f'split="{split}" has slices of one patient in training and in test; split="patients" has not.')
    return Federation("prostate_mri", sites, CLASSES, tuple(notes), TASK)


def _volumes(root: Path, *, split: str = "fedfa", site: str | None = None, **options) -> dict[str, Pairs]:
    if split not in SPLITS:
        raise RecipeError(f'prostate_mri has no split "{split}"; {nearest(str(split), SPLITS)}')
    places = {name: root / "prostate_mri" / name for name in chosen_sites("prostate_mri", SITES, site)}
    if absent := [str(place) for place in places.values() if not place.is_dir()]:
        raise DataError(f"There is no folder {', '.join(absent)}.")
    found = {name: _pairs(place) for name, place in places.items()}
    if not find_spec("nibabel"):
        raise DataError(f"The volumes in {root / 'prostate_mri'} cannot be read: nibabel is not installed.")
    return found


missing = lacking(_volumes)


def _pairs(place: Path) -> Pairs:
    names = {path.name for path in place.glob("[!.]*.nii.gz")}
    masks = {name[: -len(MASK)]: name for name in names if name.lower().endswith(MASK)}
    cases = sorted(masks.keys() | {name.removesuffix(".nii.gz") for name in names - {*masks.values()}})
    pairs = [(place / f"{case}.nii.gz", place / masks.get(case, f"{case}{MASK}")) for case in cases]
    if lost := [path for pair in pairs for path in pair if path.name not in names]:
        raise DataError(f"There is no {lost[0]} ({len(lost)} such cases in {place.name}).")
    if not pairs:
        raise DataError(f"There is no volume in {place}.")
    return pairs


def _site(root: Path, name: str, pairs: Pairs, size: int, split: str, ratio: float, notes: list[str]) -> Site:
    small = [pair for pair in pairs if pair[1].stat().st_size < LARGEST_MASK]
    if len(small) < len(pairs):
        first = min({*pairs} - {*small})[1].name
        notes.append(f"{name}: left out for a mask of 1 MiB or more: {len(pairs) - len(small)} volumes, first {first}.")
    if not small:
        raise DataError(f"{notes[-1]} No other is there; expected gzipped masks of some kilobytes. Compress them.")
    held = _read(root, name, small, size)
    order = random_state("prostate_mri", name).permutation(len(held["middle"]))
    return Site(name, *(_part(held, cut) for cut in _cut(name, split, ratio, order, held["volume"])))


def _read(root: Path, name: str, pairs: Pairs, size: int) -> Arrays:
    """slices: uint8 ``[m, size, size]``, all slices of all volumes. middle, volume: int64 ``[n]``, of each slice with
    prostate where it is among ``slices``, and the number of its volume. masks: uint8 ``[n, size, size]``."""

    def make() -> Arrays:
        parts = {"slices": [], "masks": [], "middle": [], "volume": []}
        before = 0
        for number, pair in enumerate(pairs):
            grey, mask = _volume(*pair)
            middle = 1 + np.flatnonzero(mask[1:-1].any((1, 2)))
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
    """Grey values and mask, 0 and 1: uint8 ``[slices, height, width]``."""
    grey, mask = _voxels(path), _voxels(mask_path)
    low, high, values = grey.min(), np.quantile(grey, 0.99), np.unique(mask)
    used = mask[1:-1].any()  # in all slices but the first and the last
    if grey.shape != mask.shape or not {*values.tolist()} <= VALUES or not used or not high > low:
        shapes = [" x ".join(map(str, reversed(array.shape))) for array in (grey, mask)]
        found = f"{', '.join(f'{value:g}' for value in values[:5])}{'' if used else ', empty'}"
        raise DataError(
            f"{path} has {shapes[0]} voxels from {low:g} to {high:g}, and {mask_path} {shapes[1]} with the values "
            f"{found}; expected a volume with contrast and a mask of its size, of 0, and 1 or 2. Fetch both again."
        )
    return (255 * ((np.minimum(grey, high) - low) / (high - low))).astype(np.uint8), (mask > 0).astype(np.uint8)


def _voxels(path: Path) -> np.ndarray:
    import nibabel

    def voxels(path: Path) -> np.ndarray:
        volume = nibabel.Nifti1Image.from_filename(path)
        if len(volume.shape) != 3 or 0 in volume.shape:
            raise ValueError(f"its shape is {volume.shape}, no volume's")
        voxels = np.asarray(volume.dataobj).astype(np.float64, casting="safe").transpose()
        if not np.isfinite(voxels).all():
            raise ValueError("it has voxels that are no numbers")
        return voxels

    return reading(path, voxels, advice="Expected a whole NIfTI volume. Fetch it again, or remove the case.")


def _cut(name: str, split: str, ratio: float, order: np.ndarray, volume: np.ndarray) -> Sequence[np.ndarray]:
    count = len(order)
    trained, fifth = int(max(ratio * count, FEWEST)), int(0.2 * count)
    parts = order[:trained], order[trained : trained + fifth], order[count - fifth :]
    if split == "harmofl":
        parts = np.split(order, [int(0.8 * count * 0.8), int(0.8 * count)])
    if split == "patients":
        volumes = random_state("prostate_mri", name, "patients").permutation(np.unique(volume))
        groups = np.split(volumes, np.cumsum(sizes(len(volumes), (0.6, 0.2, 0.2)))[:2])
        train, *others = (order[np.isin(volume[order], group)] for group in groups)
        parts = train[:trained], *others
    if not all(map(len, parts)) or (split == "fedfa" and trained + 2 * fifth > count):
        raise DataError(f'{name} has {count} slices with prostate, too few for split="{split}". Complete the site.')
    return parts


def _part(held: Arrays, cut: np.ndarray) -> Split:
    pixels = held["slices"][held["middle"][cut, None] + AROUND]
    return Split(*map(torch.from_numpy, (pixels, held["masks"][cut], held["volume"][cut])))
