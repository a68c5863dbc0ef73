"""Handwritten and photographed digits from four sources."""

from functools import partial
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _digit_files as digit_files
from fednb.datasets import _images as images
from fednb.datasets._cache import Arrays, cached
from fednb.datasets._cache import key as cache_key
from fednb.datasets._listed import Needs, lacking
from fednb.datasets._partition import check_shares, sizes, stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split, chosen_sites

NEEDS = Needs(
    what="MNIST (LeCun et al. 1998), MNIST-M (Ganin et al. 2016, made from MNIST and BSDS500), USPS (Hull 1994), SVHN "
    "(Netzer et al. 2011)",
    layout="in digits/ or in the data folder itself, each as torchvision downloads it (MNIST/raw/*-ubyte[.gz]; "
    "usps.bz2 and usps.t.bz2; train_32x32.mat and test_32x32.mat) or as "
    "<mnist|mnist_m|usps|svhn>.npz with x_train, y_train, x_test, y_test (uint8 [n, height, width] or [n, "
    "height, width, 3]), to which more=True adds <the same>_more.npz",
    page="yann.lecun.com/exdb/mnist, yaroslav.ganin.net (MNIST-M), www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets "
    "(USPS), ufldl.stanford.edu/housenumbers (SVHN)",
    download="MNIST 12 MB, USPS 8 MB, SVHN 182 and 64 MB; MNIST-M's size is not stated",
    licence="MNIST CC BY-SA 3.0; SVHN for non-commercial use; those of USPS and MNIST-M are not stated",
)
# Training and test images of the complete sources.
COMPLETE = {
    "mnist": (60_000, 10_000),
    "mnist_m": (59_001, 9_001),
    "usps": (7_291, 2_007),
    "svhn": (73_257, 26_032),
}
DOMAINS = tuple(COMPLETE)
SIZE = 32
VALIDATION = 0.1  # of the training images in use, as in FRAug's released code


def load(
    root: Path,
    *,
    domains: tuple[str, ...] | None = None,
    fraction: float = 0.1,
    test_fraction: float = 1.0,
    separate_mnist_m: bool = False,
    more: bool = False,
    seed: int = 0,
    site: str | None = None,
) -> Federation:
    """Sites mnist, mnist_m, usps, svhn; 32 x 32, ten classes.

    Args:
        domains: which sites, in this order; None takes every one on disk, and ``notes`` names those missing.
        fraction: share of each complete source's training images that is used, stratified by class; a tenth of
            them is validation. FRAug uses 0.01: 600 of MNIST, 590 of MNIST-M, 73 of USPS, 733 of SVHN, however
            many are on disk (its code takes 1 % of 81 % of the joined training and test images: 567, about 550,
            75 and 804). FedBN uses 0.1.
        test_fraction: share of each complete source's test images, stratified; below 1 testing takes less time.
            Where fewer are on disk, all of them are used and ``notes`` has both numbers.
        separate_mnist_m: leave the digits that this federation's MNIST-M images are made from out of the
            MNIST site. Needs ``index_train`` and ``index_test`` in mnist_m.npz: the MNIST number of each
            image. By default they stay, as the papers say nothing of it: training and test images keep apart
            either way, because MNIST-M's training images are made from MNIST's training images, and ``notes``
            counts them.
        more: with the images of ``<domain>_more.npz`` after those of ``<domain>.npz``, for a source that lies in two
            files; without it, the second is not read.
        seed: of all draws.
        site: reads this one alone; with ``separate_mnist_m``, MNIST reads MNIST-M as well.

    Reference: FRAug, Sec. 4.1.1.
    """
    check_shares(fraction=fraction, test_fraction=test_fraction)
    files = _files(root, domains=domains, separate_mnist_m=separate_mnist_m, more=more, site=site)
    notes = [f"{name} is not on disk and left out." for name in DOMAINS if not (domains or site or name in files)]
    held = {domain: _arrays(root, domain, files[domain]) for domain in files}
    chosen = {}
    # MNIST comes last, when it is known which of its digits MNIST-M uses.
    for domain in sorted(files, key=lambda domain: domain == "mnist"):
        free = {part: np.arange(len(held[domain][f"y_{part}"])) for part in ("train", "test")}
        if domain == "mnist" and separate_mnist_m and "mnist_m" in files:
            used = _origins(files, held, chosen["mnist_m"], required=True)
            free = {part: np.setdiff1d(free[part], used[part]) for part in free}
        chosen[domain] = _choose(held[domain], free, fraction, test_fraction, notes, domain, seed)
    if {"mnist", "mnist_m"} <= set(files):
        notes.extend(_shared(files, held, chosen))
    sites = [Site(domain, *(_split(held[domain], *cut) for cut in chosen[domain])) for domain in files]
    return Federation("digits", sites, tuple(str(digit) for digit in range(10)), tuple(notes))


