"""Handwritten and photographed digits from four sources."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _digit_files as digit_files
from fednb.datasets import _images as images
from fednb.datasets._cache import Arrays, cached, key
from fednb.datasets._listed import lacking
from fednb.datasets._partition import check_shares, sizes, stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split, chosen_sites

NEEDS = (
    "MNIST (LeCun et al. 1998), MNIST-M (Ganin et al. 2016, made from MNIST and BSDS500), USPS (Hull 1994), SVHN "
    "(Netzer et al. 2011). Layout: in digits/ or in the data folder itself, <mnist|mnist_m|usps|svhn>.npz with "
    "x_train, y_train, x_test, y_test (uint8 [n, height, width] or [n, height, width, 3]), which docs/data.md makes of "
    "the sources' files; of MNIST also MNIST/raw/*-ubyte[.gz]; more=True adds <the same>_more.npz. From "
    "yann.lecun.com/exdb/mnist, yaroslav.ganin.net (MNIST-M), www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets (USPS), "
    "ufldl.stanford.edu/housenumbers (SVHN, 246 MB). Licence: MNIST CC BY-SA 3.0; SVHN for non-commercial use."
)
COMPLETE = {  # training and test images of the complete sources
    "mnist": (60_000, 10_000),
    "mnist_m": (59_001, 9_001),
    "usps": (7_291, 2_007),
    "svhn": (73_257, 26_032),
}
DOMAINS = tuple(COMPLETE)
SIZE = 32
MARGIN = 5  # pixels on each side: 22 of 32 are left, MNIST's 20 of 28
VALIDATION = 0.1  # of the training images in use, as in FRAug's released code

Cut = tuple[str, np.ndarray]  # "train" or "test" of the source, and positions there


def load(
    root: Path,
    *,
    domains: tuple[str, ...] | None = None,
    fraction: float = 0.1,
    test_fraction: float = 1.0,
    separate_mnist_m: bool = False,
    more: bool = False,
    usps_margin: bool = False,
    seed: int = 0,
    site: str | None = None,
) -> Federation:
    """Sites mnist, mnist_m, usps, svhn; 32 x 32, ten classes.

    Args:
        domains: which sites, in this order; None takes every one on disk, and ``notes`` names those missing.
        fraction: share of each complete source's training images that is used, stratified by class; a tenth of them is
            validation. FRAug: 0.01, 600 of MNIST, 590 of MNIST-M, 73 of USPS, 733 of SVHN (its code takes 1 % of 81 %
            of the joined training and test images). FedBN: 0.1.
        test_fraction: share of each complete source's test images, stratified; if fewer are on disk, all of them.
        separate_mnist_m: leave the digits that this federation's MNIST-M images are made from out of the MNIST site, by
            ``index_train`` and ``index_test`` in mnist_m.npz, the MNIST number of each image. The papers say nothing.
        usps_margin: give USPS the margin of MNIST, whose digits take 20 of 28 pixels. USPS' digits fill their frame as
            read, enlarged from 16 x 16 as in the usual pipelines. FRAug does not say.
        more: with the images of ``<domain>_more.npz``, for a source that lies in two files.
        site: reads this one alone; with ``separate_mnist_m``, MNIST reads MNIST-M as well.

    Reference: FRAug, Sec. 4.1.1.
    """
    check_shares(fraction=fraction, test_fraction=test_fraction)
    files = _files(root, domains=domains, separate_mnist_m=separate_mnist_m, more=more, site=site)
    notes = [f"{name} is not on disk and left out." for name in DOMAINS if not (domains or site or name in files)]
    held = {domain: _arrays(root, domain, files[domain], usps_margin and domain == "usps") for domain in files}
    chosen = {}
    for domain in sorted(files, key=lambda domain: domain == "mnist"):  # last, when its digits in MNIST-M are known
        free = {part: np.arange(len(held[domain][f"y_{part}"])) for part in ("train", "test")}
        made_from = domain == "mnist" and "mnist_m" in files
        if made_from:
            used = _origins(files["mnist_m"][0], held, chosen["mnist_m"], separate_mnist_m)
            if separate_mnist_m:
                free = {part: np.setdiff1d(free[part], used[part]) for part in free}
        chosen[domain] = _choose(held[domain], free, fraction, test_fraction, notes, domain, seed)
        if made_from:
            notes += _shared(used, chosen["mnist"])
    sites = [Site(domain, *(_split(held[domain], *cut) for cut in chosen[domain])) for domain in files]
    return Federation("digits", sites, tuple("0123456789"), tuple(notes))


def _files(root: Path, *, domains=None, separate_mnist_m=False, more=False, site=None, **_) -> dict[str, list[Path]]:
    named = list(domains or DOMAINS)
    if unknown := [domain for domain in named if domain not in DOMAINS]:
        raise RecipeError(f'digits has no domain "{unknown[0]}"; {nearest(str(unknown[0]), DOMAINS)}')
    needed = chosen_sites("digits", named, site)
    if site == "mnist" and separate_mnist_m and "mnist_m" in named:
        needed.append("mnist_m")
    found = {domain: files for domain in needed if (files := digit_files.find(root, domain, more))}
    absent = [domain for domain in needed if domain not in found]
    if absent and (domains or site or not found):
        raise DataError(f"There is no {' or '.join(absent)} in {root / 'digits'} or {root}.")
    if more and not site and not any(len(files) == 2 for files in found.values()):
        raise DataError(f"There is no {' or '.join(f'{name}_more.npz' for name in named)} in {root}; say more=False.")
    return found


missing = lacking(_files)


def _arrays(root: Path, domain: str, files: list[Path], margin: bool) -> Arrays:
    """What a domain's files hold, with images as uint8 ``[n, 1 or 3, 32, 32]``, shrunk within a black margin or not."""
    edge = MARGIN if margin else 0

    def make() -> Arrays:
        arrays = digit_files.read(files)
        for name in ("x_train", "x_test"):
            pixels = arrays[name].transpose(0, 3, 1, 2) if arrays[name].ndim == 4 else arrays[name][:, None]
            shrunk = images.resized(pixels, SIZE - 2 * edge)
            arrays[name] = np.pad(shrunk, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
        return arrays

    kind = "digits_margin" if margin else "digits"
    return cached(root, f"{kind}_{domain}_{key((str(SIZE), *images.digests(files)))}", make)


def _choose(
    arrays: Arrays, free: dict, fraction: float, test_fraction: float, notes: list[str], domain: str, seed: int
) -> list[Cut]:
    complete = COMPLETE[domain]
    count, tested = round(complete[0] * fraction), round(complete[1] * test_fraction)
    shares = sizes(count, (1 - VALIDATION, VALIDATION))
    if not all((*shares, tested)):
        left = f"{shares[0]} training, {shares[1]} validation and {tested} test images"
        by = f"fraction={fraction} and test_fraction={test_fraction} of {complete[0]} and {complete[1]}"
        raise RecipeError(f"{domain} is left with {left} by {by}. Enlarge them.")
    if count > len(free["train"]):
        there = f"{len(free['train'])} are on disk and free. Get the complete source, or take a smaller fraction"
        raise DataError(f"fraction={fraction} asks for {count} training images of {domain}; {there}.")
    if tested > len(free["test"]):
        notes.append(f"{domain} is tested on {len(free['test'])} images; {tested} are asked for.")
        tested = len(free["test"])
    train, validation = stratified(arrays["y_train"][free["train"]], shares, "digits", "train", domain, seed)
    (test,) = stratified(arrays["y_test"][free["test"]], [tested], "digits", "test", domain, seed)
    return [("train", free["train"][train]), ("train", free["train"][validation]), ("test", free["test"][test])]


def _split(arrays: Arrays, part: str, positions: np.ndarray) -> Split:
    pixels = torch.from_numpy(arrays[f"x_{part}"][positions])
    targets = torch.from_numpy(arrays[f"y_{part}"][positions].astype(np.int64))
    return Split(pixels.expand(-1, 3, -1, -1).contiguous(), targets)


def _origins(file: Path, held: dict[str, Arrays], chosen: list[Cut], required: bool) -> dict | None:
    """The MNIST positions of the chosen MNIST-M images by part; None if the file has none."""
    made = held["mnist_m"]
    if not {"index_train", "index_test"} <= made.keys():
        if not required:
            return None
        raise DataError(f"{file} has no index_train and index_test, which separate_mnist_m needs; leave it False.")
    used = {"train": [], "test": []}
    for part, positions in chosen:
        origin, labels = made[f"index_{part}"], held["mnist"][f"y_{part}"]
        within = origin.shape == made[f"y_{part}"].shape and 0 <= origin.min() and origin.max() < len(labels)
        if not within or (labels[origin] != made[f"y_{part}"]).any():
            raise DataError(f"index_{part} of {file} does not lead to MNIST images of the same digits. Get it again.")
        used[part].extend(origin[positions])
    return used


def _shared(used: dict | None, mnist: list[Cut]) -> list[str]:
    if used is None:
        return ["mnist_m is made from mnist, and its file does not say from which digits: some are in both sites."]
    both = sum(len(np.intersect1d(used[part], positions)) for part, positions in mnist)
    said = "digits of mnist are in mnist_m as well, test images only in test; separate_mnist_m=True leaves them out of"
    return [f"{both} {said} mnist."] if both else []
