"""Domains in class folders, cut as FRAug cuts them: a fraction of the training images is used."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.data import _images as images
from fednb.data._class_folders import Domains, listed
from fednb.data._partition import check_shares, sizes, stratified
from fednb.data._published import Needs
from fednb.errors import RecipeError
from fednb.federation import Federation, Site, Split, chosen_sites

TEST, VALIDATION = 0.1, 0.1  # of a domain's images; of the others


@dataclass(frozen=True)
class Cut(Domains):
    """A domain is cut by class. A tenth is for testing, always the same; of the rest a tenth is validation, drawn by
    ``seed``, and of what is left ``fraction`` is used for training. ``note``: the first of every federation.

    Reference: FRAug, Sec. 4.1.1, and its released code.
    """

    needs: Needs
    note: str

    def federation(
        self,
        root: Path,
        fraction: float,
        test_fraction: float,
        size: int,
        spare: bool,
        seed: int,
        site: str | None,
        noted: Callable[[str, list[Path], list[Path]], list[str]],
    ) -> Federation:
        """The options are those of ``pacs.load``; ``noted`` makes notes on a domain from its name, its files and those
        of them that are used.

        Raises DataError when a domain or a class is missing or empty or an image damaged; RecipeError for an option
        out of its range, or when a share leaves no image.
        """
        images.check_size(size)
        check_shares(fraction=fraction, test_fraction=test_fraction)
        here = chosen_sites(self.name, self.domains, site)
        self.needs.require(self.missing(root, sites=here))
        sites, notes = [], [self.note]
        for domain in here:
            paths, targets, unused = listed(self.place(root, domain), self.classes)
            parts = self._parts(targets, domain, fraction, test_fraction, seed)[: None if spare else 3]
            used = np.sort(np.concatenate(parts))
            chosen = [paths[position] for position in used]
            pixels, unusual = images.read(root, f"{self.name}_{domain}", chosen, images.digests(chosen), size)
            whole = Split(torch.from_numpy(pixels), torch.from_numpy(targets[used]))
            sites.append(Site(domain, *(whole.select(np.searchsorted(used, part)) for part in parts)))
            notes += [*unused, *unusual, *noted(domain, paths, chosen)]
        return Federation(self.name, sites, self.classes, tuple(notes))

    def _parts(
        self, targets: np.ndarray, domain: str, fraction: float, test_fraction: float, seed: int
    ) -> list[np.ndarray]:
        """The positions of training, validation, test and spare images in a domain."""
        rest, test = stratified(targets, sizes(len(targets), (1 - TEST, TEST)), self.name, domain)
        shares = sizes(len(rest), (1 - VALIDATION, VALIDATION))
        train, validation = (rest[own] for own in stratified(targets[rest], shares, self.name, domain, seed))
        used = round(len(train) * fraction)
        tested = test[: round(len(test) * test_fraction)]
        parts = [train[:used], validation, tested, train[used:]]
        if not all(len(part) for part in parts[:3]):
            raise RecipeError(
                f"{domain} is left with {len(parts[0])} training, {len(validation)} validation and {len(tested)} test "
                f"images by fraction={fraction} and test_fraction={test_fraction}. Enlarge them."
            )
        return parts
