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

DRAWN = "stratified"  # the split that needs no lists


@dataclass(frozen=True)
class Lists:
    """A data set at ``<folder>/<domain>/<class>/<file>`` with lists ``splits/<folder>_<domain>_<train|test>.csv``.

    domains: the rows of each one's train and test list. sizes: how many of a train list's first images train and of its
    last validate; by domain, split and the length of the list."""

    name: str
    folder: str
    domains: Mapping[str, tuple[int, int]]
    classes: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: Callable[[str, str, int], tuple[int, int]]

    def federation(
        self, root: Path, split: str, size: int, drop: bool, site: str | None, train_images=None, spare: bool = False
    ) -> Federation:
        """The options are those of ``office_caltech10.load``."""
        sites, notes = [], []
        for domain, (listed, test) in self.rows(root, split=split, site=site).items():
            parts = self.cut(domain, split, listed, test, train_images)[: None if spare else 3]
            parts = _without_duplicates(domain, parts, drop, notes)
            sites.append(site_of(root, self.name, domain, parts, size, notes))
        return Federation(self.name, sites, self.classes, notes)

    def rows(self, root: Path, *, split="fedbn", site: str | None = None, **options) -> dict[str, tuple[Rows, Rows]]:
        """By site the images of its train and of its test list, or as many that are drawn by class."""
        if split not in self.splits:
            raise RecipeError(f'{self.name} has no split "{split}"; {nearest(str(split), self.splits)}')
        chosen = chosen_sites(self.name, self.domains, site)
        require_folders([root / self.folder / domain for domain in chosen], self.classes)
        return {domain: (self._drawn if split == DRAWN else self._listed)(root, domain) for domain in chosen}

    def _listed(self, root: Path, domain: str) -> tuple[Rows, Rows]:
        held, seen = {"train": [], "test": []}, set()
        for part, rows in held.items():
            file = root / "splits" / f"{self.folder.lower()}_{domain}_{part}.csv"
            if not file.is_file():
                raise DataError(f'There is no {file}, the {part} list of {domain}; split="{DRAWN}" needs no lists.')
            for number, (path, label) in enumerate(table(file, "path", "label"), 1):
                parts = tuple(path.replace("\\", "/").split("/")[-3:])
                if parts[:-1] != (domain, label) or label not in self.classes or parts in seen:
                    expected = f"{domain}/<class>/<file>, its class, and each image once in both lists"
                    raise DataError(f'{file}, entry {number}: path "{path}" and label "{label}"; expected {expected}.')
                seen.add(parts)
                rows.append((root.joinpath(self.folder, *parts), self.classes.index(label)))
            if not rows:
                raise DataError(f"{file} has no entries. Fetch it again.")
        return held["train"], held["test"]

    def _drawn(self, root: Path, domain: str) -> tuple[Rows, Rows]:
        """The same without lists, in the sizes of FedFA's tables."""
        rows, (train, test) = in_classes(root / self.folder / domain, self.classes), self.domains[domain]
        if len(rows) != train + test:
            divided = f'split="{DRAWN}" divides {train + test}. Complete it, or use "folders"'
            raise DataError(f"{root / self.folder / domain} has {len(rows)} images; {divided}.")
        cuts = stratified(targets(rows), (*self.sizes(domain, "fedfa", train), test), self.name, domain)
        train, validation, test = ([rows[position] for position in cut] for cut in cuts)
        return train + validation, test

    def cut(self, domain: str, split: str, listed: Rows, test: Rows, train_images: int | None) -> list[Rows]:
        """Training, validation, test and spare images."""
        length = self.domains[domain][0] if split == DRAWN else len(listed)
        train, validation = self.sizes(domain, "fedfa" if split == DRAWN else split, length)
        count, most = train if train_images is None else train_images, len(listed) - validation
        if validation < 1 or isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= most:
            error = DataError if train_images is None else RecipeError
            of = f"of the {len(listed)} images of its train list; expected 1 to {most} and 1 or more"
            raise error(f'{domain} with split="{split}" would train on {count!r} and validate on {validation} {of}.')
        return [listed[:count], listed[most:], test, listed[count:most]]


def _without_duplicates(domain: str, parts: list[Rows], drop: bool, notes: list[str]) -> list[Rows]:
    """The parts without training and validation images whose bytes are a test image's, or a note on them; spare images
    without those of another image."""
    files = list(dict.fromkeys(file for part in parts for file, _ in part))
    digest = dict(zip(files, images.digests(files), strict=True))

    def without(part: Rows, others: list[Rows]) -> Rows:
        same = {digest[file] for other in others for file, _ in other}
        return [row for row in part if digest[row[0]] not in same]

    train, validation, test, *spare = parts
    kept = [without(part, [test]) for part in (train, validation)]
    counts = {"train": len(train) - len(kept[0]), "validation": len(validation) - len(kept[1])}
    if said := ", ".join(f"{count} in {name}" for name, count in counts.items() if count):
        done = "left out" if drop else "kept; drop_duplicates=True leaves them out"
        notes.append(f"{domain}, images with the same bytes as a test image: {said} ({done}).")
    apart = [without(rows, parts[:3]) for rows in spare]
    for rows, left in zip(spare, apart, strict=True):
        same = f"{len(rows) - len(left)} with the same bytes as another of its images left out"
        notes.append(f"{domain}: {len(left)} spare images; {same}.")
    return [*(kept if drop else (train, validation)), test, *apart]
