"""Domains in class folders, cut as FRAug cuts them: a fraction of the training images is used."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.data import _class_folders as class_folders
from fednb.data import _images as images
from fednb.data._partition import check_share, sizes, stratified
from fednb.errors import RecipeError
from fednb.federation import Site, Split

TEST, VALIDATION = 0.1, 0.1  # of a domain's images; of the others


@dataclass(frozen=True)
class Cut:
    """A domain is cut by class. A tenth is for testing, always the same; of the rest a tenth is validation, drawn by
    ``seed``, and of what is left ``fraction`` is used for training.

    Args:
        name: of the federation.
        classes: the names of the class folders, in order.
        fraction: share of a domain's training images that is used, stratified by class.
        test_fraction: share of the test images that is used, stratified.
        spare: whether the training images that are left out are handed over as the site's ``spare``.
        seed: of the validation and training images.

    Reference: FRAug, Sec. 4.1.1, and its released code.

    Raises RecipeError for a share out of its range.
    """

    name: str
    classes: tuple[str, ...]
    fraction: float
    test_fraction: float
    spare: bool
    seed: int

    def __post_init__(self):
        for name in ("fraction", "test_fraction"):
            check_share(name, getattr(self, name))

    def site(self, root: Path, domain: str, place: Path, size: int) -> tuple[Site, list[str], list[Path]]:
        """The site ``domain`` whose class folders are in ``place``, RGB ``size`` x ``size``; notes on files that are
        unused or unusual; and the files that were decoded.

        Raises DataError when a class is empty or an image damaged; RecipeError when a share leaves no image.
        """
        paths, targets, unused = class_folders.listed(place, self.classes)
        parts = self._parts(targets, domain)[: None if self.spare else 3]
        used = np.sort(np.concatenate(parts))
        chosen = [paths[position] for position in used]
        pixels, unusual = images.read(root, f"{self.name}_{domain}", chosen, images.digests(chosen), size)
        whole = Split(torch.from_numpy(pixels), torch.from_numpy(targets[used]))
        rows = (np.searchsorted(used, part) for part in parts)
        return Site(domain, *(whole.select(row) for row in rows)), [*unused, *unusual], chosen

    def _parts(self, targets: np.ndarray, domain: str) -> list[np.ndarray]:
        """The positions of training, validation, test and spare images in a domain."""
        rest, test = stratified(targets, sizes(len(targets), (1 - TEST, TEST)), self.name, domain)
        shares = sizes(len(rest), (1 - VALIDATION, VALIDATION))
        own = stratified(targets[rest], shares, self.name, domain, self.seed)
        train, validation = (rest[positions] for positions in own)
        used = round(len(train) * self.fraction)
        tested = test[: round(len(test) * self.test_fraction)]
        parts = [train[:used], validation, tested, train[used:]]
        if not all(len(part) for part in parts[:3]):
            raise RecipeError(
                f"{domain} is left with {len(parts[0])} training, {len(validation)} validation and {len(tested)} test "
                f"images by fraction={self.fraction} and test_fraction={self.test_fraction}. Enlarge them."
            )
        return parts