def _files(
    root: Path,
    *,
    domains: tuple[str, ...] | None = None,
    separate_mnist_m: bool = False,
    more: bool = False,
    site: str | None = None,
    **options,
) -> dict[str, list[Path]]:
    """The files of each domain that is used: those named, else those on disk."""
    for domain in domains or ():
        if domain not in DOMAINS:
            raise RecipeError(f'digits has no domain "{domain}"; {nearest(str(domain), DOMAINS)}')
    named = list(domains or DOMAINS)
    needed = chosen_sites("digits", named, site)
    if site == "mnist" and separate_mnist_m and "mnist_m" in named:
        needed.append("mnist_m")
    found = {domain: files for domain in needed if (files := digit_files.find(root, domain, more))}
    absent = [domain for domain in needed if domain not in found]
    if absent and (domains or site or not found):
        raise DataError(f"There is no {' or '.join(absent)} in {root / 'digits'} or {root}.")
    if more and all(digit_files.find(root, name, more) == digit_files.find(root, name) for name in named):
        names = " or ".join(f"{domain}_more.npz" for domain in named)
        raise DataError(
            f"There is no {names} beside its first file in {root / 'digits'} or {root}; more=False does without."
        )
    return found


missing = partial(lacking, _files)


def _arrays(root: Path, domain: str, files: list[Path]) -> Arrays:
    """What a domain's files hold, with images as uint8 [n, 1 or 3, 32, 32]; cached."""

    def make() -> Arrays:
        arrays = digit_files.read(domain, files)
        return arrays | {name: _square(arrays[name]) for name in ("x_train", "x_test")}

    return cached(root, f"digits_{domain}_{cache_key((str(SIZE), *images.digests(files)))}", make)


def _square(pixels: np.ndarray) -> np.ndarray:
    """[n, height, width] or [n, height, width, 3] -> [n, 1 or 3, 32, 32]."""
    pixels = pixels.transpose(0, 3, 1, 2) if pixels.ndim == 4 else pixels[:, None]
    return np.ascontiguousarray(images.resized(pixels, SIZE))


Cut = tuple[str, np.ndarray]  # "train" or "test" of the source, and positions there


def _choose(
    arrays: Arrays, free: dict, fraction: float, test_fraction: float, notes: list[str], domain: str, seed: int
) -> list[Cut]:
    """The positions of training, validation and test images in a source; a note if it lacks test images."""
    complete = COMPLETE[domain]
    count, tested = round(complete[0] * fraction), round(complete[1] * test_fraction)
    shares = sizes(count, (1 - VALIDATION, VALIDATION))
    if not all((*shares, tested)):
        raise RecipeError(
            f"{domain} is left with {shares[0]} training, {shares[1]} validation and {tested} test images by "
            f"fraction={fraction} and test_fraction={test_fraction} of {complete[0]} and {complete[1]}. Enlarge them."
        )
    if count > len(free["train"]):
        raise DataError(
            f"fraction={fraction} asks for {count} training images of {domain}; {len(free['train'])} are on disk and "
            f"free. Get the complete source, or take a smaller fraction."
        )
    if tested > len(free["test"]):
        notes.append(f"{domain} is tested on {len(free['test'])} images; {tested} are asked for.")
        tested = len(free["test"])
    train, validation = stratified(arrays["y_train"][free["train"]], shares, "digits", "train", domain, seed)
    (test,) = stratified(arrays["y_test"][free["test"]], [tested], "digits", "test", domain, seed)
    return [
        ("train", free["train"][train]),
        ("train", free["train"][validation]),
        ("test", free["test"][test]),
    ]


def _split(arrays: Arrays, part: str, positions: np.ndarray) -> Split:
    pixels = torch.from_numpy(arrays[f"x_{part}"][positions])
    targets = torch.from_numpy(arrays[f"y_{part}"][positions].astype(np.int64))
    return Split(pixels.expand(-1, 3, -1, -1).contiguous(), targets)


def _origins(files: dict, held: dict[str, Arrays], chosen: list[Cut], required: bool) -> dict | None:
    """The MNIST positions of the chosen MNIST-M images by part, if the file has them."""
    made, mnist = held["mnist_m"], held["mnist"]
    file = files["mnist_m"][0]
    if not {"index_train", "index_test"} <= made.keys():
        if not required:
            return None
        raise DataError(
            f"{file} has no index_train and index_test; separate_mnist_m needs the MNIST number of each "
            f"image. Use a file that has them, or separate_mnist_m=False."
        )
    used = {"train": [], "test": []}
    for part, positions in chosen:
        origin = made[f"index_{part}"]
        labels = mnist[f"y_{part}"]
        within = origin.shape == made[f"y_{part}"].shape and 0 <= origin.min() and origin.max() < len(labels)
        if not within or (labels[origin] != made[f"y_{part}"]).any():
            raise DataError(
                f"index_{part} of {file} does not lead to MNIST images of the same digits; expected for each "
                f"image the position of its MNIST image, counted from 0. Get the file again."
            )
        used[part].extend(origin[positions])
    return used


def _shared(files: dict, held: dict[str, Arrays], chosen: dict[str, list[Cut]]) -> list[str]:
    """A line about digits that are in both sites."""
    used = _origins(files, held, chosen["mnist_m"], required=False)
    if used is None:
        return ["mnist_m is made from mnist, and its file does not say from which digits: some are in both sites."]
    both = sum(len(np.intersect1d(used[part], positions)) for part, positions in chosen["mnist"])
    if not both:
        return []
    return [
        f"{both} digits of mnist are in mnist_m as well, test images only in test; "
        "separate_mnist_m=True leaves them out of mnist."
    ]
