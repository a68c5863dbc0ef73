"""Kinds of objects in several ways of picturing them, in class folders, cut as FRAug cuts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fednb.datasets import _images as images
from fednb.datasets._listed import Rows, in_classes, require_folders, site_of, targets
from fednb.datasets._partition import check_shares, sizes, stratified
from fednb.errors import RecipeError
from fednb.federation import Federation, chosen_sites

TEST, VALIDATION = 0.1, 0.1  # of a domain's images; of the others


@dataclass(frozen=True)
class Domains:
    """A data set at ``<name>/<folder>/<class>/<file>``. domains: each site's folder. note: of all federations. side:
    of the published files, in pixels."""

    name: str
    domains: Mapping[str, str]
    classes: tuple[str, ...]
    note: str
    side: int | None = None

    def load(
        self,
        root: Path,
        *,
        fraction: float = 0.1,
        test_fraction: float = 1.0,
        size: int = 224,
        spare: bool = False,
        seed: int = 0,
        site: str | None = None,
    ) -> Federation:
        """A site for each domain: art, clipart, product, real of Office-Home, 65 classes; art_painting, cartoon, photo,
        sketch of PACS, seven classes.

        A domain is cut by class. A tenth is for testing, always the same; of the rest a tenth is validation, drawn by
        ``seed``, and of what is left ``fraction`` is used for training. FRAug's code takes the same shares, of
        Office-Home by the order in which the file system lists a folder, of PACS from its own training lists.

        Args:
            fraction: share of a domain's training images that is used, stratified by class. FRAug: 0.1, by which its
                code trains on 8.1 % of a domain of Office-Home; its text says "10% of the original data": 0.1235.
            test_fraction: share of the test images that is used, stratified; below 1 testing takes less time.
            size: FRAug prints none, its code uses 224.
            spare: whether the training images that ``fraction`` leaves out are each site's ``spare``, as FRAug's Table
                1 needs; at 224 pixels those of Office-Home take 1.7 GB.
            seed: of the validation and training images.

        Reference: FRAug, Sec. 4.1.1, and its released code.
        """
        check_shares(fraction=fraction, test_fraction=test_fraction)
        sites, notes = [], [self.note]
        for domain, rows in self.rows(root, site=site).items():
            labels = targets(rows)
            rest, test = stratified(labels, sizes(len(rows), (1 - TEST, TEST)), self.name, domain)
            shares = sizes(len(rest), (1 - VALIDATION, VALIDATION))
            train, validation = (rest[part] for part in stratified(labels[rest], shares, self.name, domain, seed))
            used, tested = round(len(train) * fraction), round(len(test) * test_fraction)
            if not (used and tested and len(validation)):
                left = f"{used} training, {len(validation)} validation and {tested} test images"
                by = f"fraction={fraction} and test_fraction={test_fraction}"
                raise RecipeError(f"{domain} is left with {left} by {by}. Enlarge them.")
            side = images.stored(rows[0][0])[0][0]
            if self.side not in (None, side):
                own = f"{self.side} x {self.side}"
                notes.append(f"Files of {side} x {side} pixels; {self.name.upper()}' own are {own}.")
            cuts = [train[:used], validation, test[:tested], *([train[used:]] if spare else [])]
            sites.append(site_of(root, self.name, domain, [[rows[n] for n in part] for part in cuts], size, notes))
        return Federation(self.name, sites, self.classes, notes)

    def rows(self, root: Path, *, site: str | None = None, **options) -> dict[str, Rows]:
        """By site the image files of its domain."""
        chosen = chosen_sites(self.name, self.domains, site)
        places = {domain: root / self.name / self.domains[domain] for domain in chosen}
        require_folders(places.values(), self.classes)
        return {domain: in_classes(place, self.classes) for domain, place in places.items()}
