"""Kinds of objects in several ways of picturing them, which FedBN's lists cut: a train and a test list a domain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fednb.datasets import _images as images
from fednb.datasets._files import table
from fednb.datasets._listed import Rows, in_classes, require_folders, site_of, targets
from fednb.datasets._partition import stratified
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, chosen_sites


@dataclass(frozen=True)
class Lists:
    """A data set at ``<folder>/<domain>/<class>/<file>`` with lists ``splits/<folder>_<domain>_<train|test>.csv``.

    domains: the rows of FedBN's train and test list of each. splits: their names; the last needs no lists.
    sizes: by domain, split and the length of a train list, how many of its first images are for training and of its
    last for validation.
    """

    name: str
    folder: str
    domains: Mapping[str, tuple[int, int]]
    classes: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: Callable[[str, str, int], tuple[int, int]]

    def federation(
        self,
        root: Path,
        split: str,
        size: int,
        drop_duplicates: bool,
        site: str | None,
        train_images: int | None = None,
        spare: bool = False,
    ) -> Federation:
        """The options are those of ``office_caltech10.load``."""
        images.check_size(size)
        sites, notes = [], []
        for domain, (train, test) in self.rows(root, split=split, site=site).items():
            parts = self._cut(domain, split, train, test, train_images)[: None if spare else 3]
            parts = _without_duplicates(domain, parts, drop_duplicates, notes)
            for part, listed, rows in zip(("train", "test"), (train, test), self.domains[domain], strict=True):
                if split != self.splits[-1] and len(listed) != rows:
                    notes.append(f"The {part} list of {domain} has {len(listed)} rows; FedBN's has {rows}.")
            sites.append(site_of(root, self.name, domain, parts, size, notes))
        return Federation(self.name, sites, self.classes, notes)

    def rows(
        self, root: Path, *, split: str = "fedbn", site: str | None = None, **options
    ) -> dict[str, tuple[Rows, Rows]]:
        """By site the images of its train and of its test list; of the last split, drawn by class, always the same."""
        if split not in self.splits:
            raise RecipeError(f'{self.name} has no split "{split}"; {nearest(str(split), self.splits)}')
        chosen = chosen_sites(self.name, self.domains, site)
        require_folders([root / self.folder / domain for domain in chosen], self.classes)
        if split == self.splits[-1]:
            return {domain: self._drawn(root, domain) for domain in chosen}
        held = {}
        for domain in chosen:
            train, test = (self._listed(root, domain, part) for part in ("train", "test"))
            if common := {*train} & {*test}:
                raise DataError(f"{min(common)[0]} is in the train and in the test list of {domain}; expected one.")
            held[domain] = train, test
        return held

    def _listed(self, root: Path, domain: str, part: str) -> Rows:
        """The images of a list, in its order."""
        file = root / "splits" / f"{self.folder.lower()}_{domain}_{part}.csv"
        if not file.is_file():
            raise DataError(f'There is no {file}, the {part} list of {domain}; split="stratified" needs no lists.')
        rows = []
        for number, (path, label) in enumerate(table(file, "path", "label"), 1):
            parts = path.replace("\\", "/").split("/")[-3:]
            if len(parts) != 3 or parts[:2] != [domain, label] or label not in self.classes:
                raise DataError(
                    f'{file}, entry {number}: path "{path}" and label "{label}"; expected '
                    f"{domain}/<class>/<file> and its class, one of {', '.join(self.classes)}."
                )
            rows.append((root.joinpath(self.folder, *parts), self.classes.index(label)))
        if not rows or len({*rows}) < len(rows):
            raise DataError(f"{file} has {len(rows)} entries, {len({*rows})} different; expected each image once.")
        return rows

    def _drawn(self, root: Path, domain: str) -> tuple[Rows, Rows]:
        """Training and validation images, and test images, in the sizes of FedFA's tables."""
        rows, (train, test) = in_classes(root / self.folder / domain, self.classes), self.domains[domain]
        if len(rows) != train + test:
            raise DataError(
                f'{root / self.folder / domain} has {len(rows)} images; split="stratified" divides {train + test}. '
                'Complete the folder, or use the federation "folders" for other images.'
            )
        cuts = stratified(targets(rows), (*self.sizes(domain, "fedfa", train), test), self.name, domain)
        train, validation, test = ([rows[position] for position in cut] for cut in cuts)
        return train + validation, test

    def _cut(self, domain: str, split: str, listed: Rows, test: Rows, train_images: int | None) -> list[Rows]:
        """Training, validation, test and spare images."""
        drawn = split == self.splits[-1]
        length = self.domains[domain][0] if drawn else len(listed)
        train, validation = self.sizes(domain, "fedfa" if drawn else split, length)
        most, given = len(listed) - validation, train_images is not None
        if validation < 1 or most < 1 or not (given or 0 < train <= most):
            raise DataError(
                f'the train list of {domain} has {len(listed)} images; split="{split}" trains on {train} and validates '
                f"on {max(validation, 1)} others. Get the whole list."
            )
        count = train_images if given else train
        if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= most:
            raise RecipeError(
                f'train_images is {count!r}; {domain} with split="{split}" has 1 to {most} beside its validation '
                "images."
            )
        return [listed[:count], listed[most:], test, listed[count:most]]


def _without_duplicates(domain: str, parts: list[Rows], drop: bool, notes: list[str]) -> list[Rows]:
    """The parts without training and validation images whose bytes are a test image's, which else are counted alone;
    spare images without those of another image."""
    files = list(dict.fromkeys(file for part in parts for file, _ in part))
    digest = dict(zip(files, images.digests(files), strict=True))

    def without(part: Rows, others: list[Rows]) -> Rows:
        same = {digest[file] for other in others for file, _ in other}
        return [row for row in part if digest[row[0]] not in same]

    train, validation, test, *spare = parts
    kept = [without(part, [test]) for part in (train, validation)]
    if spare:
        (listed,), spare = spare, [without(spare[0], parts[:3])]
    counts = {name: len(part) - len(own) for name, part, own in zip(("train", "validation"), parts, kept, strict=False)}
    if said := ", ".join(f"{count} in {name}" for name, count in counts.items() if count):
        done = "left out" if drop else "kept; drop_duplicates=True leaves them out"
        notes.append(f"{domain}, images with the same bytes as a test image: {said} ({done}).")
    if spare:
        left_out = f"{len(listed) - len(spare[0])} with the same bytes as another of its images left out"
        notes.append(f"{domain}: {len(spare[0])} spare images; {left_out}.")
    return [*(kept if drop else (train, validation)), test, *spare]
